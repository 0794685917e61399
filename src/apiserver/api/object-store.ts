// Where the embedded API server keeps its objects: what src/apiserver/ needs, and src/apiserver/io/store/store.ts provides.
// Everything is synchronous: a call that has returned is on disk, and nothing happens between two of them.

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
  /** Revision of the store at which it was written. */
  readonly revision: number
  readonly object: JsonObject
}

export interface StoreEvent extends StoredObject {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  /** The state before; of DELETED, `object` is that state with the revision of the deletion. */
  readonly previous: JsonObject | undefined
}

/** One write; several can be one transaction. */
export interface StoreWrite extends ObjectKey {
  /** undefined = delete. The store sets metadata.resourceVersion. */
  readonly object: JsonObject | undefined
  /** Revision that the object must have now; 0 = it must not exist. */
  readonly expected: number
}

/** The object is not as `expected`: somebody else was faster. Nothing of the transaction was written. */
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

/** The history that was asked for is no longer kept: 410 Expired. */
export class StoreCompacted extends Error {
  /** The oldest revision from which events, and states, are still known. */
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
  /** Only what comes after this object, in the order of namespace and name (by UTF-8 bytes). */
  readonly after?: { readonly namespace: string; readonly name: string }
  /** At most so many. */
  readonly limit?: number
  /** The state as of this revision; default: now. @throws {StoreCompacted} */
  readonly revision?: number
}

/** What became of a task of `together`. */
export type TaskResult<T> = { readonly value: T } | { readonly error: unknown }

export interface ObjectStore {
  /** Of the newest write; grows by one with every write, over all kinds, and never goes back. A new store is at 1. */
  readonly revision: number
  get(key: ObjectKey): StoredObject | undefined
  list(resource: string, range: ListRange): readonly StoredObject[]
  /** Objects in the range, whatever its `limit`. */
  count(resource: string, range: ListRange): number
  /**
   * All or nothing, durable when it returns; watchers hear of it before it returns. One revision for each write.
   * @throws {StoreConflict}
   */
  write(writes: readonly StoreWrite[]): readonly StoredObject[]
  /**
   * Runs the tasks one after the other; each reads what those before it have written. All that they write goes to disk
   * in one transaction, and is durable when this returns; watchers hear of it only then. Each write of a task stands for itself,
   * as ever: one that fails does not undo another. When the disk refuses, nothing of all was written, and each task is run again,
   * alone. Within a task nobody can begin to watch, or write together.
   */
  together<T>(tasks: Iterable<() => T>): readonly TaskResult<T>[]
  /**
   * Calls `onEvent` for everything after revision `after`, what has happened already first, in order, without a gap.
   * @param namespace '' = all
   * @returns ends it
   * @throws {StoreCompacted}
   */
  watch(resource: string, namespace: string, after: number, onEvent: (event: StoreEvent) => void): () => void
  close(): void
}
