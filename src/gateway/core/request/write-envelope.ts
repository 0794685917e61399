// Bodies of writes whose fields the gateway reads: their formats, and what is rejected (apiserver/pkg/endpoints/handlers).

import { Buffer } from 'node:buffer'
import { isRecord } from '../../../kit/api/json/object-shape.ts'
import type { HeaderList } from '../../../kit/api/stream.ts'
import { ProtobufReader } from '../../../kit/core/text/protobuf-reader.ts'
import { ProtobufWriter } from '../../../kit/core/text/protobuf-writer.ts'
import {
  type DecodedObject,
  decodeObject,
  MAX_SMALL_YAML_LENGTH,
  YamlTooLong,
} from '../../../kube/core/objects/strict-decode.ts'
import { isPlainYaml } from '../../../kube/core/objects/yaml-plain.ts'

export const JSON_TYPE = 'application/json'
const YAML_TYPE = 'application/yaml'
const PROTOBUF_TYPE = 'application/vnd.kubernetes.protobuf'
/** The prefix of an object in protocol buffers: `k8s` and 0. */
const MAGIC = Buffer.from('k8s\0')

export type JsonRecord = Readonly<Record<string, unknown>>

/** kube-apiserver would reject this body, with this message. */
export class UnreadableBody extends Error {
  readonly code: 400 | 413 | 415

  constructor(code: 400 | 413 | 415, message: string) {
    super(message)
    this.code = code
  }
}

/** metav1.Preconditions; '' = none. */
export interface Preconditions {
  readonly uid: string
  readonly resourceVersion: string
}

/** The relevant parts of a deletion or an eviction, with the client's own preconditions. */
export interface ReadBody extends Preconditions {
  /** Nothing will be deleted. */
  readonly dryRun: boolean
  /** The type of the body that `bound` returns. */
  readonly contentType: string
  /**
   * The client's body, with these preconditions where it has none of its own.
   * @param resourceVersion '' = any
   */
  bound(uid: string, resourceVersion: string): Buffer
}

/**
 * The formats that kube-apiserver has always accepted; without a content type, JSON. Parameters are ignored.
 * @throws {UnreadableBody} 415, upon which client-go falls back from CBOR
 */
export function bodyType(contentType: string): 'json' | 'yaml' | 'protobuf' {
  switch (contentType.split(';', 1)[0]?.trim().toLowerCase()) {
    case '':
    case JSON_TYPE:
      return 'json'
    case YAML_TYPE:
      return 'yaml'
    case PROTOBUF_TYPE:
      return 'protobuf'
    default:
      throw new UnreadableBody(
        415,
        `the body of the request was in an unknown format - accepted media types include: ${JSON_TYPE}, ${YAML_TYPE}, ${PROTOBUF_TYPE}`,
      )
  }
}

/** The content type of a rewritten body. JSON is also YAML. */
export function typeOf(format: 'json' | 'yaml' | 'protobuf'): string {
  if (format === 'protobuf') return PROTOBUF_TYPE
  return format === 'yaml' ? YAML_TYPE : JSON_TYPE
}

/** @throws {UnreadableBody} 400; 413 for YAML that is not JSON and larger than any DeleteOptions or Eviction */
export function decodeRecord(body: Buffer, format: 'json' | 'yaml'): JsonRecord {
  let value: unknown
  try {
    value = (decodedJson(body, format) ?? decodedYaml(body)).value
  } catch (error) {
    if (error instanceof YamlTooLong) throw new UnreadableBody(413, yamlTooLongMessage(error.limit))
    if (!(error instanceof SyntaxError)) throw error
    throw new UnreadableBody(400, `couldn't get version/kind; json parse error: ${error.message}`)
  }
  if (isRecord(value)) return value
  throw new UnreadableBody(400, "couldn't get version/kind; json parse error: the body is not an object")
}

/** @returns undefined = it may be YAML. @throws {SyntaxError} */
function decodedJson(body: Buffer, format: 'json' | 'yaml'): DecodedObject | undefined {
  try {
    return decodeObject(body.toString('utf8'), 'json')
  } catch (error) {
    if (format === 'yaml' && error instanceof SyntaxError) return undefined
    throw error
  }
}

/** @throws {YamlTooLong} @throws {SyntaxError} */
function decodedYaml(body: Buffer): DecodedObject {
  const text = body.toString('utf8')
  if (text.length <= MAX_SMALL_YAML_LENGTH && !isPlainYaml(body)) throw new SyntaxError(NOT_PLAIN)
  return decodeObject(text, 'yaml', MAX_SMALL_YAML_LENGTH)
}

