// What the cache has to know of an object, read from its protobuf as it came. Metadata is field 1 of every kind's message; everything else
// is skipped but for what selectors name.

import { ProtobufReader } from '../../../kit/core/text/protobuf-reader.ts'
import { readEnvelope } from '../../../kube/core/objects/protobuf-envelope.ts'
import type { Labels } from '../../../kube/core/selectors/label-requirement.ts'
import type { FieldPath, SelectableField } from '../fields/selectable-fields.ts'
import { KnownValues } from './known-values.ts'
import { MalformedError, malformed } from './malformed.ts'
import { type ByteRange, type Facts, INITIAL_EVENTS_END, isKeepableVersion, NO_LABELS } from './object-facts.ts'

/** Field of the message that all kinds have first, and those of it (apimachinery/pkg/apis/meta/v1/generated.proto). */
export const METADATA_FIELD = 1
export const META = {
  name: 1,
  generateName: 2,
  namespace: 3,
  selfLink: 4,
  uid: 5,
  resourceVersion: 6,
  generation: 7,
  creationTimestamp: 8,
  labels: 11,
  annotations: 12,
} as const

/** Fields of an object, without those inside of what is skipped. Few objects that etcd takes have so many bytes. */
export const MAX_OBJECT_FIELDS = 1_000_000
/** Key, value, and what stands in front of them. */
const MAX_END_ANNOTATION = INITIAL_EVENTS_END.length + 'true'.length + 4

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
  readonly name: string
  readonly namespace: string
  readonly uid: string
  readonly resourceVersion: string
  readonly labels: Labels
  readonly endsInitialEvents: boolean
}

/** Reads the facts of objects of one resource. */
export class ProtobufFactsReader {
  readonly #fields: readonly SelectableField[]
  /** The path of every field, each once. */
  readonly #paths: readonly FieldPath[]
  readonly #known = new KnownValues()

  /** @param fields kept of every object */
  constructor(fields: readonly SelectableField[]) {
    this.#fields = fields
    this.#paths = [...new Set(fields.flatMap(({ paths }) => paths))]
  }

  /**
   * @param object one object with its envelope, as a watch has it
   * @throws {MalformedError} also without kind, apiVersion, name or a decimal resourceVersion
   */
  read(object: Buffer): ProtobufFacts {
    const { kind, apiVersion, message, metadata, found, values } = this.#walked(object)
    const { name, namespace, uid, labels } = found
    const resourceVersion = keepable(found.resourceVersion)
    if (name === '') throw malformed('an object has no name')
    if (kind === '' || apiVersion === '') throw malformed('an object has no kind or apiVersion')
    const fields = this.#fields.map((field) => fieldValue(field, values))
    return { kind, apiVersion, namespace, name, uid, resourceVersion, labels, fields, message, metadata }
  }

  /** The facts of a bookmark, which has no name. @throws {MalformedError} */
  readBookmark(object: Buffer): ProtobufBookmark {
    const { kind, apiVersion, message, metadata, found } = this.#walked(object)
    const { endsInitialEvents } = found
    return {
      kind,
      apiVersion,
      resourceVersion: keepable(found.resourceVersion),
      endsInitialEvents,
      message,
      metadata,
    }
  }

