// What the main thread keeps of a cluster and what it tells the gateway threads of it: plain data that can be posted.

import type { JsonForm, TypeMeta } from '../bytes/json-form.ts'
import type { ObjectFacts } from '../bytes/object-facts.ts'

/** A resource of a cluster, in all namespaces or in one. */
export interface CollectionId {
  readonly cluster: string
  /** '' = the core group. */
  readonly group: string
  readonly version: string
  readonly resource: string
  /** '' = all. */
  readonly namespace: string
}

/** Shared memory with the bytes of objects. Written by the main thread only, and where records of it point never again. */
export interface Segment {
  readonly id: number
  readonly memory: SharedArrayBuffer
}

/** An object, and where its JSON is, as a watch has it. */
export interface ObjectRecord {
  readonly facts: ObjectFacts
  readonly segment: number
  readonly offset: number
  readonly length: number
}

export interface CollectionChange {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  /** Its resourceVersion is that of the change, of a deletion too. */
  readonly object: ObjectRecord
}

/** All objects. A thread that has the same epoch and number already has them. */
export interface CollectionReset {
  readonly type: 'reset'
  readonly collection: CollectionId
  /** What was known of another epoch is void. */
  readonly epoch: number
  /** Number of the last message about this epoch. */
  readonly number: number
  /** Type of the list: PodList, v1. */
  readonly list: TypeMeta
  readonly form: JsonForm
  readonly resourceVersion: string
  /** The object of upstream's last bookmark; undefined = there was none. */
  readonly bookmark: Uint8Array | undefined
  readonly segments: readonly Segment[]
  readonly objects: readonly ObjectRecord[]
  readonly followed: boolean
}

/** What has changed since message `number` - 1. */
export interface CollectionUpdate {
  readonly type: 'update'
  readonly collection: CollectionId
  readonly epoch: number
  readonly number: number
  /** Everything up to this version is known. */
  readonly resourceVersion: string
  readonly changes: readonly CollectionChange[]
  /** The same objects at another place. */
  readonly moved: readonly ObjectRecord[]
  readonly segments: readonly Segment[]
  /** Ids of segments in which nothing is left. */
  readonly dropped: readonly number[]
  readonly bookmark: Uint8Array | undefined
  /** Whether the cluster can be followed. */
  readonly followed: boolean
}

/** It is not kept any more. */
export interface CollectionGone {
  readonly type: 'gone'
  readonly collection: CollectionId
}

export type CollectionNews = CollectionReset | CollectionUpdate | CollectionGone

/** From a gateway thread: up to which version is what is known current? */
export interface FreshnessQuestion {
  readonly collection: CollectionId
  /** The list is small: an answer that takes a second is of no use. */
  readonly atOnce: boolean
}

export function collectionKey({ cluster, group, version, resource, namespace }: CollectionId): string {
  return `${cluster}/${group}/${version}/${resource}/${namespace}`
}

/** `pods`, `deployments.apps`: for people and metrics. */
export function resourceLabel({ group, resource }: Pick<CollectionId, 'group' | 'resource'>): string {
  return group === '' ? resource : `${resource}.${group}`
}
