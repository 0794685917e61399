// The tokens of each login in a file that only its user can read. A file that others could read or write is refused, as ssh refuses such a key.

import { createHash, randomBytes } from 'node:crypto'
import { lstatSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import process from 'node:process'
import { errorMessage } from '../../kit/api/validation/error-message.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { type StoredTokens, tokensOfText, tokensText } from '../core/stored-tokens.ts'

/** Any permission of group and others. */
const OTHERS = 0o077
const OTHERS_WRITE = 0o022
/** Windows has no such modes: there the user's profile is closed to others by its ACL. */
const HAS_MODES = process.platform !== 'win32'
const MAX_FILE_BYTES = 1024 * 1024
/** With the name of one that is being written. */
const TOKEN_FILE = /^([0-9a-f]{32}\.json)(\.[0-9a-f]{16})?$/

/** Beside the caches of kubectl. */
export function defaultTokenDir(): string {
  return join(homedir(), '.kube', 'cache', 'portcullis-login')
}

/** @param key of `loginKey` */
export function tokenFile(dir: string, key: string): string {
  return join(dir, `${createHash('sha256').update(key).digest('hex').slice(0, 32)}.json`)
}

export interface ReadTokens {
  /** undefined = there are none. */
  readonly tokens: StoredTokens | undefined
  /** There is a file, and it holds something else. */
  readonly damaged: boolean
}

/** @throws {UserError} if others may read the file, or it cannot be read */
export function readTokens(file: string): ReadTokens {
  const stat = inFileSystem(`cannot read ${file}`, () => lstatSync(file, { throwIfNoEntry: false }))
  if (stat === undefined) return { tokens: undefined, damaged: false }
  if (!stat.isFile()) throw new UserError(`${file} is not a regular file`, `remove it: rm ${file}`)
  checkPrivate(file, stat, OTHERS, 'chmod 600')
  if (stat.size > MAX_FILE_BYTES) return { tokens: undefined, damaged: true }
  const tokens = tokensOfText(inFileSystem(`cannot read ${file}`, () => readFileSync(file, 'utf8')))
  return { tokens, damaged: tokens === undefined }
}

/** Creates the directory, 0700. @throws {UserError} if it cannot, or if others may write to it: they could put their tokens in the place of these */
export function prepareTokenDir(dir: string): void {
  inFileSystem(`cannot create ${dir}`, () => mkdirSync(dir, { recursive: true, mode: 0o700 }))
  const stat = inFileSystem(`cannot read ${dir}`, () => statSync(dir))
  checkPrivate(dir, stat, OTHERS_WRITE, 'chmod 700')
}

/** Readers find the old tokens or the new ones. @throws {UserError} */
export function writeTokens(file: string, tokens: StoredTokens): void {
  removeUnfinished(file)
  const unfinished = `${file}.${randomBytes(8).toString('hex')}`
  inFileSystem(`cannot write ${file}`, () => {
    try {
      writeFileSync(unfinished, tokensText(tokens), { mode: 0o600, flag: 'wx', flush: true })
      renameSync(unfinished, file)
    } catch (error) {
      rmSync(unfinished, { force: true })
      throw error
    }
  })
}

/** @throws {UserError} */
export function removeTokens(file: string): void {
  inFileSystem(`cannot remove ${file}`, () => rmSync(file, { force: true }))
}

/** What a command that was killed while it wrote has left: there are tokens in it. Only for the holder of the lock. @throws {UserError} */
export function removeUnfinished(file: string): void {
  const [dir, name] = [dirname(file), basename(file)]
  for (const one of namesIn(dir)) {
    if (one !== name && TOKEN_FILE.exec(one)?.[1] === name) removeTokens(join(dir, one))
  }
}

/** All files of tokens, and those that were begun. @throws {UserError} if the directory cannot be read */
export function tokenFiles(dir: string): readonly string[] {
  const names = new Set(namesIn(dir).flatMap((name) => TOKEN_FILE.exec(name)?.[1] ?? []))
  return [...names].sort().map((name) => join(dir, name))
}

function namesIn(dir: string): readonly string[] {
  return inFileSystem(`cannot read ${dir}`, () => {
    const isThere = statSync(dir, { throwIfNoEntry: false }) !== undefined
    return isThere ? readdirSync(dir) : []
  })
}

function checkPrivate(path: string, stat: { mode: number; uid: number }, bits: number, command: string): void {
  if (!HAS_MODES) return
  if (stat.uid !== process.getuid?.()) {
    throw new UserError(`${path} belongs to another user`, 'remove it, or name another directory with --token-dir')
  }
  if ((stat.mode & bits) === 0) return
  const mode = (stat.mode & 0o777).toString(8).padStart(4, '0')
  const may = bits === OTHERS ? 'read or change' : 'write to'
  throw new UserError(`others on this machine may ${may} ${path} (mode ${mode})`, `run: ${command} ${path}`)
}

function inFileSystem<T>(problem: string, action: () => T): T {
  try {
    return action()
  } catch (error) {
    throw new UserError(
      `${problem}: ${errorMessage(error)}`,
      'give this user permission there, or name another directory with --token-dir',
    )
  }
}
