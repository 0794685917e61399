// The events table: watches resume from it and lists of older revisions are built from it, until it is compacted.

import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import type { ListRange, StoredObject, StoreEvent } from '../../api/object-store.ts'
import { IN_RANGE, type ObjectTable, rangeParameters } from './objects.ts'
import { columnInteger, columnText, onlyRow, type StoreRow } from './values.ts'

/** The position of a store. It changes atomically with a transaction. */
export interface StorePosition {
  readonly revision: number
  /** History is complete after this revision. */
  readonly oldest: number
  /** Size of the bodies needed only by history. */
  readonly historyBytes: number
}

interface StoreHistoryLimits {
  /** Keeps this many revisions, and everything younger than `ageMs`, whichever is more. */
  readonly revisions: number
  readonly ageMs: number
  /** But never more than these. */
  readonly maxRevisions: number
  readonly maxBytes: number
}

/** Events read at once in a replay. */
const PAGE_EVENTS = 100
/** Keeps one write from paying for a whole burst. */
const MAX_DROPPED = 200

/** Objects unchanged since, and for the others the state before their first change. */
const AT_REVISION = `
SELECT namespace, name, revision FROM objects WHERE ${IN_RANGE} AND revision <= $revision
UNION ALL
SELECT namespace, name, previous AS revision FROM (
  SELECT namespace, name, previous, min(revision) FROM events
  WHERE revision > $revision AND ${IN_RANGE} GROUP BY namespace, name
) WHERE previous > 0`

export class StoreHistory {
  readonly #objects: ObjectTable
  readonly #limits: StoreHistoryLimits
  readonly #append: StatementSync
  readonly #page: StatementSync
  readonly #first: StatementSync
  readonly #drop: StatementSync
  readonly #list: StatementSync
  readonly #count: StatementSync
  readonly #sum: StatementSync

  constructor(db: DatabaseSync, objects: ObjectTable, limits: StoreHistoryLimits) {
    this.#objects = objects
    this.#limits = limits
    this.#append =
      db.prepare(`INSERT INTO events (revision, resource, namespace, name, deleted, previous, previous_bytes, time)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?)`)
    this.#page = db.prepare(`SELECT * FROM events WHERE revision > $after AND resource = $resource
      AND ($namespace = '' OR namespace = $namespace) ORDER BY revision LIMIT ${PAGE_EVENTS}`)
    this.#first = db.prepare('SELECT revision, previous, previous_bytes, time FROM events ORDER BY revision LIMIT 1')
    this.#drop = db.prepare('DELETE FROM events WHERE revision = ?')
    this.#list = db.prepare(`${AT_REVISION} ORDER BY namespace, name LIMIT $limit`)
    this.#count = db.prepare(`SELECT count(*) AS count FROM (${AT_REVISION})`)
    this.#sum = db.prepare('SELECT coalesce(sum(previous_bytes), 0) AS bytes FROM events')
  }

  /** Reads the whole table: once, when a store is opened. */
  bytes(): number {
    return columnInteger(onlyRow(this.#sum), 'bytes')
  }

  /**
   * @param previous revision of the previous state; 0 = none
   * @returns bytes of that state, from now on needed only by history
   */
  append({ revision, resource, namespace, name, type }: StoreEvent, previous: number, timeMs: number): number {
    const bytes = this.#objects.bytes(previous)
    const deleted = type === 'DELETED' ? 1 : 0
    this.#append.run(revision, resource, namespace, name, deleted, previous, bytes, timeMs)
    return bytes
  }

  /** One page of events after a revision. */
  after(resource: string, namespace: string, after: number): readonly StoreEvent[] {
    return this.#page.all({ resource, namespace, after }).map((row) => this.#event(row))
  }

  listAt(resource: string, range: ListRange, revision: number): StoredObject[] {
    const rows = this.#list.all({ ...rangeParameters(resource, range), revision, limit: range.limit ?? -1 })
    return rows.map((row) => this.#objects.storedIn(resource, row))
  }

  countAt(resource: string, range: ListRange, revision: number): number {
    const row = this.#count.get({ ...rangeParameters(resource, range), revision })
    return row === undefined ? 0 : columnInteger(row, 'count')
  }

  /** Drops old events, within a write's transaction. */
  compact(position: StorePosition, nowMs: number): StorePosition {
    const { revisions, ageMs, maxRevisions, maxBytes } = this.#limits
    const { revision } = position
    let { oldest, historyBytes } = position
    for (let dropped = 0; dropped < MAX_DROPPED; dropped++) {
      if (historyBytes <= maxBytes && oldest >= revision - Math.min(revisions, maxRevisions)) break
      const row = this.#first.get()
      if (row === undefined) break
      const first = columnInteger(row, 'revision')
      const tooMuch = historyBytes > maxBytes || first <= revision - maxRevisions
      const old = first <= revision - revisions && columnInteger(row, 'time') <= nowMs - ageMs
      if (!tooMuch && !old) break
      this.#drop.run(first)
      // Only this event needs the state before it.
      this.#objects.dropBody(columnInteger(row, 'previous'))
      oldest = first
      historyBytes -= columnInteger(row, 'previous_bytes')
    }
    return { revision, oldest, historyBytes }
  }

  #event(row: StoreRow): StoreEvent {
    const key = {
      resource: columnText(row, 'resource'),
      namespace: columnText(row, 'namespace'),
      name: columnText(row, 'name'),
    }
    const revision = columnInteger(row, 'revision')
    const before = columnInteger(row, 'previous')
    const previous = before === 0 ? undefined : this.#objects.stored(key, before).object
    if (columnInteger(row, 'deleted') === 1) {
      return { type: 'DELETED', ...key, revision, object: withRevision(previous ?? {}, revision), previous }
    }
    const type = previous === undefined ? 'ADDED' : 'MODIFIED'
    return { type, ...this.#objects.stored(key, revision), previous }
  }
}

/** A copy with the revision as metadata.resourceVersion. */
export function withRevision(object: JsonObject, revision: number): JsonObject {
  const metadata = object['metadata']
  const fields = typeof metadata === 'object' ? metadata : undefined
  return { ...object, metadata: { ...fields, resourceVersion: String(revision) } }
}
