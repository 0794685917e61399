// Pods as a gateway thread keeps them, without a cluster.

import { FactsReader } from '../../../src/cache/core/bytes/object-facts.ts'
import type {
  CollectionChange,
  CollectionUpdate,
  ObjectRecord,
  Segment,
} from '../../../src/cache/core/changes/collection.ts'
import { selectableFields } from '../../../src/cache/core/fields/selectable-fields.ts'
import { CachedCollection } from '../../../src/cache/state/cached-collection.ts'

const ID = { cluster: 'c', group: '', version: 'v1', resource: 'pods', namespace: '', encoding: 'json' as const }
const READER = new FactsReader(selectableFields({ ...ID, namespaced: true }).kept)
const NOTHING = { moved: [], dropped: [], bookmark: undefined, followed: true, warnings: [], afterGap: false }
/** What the first objects have. */
export const FIRST_VERSION = 100
let segments = 0

export interface Pod {
  readonly namespace: string
  readonly name: string
  readonly team: string
  /** Size of its spec, about. Default: none. */
  readonly bytes?: number
}

function record(
  { namespace, name, team, bytes = 0 }: Pod,
  version: number,
): { readonly object: ObjectRecord; readonly segment: Segment } {
  const metadata = { name, namespace, uid: name, resourceVersion: String(version), labels: { team } }
  const spec = { nodeName: 'n'.repeat(bytes) }
  const json = Buffer.from(JSON.stringify({ kind: 'Pod', apiVersion: 'v1', metadata, spec }))
  const memory = new SharedArrayBuffer(json.length)
  Buffer.from(memory).set(json)
  const id = ++segments
  return { object: { facts: READER.read(json), segment: id, offset: 0, length: json.length }, segment: { id, memory } }
}

export function keptPods(pods: readonly Pod[], version = FIRST_VERSION, nowMs = 0): CachedCollection {
  const objects = pods.map((pod) => record(pod, version))
  return new CachedCollection(
    {
      ...NOTHING,
      type: 'reset',
      collection: ID,
      epoch: 1,
      number: 0,
      list: { kind: 'PodList', apiVersion: 'v1' },
      form: 'declared',
      resourceVersion: String(version),
      segments: objects.map(({ segment }) => segment),
      objects: objects.map(({ object }) => object),
    },
    nowMs,
  )
}

/** As a write of the pod would: one that is there is deleted or changed. */
export function writePod(collection: CachedCollection, pod: Pod, isDeletion: boolean): void {
  const isThere = collection.get(pod.namespace, pod.name) !== undefined
  if (isDeletion && !isThere) return
  changePod(collection, pod, Number(collection.version) + 1, isDeletion ? 'DELETED' : isThere ? 'MODIFIED' : 'ADDED')
}

export function changePod(
  collection: CachedCollection,
  pod: Pod,
  version: number,
  type: CollectionChange['type'],
  nowMs = 0,
): void {
  const { object, segment } = record(pod, version)
  update(collection, { resourceVersion: String(version), changes: [{ type, object }], segments: [segment] }, nowMs)
}

/** A version without a change. */
export function bookmarkPods(collection: CachedCollection, version: number, afterGap: boolean, nowMs: number): void {
  update(collection, { resourceVersion: String(version), changes: [], segments: [], afterGap }, nowMs)
}

function update(
  collection: CachedCollection,
  news: Pick<CollectionUpdate, 'resourceVersion' | 'changes' | 'segments'> & { readonly afterGap?: boolean },
  nowMs: number,
): void {
  const { number } = collection
  collection.update({ ...NOTHING, type: 'update', collection: ID, epoch: 1, number: number + 1, ...news }, nowMs)
}
