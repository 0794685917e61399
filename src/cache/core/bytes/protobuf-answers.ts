// Answers in Protobuf, made of the bytes of objects and what stands around them: byte by byte what kube-apiserver writes.

import { ProtobufReader } from '../../../kit/core/text/protobuf-reader.ts'
import { lengthPrefix, lengthPrefixBytes, ProtobufWriter } from '../../../kit/core/text/protobuf-writer.ts'
import { ENVELOPE_TAIL, envelopeHead, UNKNOWN } from '../../../kube/core/objects/protobuf-envelope.ts'
import { type EventType, PARTIAL } from './answers.ts'
import { type ByteRange, INITIAL_EVENTS_END } from './object-facts.ts'
import type { TypeMeta } from './object-form.ts'
import { META, METADATA_FIELD, type ProtobufFacts, type ProtobufFactsReader } from './protobuf-facts.ts'

/** Fields of the message of every list: metadata = 1 { selfLink = 1, resourceVersion = 2, continue = 3 }, items. */
export const LIST = { metadata: 1, items: 2 } as const
export const LIST_META = { selfLink: 1, resourceVersion: 2, continue: 3 } as const
/** metav1.WatchEvent { type = 1, object = 2 { raw = 1 } }. */
export const EVENT = { type: 1, object: 2, raw: 1 } as const
const FRAME_LENGTH_BYTES = 4

/** What stands behind the last item of a list. */
export const LIST_TAIL: Buffer = ENVELOPE_TAIL

export interface ProtobufObjectBytes {
  readonly content: Buffer
  readonly facts: ProtobufFacts
}

/** A message in its envelope: an object as a watch has it, and the answer to a GET. */
export function protobufObject(type: TypeMeta, message: Buffer): Buffer {
  return Buffer.concat([envelopeHead(type), lengthPrefix(UNKNOWN.raw, message.length), message, ENVELOPE_TAIL])
}

/**
 * What stands in front of the first item; the list is complete without items too.
 * @param list its own kind and apiVersion: PodList, v1
 * @param itemBytes of all items together, with what stands in front of each
 */
export function protobufListHead(list: TypeMeta, resourceVersion: string, itemBytes: number): Buffer {
  const listMeta = new ProtobufWriter()
  listMeta.element(LIST_META.selfLink, '')
  listMeta.element(LIST_META.resourceVersion, resourceVersion)
  listMeta.element(LIST_META.continue, '')
  const head = new ProtobufWriter()
  head.bytes(LIST.metadata, listMeta.finish())
  const metadata = head.finish()
  return Buffer.concat([envelopeHead(list), lengthPrefix(UNKNOWN.raw, metadata.length + itemBytes), metadata])
}

/** What stands in front of an item's message. */
export function itemHead(messageBytes: number): Buffer {
  return lengthPrefix(LIST.items, messageBytes)
}

/** What stands in front of an item's metadata, where it has nothing else. */
export function partialItemHead(metadataBytes: number): Buffer {
  const inside = lengthPrefix(METADATA_FIELD, metadataBytes)
  return Buffer.concat([itemHead(inside.length + metadataBytes), inside])
}

/** Length of `itemHead`. */
export function itemHeadBytes(messageBytes: number): number {
  return lengthPrefixBytes(LIST.items, messageBytes)
}

/** Length of `partialItemHead`. */
export function partialItemHeadBytes(metadataBytes: number): number {
  const inside = lengthPrefixBytes(METADATA_FIELD, metadataBytes)
  return itemHeadBytes(inside + metadataBytes) + inside
}

/** What stands in front of the metadata of an object that has nothing else; the end is that of a list. */
export function partialObjectHead(metadataBytes: number): Buffer {
  const inside = lengthPrefix(METADATA_FIELD, metadataBytes)
  return Buffer.concat([envelopeHead(PARTIAL), lengthPrefix(UNKNOWN.raw, inside.length + metadataBytes), inside])
}

/** What stands in front of the object in an event of a watch, with the length of the event. */
export function frameHead(type: EventType, objectBytes: number): Buffer {
  const raw = lengthPrefix(EVENT.raw, objectBytes)
  const event = Buffer.concat([
    lengthPrefix(EVENT.type, type.length),
    Buffer.from(type),
    lengthPrefix(EVENT.object, raw.length + objectBytes),
    raw,
  ])
  const length = Buffer.alloc(FRAME_LENGTH_BYTES)
  length.writeUInt32BE(event.length + objectBytes)
  return Buffer.concat([length, event])
}

