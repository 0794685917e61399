// A last good state on disk, in two generations: NAME, and NAME.previous. A write is a file of its own that is renamed when it is
// on disk, so at every moment there is a whole one.

import { readFileSync } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from '../../../kit/api/ports.ts'
import { metaTime } from '../../../kit/core/text/meta-time.ts'
import { makePrivateDirectory } from '../../../pki/io/pki-files.ts'
import { type LastGood, openFile, sealFile, sealRecord } from './format.ts'

export interface LastGoodFileOptions {
  readonly dir: string
  readonly name: string
  /** lastGoodKey(). */
  readonly key: Buffer
  /** Which state of which server it is. */
  readonly source: string
  readonly log: Logger
}

/** Records that go to the system in one call. */
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
   * The newest that is whole; one line in the log for each that is not. undefined = there is none. Never throws. Which is newer is decided by
   * the names: the times in them are of a clock that may have been wrong.
   */
  read(): LastGood | undefined {
    return this.#readOne(this.#file) ?? this.#readOne(this.#previous)
  }

  /** For write(). */
  seal(value: unknown): Buffer {
    const { key, source } = this.#options
    return sealRecord(value, key, source)
  }

  /** On disk when it resolves. One at a time. @returns its size in bytes @throws {Error} (rejects) of the file system */
  async write(records: readonly Buffer[], timeMs: number): Promise<number> {
    const { dir, key, source } = this.#options
    makePrivateDirectory(dir)
    const { head, seal } = sealFile({ source, timeMs }, records, key)
    const temporary = `${this.#file}.new`
    // What a killed process has left may have other permissions.
    await rm(temporary, { force: true })
    const pieces = [head, ...records, seal]
    try {
      const bytes = await writeFile(temporary, pieces)
      await rename(this.#file, this.#previous).catch(ignoreMissing)
      await rename(temporary, this.#file)
      await syncDirectory(dir)
      return bytes
    } catch (error) {
      // On a disk that is full, it would take the rest.
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

/** A new file, on disk when it resolves. @returns its size */
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

/** A disk that is almost full takes a part. */
async function writeWhole(handle: Writable, pieces: readonly Buffer[]): Promise<number> {
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0)
  const { bytesWritten } = await handle.writev(pieces)
  if (bytesWritten === length) return length
  let rest = Buffer.concat(pieces).subarray(bytesWritten)
  while (rest.length > 0) {
    const written = await handle.write(rest)
    if (written.bytesWritten === 0) throw new Error('the disk takes no more')
    rest = rest.subarray(written.bytesWritten)
  }
  return length
}

/** After it, the names of files in the directory survive a power failure. */
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
