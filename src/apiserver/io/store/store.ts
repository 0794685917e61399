// The embedded API server's objects in one SQLite file (node:sqlite); each write is a transaction that is on disk when it returns.

import { randomBytes } from 'node:crypto'
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import type { FileLock } from '../../../kit/io/locks/file-lock.ts'
import {
  type ListRange,
  type ObjectKey,
  type ObjectStore,
  StoreCompacted,
  StoreConflict,
  type StoredObject,
  type StoreEvent,
  type StoreWrite,
  type TaskResult,
} from '../../api/object-store.ts'
import { copyDatabase } from './backup.ts'
import { ObjectBodies } from './bodies.ts'
import { runningFailure } from './errors.ts'
import { StoreHistory, type StorePosition, withRevision } from './history.ts'
import { ObjectTable } from './objects.ts'
import { IN_MEMORY, openDatabase } from './open.ts'
import { columnInteger, onlyRow } from './values.ts'
import { StoreWatchers } from './watchers.ts'

export interface SqliteStoreOptions {
  /** `:memory:` = not persisted. Created with its directory if it does not exist. Next to it: -wal, -shm and -lock. */
  readonly file: string
  /**
   * 32 bytes (key.ts) that encrypt `secrets`. undefined: in memory a random key; in a file no Secret can be written. Only the objects are sealed, not
   * their names.
   */
  readonly key: Buffer | undefined
  /** Minimum number of revisions kept for watches and lists. Default 10,000; never more than 100,000. */
  readonly historyRevisions?: number
  /** Younger history is kept, too. Milliseconds; default 300,000, the 5 minutes of kube-apiserver. */
  readonly historyMs?: number
  /** Maximum bytes of objects in history. Default 256 MiB. */
  readonly historyBytes?: number
  /** Maximum file size. Default: none. */
  readonly maxBytes?: number
  readonly now?: () => number
  /** From `lockStore(file)`, if the caller already holds it. Default: acquired now. */
  readonly lock?: FileLock | undefined
  /** Called with what a watcher throws; the watcher stays registered. Default: a process warning. */
  readonly onWatcherError?: (error: unknown) => void
}

export interface SqliteStore extends ObjectStore {
  /** Copies the current state into a new file; see backupStore(). @throws {UserError} */
  backup(file: string): void
}

const HISTORY_REVISIONS = 10_000
const MAX_HISTORY_REVISIONS = 100_000
const HISTORY_MS = 300_000
const HISTORY_BYTES = 256 * 1024 * 1024

/**
 * Opens or creates a store. While it is open, disk errors are StatusErrors (500): nothing of that write was stored, and the previous state is intact.
 * @throws {UserError} the file is unusable, another program's, a newer version's, in use, or sealed with another key
 */
export function openSqliteStore(options: SqliteStoreOptions): SqliteStore {
  const key = options.key ?? (options.file === IN_MEMORY ? randomBytes(32) : undefined)
  const bodies = new ObjectBodies(key)
  const { db, lock } = openDatabase(options.file, bodies, key !== undefined, options.maxBytes, options.lock)
  return new OpenStore(db, lock, bodies, options)
}

class OpenStore implements SqliteStore {
  readonly #db: DatabaseSync
  readonly #lock: FileLock | undefined
  readonly #file: string
  readonly #now: () => number
  readonly #objects: ObjectTable
  readonly #history: StoreHistory
  readonly #watchers: StoreWatchers
  readonly #begin: StatementSync
  readonly #commit: StatementSync
  readonly #move: StatementSync
  readonly #group: StoreGroup
  #position: StorePosition

