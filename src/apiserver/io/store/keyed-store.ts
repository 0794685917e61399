// A store with its key file. A key rotation (rotation.ts) cannot write both atomically, so after a crash the store may use the new key, which is kept
// next to the old one until it has replaced it.

import { linkSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { UserError } from '../../../kit/api/validation/field-errors.ts'
import { keyId, readExistingKey, readStoreKey, syncDirectory } from './key.ts'
import { WrongStoreKey } from './open.ts'
import { openSqliteStore, type SqliteStore, type SqliteStoreOptions } from './store.ts'

interface KeyedStoreOptions extends Omit<SqliteStoreOptions, 'key'> {
  /** Created if it does not exist, unless `existing`. */
  readonly keyFile: string
  /** Whether the key must already exist. Default false. */
  readonly existing?: boolean
}

/** The key about to replace the one in `keyFile`. */
export function nextKeyFile(keyFile: string): string {
  return `${keyFile}.next`
}

/**
 * Opens the store, and completes or discards an interrupted key rotation.
 * @throws {UserError} like openSqliteStore, and if there is no usable key
 */
export function openKeyedStore({ keyFile, existing = false, ...options }: KeyedStoreOptions): SqliteStore {
  const next = readExistingKey(nextKeyFile(keyFile))
  const found = readExistingKey(keyFile) !== undefined
  const current = next === undefined && !existing ? readStoreKey(keyFile) : readExistingKey(keyFile)
  if (next === undefined) {
    if (current === undefined) throw noKey(keyFile)
    return found ? openSqliteStore({ ...options, key: current }) : openWithNewKey(options, keyFile, current)
  }
  let store = current === undefined ? undefined : tryOpen(options, current)
  if (store !== undefined) {
    // It was never used. A process that rotates keys has the store open, and now only we have.
    forget(nextKeyFile(keyFile))
    return store
  }
  store = openSqliteStore({ ...options, key: next })
  try {
    adoptNextKey(keyFile)
    return store
  } catch (error) {
    store.close()
    throw error
  }
}

/** A store that already has a key rejects a newly created one: the name is wrong, or the file was lost, so the new one is removed. */
function openWithNewKey(options: Omit<SqliteStoreOptions, 'key'>, keyFile: string, key: Buffer): SqliteStore {
  const store = tryOpen(options, key)
  if (store !== undefined) return store
  forget(keyFile)
  throw noKey(keyFile)
}

/**
 * Replaces the current key with the next one, and keeps the old one under another name: existing backups need it. Can be repeated if interrupted.
 * @returns path of the old key; '' = there was none
 */
export function adoptNextKey(keyFile: string): string {
  const old = readExistingKey(keyFile)
  const kept = old === undefined ? '' : `${keyFile}.old-${keyId(old)}`
  try {
    if (kept !== '') keepAs(keyFile, kept)
    renameSync(nextKeyFile(keyFile), keyFile)
    syncDirectory(dirname(keyFile))
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new UserError(
      `the new key of the store cannot take the place of ${keyFile}: ${reason}`,
      `nothing is lost: fix the directory and start again, or move ${nextKeyFile(keyFile)} there yourself`,
    )
  }
  return kept
}

/** A file that cannot be removed does no harm: the next rotation overwrites it. */
function forget(file: string): void {
  try {
    rmSync(file, { force: true })
  } catch {
    // For example, read-only.
  }
}

function keepAs(file: string, kept: string): void {
  try {
    linkSync(file, kept)
  } catch (error) {
    // The name contains the key's id: it was already kept.
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
  }
}

function tryOpen(options: Omit<SqliteStoreOptions, 'key'>, key: Buffer): SqliteStore | undefined {
  try {
    return openSqliteStore({ ...options, key })
  } catch (error) {
    if (error instanceof WrongStoreKey) return undefined
    throw error
  }
}

function noKey(keyFile: string): UserError {
  return new UserError(
    `there is no key of the store at ${keyFile}`,
    'give the --store-key-file of the gateway, or put the file back',
  )
}
