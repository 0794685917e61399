// Writes lines to a file or a pipe without ever blocking the event loop. A reader that is too slow loses lines, which
// are counted, instead of costing memory: process.stdout would block on a pipe, and an ordinary stream would grow.

import {
  closeSync,
  createReadStream,
  createWriteStream,
  fstatSync,
  openSync,
  readSync,
  renameSync,
  write,
  writeSync,
} from 'node:fs'
import { readdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, extname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'

/** Destination of a log's lines. */
export interface LineWriter {
  /** Accepts a line (without its end); never blocks. */
  write(line: string): void
  /** Lines dropped so far: the queue was full, or writing failed. */
  dropped(): number
  /** Resolves when all accepted lines are written or dropped. */
  flush(): Promise<void>
  /** Flushes and closes; later lines are dropped. */
  close(): Promise<void>
}

export interface LineWriterOptions {
  /** Approximate bytes that may wait. Default MAX_QUEUED. */
  readonly maxQueued?: number
  /** For a file. Default: it grows. */
  readonly rotation?: FileRotationOptions
  /** Called for each failed write, once per kind of error. */
  readonly onError?: (message: string) => void
}

/** `target`: a file descriptor, or the path of a file to append to (created if absent, mode 0600). Throws if it cannot be opened. */
export function openLineWriter(target: number | string, options: LineWriterOptions = {}): LineWriter {
  const fd = typeof target === 'number' ? target : openSync(target, 'a', 0o600)
  const { rotation } = options
  const rotated = typeof target === 'number' || rotation === undefined ? undefined : new FileRotation(target, rotation)
  const halfLine = typeof target !== 'number' && endsInHalfLine(target, fd)
  return new QueuedWriter(fd, typeof target !== 'number', options, rotated, halfLine)
}

/** A process that ended while the disk was full leaves an incomplete line. */
function endsInHalfLine(path: string, appended: number): boolean {
  const stat = fstatSync(appended)
  if (!stat.isFile() || stat.size === 0) return false
  try {
    const fd = openSync(path, 'r')
    try {
      const last = Buffer.alloc(1)
      return readSync(fd, last, 0, 1, stat.size - 1) === 1 && last[0] !== NEWLINE
    } finally {
      closeSync(fd)
    }
  } catch {
    // It may be writable but not readable.
    return false
  }
}

const NEWLINE = 0x0a

/** Lines are written in blocks of about this size. */
const BLOCK = 64 * 1024
const RETRY_MS = 5
/** Default limit of waiting bytes. */
const MAX_QUEUED = 8 * 1024 * 1024

class QueuedWriter implements LineWriter {
  #fd: number
  readonly #rotation: FileRotation | undefined
  /** Size of the file, if it is rotated. */
  #bytes = 0
  readonly #owned: boolean
  readonly #maxQueued: number
  readonly #onError: (message: string) => void
  readonly #errors = new Set<string>()
  readonly #onExit = (): void => this.#writeAllNow()
  #blocks: LineBlock[] = []
  #queued = 0
  #dropped = 0
  #busy: boolean
  #closed: boolean
  /** The last write ended inside a line, whose rest is lost. */
  #halfLine: boolean
  #waiting: (() => void)[] = []

  constructor(
    fd: number,
    owned: boolean,
    options: LineWriterOptions,
    rotation: FileRotation | undefined,
    halfLine: boolean,
  ) {
    this.#fd = fd
    this.#halfLine = halfLine
    this.#rotation = rotation
    if (rotation !== undefined) this.#bytes = fstatSync(fd).size
    this.#busy = false
    this.#closed = false
    this.#owned = owned
    this.#maxQueued = options.maxQueued ?? MAX_QUEUED
    this.#onError = options.onError ?? (() => {})
    process.on('exit', this.#onExit)
  }

  write(line: string): void {
    if (this.#closed || this.#queued + line.length > this.#maxQueued) {
      this.#dropped++
      return
    }
    let block = this.#blocks.at(-1)
    if (block === undefined || block.text.length >= BLOCK) {
      block = { text: '', lines: 0 }
      this.#blocks.push(block)
    }
    block.text += `${line}\n`
    block.lines++
    this.#queued += line.length + 1
    if (this.#busy) return
    this.#busy = true
    // Lines of one turn of the event loop are written together.
    setImmediate(() => this.#writeNext())
  }

  dropped(): number {
    return this.#dropped
  }

  flush(): Promise<void> {
    if (!this.#busy) return Promise.resolve()
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    await this.flush()
    process.off('exit', this.#onExit)
    await this.#rotation?.cleaned()
    if (this.#owned) closeSync(this.#fd)
  }

  #writeNext(): void {
    const block = this.#blocks.shift()
    if (block === undefined) {
      this.#busy = false
      const waiting = this.#waiting
      this.#waiting = []
      for (const resolve of waiting) resolve()
      return
    }
    this.#queued -= block.text.length
    this.#rotateBefore(Buffer.byteLength(block.text))
    this.#writeBlock(block, Buffer.from(this.#halfLine ? `\n${block.text}` : block.text), 0)
  }

  /** Only between blocks, which are whole lines. If rotation fails, the file is kept until as much again was written. */
  #rotateBefore(length: number): void {
    const rotation = this.#rotation
    if (rotation === undefined) return
    if (this.#bytes > 0 && this.#bytes + length > rotation.maxBytes) {
      try {
        const fd = rotation.rotate()
        closeSync(this.#fd)
        this.#fd = fd
        this.#halfLine = false
        rotation.clean((message) => this.#report(message, message))
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error)
        this.#report(message, `the file cannot be rotated: ${message}`)
      }
      this.#bytes = 0
    }
    this.#bytes += length
  }

  #writeBlock(block: LineBlock, bytes: Buffer, from: number): void {
    write(this.#fd, bytes, from, bytes.length - from, null, (error, written) => {
      if (error === null) {
        const end = from + written
        if (written > 0) this.#halfLine = bytes[end - 1] !== NEWLINE
        if (end < bytes.length) this.#writeBlock(block, bytes, end)
        else this.#writeNext()
      } else if (error.code === 'EAGAIN') {
        setTimeout(() => this.#writeBlock(block, bytes, from), RETRY_MS)
      } else {
        this.#lose(from === 0 ? block.lines : linesIn(bytes.subarray(from)), error)
        this.#writeNext()
      }
    })
  }

  #lose(lines: number, error: NodeJS.ErrnoException): void {
    this.#dropped += lines
    this.#report(error.code ?? error.message, error.message)
  }

  #report(kind: string, message: string): void {
    if (this.#errors.has(kind)) return
    this.#errors.add(kind)
    this.#onError(message)
  }

  /** If the process exits without `close`: writes what is waiting synchronously, as far as the reader accepts it. */
  #writeAllNow(): void {
    for (const block of this.#blocks) {
      try {
        writeSync(this.#fd, this.#halfLine ? `\n${block.text}` : block.text)
        this.#halfLine = false
      } catch {
        this.#dropped += block.lines
      }
    }
    this.#blocks = []
  }
}

interface LineBlock {
  text: string
  lines: number
}

/** An incomplete line counts. */
function linesIn(bytes: Buffer): number {
  let lines = 0
  for (let at = bytes.indexOf(NEWLINE); at >= 0; at = bytes.indexOf(NEWLINE, at + 1)) lines++
  return lines
}

// Rotates a log file like kube-apiserver's audit log (gopkg.in/natefinch/lumberjack): a full file is renamed to `NAME-TIME.EXT`, with the time in
// UTC; old ones are removed by number and age, and optionally compressed.

interface FileRotationOptions {
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

class FileRotation {
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
