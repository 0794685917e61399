// The objects of recorded answers, one by one, as JSON.parse finds them.

import type { KeptObject, ListPieces } from '../../src/cache/core/bytes/answer-form.ts'
import type { PartReader } from '../../src/cache/core/bytes/part-reader.ts'
import type { KeptFacts } from '../../src/cache/core/bytes/read-encoding.ts'
import { ListSplitter } from '../../src/cache/core/bytes/split-list.ts'
import type { Resource } from '../../src/cache/core/fields/selectable-fields.ts'
import { bodyOf, type RecordedAnswer } from './read-answers.ts'

const CLUSTER_SCOPED: ReadonlySet<string> = new Set([
  'nodes',
  'namespaces',
  'resourceslices',
  'clusterrolebindings',
  'certificatesigningrequests',
  'customresourcedefinitions',
  'apiservices',
  'persistentvolumes',
])

export function isJson({ text }: RecordedAnswer): boolean {
  return text !== undefined
}

export function isPartial({ accept }: RecordedAnswer): boolean {
  return accept.includes('PartialObjectMetadata')
}

/** `/api/v1/namespaces/a/pods?limit=1` */
export function resourceOf(path: string): Resource {
  const parts = new URL(path, 'https://localhost').pathname.split('/').slice(1)
  const [group = '', version = ''] = parts[0] === 'api' ? ['', parts[1]] : parts.slice(1)
  const resource = parts.at(-1) ?? ''
  return { group, version, resource, namespaced: !CLUSTER_SCOPED.has(resource) }
}

/** With kind and apiVersion, as a watch has them. */
export function objectsOf(list: RecordedAnswer): Buffer[] {
  const objects: Buffer[] = []
  const splitter = new ListSplitter({ objectBytes: 1e7, objects: 1e6 }, (object) => objects.push(Buffer.from(object)))
  splitter.feed(bodyOf(list))
  splitter.end()
  return objects
}

/** The recorded answer in the same words, but as PartialObjectMetadata. */
export function partialOf(answer: RecordedAnswer, among: readonly RecordedAnswer[]): Buffer {
  const partial = among.find(
    (other) => other.path === answer.path && isJson(other) === isJson(answer) && isPartial(other),
  )
  if (partial === undefined) throw new Error(`${answer.path} was not recorded as metadata`)
  return bodyOf(partial)
}

/** A list or an event, whose parts are written one after the other. */
export function joinedParts(pieces: ListPieces | undefined): Buffer {
  if (pieces === undefined) throw new Error('the list cannot be written')
  const bytes = readParts(pieces.parts())
  if (pieces.length !== undefined && pieces.length !== bytes.length) throw new Error('the length is another one')
  return bytes
}

export function readParts(parts: PartReader): Buffer {
  const all: Buffer[] = []
  while (parts.next()) all.push(parts.memory.subarray(parts.start, parts.end))
  return Buffer.concat(all)
}

/** As it is kept, in the middle of other bytes. */
export function placed<F extends KeptFacts>(object: {
  readonly content: Buffer
  readonly facts: F
}): KeptObject & { readonly facts: F } {
  const { content, facts } = object
  const around = Buffer.from('others')
  const memory = Buffer.concat([around, content, around])
  return { content, facts, bytes: content.length, memory, offset: around.length }
}
