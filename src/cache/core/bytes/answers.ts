// Answers in JSON, made of the bytes of objects and what stands around them: byte by byte what kube-apiserver writes.

import { declaredMetadata } from './declared-metadata.ts'
import { malformed } from './malformed.ts'
import { type ByteRange, type FactsReader, INITIAL_EVENTS_END, type ObjectFacts } from './object-facts.ts'
import type { JsonForm, TypeMeta } from './object-form.ts'

export type EventType = 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR'

/** What stands around the items of a list. */
export interface ListFrame {
  /** The answer without items. */
  readonly empty: Buffer
  /** In front of the first item, of each other, and behind the last. */
  readonly first: Buffer
  readonly next: Buffer
  readonly last: Buffer
}

/** An object, and where it has what. */
export interface JsonObjectBytes {
  readonly json: Buffer
  readonly facts: ObjectFacts
}

export const PARTIAL: TypeMeta = { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1' }
export const PARTIAL_LIST: TypeMeta = { ...PARTIAL, kind: 'PartialObjectMetadataList' }
const PARTIAL_TEXT = `${typeText(PARTIAL)},"metadata":`
/** What stands around the metadata of an object that has nothing else. */
export const PARTIAL_HEAD: Buffer = Buffer.from(PARTIAL_TEXT)
export const PARTIAL_END: Buffer = Buffer.from('}')
const NEWLINE = Buffer.from('\n')

/** @param list its own kind and apiVersion: PodList, v1 */
export function listFrame(list: TypeMeta, resourceVersion: string, form: JsonForm): ListFrame {
  const version = `"resourceVersion":${JSON.stringify(resourceVersion)}`
  if (form === 'declared') {
    // Items lack kind and apiVersion: listItem leaves out their brace with these.
    return frame(`${typeText(list)},"metadata":{${version}},"items":[`, '{', ',{', ']}\n')
  }
  const head = `{"apiVersion":${JSON.stringify(list.apiVersion)},"items":[`
  return frame(head, '', ',', `],"kind":${JSON.stringify(list.kind)},"metadata":{"continue":"",${version}}}\n`)
}

/**
 * How much of an object a list leaves out in front. What is kept for a list that is declared has to be declared too: `bare` is not 0.
 * @throws {MalformedError} if it is not
 */
export function leftOut({ bare }: ObjectFacts, form: JsonForm): number {
  if (form === 'sorted') return 0
  if (bare === 0) throw malformed('an object does not begin with its kind and apiVersion')
  return bare
}

/** An item of a list: a view of the object. @throws {MalformedError} as `leftOut` */
export function listItem(json: Buffer, facts: ObjectFacts, form: JsonForm): Buffer {
  return json.subarray(leftOut(facts, form))
}

/** The metadata alone; a view of the object, if it has the form that it needs. */
export function partialMetadata(json: Buffer, { metadata }: { metadata: ByteRange }, form: JsonForm): Buffer {
  return form === 'declared' ? json.subarray(metadata.start, metadata.end) : declaredMetadata(json, metadata)
}

/** PartialObjectMetadataList; its items are `partialMetadata`. */
export function partialListFrame(resourceVersion: string): ListFrame {
  const head = `${typeText(PARTIAL_LIST)},"metadata":{"resourceVersion":${JSON.stringify(resourceVersion)}},"items":`
  // Go writes an empty list as null where it was never made.
  return { ...frame(`${head}[`, PARTIAL_TEXT, `},${PARTIAL_TEXT}`, '}]}\n'), empty: Buffer.from(`${head}null}\n`) }
}

/** The answer to a GET. */
export function objectBody(json: Buffer): Buffer {
  return Buffer.concat([json, NEWLINE])
}

/** What stands around the object in one line of a watch. */
export function eventHead(type: EventType): Buffer {
  return EVENT_HEADS[type]
}

export const EVENT_END: Buffer = Buffer.from('}\n')

/** The same where the object has only metadata. */
export function partialEventHead(type: EventType): Buffer {
  return PARTIAL_EVENT_HEADS[type]
}

export const PARTIAL_EVENT_END: Buffer = Buffer.concat([PARTIAL_END, EVENT_END])

const EVENT_HEADS = headsOf('')
const PARTIAL_EVENT_HEADS = headsOf(PARTIAL_TEXT)

function headsOf(more: string): Readonly<Record<EventType, Buffer>> {
  const headOf = (type: EventType): Buffer => Buffer.from(`{"type":"${type}","object":${more}`)
  const [ADDED, MODIFIED, DELETED] = [headOf('ADDED'), headOf('MODIFIED'), headOf('DELETED')]
  return { ADDED, MODIFIED, DELETED, BOOKMARK: headOf('BOOKMARK'), ERROR: headOf('ERROR') }
}

/** The object with another resourceVersion: who watches a selection that it leaves gets its last state in that, with the version of the change. */
export function atVersion({ json, facts }: JsonObjectBytes, resourceVersion: string): JsonObjectBytes {
  const { version, metadata, bare } = facts
  const replaced = withVersion(json, version, resourceVersion)
  const more = replaced.length - json.length
  return {
    json: replaced,
    facts: {
      ...facts,
      resourceVersion,
      version: { start: version.start, end: version.end + more },
      metadata: { start: metadata.start, end: metadata.end + more },
      bare: bare > version.start ? bare + more : bare,
    },
  }
}

function withVersion(json: Buffer, { start, end }: ByteRange, resourceVersion: string): Buffer {
  return Buffer.concat([json.subarray(0, start), Buffer.from(JSON.stringify(resourceVersion)), json.subarray(end)])
}

const END_ANNOTATION = `"annotations":{"${INITIAL_EVENTS_END}":"true"}`

/** Bookmarks of one resource: as upstream's own, because those of some kinds have empty parts, such as `"status":{}`. */
export class BookmarkTemplate {
  readonly #form: JsonForm
  readonly #reader: FactsReader
  /** Without annotations. */
  readonly #json: Buffer

  /**
   * @param bookmark the object of one from upstream, with annotation or without
   * @throws {MalformedError}
   */
  constructor(bookmark: Buffer, form: JsonForm, reader: FactsReader) {
    this.#form = form
    this.#reader = reader
    const annotation = Buffer.from(form === 'declared' ? `,${END_ANNOTATION}` : `${END_ANNOTATION},`)
    const at = bookmark.indexOf(annotation)
    const parts = at < 0 ? [bookmark] : [bookmark.subarray(0, at), bookmark.subarray(at + annotation.length)]
    this.#json = Buffer.concat(parts)
    reader.readBookmark(this.#json)
  }

  /** The object of a bookmark. */
  object(resourceVersion: string, endsInitialEvents: boolean): Buffer {
    const { version } = this.#reader.readBookmark(this.#json)
    const json = withVersion(this.#json, version, resourceVersion)
    if (!endsInitialEvents) return json
    const { metadata } = this.#reader.readBookmark(json)
    const isDeclared = this.#form === 'declared'
    const at = isDeclared ? metadata.end - 1 : metadata.start + 1
    const annotation = isDeclared ? `,${END_ANNOTATION}` : `${END_ANNOTATION},`
    return Buffer.concat([json.subarray(0, at), Buffer.from(annotation), json.subarray(at)])
  }
}

/** For a template before upstream has sent a bookmark. Kinds whose spec or status is never left out lack those. */
export function plainBookmark(type: TypeMeta, form: JsonForm): Buffer {
  const metadata = '"metadata":{"resourceVersion":"0"}'
  if (form === 'declared') return Buffer.from(`${typeText(type)},${metadata}}`)
  const { kind, apiVersion } = type
  return Buffer.from(`{"apiVersion":${JSON.stringify(apiVersion)},"kind":${JSON.stringify(kind)},${metadata}}`)
}

function frame(head: string, first: string, next: string, last: string): ListFrame {
  const [empty = Buffer.of(), ...parts] = [head + last, head + first, next, last].map((text) => Buffer.from(text))
  return { empty, first: parts[0] ?? empty, next: parts[1] ?? empty, last: parts[2] ?? empty }
}

/** Open: without the brace behind it. */
function typeText({ kind, apiVersion }: TypeMeta): string {
  return `{"kind":${JSON.stringify(kind)},"apiVersion":${JSON.stringify(apiVersion)}`
}
