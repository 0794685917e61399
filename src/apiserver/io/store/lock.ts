// Only one process at a time may write a store. The lock is SQLite's own on an empty file next to it: the system releases it when a process dies, and
// other programs can still read the store itself, for a backup.

import { closeSync, openSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { errorMessage } from '../../../kit/api/validation/error-message.ts'
import { UserError } from '../../../kit/api/validation/field-errors.ts'
import { isBusy, openingFailure } from './errors.ts'

export interface FileLock {
  /** Idempotent. */
  release(): void
}

/** Another process, or another store of this one, has the store open. */
export class StoreInUse extends UserError {}

/** @throws {StoreInUse} */
export function lockStore(file: string): FileLock {
  const lockFile = `${file}-lock`
  createPrivateFile(lockFile)
  let db: DatabaseSync | undefined
  try {
    db = new DatabaseSync(lockFile, { timeout: 0 })
    // Held by an endless transaction; with the journal in memory the file stays empty.
    db.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
    const held = db
    return { release: () => void (held.isOpen && held.close()) }
  } catch (error) {
    db?.close()
    if (isBusy(error)) {
      throw new StoreInUse(
        `the store ${file} is open in another process`,
        'end that process, or name another file: one store serves one process (several replicas share CRDs: --source kubernetes)',
      )
    }
    throw openingFailure(error, lockFile)
  }
}

/**
 * Creates an empty file readable only by its owner, unless it exists. An existing file is not even opened: closing any descriptor of a file drops the
 * process' locks on it (POSIX).
 */
export function createPrivateFile(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600))
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return
    const reason = errorMessage(error)
    throw new UserError(
      `cannot write ${file}: ${reason}`,
      'give this user permission to write there, or name another file',
    )
  }
}
