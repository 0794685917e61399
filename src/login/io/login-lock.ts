// Commands that run at the same time log in, and refresh, once: the others wait until the first has written its tokens.

import { setTimeout as sleep } from 'node:timers/promises'
import { errorMessage } from '../../kit/api/validation/error-message.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { type FileLock, tryFileLock } from '../../kit/io/locks/file-lock.ts'

const RETRY_MS = 100

export interface HeldLogin extends FileLock {
  /** Another command held it before. */
  readonly waited: boolean
}

/**
 * @param onWait called once if another command holds it
 * @throws {UserError} if it is not released in time
 */
export async function lockLogin(tokenFile: string, signal: AbortSignal, onWait: () => void): Promise<HeldLogin> {
  const lockFile = `${tokenFile}.lock`
  for (let waited = false; ; waited = true) {
    const lock = lockOnce(lockFile)
    if (lock !== undefined) return { release: lock.release, waited }
    if (!waited) onWait()
    try {
      await sleep(RETRY_MS, undefined, { signal })
    } catch {
      throw new UserError(
        'another login of this user is not complete',
        'complete it in its browser, or end that command',
      )
    }
  }
}

function lockOnce(lockFile: string): FileLock | undefined {
  try {
    return tryFileLock(lockFile)
  } catch (error) {
    if (error instanceof UserError) throw error
    throw new UserError(
      `cannot lock ${lockFile}: ${errorMessage(error)}`,
      'name a directory on a local disk with --token-dir',
    )
  }
}
