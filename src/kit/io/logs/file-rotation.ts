// Rotates a log file like kube-apiserver's audit log (gopkg.in/natefinch/lumberjack): a full file is renamed to `NAME-TIME.EXT`, with the time in
// UTC; old ones are removed by number and age, and optionally compressed.

import { createReadStream, createWriteStream, openSync, renameSync } from 'node:fs'
import { readdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, extname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'

export interface FileRotationOptions {
  /** Bytes. */
  readonly maxBytes: number
  /** 0 = unlimited. */
  readonly maxAgeMs: number
  /** 0 = unlimited. */
  readonly maxFiles: number
  readonly compress: boolean
  /** Wall clock, milliseconds. */
  readonly now: () => number
}

const GZIP = '.gz'
const TIME = /^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}$/

export class FileRotation {
  readonly maxBytes: number
  readonly #path: string
  readonly #options: FileRotationOptions
  #cleaning: Promise<void> = Promise.resolve()

  constructor(path: string, options: FileRotationOptions) {
    this.#path = path
    this.maxBytes = options.maxBytes
    this.#options = options
  }

  /** Renames the file. @returns a descriptor of a new one. @throws if that fails; the file is then unchanged */
  rotate(): number {
    renameSync(this.#path, this.#rotatedName())
    return openSync(this.#path, 'a', 0o600)
  }

  /** Compresses and removes rotated files; never concurrently. */
  clean(onError: (message: string) => void): void {
    this.#cleaning = this.#cleaning
      .then(() => this.#clean())
      .catch((error: unknown) => onError(error instanceof Error ? error.message : String(error)))
  }

  /** Resolves when all pending cleaning is done. */
  cleaned(): Promise<void> {
    return this.#cleaning
  }

  #lastMs = 0

  /** Never an existing name: within the same millisecond the next one is used. */
  #rotatedName(): string {
    this.#lastMs = Math.max(Math.floor(this.#options.now()), this.#lastMs + 1)
    const time = new Date(this.#lastMs).toISOString().slice(0, -1).replaceAll(':', '-')
    const extension = extname(this.#path)
    return `${this.#path.slice(0, this.#path.length - extension.length)}-${time}${extension}`
  }

  async #clean(): Promise<void> {
    const { compress, maxFiles, maxAgeMs, now } = this.#options
    const files = await this.#rotated()
    const oldest = maxAgeMs === 0 ? 0 : now() - maxAgeMs
    for (const [i, { path, timeMs }] of files.entries()) {
      if ((maxFiles > 0 && i >= maxFiles) || timeMs < oldest) await rm(path, { force: true })
      else if (compress && !path.endsWith(GZIP)) await compressFile(path)
    }
  }

  /** Newest first. */
  async #rotated(): Promise<readonly { readonly path: string; readonly timeMs: number }[]> {
    const folder = dirname(this.#path)
    const extension = extname(this.#path)
    const prefix = `${basename(this.#path, extension)}-`
    const found: { path: string; timeMs: number }[] = []
    for (const name of await readdir(folder)) {
      const plain = name.endsWith(GZIP) ? name.slice(0, -GZIP.length) : name
      if (!plain.startsWith(prefix) || !plain.endsWith(extension)) continue
      const time = plain.slice(prefix.length, plain.length - extension.length)
      if (!TIME.test(time)) continue
      const iso = `${time.slice(0, 10)}T${time.slice(11).replaceAll('-', ':')}Z`
      found.push({ path: join(folder, name), timeMs: Date.parse(iso) })
    }
    return found.sort((a, b) => b.timeMs - a.timeMs)
  }
}

/** All or nothing: an incomplete file never has the final name. */
async function compressFile(path: string): Promise<void> {
  const unfinished = `${path}${GZIP}.tmp`
  await pipeline(createReadStream(path), createGzip(), createWriteStream(unfinished, { mode: 0o600 }))
  await rename(unfinished, `${path}${GZIP}`)
  await rm(path, { force: true })
}
