// The recordings that a gateway thread writes: where, and how many and how much at most.

import { createHmac } from 'node:crypto'
import { join } from 'node:path'
import type { Charge } from '../../kit/api/stream.ts'
import { RESERVE_OF, Shares, type Taken } from '../../kit/core/shares/shares.ts'
import { DirectoryRoom, USER_SLOTS } from '../core/recording/directory-room.ts'
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
  /** undefined = nowhere. */
  #place: Place | undefined

  /** For recordings that begin from now on. */
  set settings({ dir, key, maxBytes, maxDirBytes, room }: RecordingSettings) {
    if (dir === '' || key === undefined) this.#place = undefined
    else this.#place = { dir, key: Buffer.from(key), maxBytes, room: new DirectoryRoom(room, maxDirBytes) }
  }

  /** Those that are being written. */
  get size(): number {
    return this.#open.size
  }

  /** Why none can begin for this user; '' = one can, as far as is known. */
  unavailableTo(charge: Charge): string {
    const place = this.#place
    if (place === undefined) return NOT_CONFIGURED
    const { source, weight } = charge
    if (this.#shares.isOver(source, weight)) return TOO_MANY
    return NO_ROOM[place.room.wouldTake(slotFor(place, charge), weight, END_BYTES)]
  }

  /** In the names of this user's files. */
  slotOf(charge: Charge): number {
    return this.#place === undefined ? 0 : slotFor(this.#place, charge)
  }

  /**
   * @param name of the file
   * @param header its first line
   * @param charge the user
   * @returns why it cannot begin; then there is no file
   */
  open(name: string, header: string, events: RecordingEvents, charge: Charge): OpenRecording | string {
    const place = this.#place
    const unavailable = this.unavailableTo(charge)
    if (place === undefined || unavailable !== '') return unavailable
    const { source, weight } = charge
    if (this.#shares.take(source, weight, 1) !== 'taken') return TOO_MANY
    const room = new RecordingRoom(place, charge)
    const full = room.take(Buffer.byteLength(header))
    if (full !== '') {
      this.#shares.give(source, 1)
      return full
    }
    const recording: OpenRecording = new OpenRecording(name, place, room, events, {
      onClosed: () => {
        if (this.#open.delete(recording)) this.#shares.give(source, 1)
      },
      isOverfull: () => this.#waitingBytes >= MAX_ALL_BURST_BYTES,
    })
    recording.keep(header)
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

const OF_DIRECTORY = 'the directory of recordings'
const NO_ROOM: Readonly<Record<Taken, string>> = {
  taken: '',
  'over-share': `${OF_DIRECTORY} is full, and this user's recordings have their share of it (--session-recording-max-dir-bytes)`,
  full: `${OF_DIRECTORY} is full (--session-recording-max-dir-bytes)`,
}

/** Where recordings are written. */
interface Place extends Pick<RecordingSettings, 'dir' | 'maxBytes'> {
  readonly key: Buffer
  readonly room: DirectoryRoom
}

/** By a hash that takes the key: a user must not be able to choose a slot, and names of files must not name users. */
function slotFor({ key }: Place, { source }: Charge): number {
  return createHmac('sha256', key).update(`slot of ${source}`).digest().readUInt16BE(0) % USER_SLOTS
}

/** What one recording takes of the directory. */
class RecordingRoom {
  readonly #place: Place
  readonly #slot: number
  readonly #weight: number
  #bytes = 0

  constructor(place: Place, charge: Charge) {
    this.#place = place
    this.#slot = slotFor(place, charge)
    this.#weight = charge.weight
  }

  /** @returns why there is no room; '' = it is taken */
  take(bytes: number): string {
    const { maxBytes, room } = this.#place
    if (this.#bytes + bytes > maxBytes - END_BYTES) return `it has ${maxBytes} bytes (--session-recording-max-bytes)`
    const taken = room.take(this.#slot, this.#weight, bytes)
    if (taken === 'taken') this.#bytes += bytes
    return NO_ROOM[taken]
  }
}

interface OfThread {
  onClosed(): void
  /** Whether too much waits for the disk in the whole thread. */
  isOverfull(): boolean
}

export class OpenRecording {
  readonly #room: RecordingRoom
  readonly #file: RecordingFile
  readonly #ofThread: OfThread

  constructor(
    name: string,
    { dir, key }: Place,
    room: RecordingRoom,
    { onDrained, onFailed }: RecordingEvents,
    ofThread: OfThread,
  ) {
    this.#room = room
    this.#ofThread = ofThread
    const { onClosed } = ofThread
    this.#file = new RecordingFile({ path: join(dir, name), key, onDrained, onFailed, onClosed })
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

  /** A line for which room was taken. */
  keep(line: string): void {
    this.#file.add(line, Buffer.byteLength(line))
  }

  /** @returns why it has no room; '' = it is recorded */
  add(line: string): string {
    const bytes = Buffer.byteLength(line)
    const full = this.#room.take(bytes)
    if (full === '') this.#file.add(line, bytes)
    return full
  }

  flush(): void {
    this.#file.flush()
  }

  /** @param line the last one, up to END_BYTES, whether there is room or not */
  end(line: string, atOnce: boolean): void {
    this.keep(line)
    this.#file.end(atOnce)
  }
}