  #walked(object: Buffer): Walked {
    try {
      return this.#walk(object)
    } catch (error) {
      if (error instanceof MalformedError || !(error instanceof SyntaxError)) throw error
      throw malformed(error.message)
    }
  }

  #walk(object: Buffer): Walked {
    const { kind, apiVersion, message, start, end } = readEnvelope(object, MAX_OBJECT_FIELDS)
    if (message === undefined) throw malformed('an object has no message')
    let metadata: ByteRange | undefined
    let found: Metadata | undefined
    const values = new Map<FieldPath, string>()
    const bytes = object.subarray(start, end)
    while (message.next()) {
      if (message.number === METADATA_FIELD) {
        if (found !== undefined) throw malformed('a field is there twice')
        metadata = { start: start + message.contentStart, end: start + message.end }
        found = this.#metadata(message)
      } else this.#note(message, bytes, this.#paths, 0, values)
    }
    if (found === undefined || metadata === undefined) throw malformed('an object has no metadata')
    return { kind, apiVersion, message: { start, end }, metadata, found, values }
  }

  #metadata(message: ProtobufReader): Metadata {
    const bytes = message.bytes()
    const reader = new ProtobufReader(bytes, message)
    const found = { name: '', namespace: '', uid: '', resourceVersion: '', endsInitialEvents: false }
    let labelsStart = -1
    let labelsEnd = -1
    while (reader.next()) {
      const { number } = reader
      if (number === META.name) found.name = reader.text()
      else if (number === META.namespace) found.namespace = this.#text(reader, bytes)
      else if (number === META.uid) found.uid = reader.text()
      else if (number === META.resourceVersion) found.resourceVersion = reader.text()
      else if (number === META.annotations) found.endsInitialEvents ||= isEndAnnotation(reader)
      else if (number === META.labels) {
        if (labelsStart < 0) labelsStart = reader.start
        labelsEnd = reader.end
      }
    }
    return { ...found, labels: labelsStart < 0 ? NO_LABELS : this.#labels(bytes, labelsStart, labelsEnd) }
  }

  /** @param bytes of the reader's message */
  #text(reader: ProtobufReader, bytes: Buffer): string {
    return this.#known.text(bytes, reader.contentStart, reader.end, () => reader.text())
  }

  /** @param start of the first label; other fields between them do not matter */
  #labels(metadata: Buffer, start: number, end: number): Labels {
    return this.#known.labels(metadata, start, end, () => readLabels(metadata.subarray(start, end)))
  }

  /**
   * Keeps the value of the field that the reader is at, if it is wanted.
   * @param bytes of the reader's message
   * @param depth how many fields lead to that message
   */
  #note(
    reader: ProtobufReader,
    bytes: Buffer,
    paths: readonly FieldPath[],
    depth: number,
    values: Map<FieldPath, string>,
  ): void {
    const here = paths.filter(({ protobuf }) => protobuf[depth] === reader.number)
    if (here.length === 0) return
    if (here[0]?.protobuf.length === depth + 1) {
      const value = reader.isNumber ? String(reader.integer()) : this.#text(reader, bytes)
      for (const path of here) values.set(path, value)
      return
    }
    const content = reader.bytes()
    const inside = new ProtobufReader(content, reader)
    while (inside.next()) this.#note(inside, content, here, depth + 1, values)
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

function keepable(version: string): string {
  if (!isKeepableVersion(version)) throw malformed('an object has no decimal resourceVersion, or a very long one')
  return version
}

function readLabels(fields: Buffer): Labels {
  const labels: Record<string, string> = {}
  const reader = new ProtobufReader(fields)
  while (reader.next()) {
    if (reader.number !== META.labels) continue
    const [key, value] = readEntry(reader)
    // Not `labels[key] = value`: a key may be `__proto__`.
    Object.defineProperty(labels, key, { value, enumerable: true, writable: true, configurable: true })
  }
  return labels
}

function isEndAnnotation(reader: ProtobufReader): boolean {
  // Most annotations are not so short, and need not be decoded.
  if (reader.end - reader.contentStart > MAX_END_ANNOTATION) return false
  const [key, value] = readEntry(reader)
  return key === INITIAL_EVENTS_END && value === 'true'
}

/** A map is a list of messages: key = 1, value = 2. */
export function readEntry(reader: ProtobufReader): readonly [string, string] {
  const entry = new ProtobufReader(reader.bytes(), reader)
  let key = ''
  let value = ''
  while (entry.next()) {
    if (entry.number === 1) key = entry.text()
    if (entry.number === 2) value = entry.text()
  }
  return [key, value]
}

function fieldValue({ paths, absent, type }: SelectableField, values: ReadonlyMap<FieldPath, string>): string {
  for (const path of paths) {
    const value = values.get(path) ?? ''
    if (value !== '') return type === 'bool' ? String(value !== '0') : value
  }
  return absent
}
