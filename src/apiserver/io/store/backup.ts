// Copies a store while it is in use.

import { randomBytes } from 'node:crypto'
import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { UserError } from '../../../kit/api/validation/field-errors.ts'
import { createPrivateFile } from '../../../kit/io/locks/file-lock.ts'
import { openingFailure } from './errors.ts'
import { syncDirectory } from './key.ts'

/**
 * More revisions than are ever written between the last backup and the loss of a store. The copy starts this much later, without history: a client
 * that saw revisions missing from the copy gets 410 and lists again, and revisions never go back (etcd: --bump-revision).
 */
export const REVISIONS_SKIPPED = 1_000_000_000

/**
 * Copies a store into a new file, from any process and while another one writes it: a consistent snapshot (SQLite's VACUUM INTO). The file appears
 * once it is complete and on disk. To restore it: stop the process, put the copy in place of the store's file and remove the files next to it that
 * end in -wal and -shm. Secrets in it need the key file, which is not copied.
 *
 * `sqlite3 store.db "VACUUM INTO 'copy.db'"` works too, but keeps the old revisions: then restart every client that watches.
 * Copying the files of a running store does not work.
 * @throws {UserError} the target exists or cannot be written, or the store cannot be read
 */
export function backupStore(file: string, target: string): void {
  if (!existsSync(file)) throw new UserError(`there is no store at ${file}`, 'name the --data-dir of the gateway')
  let db: DatabaseSync | undefined
  try {
    db = new DatabaseSync(file, { readOnly: true })
    copyDatabase(db, target)
  } catch (error) {
    throw openingFailure(error, file)
  } finally {
    db?.close()
  }
}

export function copyDatabase(db: DatabaseSync, target: string): void {
  if (existsSync(target)) throw new UserError(`${target} exists already`, 'name a file that does not exist')
  const temporary = `${target}.${randomBytes(6).toString('hex')}`
  createPrivateFile(temporary)
  try {
    db.prepare('VACUUM INTO ?').run(temporary)
    resetHistory(temporary)
    syncFile(temporary)
    renameSync(temporary, target)
    syncDirectory(dirname(target))
  } catch (error) {
    throw openingFailure(error, target)
  } finally {
    rmSync(temporary, { force: true })
    rmSync(`${temporary}-journal`, { force: true })
  }
}

function resetHistory(file: string): void {
  const copy = new DatabaseSync(file)
  try {
    copy.exec(`BEGIN; DELETE FROM events; DELETE FROM bodies WHERE revision NOT IN (SELECT revision FROM objects);
      UPDATE store SET revision = revision + ${REVISIONS_SKIPPED}; UPDATE store SET oldest = revision; COMMIT`)
  } finally {
    copy.close()
  }
}

function syncFile(file: string): void {
  const fd = openSync(file, 'r+')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}
