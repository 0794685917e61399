// How answers are written: the forms that a client may ask for, of objects that are kept in some form.

import type { WireEncoding } from '../../../kube/api/object-client.ts'
import {
  EVENT_END,
  type EventType,
  eventHead,
  type ListFrame,
  leftOut,
  listFrame,
  objectBody,
  PARTIAL_END,
  PARTIAL_EVENT_END,
  PARTIAL_HEAD,
  PARTIAL_LIST,
  partialEventHead,
  partialListFrame,
} from './answers.ts'
import { declaredMetadata } from './declared-metadata.ts'
import { encodeMetadata } from './encode-metadata.ts'
import { malformed } from './malformed.ts'
import type { ByteRange, ObjectFacts } from './object-facts.ts'
import type { JsonForm, ObjectForm, TypeMeta } from './object-form.ts'
import { type ItemParts, type ItemPlace, ItemReader, type PartReader, someItems } from './part-reader.ts'
import {
  frameHead,
  itemHead,
  itemHeadBytes,
  LIST_TAIL,
  partialItemHead,
  partialItemHeadBytes,
  partialObjectHead,
  protobufListHead,
} from './protobuf-answers.ts'
import type { ProtobufFacts } from './protobuf-facts.ts'
import type { KeptFacts } from './read-encoding.ts'

/** An object or a bookmark, as a watch has it. */
export interface EventObject {
  readonly content: Buffer
  readonly facts: { readonly metadata: ByteRange }
}

/** An object as a watch has it, and what is known of it. */
export interface ObjectBytes {
  readonly content: Buffer
  readonly facts: KeptFacts
}

/** Where an object or a bookmark is. */
interface PlacedObject extends Pick<EventObject, 'facts'> {
  readonly memory: Buffer
  readonly offset: number
  /** Length of the content. */
  readonly bytes: number
}

/** One of a list: its content is where it is placed. */
export interface KeptObject extends ObjectBytes, Omit<PlacedObject, 'facts'> {}

/** What a client asks for. */
export interface AskedForm {
  readonly encoding: WireEncoding
  /** PartialObjectMetadata, or the list of that: metadata and nothing else. */
  readonly partial: boolean
  /** apiVersion of the Table that it is to be. Default: of none. */
  readonly table?: 'meta.k8s.io/v1' | 'meta.k8s.io/v1beta1'
}

export interface ListPieces {
  /** undefined = it is not known before they are written. */
  readonly length: number | undefined
  /** Bytes that are kept for this list alone. */
  readonly ownBytes: number
  /** From the first part on. */
  parts(): PartReader
  /** The same, for what is kept compressed; undefined = its items are made for this list alone. */
  readonly items?: ListItems
}

/** The items of a list, and what stands around all of them. */
export interface ListItems {
  readonly opening: Buffer
  readonly closing: Buffer
  /** Length of each, without what stands around it. */
  bytes(index: number): number
  /** From index `from` to before `to`, with what stands in front of each. */
  some(from: number, to: number): PartReader
}

export interface AnswerForm {
  readonly name: 'json' | 'protobuf' | 'partial json' | 'partial protobuf'
  /** Content-Type of answers, and of watches. */
  readonly mediaType: string
  readonly streamType: string
  /** The answer to a GET. */
  object(object: ObjectBytes): Buffer
  /** How each object of a list has to be written first, which takes long: others have their turn in between. Default: that is not needed. */
  readonly encode?: (object: KeptObject) => Buffer
  /**
   * @param list its own kind and apiVersion: PodList, v1
   * @param encoded what `encode` has made of each object. Default: it is done here
   * @returns undefined = it takes too long to write
   */
  list(
    list: TypeMeta,
    resourceVersion: string,
    objects: readonly KeptObject[],
    encoded?: readonly Buffer[],
  ): ListPieces | undefined
  /** One event of a watch, in parts. */
  event(type: EventType, object: EventObject): readonly Buffer[]
  /** An event for each object that is there when a watch begins. @param mostOpen up to this length the parts of an event are kept together */
  added(objects: readonly KeptObject[], mostOpen: number): PartReader
}

const NOTHING = Buffer.alloc(0)
const JSON_TYPE = { mediaType: 'application/json', streamType: 'application/json' } as const
const PROTOBUF_TYPE = {
  mediaType: 'application/vnd.kubernetes.protobuf',
  streamType: 'application/vnd.kubernetes.protobuf;stream=watch',
} as const
/** Metadata in JSON of which a list is written in Protobuf, before any of it is sent: its length stands in front. */
export const MOST_ENCODED_BYTES: number = 1024 * 1024

/** @returns undefined: what is kept in this form cannot be written so */
export function answerForm(kept: ObjectForm, { encoding, partial }: AskedForm): AnswerForm | undefined {
  if (encoding === 'json') return kept === 'protobuf' ? undefined : JSON_FORMS[kept][partial ? 'partial' : 'full']
  if (kept === 'protobuf') return partial ? PARTIAL_PROTOBUF : PROTOBUF
  // Metadata is the only thing that custom resources have in Protobuf.
  return partial && kept === 'sorted' ? ENCODED_METADATA : undefined
}

