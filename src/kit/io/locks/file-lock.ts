// A lock that one process at a time holds, whatever becomes of it: SQLite's own, on an empty file. The system releases it when the process dies, on
// Linux, macOS and Windows, so there is no stale lock to detect.

import { closeSync, openSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { errorMessage } from '../../api/validation/error-message.ts'
import { UserError } from '../../api/validation/field-errors.ts'

export interface FileLock {
  /** Idempotent. */
  release(): void
}

/** SQLITE_BUSY (sqlite.org/rescode.html). */
const BUSY = 5

/** undefined = another process holds it, or another part of this one. @throws SQLite's error, or a UserError if the file can't be created */
export function tryFileLock(lockFile: string): FileLock | undefined {
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
    if (isBusyError(error)) return undefined
    throw error
  }
}

/** node:sqlite reports SQLite's extended result code; its last byte is the primary one. */
function isBusyError(error: unknown): boolean {
  return (
    error instanceof Error && 'errcode' in error && typeof error.errcode === 'number' && (error.errcode & 0xff) === BUSY
  )
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
