// The key file that encrypts Secrets in the store: 32 random bytes, as one line of base64.

import { createHash, randomBytes } from 'node:crypto'
import { closeSync, fsyncSync, linkSync, openSync, readFileSync, rmSync, unlinkSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { errorMessage } from '../../../kit/api/validation/error-message.ts'
import { UserError } from '../../../kit/api/validation/field-errors.ts'
import { makePrivateDirectory } from '../../../pki/io/pki-files.ts'

const KEY_BYTES = 32
const BASE64 = /^[A-Za-z0-9+/]{43}=$/

/**
 * Reads the key; creates it first (mode 0600, on disk before this returns) if the file does not exist. A backup of the store needs this file, too:
 * without it the Secrets are lost.
 * @throws {UserError} if the file cannot be read or written, or contains something else
 */
export function readStoreKey(file: string): Buffer {
  return readKey(file) ?? createKey(file)
}

/** Like readStoreKey, but does not create a file; undefined = it does not exist. @param of whose key it is, for errors @throws {UserError} */
export function readExistingKey(file: string, of = 'the store'): Buffer | undefined {
  return readKey(file, of)
}

/** Creates a new key, replacing an existing file; on disk before this returns. @throws {UserError} */
export function createNewKey(file: string): Buffer {
  try {
    rmSync(file, { force: true })
  } catch (error) {
    throw failure('write', file, error)
  }
  return createKey(file)
}

/** Identifies a key without revealing it: eight hex digits. */
export function keyId(key: Buffer): string {
  return createHash('sha256').update(key).digest('hex').slice(0, 8)
}

function readKey(file: string, of = 'the store'): Buffer | undefined {
  let text: string
  try {
    text = readFileSync(file, 'latin1').trim()
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw failure('read', file, error, of)
  }
  if (!BASE64.test(text)) {
    throw new UserError(
      `${file} does not hold a key of ${of}: one line, 32 bytes in base64`,
      `restore the file that belongs to ${of}, or name another one`,
    )
  }
  return Buffer.from(text, 'base64')
}

/** Always atomic; two concurrent processes get the same key. */
function createKey(file: string): Buffer {
  makePrivateDirectory(dirname(file))
  const key = randomBytes(KEY_BYTES)
  const temporary = `${file}.${randomBytes(6).toString('hex')}`
  try {
    writeDurably(temporary, `${key.toString('base64')}\n`)
    try {
      linkSync(temporary, file)
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') throw error
      return readKey(file) ?? key
    } finally {
      unlinkSync(temporary)
    }
    syncDirectory(dirname(file))
    return key
  } catch (error) {
    if (error instanceof UserError) throw error
    throw failure('write', file, error)
  }
}

function writeDurably(file: string, text: string): void {
  const fd = openSync(file, 'wx', 0o600)
  try {
    writeSync(fd, text)
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}

/** Makes file names in the directory survive a power failure. */
export function syncDirectory(dir: string): void {
  const fd = openSync(dir, 'r')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}

function failure(verb: string, file: string, error: unknown, of = 'the store'): UserError {
  const reason = errorMessage(error)
  return new UserError(
    `cannot ${verb} the key of ${of}, ${file}: ${reason}`,
    'give this user access to it, or name another file',
  )
}