const JSON_FORMS: Readonly<Record<JsonForm, Readonly<Record<'full' | 'partial', AnswerForm>>>> = {
  declared: { full: jsonForm('declared'), partial: partialJsonForm('declared') },
  sorted: { full: jsonForm('sorted'), partial: partialJsonForm('sorted') },
}

function jsonForm(form: JsonForm): AnswerForm {
  return {
    name: 'json',
    ...JSON_TYPE,
    object: ({ content }) => objectBody(content),
    list: (list, version, objects) =>
      framed(
        listFrame(list, version, form),
        objects,
        (object, place) => {
          locate(object, place)
          place.start += leftOut(jsonFacts(object.facts), form)
        },
        ({ bytes, facts }) => (form === 'sorted' ? bytes : bytes - jsonFacts(facts).bare),
      ),
    ...events({ locate, before: eventHead, after: EVENT_END }),
  }
}

function partialJsonForm(form: JsonForm): AnswerForm {
  const locateMetadata = form === 'declared' ? locateKeptMetadata : locateDeclaredMetadata
  return {
    name: 'partial json',
    ...JSON_TYPE,
    object: (object) => {
      const { memory, start, end } = placeOf(object, locateMetadata)
      return objectBody(Buffer.concat([PARTIAL_HEAD, memory.subarray(start, end), PARTIAL_END]))
    },
    list: (_, version, objects) =>
      framed(
        partialListFrame(version),
        objects,
        locateMetadata,
        // What Go leaves out is known when it is written.
        form === 'sorted' ? undefined : ({ facts }) => facts.metadata.end - facts.metadata.start,
      ),
    ...events({ locate: locateMetadata, before: partialEventHead, after: PARTIAL_EVENT_END }),
  }
}

function framed(
  { empty, first, next, last }: ListFrame,
  objects: readonly KeptObject[],
  locateItem: Locate<KeptObject>,
  lengthOf: ((object: KeptObject) => number) | undefined,
): ListPieces {
  const around = { after: NOTHING, mostOpen: 0 }
  if (objects.length === 0) {
    const parts = { objects, locate: locateItem, opening: empty, before: () => NOTHING, closing: NOTHING, ...around }
    return { length: empty.length, ownBytes: 0, parts: () => new ItemReader(parts) }
  }
  const frameBytes = first.length + next.length * (objects.length - 1) + last.length
  const parts: ItemParts<KeptObject> = {
    objects,
    locate: locateItem,
    opening: first,
    before: (_, number) => (number === 0 ? NOTHING : next),
    closing: last,
    ...around,
  }
  return {
    length: lengthOf && objects.reduce((sum, object) => sum + lengthOf(object), frameBytes),
    ownBytes: 0,
    parts: () => new ItemReader(parts),
    items: itemsOf(parts),
  }
}

function itemsOf<T>(parts: ItemParts<T>): ListItems {
  const { objects, opening, closing, locate } = parts
  const place: ItemPlace = { memory: NOTHING, start: 0, end: 0 }
  return {
    opening,
    closing,
    bytes: (index) => {
      const object = objects[index]
      if (object === undefined) return 0
      locate(object, place)
      return place.end - place.start
    },
    some: (from, to) => someItems(parts, from, to),
  }
}

/** How an object is sent in an event. */
interface EventWords {
  readonly locate: Locate<PlacedObject>
  /** What stands in front of it, by its length, and behind. */
  readonly before: (type: EventType, bytes: number) => Buffer
  readonly after: Buffer
}

function events(words: EventWords): Pick<AnswerForm, 'event' | 'added'> {
  const { before, after } = words
  return {
    event: (type, object) => {
      const { memory, start, end } = placeOf(object, words.locate)
      return [before(type, end - start), memory.subarray(start, end), after]
    },
    added: (objects, mostOpen) =>
      new ItemReader({
        objects,
        locate: words.locate,
        opening: NOTHING,
        before: (bytes) => before('ADDED', bytes),
        after,
        closing: NOTHING,
        mostOpen,
      }),
  }
}

type Locate<T> = (object: T, place: ItemPlace) => void

/** The whole object. */
function locate({ memory, offset, bytes }: PlacedObject, place: ItemPlace): void {
  place.memory = memory
  place.start = offset
  place.end = offset + bytes
}

function locateKeptMetadata({ memory, offset, facts: { metadata } }: PlacedObject, place: ItemPlace): void {
  place.memory = memory
  place.start = offset + metadata.start
  place.end = offset + metadata.end
}

function locateDeclaredMetadata(object: PlacedObject, place: ItemPlace): void {
  put(declaredMetadata(contentOf(object), object.facts.metadata), place)
}

function locateEncodedMetadata(object: PlacedObject, place: ItemPlace): void {
  put(encodeMetadata(contentOf(object), object.facts.metadata), place)
}

function put(bytes: Buffer, place: ItemPlace): void {
  place.memory = bytes
  place.start = 0
  place.end = bytes.length
}

