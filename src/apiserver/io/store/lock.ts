// Only one process at a time may write a store. The lock is on an empty file next to it: other programs can still read the store itself, for a backup.

import { UserError } from '../../../kit/api/validation/field-errors.ts'
import { type FileLock, tryFileLock } from '../../../kit/io/locks/file-lock.ts'
import { openingFailure } from './errors.ts'

/** Another process, or another store of this one, has the store open. */
export class StoreInUse extends UserError {}

/** @throws {StoreInUse} */
export function lockStore(file: string): FileLock {
  const lockFile = `${file}-lock`
  const lock = tryOpening(lockFile)
  if (lock !== undefined) return lock
  throw new StoreInUse(
    `the store ${file} is open in another process`,
    'end that process, or name another file: one store serves one process (several replicas share CRDs: --source kubernetes)',
  )
}

function tryOpening(lockFile: string): FileLock | undefined {
  try {
    return tryFileLock(lockFile)
  } catch (error) {
    throw openingFailure(error, lockFile)
  }
}
