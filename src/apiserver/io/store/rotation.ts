// Rotates a store's key: re-encrypts everything encrypted, in one transaction. If the process dies at any point, the store can still be opened, with
// the old key or the new one, using the same key file.

import { existsSync } from 'node:fs'
import { errorMessage } from '../../../kit/api/validation/error-message.ts'
import { UserError } from '../../../kit/api/validation/field-errors.ts'
import { ObjectBodies } from './bodies.ts'
import { openingFailure } from './errors.ts'
import { createNewKey, keyId, readExistingKey, readStoreKey } from './key.ts'
import { adoptNextKey, nextKeyFile, openKeyedStore } from './keyed-store.ts'
import { StoreInUse } from './lock.ts'
import { openDatabase, sealKeyCheck } from './open.ts'
import { resealBodies } from './reseal.ts'

interface RotationOptions {
  /** The store; it must exist, and must not be open. */
  readonly file: string
  /** Its current key; replaced by the new one unless `newKeyFile` is given. */
  readonly keyFile: string
  /** The new key, created if it does not exist; `keyFile` is then left alone, and the gateway must be started with the other file. */
  readonly newKeyFile?: string | undefined
  /** Called between any two steps: for tests that kill the process there. */
  readonly onStep?: (step: RotationStep) => void
}

export type RotationStep = 'opened' | 'key made' | 'written' | 'committed' | 'adopted' | 'cleaned'

interface Rotation {
  /** Number of re-encrypted bodies: Secrets and objects with keys, including history. */
  readonly bodies: number
  readonly keyId: string
  /** Location of the old key, which older backups need. */
  readonly oldKeyFile: string
  /** '' = nothing encrypted with the old key is left in the file. */
  readonly leftover: string
}

/** @throws {UserError} nothing was changed */
export function rotateStoreKey({ file, keyFile, newKeyFile, onStep = () => undefined }: RotationOptions): Rotation {
  if (!existsSync(file)) {
    throw new UserError(`there is no store at ${file}`, 'give the --data-dir of a gateway with --source embedded')
  }
  // Completes an interrupted rotation, and reports problems with the store or its key.
  closeAfterOpening(file, keyFile)
  const from = new ObjectBodies(readExistingKey(keyFile))
  const { db, lock } = openDatabase(file, from, true, undefined)
  try {
    onStep('opened')
    const key = newKeyFile === undefined ? createNewKey(nextKeyFile(keyFile)) : readStoreKey(newKeyFile)
    if (readExistingKey(keyFile)?.equals(key) === true) {
      throw new UserError('the new key is the current one', 'name another file')
    }
    onStep('key made')
    const to = new ObjectBodies(key)
    // Overwrites replaced data: it must not be found in free pages with the old key.
    db.exec('PRAGMA secure_delete = 1; BEGIN IMMEDIATE')
    const bodies = resealBodies(db, from, to)
    sealKeyCheck(db, to)
    onStep('written')
    db.exec('COMMIT')
    onStep('committed')
    const oldKeyFile = newKeyFile === undefined ? adoptNextKey(keyFile) : keyFile
    onStep('adopted')
    const leftover = clean(() => db.exec('VACUUM; PRAGMA wal_checkpoint(TRUNCATE)'))
    onStep('cleaned')
    return { bodies, keyId: keyId(key), oldKeyFile, leftover }
  } catch (error) {
    throw openingFailure(error, file)
  } finally {
    db.close()
    lock?.release()
  }
}

function closeAfterOpening(file: string, keyFile: string): void {
  try {
    openKeyedStore({ file, keyFile, existing: true }).close()
  } catch (error) {
    if (!(error instanceof StoreInUse)) throw error
    throw new UserError(
      `the store ${file} is in use: its key cannot be changed while the gateway runs`,
      'stop the gateway, change the key, start it again',
    )
  }
}

/** Everything is already under the new key: a failure here only leaves old bytes behind. @returns what failed */
function clean(action: () => void): string {
  try {
    action()
    return ''
  } catch (error) {
    return errorMessage(error)
  }
}
