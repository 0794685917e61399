// Writes lines to a file or a pipe without ever blocking the event loop. A reader that is too slow loses lines, which
// are counted, instead of costing memory: process.stdout would block on a pipe, and an ordinary stream would grow.

import { closeSync, fstatSync, openSync, readSync, write, writeSync } from 'node:fs'
import { FileRotation, type FileRotationOptions } from './file-rotation.ts'

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