function contentOf({ memory, offset, bytes }: PlacedObject): Buffer {
  return memory.subarray(offset, offset + bytes)
}

function placeOf({ content, facts }: EventObject, locateIn: Locate<PlacedObject>): ItemPlace {
  const place = { memory: NOTHING, start: 0, end: 0 }
  locateIn({ memory: content, offset: 0, bytes: content.length, facts }, place)
  return place
}

/** What stands in front of an item, by the length of what is sent of it. */
interface ItemHeads {
  headOf(bytes: number): Buffer
  lengthOf(bytes: number): number
}

const WHOLE_ITEMS: ItemHeads = { headOf: itemHead, lengthOf: itemHeadBytes }
const PARTIAL_ITEMS: ItemHeads = { headOf: partialItemHead, lengthOf: partialItemHeadBytes }

const PROTOBUF: AnswerForm = {
  name: 'protobuf',
  ...PROTOBUF_TYPE,
  object: ({ content }) => content,
  list: (list, version, objects) =>
    lengthFirst(list, version, objects, WHOLE_ITEMS, ({ facts }) => protobufFacts(facts).message),
  ...events({ locate, before: frameHead, after: NOTHING }),
}

const PARTIAL_PROTOBUF: AnswerForm = {
  name: 'partial protobuf',
  ...PROTOBUF_TYPE,
  object: (object) => Buffer.concat(partialMessage(metadataOf(object))),
  list: (_, version, objects) =>
    lengthFirst(PARTIAL_LIST, version, objects, PARTIAL_ITEMS, ({ facts }) => facts.metadata),
  ...events({ locate: locateKeptMetadata, before: partialFrameHead, after: LIST_TAIL }),
}

const ENCODED_METADATA: AnswerForm = {
  name: 'partial protobuf',
  ...PROTOBUF_TYPE,
  object: ({ content, facts }) => Buffer.concat(partialMessage(encodeMetadata(content, facts.metadata))),
  encode: ({ content, facts }) => encodeMetadata(content, facts.metadata),
  list: (_, version, objects, encoded) => {
    if (metadataBytes(objects) > MOST_ENCODED_BYTES) return undefined
    const all = encoded ?? objects.map(({ content, facts }) => encodeMetadata(content, facts.metadata))
    const items = all.map((memory) => ({ memory, offset: 0, range: { start: 0, end: memory.length } }))
    const pieces = lengthFirst(PARTIAL_LIST, version, items, PARTIAL_ITEMS, ({ range }) => range)
    return { length: pieces.length, ownBytes: pieces.length ?? 0, parts: pieces.parts }
  },
  ...events({ locate: locateEncodedMetadata, before: partialFrameHead, after: LIST_TAIL }),
}

/** How much there is for `encode`. */
export function metadataBytes(objects: readonly ObjectBytes[]): number {
  return objects.reduce((sum, { facts: { metadata } }) => sum + metadata.end - metadata.start, 0)
}

function metadataOf({ content, facts: { metadata } }: EventObject): Buffer {
  return content.subarray(metadata.start, metadata.end)
}

function partialMessage(metadata: Buffer): readonly Buffer[] {
  return [partialObjectHead(metadata.length), metadata, LIST_TAIL]
}

function partialFrameHead(type: EventType, metadataLength: number): Buffer {
  const head = partialObjectHead(metadataLength)
  return Buffer.concat([frameHead(type, head.length + metadataLength + LIST_TAIL.length), head])
}

/** The length of all items stands in front of them: it is counted in one turn of a thread, and nothing is written for that. */
function lengthFirst<T extends Pick<PlacedObject, 'memory' | 'offset'>>(
  list: TypeMeta,
  version: string,
  objects: readonly T[],
  { headOf, lengthOf }: ItemHeads,
  rangeOf: (object: T) => ByteRange,
): ListPieces {
  let itemBytes = 0
  for (const object of objects) {
    const { start, end } = rangeOf(object)
    itemBytes += lengthOf(end - start) + end - start
  }
  const parts: ItemParts<T> = {
    objects,
    locate: (object, place) => {
      const { start, end } = rangeOf(object)
      place.memory = object.memory
      place.start = object.offset + start
      place.end = object.offset + end
    },
    opening: protobufListHead(list, version, itemBytes),
    before: headOf,
    after: NOTHING,
    closing: LIST_TAIL,
    mostOpen: 0,
  }
  return {
    length: parts.opening.length + itemBytes + LIST_TAIL.length,
    ownBytes: 0,
    parts: () => new ItemReader(parts),
    items: itemsOf(parts),
  }
}

export function isProtobuf(facts: KeptFacts): facts is ProtobufFacts {
  return 'message' in facts
}

function protobufFacts(facts: KeptFacts): ProtobufFacts {
  if (!isProtobuf(facts)) throw malformed('an object is not kept in Protobuf')
  return facts
}

function jsonFacts(facts: KeptFacts): ObjectFacts {
  if (isProtobuf(facts)) throw malformed('an object is not kept in JSON')
  return facts
}