const NOT_PLAIN =
  'yaml: directives, anchors, aliases, tags, merges, and what is not UTF-8 with plain line breaks, are not read here: send JSON'

function yamlTooLongMessage(limit: number): string {
  return `Request entity too large: limit is ${limit} characters for YAML that is not JSON; send JSON, which may be longer`
}

/** A nested object; null counts as absent. @throws {UnreadableBody} 400 if it is something else */
export function recordMember(of: JsonRecord, name: string, type: string): JsonRecord {
  const value = member(of, name)
  if (value === undefined) return {}
  if (isRecord(value)) return value
  throw wrongType(value, name, type)
}

/** '' when absent. @throws {UnreadableBody} 400 */
export function textMember(of: JsonRecord, name: string, type: string): string {
  const value = member(of, name) ?? ''
  if (typeof value === 'string') return value
  throw wrongType(value, name, type)
}

/** @throws {UnreadableBody} 400 */
export function textsMember(of: JsonRecord, name: string): readonly string[] {
  const value = member(of, name) ?? []
  if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return value
  throw wrongType(value, name, '[]string')
}

function member(of: JsonRecord, name: string): unknown {
  const value = Object.hasOwn(of, name) ? of[name] : undefined
  return value === null ? undefined : value
}

function wrongType(value: unknown, name: string, type: string): UnreadableBody {
  const given = Array.isArray(value) ? 'array' : typeof value
  return new UnreadableBody(400, `json: cannot unmarshal ${given} into Go struct field ${name} of type ${type}`)
}

/**
 * runtime.Unknown behind the magic bytes: typeMeta = 1, raw = 2, contentEncoding = 3, contentType = 4
 * (apimachinery/pkg/runtime/generated.proto).
 */
interface Envelope {
  readonly typeMeta: Buffer
  /** The object itself. */
  readonly raw: Buffer
}

/** @throws {UnreadableBody} 400 */
export function openEnvelope(body: Buffer): Envelope {
  if (!body.subarray(0, MAGIC.length).equals(MAGIC)) {
    throw new UnreadableBody(
      400,
      'provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]',
    )
  }
  return readMessage(() => {
    const typeMeta: Buffer[] = []
    let raw: Buffer = Buffer.alloc(0)
    const reader = new ProtobufReader(body.subarray(MAGIC.length))
    while (reader.next()) {
      // A repeated message is merged, which concatenating the bytes achieves.
      if (reader.number === 1) typeMeta.push(reader.bytes())
      if (reader.number === 2) raw = reader.bytes()
      if (reader.number === 3 && reader.text() !== '') throw new SyntaxError('content encodings are not supported')
    }
    return { typeMeta: Buffer.concat(typeMeta), raw }
  })
}

/** The same object with more fields appended; a message field that is already present is merged. */
export function sealEnvelope({ typeMeta, raw }: Envelope, more: Buffer): Buffer {
  const unknown = new ProtobufWriter()
  unknown.bytes(1, typeMeta)
  unknown.bytes(2, Buffer.concat([raw, more]))
  return Buffer.concat([MAGIC, unknown.finish()])
}

/** DeleteOptions { preconditions = 2 { uid = 1, resourceVersion = 2 } } (apimachinery/pkg/apis/meta/v1/generated.proto). */
export function preconditionsMessage({ uid, resourceVersion }: Preconditions): Buffer {
  const preconditions = new ProtobufWriter()
  preconditions.string(1, uid)
  preconditions.string(2, resourceVersion)
  const options = new ProtobufWriter()
  options.bytes(2, preconditions.finish())
  return options.finish()
}

/** @throws {UnreadableBody} 400 if the bytes are not a message */
export function readMessage<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    throw new UnreadableBody(400, `unable to decode the protobuf body: ${error.message}`)
  }
}

/** The client's own preconditions, and the given ones where it has none. */
export function joined(own: Preconditions, uid: string, resourceVersion: string): Preconditions {
  return {
    uid: own.uid === '' ? uid : own.uid,
    resourceVersion: own.resourceVersion === '' ? resourceVersion : own.resourceVersion,
  }
}

/** `fields`, adjusted for a body other than the one they came with. */
export function fieldsForBody(fields: HeaderList, contentType: string, bytes: number): HeaderList {
  const changed: HeaderList = []
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const name = fields[i] ?? ''
    // 100 Continue is not needed: the body is complete.
    if (name === 'content-type' || name === 'content-length' || name === 'expect') continue
    changed.push(name, fields[i + 1] ?? '')
  }
  changed.push('content-type', contentType, 'content-length', String(bytes))
  return changed
}
