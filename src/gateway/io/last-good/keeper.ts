// Keeps a last good state on disk: records by name, of which only changed ones are resealed, in slices; written after changes, at most once a second,
// and less often if writes take long; also periodically while nothing changes, so that the time in the file says when the state was current.

import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import type { Clock, Logger } from '../../../kit/api/ports.ts'
import { errorMessage } from '../../../kit/api/validation/error-message.ts'
import type { LastGoodFile } from './file.ts'
import type { LastGood } from './format.ts'

interface LastGoodKeeperOptions {
  readonly file: LastGoodFile
  /** For metrics and the log. */
  readonly name: string
  readonly clock: Clock
  readonly log: Logger
  /** Milliseconds between the starts of two writes. Default 1 s. */
  readonly everyMs?: number
  /** Milliseconds between two writes of the same state, while it is current. Default 5 min. */
  readonly refreshMs?: number
}

/** The state on disk. */
export interface LastGoodStatus {
  readonly name: string
  /** Milliseconds since the epoch; 0 = this process has written nothing. */
  readonly writtenMs: number
  readonly bytes: number
  readonly failures: number
  /** Milliseconds since the epoch: when the state that is served instead of the source's was last current; 0 = the source's is served. */
  readonly servedFromMs: number
}

const EVERY_MS = 1_000
const REFRESH_MS = 5 * 60_000
/** Sealing thousands of records must not block the thread. */
const SLICE_MS = 5
/** A write takes at most one in this many of the time. */
const DUTY = 10

export class LastGoodKeeper {
  readonly name: string
  readonly #file: LastGoodFile
  readonly #clock: Clock
  readonly #log: Logger
  readonly #everyMs: number
  readonly #refreshMs: number
  readonly #records = new Map<string, Buffer>()
  /** Records to seal; undefined = removed. */
  readonly #pending = new Map<string, unknown>()
  #current = false
  /** When it was last known to be current: milliseconds since the epoch; 0 = never. */
  #currentMs = 0
  #dirty = false
  #timer: NodeJS.Timeout | undefined
  #writing: Promise<void> | undefined
  #nextMs = Number.NEGATIVE_INFINITY
  #stopped = false
  #fault = ''
  #status = { writtenMs: 0, bytes: 0, failures: 0, servedFromMs: 0 }

  constructor({ file, name, clock, log, everyMs, refreshMs }: LastGoodKeeperOptions) {
    this.name = name
    this.#file = file
    this.#clock = clock
    this.#log = log
    this.#everyMs = everyMs ?? EVERY_MS
    this.#refreshMs = refreshMs ?? REFRESH_MS
  }

  get status(): LastGoodStatus {
    return { name: this.name, ...this.#status }
  }

  /** The state that a previous process saved; undefined = nothing usable. Never throws. */
  restore(): LastGood | undefined {
    return this.#file.read()
  }

  /** The state of this time is served instead of the source's; 0 = the source's is. */
  serves(timeMs: number): void {
    this.#status.servedFromMs = timeMs
  }

  put(name: string, value: unknown): void {
    this.#pending.set(name, value)
    this.#dirty = true
    this.#schedule()
  }

  delete(name: string): void {
    this.#pending.set(name, undefined)
    this.#dirty = true
    this.#schedule()
  }

  /** Names that are kept, or will be with the next write. */
  names(): ReadonlySet<string> {
    const names = new Set(this.#records.keys())
    for (const [name, value] of this.#pending) {
      if (value === undefined) names.delete(name)
      else names.add(name)
    }
    return names
  }

  /** Whether the stored state is what the source has now. Nothing is written before it first is. */
  current(current: boolean): void {
    if (current || this.#current) this.#currentMs = this.#clock.now()
    this.#current = current
    if (current) this.serves(0)
    this.#schedule()
  }

  /** Writes what is not on disk yet. */
  async stop(): Promise<void> {
    if (this.#stopped) return
    this.#stopped = true
    clearTimeout(this.#timer)
    await this.#writing
    if (this.#dirty && this.#isOurs) await this.#write()
  }

  /** False while the disk still has a previous process' state. */
  get #isOurs(): boolean {
    return this.#currentMs !== 0 && this.#status.servedFromMs === 0
  }

  #schedule(): void {
    if (this.#stopped || this.#writing !== undefined || !this.#isOurs || !(this.#current || this.#dirty)) return
    clearTimeout(this.#timer)
    const nowMs = this.#clock.monotonic()
    const atMs = this.#dirty ? this.#nextMs : this.#nextMs + this.#refreshMs
    this.#timer = setTimeout(() => this.#begin(), Math.max(0, Math.min(atMs - nowMs, this.#refreshMs)))
    this.#timer.unref()
  }

  #begin(): void {
    const beganMs = this.#clock.monotonic()
    this.#writing = this.#write().finally(() => {
      const endedMs = this.#clock.monotonic()
      this.#nextMs = Math.max(beganMs + this.#everyMs, endedMs + DUTY * (endedMs - beganMs))
      this.#writing = undefined
      this.#schedule()
    })
  }

  /** Never rejects. */
  async #write(): Promise<void> {
    this.#dirty = false
    if (this.#current) this.#currentMs = this.#clock.now()
    const timeMs = this.#currentMs
    try {
      await this.#seal()
      const bytes = await this.#file.write([...this.#records.values()], timeMs)
      Object.assign(this.#status, { writtenMs: timeMs, bytes })
      if (this.#fault !== '') this.#log.info('the last good state is kept on disk again', { state: this.name })
      this.#fault = ''
    } catch (error) {
      this.#dirty = true
      this.#status.failures++
      const why = errorMessage(error)
      if (why !== this.#fault) {
        const consequence = 'a start without its source serves an older state'
        this.#log.warn('the last good state cannot be written', { state: this.name, why, consequence })
      }
      this.#fault = why
    }
  }

  async #seal(): Promise<void> {
    let sliceEnd = performance.now() + SLICE_MS
    for (const [name, value] of this.#pending) {
      // Entries added while this waits are at the end of the map, and follow in turn.
      this.#pending.delete(name)
      if (value === undefined) this.#records.delete(name)
      else this.#records.set(name, this.#file.seal(value))
      if (performance.now() < sliceEnd) continue
      await yieldToEventLoop()
      sliceEnd = performance.now() + SLICE_MS
    }
  }
}
