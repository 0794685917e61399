// The recordings that a gateway thread writes: where, and how many and how much at most.

import { join } from 'node:path'
import type { Charge } from '../../kit/api/stream.ts'
import { RESERVE_OF, Shares } from '../../kit/core/shares/shares.ts'
import type { RecordingSettings } from '../core/recording/recording-settings.ts'
import { RecordingFile } from './recording-file.ts'

/** Recordings of a thread at a time, divided among users: with `whenFull: Block`, one with many sessions would keep all others from having any. */
export const MAX_OPEN_RECORDINGS = 256
/** What one of them may have waiting for the disk before its session waits, too, if it must be recorded. */
const MAX_WAITING_BYTES = 256 * 1024
/** The same if it need not be: then the recording ends. Bursts are faster than any disk. */
const MAX_BURST_BYTES = 4 * 1024 * 1024
/** The same for all of a thread that need not be. */
const MAX_ALL_BURST_BYTES = 64 * 1024 * 1024
/** Kept free for the remark with which a recording ends. */
const END_BYTES = 2048
const TOO_MANY = `too many sessions are being recorded by this thread, whose ${MAX_OPEN_RECORDINGS} recordings are divided among users`
const NOT_CONFIGURED = 'the gateway has no --session-recording-dir'

/** Notified by one recording. */
interface RecordingEvents {
  onDrained(): void
  onFailed(why: string): void
}

export class Recordings {
  readonly #open = new Set<OpenRecording>()
  /** Their number. The reserve is included in it, not on top of it. */
  readonly #shares = new Shares(MAX_OPEN_RECORDINGS - MAX_OPEN_RECORDINGS / RESERVE_OF)
  #settings: RecordingSettings | undefined

  /** For recordings that begin from now on. */
  set settings(settings: RecordingSettings) {
    this.#settings = settings
  }

  /** Those that are being written. */
  get size(): number {
    return this.#open.size
  }

  /** Why none can begin for this user; '' = one can, as far as is known. */
  unavailableTo({ source, weight }: Charge): string {
    const settings = this.#settings
    if (settings === undefined || settings.dir === '' || settings.key === undefined) return NOT_CONFIGURED
    if (this.#shares.isOver(source, weight)) return TOO_MANY
    return roomIn(settings, END_BYTES) ? '' : DIRECTORY_FULL
  }

  /**
   * @param name of the file
   * @param header its first line
   * @param charge the user
   * @returns why it cannot begin; then there is no file
   */
  open(name: string, header: string, events: RecordingEvents, charge: Charge): OpenRecording | string {
    const settings = this.#settings
    const unavailable = this.unavailableTo(charge)
    if (settings?.key === undefined || unavailable !== '') return unavailable
    const { source, weight } = charge
    if (this.#shares.take(source, weight, 1) !== 'taken') return TOO_MANY
    const bytes = Buffer.byteLength(header)
    const full = takeRoom(settings, 0, bytes)
    if (full !== '') {
      this.#shares.give(source, 1)
      return full
    }
    const recording: OpenRecording = new OpenRecording(name, settings, Buffer.from(settings.key), events, {
      onClosed: () => {
        if (this.#open.delete(recording)) this.#shares.give(source, 1)
      },
      isOverfull: () => this.#waitingBytes >= MAX_ALL_BURST_BYTES,
    })
    recording.keep(header, bytes)
    this.#open.add(recording)
    return recording
  }

  get #waitingBytes(): number {
    let bytes = 0
    for (const recording of this.#open) bytes += recording.waitingBytes
    return bytes
  }

  /** Called about once a second. */
  tick(): void {
    for (const recording of this.#open) recording.flush()
  }
}

const DIRECTORY_FULL = 'the directory of recordings is full (--session-recording-max-dir-bytes)'

interface OfThread {
  onClosed(): void
  /** Whether too much waits for the disk in the whole thread. */
  isOverfull(): boolean
}

export class OpenRecording {
  readonly #settings: RecordingSettings
  readonly #file: RecordingFile
  readonly #ofThread: OfThread
  #bytes = 0

  constructor(
    name: string,
    settings: RecordingSettings,
    key: Buffer,
    { onDrained, onFailed }: RecordingEvents,
    ofThread: OfThread,
  ) {
    this.#settings = settings
    this.#ofThread = ofThread
    const { onClosed } = ofThread
    this.#file = new RecordingFile({ path: join(settings.dir, name), key, onDrained, onFailed, onClosed })
  }

  get waitingBytes(): number {
    return this.#file.waitingBytes
  }

  /** The session has to wait, if it must be recorded. */
  get isFull(): boolean {
    return this.#file.waitingBytes >= MAX_WAITING_BYTES
  }

  /** No more is kept in memory of one that need not be recorded. */
  get isOverfull(): boolean {
    const { waitingBytes } = this.#file
    return waitingBytes >= MAX_BURST_BYTES || (waitingBytes >= MAX_WAITING_BYTES && this.#ofThread.isOverfull())
  }

  /** A line for which room was taken. @param bytes of it */
  keep(line: string, bytes: number): void {
    this.#bytes += bytes
    this.#file.add(line, bytes)
  }

  /** @returns why it has no room; '' = it is recorded */
  add(line: string): string {
    const bytes = Buffer.byteLength(line)
    const full = takeRoom(this.#settings, this.#bytes, bytes)
    if (full === '') this.keep(line, bytes)
    return full
  }

  flush(): void {
    this.#file.flush()
  }

  /** @param line the last one, up to END_BYTES, whether there is room or not */
  end(line: string, atOnce: boolean): void {
    this.#file.add(line, Buffer.byteLength(line))
    this.#file.end(atOnce)
  }
}

function roomIn({ used, maxDirBytes }: RecordingSettings, bytes: number): boolean {
  return Number(Atomics.load(used, 0)) + bytes <= maxDirBytes
}

/** @param before bytes that the recording has @returns why there is no room for more; '' = it is taken */
function takeRoom(settings: RecordingSettings, before: number, bytes: number): string {
  if (before + bytes > settings.maxBytes - END_BYTES) {
    return `it has ${settings.maxBytes} bytes (--session-recording-max-bytes)`
  }
  if (!roomIn(settings, bytes)) return DIRECTORY_FULL
  Atomics.add(settings.used, 0, BigInt(bytes))
  return ''
}
