// Re-encrypts a store's bodies, in the caller's transaction: under another key, or those that were unencrypted.

import type { DatabaseSync } from 'node:sqlite'
import type { ObjectKey } from '../../api/object-store.ts'
import type { Body, ObjectBodies } from './bodies.ts'
import { StoreDamaged } from './errors.ts'
import { columnBody, columnInteger, columnText, onlyRow } from './values.ts'

/** Owners of all bodies: current ones, and those needed only by history. */
const OWNERS = `
SELECT revision, resource, namespace, name FROM objects
UNION SELECT revision, resource, namespace, name FROM events WHERE deleted = 0
UNION SELECT previous, resource, namespace, name FROM events WHERE previous > 0`

/**
 * @param from with the current key
 * @param to with the next one
 * @returns how many
 * @throws {StoreDamaged} if one cannot be opened, or belongs to no object: then nothing must be committed
 */
export function resealBodies(db: DatabaseSync, from: ObjectBodies, to: ObjectBodies): number {
  const all = columnInteger(
    onlyRow(db.prepare("SELECT count(*) AS count FROM bodies WHERE typeof(body) = 'blob'")),
    'count',
  )
  const done = rewrite(db, (key, revision, body) =>
    typeof body === 'string' ? undefined : to.reseal(key, revision, body, from),
  )
  // Any others would be lost with the old key.
  if (done !== all) throw new StoreDamaged(`${all - done} encrypted objects belong to nothing`)
  return done
}

/** @returns how many were unencrypted */
export function sealPlainBodies(db: DatabaseSync, bodies: ObjectBodies): number {
  return rewrite(db, (key, revision, body) => {
    if (typeof body !== 'string') return undefined
    const encoded = bodies.encode(key, revision, body)
    return typeof encoded === 'string' ? undefined : encoded
  })
}

/** One at a time: together they may not fit into memory. */
function rewrite(
  db: DatabaseSync,
  change: (key: ObjectKey, revision: number, body: Body) => Uint8Array | undefined,
): number {
  const owners = db.prepare(OWNERS).all()
  const read = db.prepare('SELECT body FROM bodies WHERE revision = ?')
  const write = db.prepare('UPDATE bodies SET body = ? WHERE revision = ?')
  let changed = 0
  for (const row of owners) {
    const revision = columnInteger(row, 'revision')
    const key = {
      resource: columnText(row, 'resource'),
      namespace: columnText(row, 'namespace'),
      name: columnText(row, 'name'),
    }
    const found = read.get(revision)
    const body = found === undefined ? undefined : columnBody(found, 'body')
    if (body === undefined) throw new StoreDamaged(`the object of revision ${revision} is missing`)
    const next = change(key, revision, body)
    if (next === undefined) continue
    write.run(next, revision)
    changed++
  }
  return changed
}