/** The object with another resourceVersion, as `atVersion` of JSON. */
export function protobufAtVersion(
  { content, facts }: ProtobufObjectBytes,
  resourceVersion: string,
): ProtobufObjectBytes {
  const { start, end } = facts.metadata
  const moved = withMetadata(content, facts, withVersion(content.subarray(start, end), resourceVersion))
  return {
    content: moved.content,
    facts: { ...facts, resourceVersion, message: moved.message, metadata: moved.metadata },
  }
}

interface Envelope extends TypeMeta {
  readonly message: ByteRange
  readonly metadata: ByteRange
}

/** Everything else stays. */
function withMetadata(
  object: Buffer,
  { kind, apiVersion, message, metadata }: Envelope,
  changed: Buffer,
): { content: Buffer; message: ByteRange; metadata: ByteRange } {
  const fields = new ProtobufReader(object.subarray(message.start, message.end), undefined, Number.POSITIVE_INFINITY)
  while (fields.next()) if (fields.number === METADATA_FIELD) break
  const before = object.subarray(message.start, message.start + fields.start)
  const behind = object.subarray(metadata.end, message.end)
  const prefix = lengthPrefix(METADATA_FIELD, changed.length)
  const whole = Buffer.concat([before, prefix, changed, behind])
  const content = protobufObject({ kind, apiVersion }, whole)
  const end = content.length - ENVELOPE_TAIL.length
  const start = end - whole.length
  const at = start + before.length + prefix.length
  return { content, message: { start, end }, metadata: { start: at, end: at + changed.length } }
}

function withVersion(metadata: Buffer, resourceVersion: string): Buffer {
  const version = new ProtobufWriter()
  version.element(META.resourceVersion, resourceVersion)
  return mapFields(metadata, (number, bytes) => (number === META.resourceVersion ? version.finish() : bytes))
}

/** @param change gets each field with its tag; undefined = without it */
function mapFields(metadata: Buffer, change: (number: number, bytes: Buffer) => Buffer | undefined): Buffer {
  const pieces: Buffer[] = []
  const fields = new ProtobufReader(metadata, undefined, Number.POSITIVE_INFINITY)
  while (fields.next()) {
    const changed = change(fields.number, metadata.subarray(fields.start, fields.end))
    if (changed !== undefined) pieces.push(changed)
  }
  return Buffer.concat(pieces)
}

/** Bookmarks of one resource: as upstream's own, because those of all kinds have empty parts. */
export class ProtobufBookmarkTemplate {
  readonly #object: Buffer
  readonly #facts: Envelope
  /** Without annotations. */
  readonly #metadata: Buffer

  /**
   * @param bookmark the object of one from upstream, with annotation or without
   * @throws {MalformedError}
   */
  constructor(bookmark: Buffer, reader: ProtobufFactsReader) {
    this.#object = bookmark
    this.#facts = reader.readBookmark(bookmark)
    const { start, end } = this.#facts.metadata
    const metadata = bookmark.subarray(start, end)
    this.#metadata = mapFields(metadata, (number, bytes) => (number === META.annotations ? undefined : bytes))
  }

  /** The object of a bookmark. */
  object(resourceVersion: string, endsInitialEvents: boolean): Buffer {
    return withMetadata(this.#object, this.#facts, this.#metadataAt(resourceVersion, endsInitialEvents)).content
  }

  #metadataAt(resourceVersion: string, endsInitialEvents: boolean): Buffer {
    const metadata = withVersion(this.#metadata, resourceVersion)
    return endsInitialEvents ? Buffer.concat([metadata, endAnnotation()]) : metadata
  }
}

/** For a template before upstream has sent a bookmark: without the empty parts that the kind has, which mean the same to clients. */
export function plainProtobufBookmark(type: TypeMeta): Buffer {
  const metadata = new ProtobufWriter()
  for (const field of [META.name, META.generateName, META.namespace, META.selfLink, META.uid])
    metadata.element(field, '')
  metadata.element(META.resourceVersion, '0')
  metadata.number(META.generation, 0)
  metadata.element(META.creationTimestamp, '')
  const message = new ProtobufWriter()
  message.bytes(METADATA_FIELD, metadata.finish())
  return protobufObject(type, message.finish())
}

function endAnnotation(): Buffer {
  const entry = new ProtobufWriter()
  entry.element(1, INITIAL_EVENTS_END)
  entry.element(2, 'true')
  const annotation = new ProtobufWriter()
  annotation.bytes(META.annotations, entry.finish())
  return annotation.finish()
}
