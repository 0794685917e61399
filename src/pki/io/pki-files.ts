// Certificates and keys as files: NAME.crt (world-readable) and NAME.key (0600). A pair is written or removed as a whole: if a process is killed
// halfway, the next one that reads the pair finishes the job.

import { createPrivateKey, randomBytes, X509Certificate } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { isRecord } from '../../kit/api/json/object-shape.ts'
import { errorMessage } from '../../kit/api/validation/error-message.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import type { KeyPair } from './pki.ts'

/**
 * Creates `dir` (0700) if missing. Existing files are replaced; readKeyPair() finds either the old pair or the new one.
 * @throws {UserError}
 */
export function writeKeyPair(dir: string, name: string, pair: KeyPair): void {
  makePrivateDirectory(dir)
  replaceFile(unfinishedFile(dir, name), JSON.stringify({ ...pair, removed: false }), 0o600)
  finishWrite(dir, name, pair)
}

/** Does nothing if there is no pair. @throws {UserError} if it is damaged, or cannot be removed */
export function removeKeyPair(dir: string, name: string): void {
  const pair = readKeyPair(dir, name)
  if (pair === undefined) return
  replaceFile(unfinishedFile(dir, name), JSON.stringify({ ...pair, removed: true }), 0o600)
  finishRemoval(dir, name)
}

/** Includes parents, all 0700. @throws {UserError} */
export function makePrivateDirectory(dir: string): void {
  inFileSystem(`cannot create ${dir}`, () => makeDirectory(resolve(dir)))
}

/** mkdirSync with `recursive` never returns if an existing parent cannot have directories, like /proc (Node 24). */
function makeDirectory(dir: string): void {
  if (isDirectory(dir)) return
  const parent = dirname(dir)
  if (parent !== dir) makeDirectory(parent)
  try {
    mkdirSync(dir, { mode: 0o700 })
  } catch (error) {
    // Another process may have created it in the meantime.
    if (!isDirectory(dir)) throw error
  }
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
}

/** The files that readKeyPair() reads: certificate and key. */
export function keyPairFiles(dir: string, name: string): readonly [string, string] {
  const { certFile, keyFile } = filesOf(dir, name)
  return [certFile, keyFile]
}

/**
 * undefined if neither file exists.
 * @throws {UserError} if one of the two is missing, unreadable or not PEM, or they do not match
 */
export function readKeyPair(dir: string, name: string): KeyPair | undefined {
  const { certFile, keyFile } = filesOf(dir, name)
  if (!existsSync(certFile) && !existsSync(keyFile)) return undefined
  try {
    return checkedPair(certFile, keyFile)
  } catch (error) {
    const unfinished = readUnfinished(dir, name)
    if (unfinished === undefined) throw error
    if (unfinished.removed && !existsSync(keyFile) && readTextFile(certFile) === unfinished.certPem) {
      finishRemoval(dir, name)
      return undefined
    }
    // Another key has been placed there since.
    if (unfinished.removed || !existsSync(keyFile) || readTextFile(keyFile) !== unfinished.keyPem) throw error
    finishWrite(dir, name, unfinished)
    return checkedPair(certFile, keyFile)
  }
}

function checkedPair(certFile: string, keyFile: string): KeyPair {
  const certPem = readTextFile(certFile)
  const keyPem = readTextFile(keyFile)
  return inFileSystem(`${certFile} and ${keyFile} are not a certificate and its key`, () => {
    // Throws for a PEM that does not parse.
    const certificate = new X509Certificate(certPem)
    if (!certificate.checkPrivateKey(createPrivateKey(keyPem))) throw new Error('they do not belong together')
    return { certPem, keyPem }
  })
}

function filesOf(dir: string, name: string): { readonly certFile: string; readonly keyFile: string } {
  return { certFile: join(dir, `${name}.crt`), keyFile: join(dir, `${name}.key`) }
}

// === unfinished writes and removals ===

/** Holds the pair being written or removed, because two files cannot be replaced at once. Exists only during that time. */
function unfinishedFile(dir: string, name: string): string {
  return join(dir, `${name}.unfinished`)
}

function readUnfinished(dir: string, name: string): (KeyPair & { readonly removed: boolean }) | undefined {
  const file = unfinishedFile(dir, name)
  if (!existsSync(file)) return undefined
  const pair: unknown = inFileSystem(`cannot read ${file}`, () => JSON.parse(readFileSync(file, 'utf8')))
  if (!isRecord(pair)) return undefined
  const { certPem, keyPem, removed } = pair
  return typeof certPem === 'string' && typeof keyPem === 'string'
    ? { certPem, keyPem, removed: removed === true }
    : undefined
}

/** The key first: it tells readKeyPair() what was being written. */
function finishWrite(dir: string, name: string, pair: KeyPair): void {
  const { certFile, keyFile } = filesOf(dir, name)
  replaceFile(keyFile, pair.keyPem, 0o600)
  replaceFile(certFile, pair.certPem, 0o644)
  removeFile(unfinishedFile(dir, name))
}

function finishRemoval(dir: string, name: string): void {
  const { certFile, keyFile } = filesOf(dir, name)
  for (const file of [keyFile, certFile, unfinishedFile(dir, name)]) removeFile(file)
}

function removeFile(file: string): void {
  inFileSystem(`cannot remove ${file}`, () => rmSync(file, { force: true }))
}

// === files ===

/** The existing ones among NAME.crt and NAME.key. */
export function existingPairFiles(dir: string, name: string): string[] {
  return Object.values(filesOf(dir, name)).filter((file) => existsSync(file))
}

/** @throws {UserError} if one does not exist */
export function requireFiles(files: readonly string[]): void {
  const missing = files.find((file) => !existsSync(file))
  if (missing !== undefined) throw new UserError(`${missing} is missing`, 'put it back')
}

/** @throws {UserError} */
export function readTextFile(file: string): string {
  return inFileSystem(`cannot read ${file}`, () => readFileSync(file, 'utf8'))
}

/** A file named by a setting. @throws {UserError} */
export function readNamedFile(flag: string, file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new UserError(`cannot read ${flag} ${file}: ${errorMessage(error)}`, 'name a readable file')
  }
}

/** Written to a temporary file and renamed, so that readers never see half of it; `mode` applies regardless of the old file's. */
export function replaceFile(file: string, text: string, mode: number): void {
  const temporary = `${file}.${randomBytes(6).toString('hex')}`
  inFileSystem(`cannot write ${file}`, () => {
    writeFileSync(temporary, text, { mode, flag: 'wx', flush: true })
    renameSync(temporary, file)
  })
}

function inFileSystem<T>(failure: string, action: () => T): T {
  try {
    return action()
  } catch (error) {
    const code = String(error instanceof Error && Reflect.get(error, 'code'))
    throw new UserError(`${failure}: ${errorMessage(error)}`, FIXES[code] ?? OTHER_FIX)
  }
}

/** Keyed by system error code. */
const FIXES: Readonly<Record<string, string>> = {
  EACCES: 'fix its permissions or its owner, so that the user that the gateway runs as may use it',
  EPERM: 'fix its permissions or its owner, so that the user that the gateway runs as may use it',
  EROFS: 'mount the file system for writing, or name another directory',
  ENOSPC: 'free some space',
}
const OTHER_FIX = 'fix or remove the file, or name another directory'