  constructor(db: DatabaseSync, lock: FileLock | undefined, bodies: ObjectBodies, options: SqliteStoreOptions) {
    this.#db = db
    this.#lock = lock
    this.#file = options.file
    this.#now = options.now ?? Date.now
    this.#objects = new ObjectTable(db, bodies)
    this.#history = new StoreHistory(db, this.#objects, {
      revisions: options.historyRevisions ?? HISTORY_REVISIONS,
      ageMs: options.historyMs ?? HISTORY_MS,
      maxRevisions: MAX_HISTORY_REVISIONS,
      maxBytes: options.historyBytes ?? HISTORY_BYTES,
    })
    this.#watchers = new StoreWatchers(this.#history, options.onWatcherError ?? warn)
    this.#begin = db.prepare('BEGIN IMMEDIATE')
    this.#commit = db.prepare('COMMIT')
    this.#group = new StoreGroup(db)
    this.#move = db.prepare('UPDATE store SET revision = ?, oldest = ?')
    const row = onlyRow(db.prepare('SELECT revision, oldest FROM store'))
    const historyBytes = this.#history.bytes()
    this.#position = { revision: columnInteger(row, 'revision'), oldest: columnInteger(row, 'oldest'), historyBytes }
  }

  get revision(): number {
    return this.#position.revision
  }

  get(key: ObjectKey): StoredObject | undefined {
    return this.#reading(() => this.#objects.get(key))
  }

  list(resource: string, range: ListRange): readonly StoredObject[] {
    return this.#reading(() => {
      const past = this.#pastRevision(range)
      return past === undefined ? this.#objects.list(resource, range) : this.#history.listAt(resource, range, past)
    })
  }

  count(resource: string, range: ListRange): number {
    return this.#reading(() => {
      const past = this.#pastRevision(range)
      return past === undefined ? this.#objects.count(resource, range) : this.#history.countAt(resource, range, past)
    })
  }

  write(writes: readonly StoreWrite[]): readonly StoredObject[] {
    if (writes.length === 0) return []
    const events = this.#group.active ? this.#inGroup(writes) : this.#transaction(writes)
    return events.map(({ resource, namespace, name, revision, object }) => ({
      resource,
      namespace,
      name,
      revision,
      object,
    }))
  }

  together<T>(tasks: Iterable<() => T>): readonly TaskResult<T>[] {
    if (this.#group.active) throw new TypeError('a group of writes is already one transaction')
    const start = this.#position
    const asked: (() => T)[] = []
    const results: TaskResult<T>[] = []
    let events: readonly StoreEvent[]
    try {
      this.#begin.run()
      this.#group.begin()
      for (const task of tasks) {
        asked.push(task)
        results.push(resultOf(task))
      }
      this.#group.check()
      this.#commit.run()
      events = this.#group.end()
    } catch (error) {
      this.#group.end()
      this.#rollBack()
      this.#objects.forget(start.revision, this.#position.revision)
      this.#position = start
      // One that does not fit on the disk must not fail the others.
      if (asked.length > 1) return asked.flatMap((task) => this.together([task]))
      const failure = { error: runningFailure(error, this.#file) }
      // If the transaction could not begin, no task has run yet.
      return asked.length === 1 ? [failure] : Array.from(tasks, () => failure)
    }
    this.#watchers.announce(events)
    return results
  }

  watch(resource: string, namespace: string, after: number, onEvent: (event: StoreEvent) => void): () => void {
    if (this.#group.active) throw new TypeError('writes in a group may still fail: they cannot be watched')
    if (after < this.#position.oldest) throw new StoreCompacted(this.#position.oldest)
    return this.#reading(() => this.#watchers.add(resource, namespace, after, onEvent))
  }

  backup(file: string): void {
    copyDatabase(this.#db, file)
  }

  close(): void {
    if (!this.#db.isOpen) return
    this.#watchers.clear()
    this.#db.close()
    this.#lock?.release()
  }

  /** A group of one. */
  #transaction(writes: readonly StoreWrite[]): readonly StoreEvent[] {
    const [result] = this.together([() => this.#inGroup(writes)])
    if (result === undefined) return []
    if ('error' in result) throw result.error
    return result.value
  }

  #inGroup(writes: readonly StoreWrite[]): readonly StoreEvent[] {
    const start = this.#position
    try {
      return this.#group.write(() => this.#applyAll(writes))
    } catch (error) {
      this.#position = start
      this.#objects.forget(start.revision, start.revision + writes.length)
      throw runningFailure(error, this.#file)
    }
  }

  #applyAll(writes: readonly StoreWrite[]): readonly StoreEvent[] {
    const now = this.#now()
    // First, so that freed space can be used.
    const start = this.#watchers.replaying ? this.#position : this.#history.compact(this.#position, now)
    const events: StoreEvent[] = []
    let bytes = start.historyBytes
    for (const [index, write] of writes.entries()) {
      const applied = this.#apply(write, start.revision + index + 1, now)
      events.push(applied.event)
      bytes += applied.bytes
    }
    const revision = start.revision + writes.length
    this.#move.run(revision, start.oldest)
    this.#position = { revision, oldest: start.oldest, historyBytes: bytes }
    return events
  }

  /** After some disk errors SQLite has already rolled back. */
  #rollBack(): void {
    try {
      if (this.#db.isOpen && this.#db.isTransaction) this.#db.exec('ROLLBACK')
    } catch {
      // The first error is reported.
    }
  }

  #apply(write: StoreWrite, revision: number, now: number): { event: StoreEvent; bytes: number } {
    const { resource, namespace, name, object, expected } = write
    const key = { resource, namespace, name }
    const actual = this.#objects.find(key)
    if (actual !== expected) throw new StoreConflict(key, actual)
    const previous = actual === 0 ? undefined : this.#objects.stored(key, actual).object
    const event = { ...key, revision, previous, ...this.#change(key, revision, object, previous) }
    return { event, bytes: this.#history.append(event, actual, now) }
  }

  #change(
    key: ObjectKey,
    revision: number,
    object: JsonObject | undefined,
    previous: JsonObject | undefined,
  ): Pick<StoreEvent, 'type' | 'object'> {
    if (object !== undefined) {
      this.#objects.put(key, revision, JSON.stringify(withRevision(object, revision)))
      // Read back: watchers see what is stored, whatever the caller does with its object later.
      const { object: after } = this.#objects.stored(key, revision)
      return { type: previous === undefined ? 'ADDED' : 'MODIFIED', object: after }
    }
    if (previous === undefined) throw new TypeError('an object to be deleted must exist, but `expected` is 0')
    this.#objects.remove(key)
    return { type: 'DELETED', object: withRevision(previous, revision) }
  }

  /** undefined = now. */
  #pastRevision({ revision }: ListRange): number | undefined {
    if (revision === undefined || revision >= this.#position.revision) return undefined
    if (revision < this.#position.oldest) throw new StoreCompacted(this.#position.oldest)
    return revision
  }

  #reading<T>(action: () => T): T {
    try {
      return action()
    } catch (error) {
      throw runningFailure(error, this.#file)
    }
  }
}

function resultOf<T>(task: () => T): TaskResult<T> {
  try {
    return { value: task() }
  } catch (error) {
    return { error }
  }
}

function warn(error: unknown): void {
  process.emitWarning(error instanceof Error ? error : String(error), 'StoreWatcherWarning')
}

// Independent writes in one transaction: a failed one is rolled back alone.

/** One per store, reused for every transaction. */
class StoreGroup {
  readonly #savepoint: StatementSync
  readonly #release: StatementSync
  readonly #undo: StatementSync
  /** Events not delivered yet; undefined = no active group. */
  #events: StoreEvent[] | undefined
  #broken: { readonly error: unknown } | undefined

  constructor(db: DatabaseSync) {
    this.#savepoint = db.prepare('SAVEPOINT one')
    this.#release = db.prepare('RELEASE one')
    this.#undo = db.prepare('ROLLBACK TO one')
  }

  get active(): boolean {
    return this.#events !== undefined
  }

  /** The transaction has begun. */
  begin(): void {
    this.#events = []
    this.#broken = undefined
  }

  /** The transaction ends. @returns its events */
  end(): readonly StoreEvent[] {
    const events = this.#events ?? []
    this.#events = undefined
    return events
  }

  /** @throws what `apply` throws; its writes are then rolled back */
  write(apply: () => readonly StoreEvent[]): readonly StoreEvent[] {
    this.check()
    try {
      this.#savepoint.run()
      const events = apply()
      this.#release.run()
      for (const event of events) this.#events?.push(event)
      return events
    } catch (error) {
      this.#undoOne(error)
      throw error
    }
  }

  /** @throws the error that broke the group: none of it was written, and nothing may be */
  check(): void {
    if (this.#broken !== undefined) throw this.#broken.error
  }

  /** After some disk errors SQLite has already rolled back everything; a later write would be outside of the transaction. */
  #undoOne(error: unknown): void {
    try {
      this.#undo.run()
      this.#release.run()
    } catch {
      this.#broken = { error }
    }
  }
}
