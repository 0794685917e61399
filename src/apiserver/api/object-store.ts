// Storage of the embedded API server: the interface that src/apiserver/ needs, implemented by src/apiserver/io/store/store.ts. Everything is synchronous: when
// a call returns, its data is on disk, and nothing happens between two calls.

import type { JsonObject } from '../../kit/api/json/json-object.ts'

export interface ObjectKey {
  /** resourceName() of the kind: `secrets`, `upstreamclusters.proxy.kubegateway.io`. */
  readonly resource: string
  /** '' = cluster-scoped. */
  readonly namespace: string
  readonly name: string
}

/** metadata.resourceVersion of `object` is the decimal `revision`. */
export interface StoredObject extends ObjectKey {
  /** Store revision at which it was written. */
  readonly revision: number
  readonly object: JsonObject
}

export interface StoreEvent extends StoredObject {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  /** The state before; for DELETED, `object` is that state with the revision of the deletion. */
  readonly previous: JsonObject | undefined
}

/** One write; several can be one transaction. */
export interface StoreWrite extends ObjectKey {
  /** undefined = delete. The store sets metadata.resourceVersion. */
  readonly object: JsonObject | undefined
  /** Revision that the object must have now; 0 = it must not exist. */
  readonly expected: number
}

/** The object is not at the `expected` revision: a concurrent write won. Nothing of the transaction was written. */
export class StoreConflict extends Error {
  readonly key: ObjectKey
  /** 0 = the object does not exist. */
  readonly actual: number

  constructor(key: ObjectKey, actual: number) {
    super(`${key.resource} ${key.namespace}/${key.name} is at revision ${actual}`)
    this.name = 'StoreConflict'
    this.key = key
    this.actual = actual
  }
}

/** The requested history has been compacted: 410 Expired. */
export class StoreCompacted extends Error {
  /** The oldest revision whose state, and events since, are still available. */
  readonly oldest: number

  constructor(oldest: number) {
    super(`history before revision ${oldest} is no longer kept`)
    this.name = 'StoreCompacted'
    this.oldest = oldest
  }
}

export interface ListRange {
  /** '' = all namespaces. */
  readonly namespace: string
  /** Only objects after this one, ordered by namespace and name (UTF-8 bytes). */
  readonly after?: { readonly namespace: string; readonly name: string }
  /** Maximum number of objects. */
  readonly limit?: number
  /** The state at this revision; default: now. @throws {StoreCompacted} */
  readonly revision?: number
}

/** Result of one task of `together`. */
export type TaskResult<T> = { readonly value: T } | { readonly error: unknown }

export interface ObjectStore {
  /** Revision of the newest write; grows by one with every write, over all kinds, and never goes back. A new store is at 1. */
  readonly revision: number
  get(key: ObjectKey): StoredObject | undefined
  list(resource: string, range: ListRange): readonly StoredObject[]
  /** Number of objects in the range, ignoring its `limit`. */
  count(resource: string, range: ListRange): number
  /**
   * All or nothing, durable when it returns; watchers are notified before that. One revision per write.
   * @throws {StoreConflict}
   */
  write(writes: readonly StoreWrite[]): readonly StoredObject[]
  /**
   * Runs the tasks in order; each sees the writes of those before it. All writes go to disk in one transaction and are durable when this returns;
   * watchers are notified only then. Writes remain independent: a failed one does not undo another. If the disk fails, nothing is written and each
   * task is run again on its own. Tasks must not start a watch or call `together`.
   */
  together<T>(tasks: Iterable<() => T>): readonly TaskResult<T>[]
  /**
   * Calls `onEvent` for everything after revision `after`: first the history, in order, without a gap.
   * @param namespace '' = all
   * @returns stops the watch
   * @throws {StoreCompacted}
   */
  watch(resource: string, namespace: string, after: number, onEvent: (event: StoreEvent) => void): () => void
  close(): void
}
