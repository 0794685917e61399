// Stream time of a cell: a moment of which it is known that everything that was committed before it has been seen. By
// resourceVersion it is proved: what our clock said before the newest resourceVersion was asked for, once the watch has come
// that far. The other ways are Podseidon's, and believe clocks.

import type { JsonObject } from '../../api/kube/json-object.ts'
import type { Clock, Logger } from '../../api/ports/ports.ts'
import type { CompiledAggregation } from '../../core/cluster/compiled-cluster.ts'
import { compareVersions } from '../../core/protection/history/resource-version.ts'
import { annotationTime, statusTime } from '../../core/protection/history/sync-time.ts'

export interface StreamTimeDeps {
  readonly mode: CompiledAggregation['syncTime']
  /** For mode Annotation. */
  readonly annotation: string
  /** The newest resourceVersion of the cell, by a consistent read. */
  readVersion(): Promise<string>
  readonly clock: Clock
  readonly log: Logger
  /** The time has moved although the stream said nothing. */
  onMoved(): void
}

interface Milestone {
  readonly version: string
  /** Microseconds. */
  readonly time: number
}

/** Between two reads of the newest resourceVersion. */
const READ_INTERVAL_MS = 5_000
/** Bookmarks come every minute, so that mostly twelve reads wait for one. */
const MAX_MILESTONES = 32
const MAX_WAIT_MS = 3_600_000
/** Of moments that are waited for: near ones count as one. */
const ROUND_MICROS = 100_000

export class CellStreamTime {
  readonly #deps: StreamTimeDeps
  #time: number | undefined
  /** Up to where the stream has come; '' = nowhere. */
  #version = ''
  #milestones: readonly Milestone[] = []
  /** Microseconds, rounded up a little: somebody waits for the time to pass each of them. */
  readonly #wanted = new Set<number>()
  #reading = false
  #nextReadMs = Number.NEGATIVE_INFINITY
  #timer: NodeJS.Timeout | undefined
  #timerAtMs = Number.POSITIVE_INFINITY
  #stopped = false
  /** From the monotonic clock to the time that is told, milliseconds: it starts as the wall clock, and never jumps as that may. */
  readonly #epochMs: number

  constructor(deps: StreamTimeDeps) {
    this.#deps = deps
    this.#epochMs = deps.clock.now() - deps.clock.monotonic()
  }

  /** Microseconds, by the clock of `time`: what is noted now is compared with it later. */
  now(): number {
    const { mode, clock } = this.#deps
    return Math.round((mode === 'ResourceVersion' ? this.#epochMs + clock.monotonic() : clock.now()) * 1000)
  }

  /** Microseconds since the epoch; undefined = not known. Never goes back. */
  get time(): number | undefined {
    return this.#time
  }

  /** All pods were read. To be called before `reached`. */
  replaced(pods: readonly JsonObject[]): void {
    for (const pod of pods) this.observed(pod)
    const { mode } = this.#deps
    // Nothing there that could tell a time, and it is not to be waited for.
    if ((mode === 'Status' || mode === 'Annotation') && this.#time === undefined) this.#move(this.now())
  }

  /** A pod has changed, or was deleted. */
  observed(pod: JsonObject): void {
    const { mode, annotation } = this.#deps
    if (mode === 'Status') this.#move(statusTime(pod, this.now()))
    if (mode === 'Annotation') this.#move(annotationTime(pod, annotation, this.now()))
  }

  /** The stream has come so far. */
  reached(version: string): void {
    this.#version = version
    if (this.#deps.mode === 'Clock') this.#move(this.now())
    this.#pass()
  }

  /**
   * Somebody waits for the time to pass `moment` (microseconds). In mode ResourceVersion it does so only then. What is asked
   * for is forgotten when it was read, but not when that failed.
   */
  need(moment: number): void {
    if (this.#deps.mode !== 'ResourceVersion' || this.#stopped) return
    // It is being waited for already.
    if (this.#milestones.some(({ time }) => time > moment)) return
    this.#wanted.add(Math.ceil(moment / ROUND_MICROS) * ROUND_MICROS)
    this.#arm()
  }

  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
  }

  #move(time: number | undefined): boolean {
    if (time === undefined || time <= (this.#time ?? Number.NEGATIVE_INFINITY)) return false
    this.#time = time
    return true
  }

  #pass(): boolean {
    let moved = false
    const ahead: Milestone[] = []
    for (const milestone of this.#milestones) {
      const order = compareVersions(this.#version, milestone.version)
      if (order === undefined || order < 0) ahead.push(milestone)
      else if (this.#move(milestone.time)) moved = true
    }
    this.#milestones = ahead
    return moved
  }

  /** Reads when that is of use to whoever wants least, and not too often. */
  #arm(): void {
    if (this.#stopped || this.#reading || this.#wanted.size === 0) return
    if (this.#milestones.length >= MAX_MILESTONES) return
    const { clock } = this.#deps
    const nowMs = clock.monotonic()
    let least = Number.POSITIVE_INFINITY
    for (const wanted of this.#wanted) least = Math.min(least, wanted)
    const usefulMs = nowMs + (least + 1 - this.now()) / 1000
    const atMs = Math.max(nowMs, usefulMs, this.#nextReadMs)
    // One whose time has come while the process was halted is late.
    if (this.#timer !== undefined && this.#timerAtMs <= atMs && this.#timerAtMs > nowMs) return
    clearTimeout(this.#timer)
    this.#timerAtMs = atMs
    // A time that is far away is looked at again in between.
    this.#timer = setTimeout(() => this.#onTimer(), Math.min(Math.ceil(atMs - nowMs), MAX_WAIT_MS))
    this.#timer.unref()
  }

  #onTimer(): void {
    this.#timer = undefined
    const nowMs = this.#deps.clock.monotonic()
    if (this.#timerAtMs > nowMs) {
      this.#arm()
      return
    }
    this.#nextReadMs = nowMs + READ_INTERVAL_MS
    this.#reading = true
    void this.#read()
  }

  async #read(): Promise<void> {
    const time = this.now()
    try {
      const version = await this.#deps.readVersion()
      if (this.#stopped) return
      for (const moment of this.#wanted) if (moment < time) this.#wanted.delete(moment)
      this.#milestones = [...this.#milestones, { version, time }]
      if (this.#pass()) this.#deps.onMoved()
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error)
      this.#deps.log.debug('the newest resourceVersion of a cell could not be read', { why })
    } finally {
      this.#reading = false
      this.#arm()
    }
  }
}
