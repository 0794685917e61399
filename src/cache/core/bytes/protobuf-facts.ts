// What the cache has to know of an object, read from its protobuf as it came. Metadata is field 1 of every kind's message; everything else
// is skipped but for what selectors name.

import { ProtobufReader } from '../../../kit/core/text/protobuf-reader.ts'
import { readEnvelope } from '../../../kube/core/objects/protobuf-envelope.ts'
import { isResourceVersion } from '../../../kube/core/objects/resource-version.ts'
import type { FieldPath, SelectableField } from '../fields/selectable-fields.ts'
import { MalformedError, malformed } from './malformed.ts'
import { type ByteRange, type Facts, INITIAL_EVENTS_END } from './object-facts.ts'

/** Field of the message that all kinds have first, and those of it (apimachinery/pkg/apis/meta/v1/generated.proto). */
export const METADATA = 1
export const META = { name: 1, namespace: 3, uid: 5, resourceVersion: 6, labels: 11, annotations: 12 } as const

export interface ProtobufFacts extends Facts {
  /** The message without its envelope: as an item of a list. */
  readonly message: ByteRange
  /** The content of the metadata. */
  readonly metadata: ByteRange
}

export interface ProtobufBookmark {
  readonly kind: string
  readonly apiVersion: string
  readonly resourceVersion: string
  readonly endsInitialEvents: boolean
  readonly message: ByteRange
  readonly metadata: ByteRange
}

interface Metadata {
  name: string
  namespace: string
  uid: string
  resourceVersion: string
  readonly labels: Record<string, string>
  endsInitialEvents: boolean
}

/** Reads the facts of objects of one resource. */
export class ProtobufFactsReader {
  readonly #fields: readonly SelectableField[]
  /** The path of every field, and the fields of which it is one. */
  readonly #paths: readonly FieldPath[]

  /** @param fields kept of every object */
  constructor(fields: readonly SelectableField[]) {
    this.#fields = fields
    this.#paths = [...new Set(fields.flatMap(({ paths }) => paths))]
  }

  /**
   * @param object one object with its envelope, as a watch has it
   * @throws {MalformedError} also without a name or a decimal resourceVersion
   */
  read(object: Buffer): ProtobufFacts {
    const { kind, apiVersion, message, metadata, found, values } = this.#walk(object)
    const { name, namespace, uid, resourceVersion, labels } = found
    if (name === '') throw malformed('an object has no name')
    if (!isResourceVersion(resourceVersion)) throw malformed('an object has no decimal resourceVersion')
    const fields = this.#fields.map((field) => fieldValue(field, values))
    return { kind, apiVersion, namespace, name, uid, resourceVersion, labels, fields, message, metadata }
  }

  /** Of a bookmark, which has no name. @throws {MalformedError} */
  readBookmark(object: Buffer): ProtobufBookmark {
    const { kind, apiVersion, message, metadata, found } = this.#walk(object)
    const { resourceVersion, endsInitialEvents } = found
    if (!isResourceVersion(resourceVersion)) throw malformed('an object has no decimal resourceVersion')
    return { kind, apiVersion, resourceVersion, endsInitialEvents, message, metadata }
  }

  #walk(object: Buffer): Walked {
    try {
      return walk(object, this.#paths)
    } catch (error) {
      if (error instanceof MalformedError || !(error instanceof SyntaxError)) throw error
      throw malformed(error.message)
    }
  }
}

interface Walked {
  readonly kind: string
  readonly apiVersion: string
  readonly message: ByteRange
  readonly metadata: ByteRange
  readonly found: Metadata
  readonly values: ReadonlyMap<FieldPath, string>
}

function walk(object: Buffer, paths: readonly FieldPath[]): Walked {
  // As many as the bytes hold: the object is read once, and its size is limited.
  const envelope = readEnvelope(object, Number.POSITIVE_INFINITY)
  const { kind, apiVersion, message, start, end } = envelope
  if (message === undefined) throw malformed('an object has no message')
  let metadata: ByteRange | undefined
  let found: Metadata | undefined
  const values = new Map<FieldPath, string>()
  while (message.next()) {
    if (message.number === METADATA) {
      if (found !== undefined) throw malformed('a field is there twice')
      const bytes = message.bytes()
      metadata = { start: start + message.end - bytes.length, end: start + message.end }
      found = readMetadata(new ProtobufReader(bytes, message))
    } else note(message, paths, 0, values)
  }
  if (found === undefined || metadata === undefined) throw malformed('an object has no metadata')
  return { kind, apiVersion, message: { start, end }, metadata, found, values }
}

function readMetadata(reader: ProtobufReader): Metadata {
  const labels: Record<string, string> = {}
  const found: Metadata = { name: '', namespace: '', uid: '', resourceVersion: '', labels, endsInitialEvents: false }
  while (reader.next()) {
    switch (reader.number) {
      case META.name:
        found.name = reader.text()
        break
      case META.namespace:
        found.namespace = reader.text()
        break
      case META.uid:
        found.uid = reader.text()
        break
      case META.resourceVersion:
        found.resourceVersion = reader.text()
        break
      case META.labels: {
        const [key, value] = readEntry(reader)
        // Not `labels[key] = value`: a key may be `__proto__`.
        Object.defineProperty(labels, key, { value, enumerable: true, writable: true, configurable: true })
        break
      }
      case META.annotations: {
        const [key, value] = readEntry(reader)
        if (key === INITIAL_EVENTS_END && value === 'true') found.endsInitialEvents = true
        break
      }
      default:
    }
  }
  return found
}

/** A map is a list of messages: key = 1, value = 2. */
function readEntry(reader: ProtobufReader): readonly [string, string] {
  const entry = new ProtobufReader(reader.bytes(), reader)
  let key = ''
  let value = ''
  while (entry.next()) {
    if (entry.number === 1) key = entry.text()
    if (entry.number === 2) value = entry.text()
  }
  return [key, value]
}

/** @param depth how many fields lead to the message of the reader */
function note(
  reader: ProtobufReader,
  paths: readonly FieldPath[],
  depth: number,
  values: Map<FieldPath, string>,
): void {
  const here = paths.filter(({ protobuf }) => protobuf[depth] === reader.number)
  if (here.length === 0) return
  const [first] = here
  if (first?.protobuf.length === depth + 1) {
    for (const path of here) values.set(path, reader.isNumber ? String(reader.integer()) : reader.text())
    return
  }
  const inside = new ProtobufReader(reader.bytes(), reader)
  while (inside.next()) note(inside, here, depth + 1, values)
}

function fieldValue({ paths, absent, type }: SelectableField, values: ReadonlyMap<FieldPath, string>): string {
  for (const path of paths) {
    const value = values.get(path) ?? ''
    if (value !== '') return type === 'bool' ? String(value !== '0') : value
  }
  return absent
}
