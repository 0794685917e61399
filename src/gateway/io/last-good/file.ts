// A last good state on disk, in two generations: NAME, and NAME.previous. Each write goes to a separate file that is renamed once on disk, so there
// is always a complete one.

import { readFileSync } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from '../../../kit/api/ports.ts'
import { metaTime } from '../../../kit/core/text/meta-time.ts'
import { makePrivateDirectory } from '../../../pki/io/pki-files.ts'
import { type LastGood, openFile, sealFile, sealRecord } from './format.ts'

interface LastGoodFileOptions {
  readonly dir: string
  readonly name: string
  /** lastGoodKey(). */
  readonly key: Buffer
  /** Identifies the server and which of its states this is. */
  readonly source: string
  readonly log: Logger
}

/** Records written per system call. */
const RECORDS_AT_ONCE = 256

export class LastGoodFile {
  readonly #options: LastGoodFileOptions
  readonly #file: string
  readonly #previous: string

  constructor(options: LastGoodFileOptions) {
    this.#options = options
    this.#file = join(options.dir, options.name)
    this.#previous = `${this.#file}.previous`
  }

  get source(): string {
    return this.#options.source
  }

  /**
   * The newest complete one; logs one line for each that is not. undefined = none. Never throws. File names decide which is newer: the times inside
   * come from a clock that may have been wrong.
   */
  read(): LastGood | undefined {
    return this.#readOne(this.#file) ?? this.#readOne(this.#previous)
  }

  /** For write(). */
  seal(value: unknown): Buffer {
    const { key, source } = this.#options
    return sealRecord(value, key, source)
  }

  /** On disk when it resolves. Not reentrant. @returns its size in bytes @throws {Error} (rejects) from the file system */
  async write(records: readonly Buffer[], timeMs: number): Promise<number> {
    const { dir, key, source } = this.#options
    makePrivateDirectory(dir)
    const { head, seal } = sealFile({ source, timeMs }, records, key)
    const temporary = `${this.#file}.new`
    // Leftovers of a killed process may have other permissions.
    await rm(temporary, { force: true })
    const pieces = [head, ...records, seal]
    try {
      const bytes = await writeFile(temporary, pieces)
      await rename(this.#file, this.#previous).catch(ignoreMissing)
      await rename(temporary, this.#file)
      await syncDirectory(dir)
      return bytes
    } catch (error) {
      // It would fill a disk that is already full.
      await rm(temporary, { force: true }).catch(() => undefined)
      throw error
    }
  }

  #readOne(file: string): LastGood | undefined {
    const { key, source, log } = this.#options
    const opened = (() => {
      try {
        return openFile(readFileSync(file), key, source)
      } catch (error) {
        const code = codeOf(error)
        return code === 'ENOENT' ? undefined : { refused: `it cannot be read: ${code || String(error)}` }
      }
    })()
    if (opened === undefined) return undefined
    if ('state' in opened) {
      log.debug('a last good state was read', { file, time: metaTime(opened.state.timeMs) })
      return opened.state
    }
    log.warn('a last good state is not used', { file, why: opened.refused })
    return undefined
  }
}

interface Writable {
  writev(pieces: readonly Buffer[]): Promise<{ readonly bytesWritten: number }>
  write(piece: Buffer): Promise<{ readonly bytesWritten: number }>
}

/** Writes a new file, on disk when it resolves. @returns its size */
async function writeFile(file: string, pieces: readonly Buffer[]): Promise<number> {
  const handle = await open(file, 'wx', 0o600)
  let bytes = 0
  try {
    for (let at = 0; at < pieces.length; at += RECORDS_AT_ONCE) {
      bytes += await writeWhole(handle, pieces.slice(at, at + RECORDS_AT_ONCE))
    }
    await handle.sync()
  } finally {
    await handle.close()
  }
  return bytes
}

/** A nearly full disk accepts only a part. */
async function writeWhole(handle: Writable, pieces: readonly Buffer[]): Promise<number> {
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0)
  const { bytesWritten } = await handle.writev(pieces)
  if (bytesWritten === length) return length
  let rest = Buffer.concat(pieces).subarray(bytesWritten)
  while (rest.length > 0) {
    const written = await handle.write(rest)
    if (written.bytesWritten === 0) throw new Error('the disk accepts no more data')
    rest = rest.subarray(written.bytesWritten)
  }
  return length
}

/** Makes file names in the directory survive a power failure. */
async function syncDirectory(dir: string): Promise<void> {
  const handle = await open(dir, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

function ignoreMissing(error: unknown): void {
  if (codeOf(error) !== 'ENOENT') throw error
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}
