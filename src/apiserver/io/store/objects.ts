// Tables of the current objects, and of all bodies still needed.

import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { LRUCache } from 'lru-cache'
import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import type { ListRange, ObjectKey, StoredObject } from '../../api/object-store.ts'
import type { Body, ObjectBodies } from './bodies.ts'
import { StoreDamaged } from './errors.ts'
import { columnBody, columnInteger, columnText, type StoreRow } from './values.ts'

/** Objects are parsed once, so that a list's cost does not grow with their size. Cache size in bytes of JSON. */
const REMEMBERED_BYTES = 32 * 1024 * 1024

/** Condition for list statements: see rangeParameters(). */
export const IN_RANGE = `resource = $resource AND ($namespace = '' OR namespace = $namespace)
  AND ($after = 0 OR (namespace, name) > ($afterNamespace, $afterName))`

export class ObjectTable {
  readonly #bodies: ObjectBodies
  readonly #find: StatementSync
  readonly #list: StatementSync
  readonly #count: StatementSync
  readonly #put: StatementSync
  readonly #remove: StatementSync
  readonly #body: StatementSync
  readonly #addBody: StatementSync
  readonly #dropBody: StatementSync
  /** Keyed by revision: what a revision wrote never changes. */
  readonly #remembered = new LRUCache<number, JsonObject>({ maxSize: REMEMBERED_BYTES })

  constructor(db: DatabaseSync, bodies: ObjectBodies) {
    this.#bodies = bodies
    this.#find = db.prepare('SELECT revision FROM objects WHERE resource = ? AND namespace = ? AND name = ?')
    this.#list = db.prepare(
      `SELECT namespace, name, revision FROM objects WHERE ${IN_RANGE} ORDER BY namespace, name LIMIT $limit`,
    )
    this.#count = db.prepare(`SELECT count(*) AS count FROM objects WHERE ${IN_RANGE}`)
    this.#put = db.prepare('INSERT OR REPLACE INTO objects (resource, namespace, name, revision) VALUES (?, ?, ?, ?)')
    this.#remove = db.prepare('DELETE FROM objects WHERE resource = ? AND namespace = ? AND name = ?')
    this.#body = db.prepare('SELECT body FROM bodies WHERE revision = ?')
    this.#addBody = db.prepare('INSERT INTO bodies (revision, body) VALUES (?, ?)')
    this.#dropBody = db.prepare('DELETE FROM bodies WHERE revision = ?')
  }

  /** Revision of an object; 0 = there is none. */
  find({ resource, namespace, name }: ObjectKey): number {
    const row = this.#find.get(resource, namespace, name)
    return row === undefined ? 0 : columnInteger(row, 'revision')
  }

  get(key: ObjectKey): StoredObject | undefined {
    const revision = this.find(key)
    return revision === 0 ? undefined : this.stored(key, revision)
  }

  list(resource: string, range: ListRange): StoredObject[] {
    const rows = this.#list.all({ ...rangeParameters(resource, range), limit: range.limit ?? -1 })
    return rows.map((row) => this.storedIn(resource, row))
  }

  count(resource: string, range: ListRange): number {
    const row = this.#count.get(rangeParameters(resource, range))
    return row === undefined ? 0 : columnInteger(row, 'count')
  }

  /** Stores the body of a revision and makes it the object's current one. */
  put(key: ObjectKey, revision: number, json: string): void {
    this.#addBody.run(revision, this.#bodies.encode(key, revision, json))
    this.#put.run(key.resource, key.namespace, key.name, revision)
  }

  /** Keeps its bodies. */
  remove({ resource, namespace, name }: ObjectKey): void {
    this.#remove.run(resource, namespace, name)
  }

  dropBody(revision: number): void {
    this.#dropBody.run(revision)
    this.#remembered.delete(revision)
  }

  stored({ resource, namespace, name }: ObjectKey, revision: number): StoredObject {
    const key = { resource, namespace, name }
    const known = this.#remembered.get(revision)
    if (known !== undefined) return { ...key, revision, object: known }
    const body = this.#columnBody(revision)
    const object = this.#bodies.decode(key, revision, body)
    this.#remembered.set(revision, object, { size: sizeOf(body) })
    return { ...key, revision, object }
  }

  /** From a row with namespace, name and revision. */
  storedIn(resource: string, row: StoreRow): StoredObject {
    const key = { resource, namespace: columnText(row, 'namespace'), name: columnText(row, 'name') }
    return this.stored(key, columnInteger(row, 'revision'))
  }

  /** Size of a revision's body; 0 for revision 0. */
  bytes(revision: number): number {
    return revision === 0 ? 0 : sizeOf(this.#columnBody(revision))
  }

  /** A transaction was rolled back: revisions after this one will be reused for other objects. */
  forget(after: number, through: number): void {
    for (let revision = after + 1; revision <= through; revision++) this.#remembered.delete(revision)
  }

  #columnBody(revision: number): Body {
    const row = this.#body.get(revision)
    const body = row === undefined ? undefined : columnBody(row, 'body')
    if (body === undefined) throw new StoreDamaged(`the object of revision ${revision} is missing`)
    return body
  }
}

/** The parameters of IN_RANGE. */
export function rangeParameters(resource: string, { namespace, after }: ListRange): Record<string, string | number> {
  return {
    resource,
    namespace,
    after: after === undefined ? 0 : 1,
    afterNamespace: after?.namespace ?? '',
    afterName: after?.name ?? '',
  }
}

/** Includes a fixed overhead per object. */
function sizeOf(body: Body): number {
  return (typeof body === 'string' ? Buffer.byteLength(body) : body.length) + 1
}
