// What the main thread keeps of a cluster and what it tells the gateway threads of it: plain data that can be posted.

import type { WireEncoding } from '../../../kube/api/object-client.ts'
import type { ObjectForm, TypeMeta } from '../bytes/object-form.ts'
import type { KeptFacts } from '../bytes/read-encoding.ts'

/** A resource of a cluster, in all namespaces or in one, in one encoding. */
export interface CollectionId {
  readonly cluster: string
  /** '' = the core group. */
  readonly group: string
  readonly version: string
  readonly resource: string
  /** '' = all. */
  readonly namespace: string
  readonly encoding: WireEncoding
}

/** Shared memory with the bytes of objects. Written by the main thread only, and where records of it point never again. */
export interface Segment {
  readonly id: number
  readonly memory: SharedArrayBuffer
}

/** An object, and where its bytes are, as a watch has them. */
export interface ObjectRecord {
  readonly facts: KeptFacts
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
  readonly form: ObjectForm
  readonly resourceVersion: string
  /** The object of upstream's last bookmark; undefined = there was none. */
  readonly bookmark: Uint8Array | undefined
  readonly segments: readonly Segment[]
  readonly objects: readonly ObjectRecord[]
  readonly followed: boolean
  /** Warning header fields that the cluster's answers have. */
  readonly warnings: readonly string[]
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
  readonly warnings: readonly string[]
  /** The changes are the difference to a list: between the version before and this one more may have come and gone. */
  readonly afterGap: boolean
}

/** How much of its lists each thread may keep compressed. */
export interface CollectionRoom extends CompressedRoom {
  readonly type: 'room'
  readonly epoch: number
}

/** It is not kept any more. */
export interface CollectionGone {
  readonly type: 'gone'
  readonly collection: CollectionId
}

export type CollectionNews = CollectionReset | CollectionUpdate | CollectionRoom | CollectionGone

/** Memory for compressed lists, of one thread. */
export interface CompressedRoom {
  readonly collection: CollectionId
  readonly bytes: number
}

/** All objects of a smaller collection are sent by the cluster before a bookmark proves that it is current. */
export const SMALL_BYTES: number = 1024 * 1024

/** From a gateway thread: up to which version is what is known current? */
export interface FreshnessQuestion {
  readonly collection: CollectionId
  /** Otherwise the request is forwarded: a proof that takes longer than the cluster's answer is of no use. */
  readonly atOnce: boolean
  /** It is of all objects: a list of the cluster's for several of these takes less of it than one for each. */
  readonly whole: boolean
}

/** What was known at version `known` was the state of the cluster at `current`, the same or a later one. */
export interface CurrentState {
  readonly known: string
  readonly current: string
}

/** From a gateway thread: a version of the cluster's that a client was told of, and that is not known there. */
export interface ToldVersion {
  readonly collection: CollectionId
  readonly version: string
}

export function collectionKey({ cluster, group, version, resource, namespace, encoding }: CollectionId): string {
  return `${cluster}/${group}/${version}/${resource}/${namespace}/${encoding}`
}

/** `pods`, `deployments.apps`: for people and metrics. */
export function resourceLabel({ group, resource }: Pick<CollectionId, 'group' | 'resource'>): string {
  return group === '' ? resource : `${resource}.${group}`
}

// Warning header fields of a cluster's answers, as far as answers of the cache have them.

/** As much as kube-apiserver sends with one answer, before it shortens them (apiserver/pkg/endpoints/filters/warning.go). */
export const MAX_WARNING_BYTES: number = 4 * 1024
/** What any protocol sends as it is. Those of deprecated versions are nothing else. */
const PRINTABLE = /^[\x20-\x7e]+$/

/** @param values as received @returns those that are kept, in order, each once */
export function keptWarnings(values: readonly string[]): readonly string[] {
  const kept: string[] = []
  let bytes = 0
  for (const value of new Set(values)) {
    bytes += value.length
    if (bytes > MAX_WARNING_BYTES) break
    if (PRINTABLE.test(value)) kept.push(value)
  }
  return kept
}
