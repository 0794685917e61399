// Answers in JSON, made of the bytes of objects and what stands around them: byte by byte what kube-apiserver writes.

import type { JsonForm, TypeMeta } from './json-form.ts'
import { malformed } from './malformed.ts'
import { type ByteRange, type FactsReader, INITIAL_EVENTS_END, type ObjectFacts } from './object-facts.ts'

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
 * A view of the object. What is kept for a list that is declared has to be declared too: `bare` is not 0.
 * @throws {MalformedError} if it is not
 */
export function listItem(json: Buffer, { bare }: ObjectFacts, form: JsonForm): Buffer {
  if (form === 'sorted') return json
  if (bare === 0) throw malformed('an object does not begin with its kind and apiVersion')
  return json.subarray(bare)
}

/** The answer to a GET. */
export function objectBody(json: Buffer): Buffer {
  return Buffer.concat([json, NEWLINE])
}

/** What stands around the object in one line of a watch. */
export function eventHead(type: EventType): Buffer {
  return Buffer.from(`{"type":"${type}","object":`)
}

export const EVENT_END: Buffer = Buffer.from('}\n')

/** One line of a watch. */
export function eventLine(type: EventType, json: Buffer): Buffer {
  return Buffer.concat([eventHead(type), json, EVENT_END])
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
