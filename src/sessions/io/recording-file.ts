// A recording while it is written: lines become sealed chunks, which are written in the background. What waits is limited by those who write; a file
// has its final name once it is whole.

import { renameSync, writeSync } from 'node:fs'
import { type FileHandle, open, rename } from 'node:fs/promises'
import { PART_SUFFIX } from '../core/recording/file-name.ts'
import { MAX_CHUNK_BYTES, RecordingSeal } from './sealed-recording.ts'

export interface RecordingFileOptions {
  /** Its final name. */
  readonly path: string
  readonly key: Buffer
  /** What waits has become little. */
  onDrained(): void
  /** The rest cannot be written. */
  onFailed(why: string): void
  /** Nothing is written any more. */
  onClosed(): void
}

/** Text that is sealed together. */
const CHUNK_BYTES = 32 * 1024
/** An open file without anything new is touched after so many flushes: by that, others see that it is not abandoned. */
const FLUSHES_PER_TOUCH = 60

export class RecordingFile {
  readonly #options: RecordingFileOptions
  readonly #seal: RecordingSeal
  readonly #part: string
  /** Not sealed yet. */
  #text: string[] = []
  #textBytes = 0
  /** Sealed, in order. */
  #sealed: Buffer[]
  #sealedBytes = 0
  #handle: FileHandle | undefined
  /** Where the first of #sealed goes. */
  #position = 0
  #isWriting = false
  #idleFlushes = 0
  #state: 'open' | 'ending' | 'over' = 'open'

  constructor(options: RecordingFileOptions) {
    this.#options = options
    this.#part = `${options.path}${PART_SUFFIX}`
    this.#seal = new RecordingSeal(options.key)
    this.#sealed = [this.#seal.head]
    this.#write()
  }

  /** Bytes that are not on disk yet. */
  get waitingBytes(): number {
    return this.#textBytes + this.#sealedBytes
  }

  /** @param bytes of the line */
  add(line: string, bytes: number): void {
    if (this.#state !== 'open') return
    this.#text.push(line)
    this.#textBytes += bytes
    if (this.#textBytes >= CHUNK_BYTES) this.flush()
  }

  /** What was added is lost no longer if the gateway is killed. Called about once a second, too. */
  flush(): void {
    if (this.#state !== 'open') return
    if (this.#textBytes > 0) this.#sealText(false)
    else if (++this.#idleFlushes % FLUSHES_PER_TOUCH === 0) this.#touch()
  }

  #touch(): void {
    const now = new Date()
    this.#handle?.utimes(now, now).catch(() => undefined)
  }

  /** @param atOnce writes what waits before it returns: the process may be about to end */
  end(atOnce: boolean): void {
    if (this.#state !== 'open') return
    this.#state = 'ending'
    this.#sealText(true)
    if (atOnce) this.#finishNow()
  }

  #sealText(isLast: boolean): void {
    let text: Buffer = Buffer.from(this.#text.join(''))
    this.#text = []
    this.#textBytes = 0
    for (; text.length > MAX_CHUNK_BYTES; text = text.subarray(MAX_CHUNK_BYTES)) {
      this.#keep(this.#seal.seal(text.subarray(0, MAX_CHUNK_BYTES), false))
    }
    this.#keep(this.#seal.seal(text, isLast))
    this.#write()
  }

  #keep(chunk: Buffer): void {
    this.#sealed.push(chunk)
    this.#sealedBytes += chunk.length
  }

  #write(): void {
    if (this.#isWriting || this.#state === 'over') return
    this.#isWriting = true
    this.#writeAll().catch((error: unknown) => this.#fail(error))
  }

  async #writeAll(): Promise<void> {
    this.#handle ??= await open(this.#part, 'wx', 0o600)
    while (this.#sealed.length > 0 && !this.#isOver) {
      const pieces = Buffer.concat(this.#sealed)
      // Stays among those that wait until it is written: at the end it may be written once more, to the same place.
      this.#sealed = [pieces]
      const { bytesWritten } = await this.#handle.write(pieces, 0, pieces.length, this.#position)
      if (this.#isOver) break
      if (bytesWritten === 0) throw new Error('the disk accepts no more data')
      this.#position += bytesWritten
      const [first, ...later] = this.#sealed
      const rest = (first ?? pieces).subarray(bytesWritten)
      this.#sealed = rest.length === 0 ? later : [rest, ...later]
      this.#sealedBytes = this.#sealed.reduce((sum, { length }) => sum + length, 0)
      this.#options.onDrained()
    }
    this.#isWriting = false
    if (this.#state === 'ending') await this.#finish()
    else if (this.#isOver) await this.#handle.close().catch(() => undefined)
  }

  /** Read again after a wait. */
  get #isOver(): boolean {
    return this.#state === 'over'
  }

  async #finish(): Promise<void> {
    this.#state = 'over'
    await this.#handle?.sync()
    await this.#handle?.close()
    await rename(this.#part, this.#options.path)
    this.#options.onClosed()
  }

  #finishNow(): void {
    const handle = this.#handle
    // It has not even been created: there was no time for anything.
    if (handle === undefined) return
    this.#state = 'over'
    try {
      for (let pieces = Buffer.concat(this.#sealed); pieces.length > 0; ) {
        const written = writeSync(handle.fd, pieces, 0, pieces.length, this.#position)
        if (written === 0) throw new Error('the disk accepts no more data')
        this.#position += written
        pieces = pieces.subarray(written)
      }
      renameSync(this.#part, this.#options.path)
      this.#options.onClosed()
    } catch (error) {
      this.#fail(error)
    }
    if (!this.#isWriting) handle.close().catch(() => undefined)
  }

  #fail(error: unknown): void {
    this.#state = 'over'
    this.#sealed = []
    this.#sealedBytes = 0
    this.#handle?.close().catch(() => undefined)
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
    this.#options.onFailed(`its file cannot be written: ${code}`)
    this.#options.onClosed()
  }
}
