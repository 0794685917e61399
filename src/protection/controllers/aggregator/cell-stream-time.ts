// Stream time of a cell: everything committed before it has been seen. With resourceVersions this is proven: the
// time is our clock before we asked for the newest resourceVersion, and it takes effect once the watch has reached that version. The
// other modes are Podseidon's and trust clocks: up to when the pods of a cell have been seen, according to the pods themselves (Podseidon's `status`
// algorithm, aggregator/synctime), or by a time that a patched apiserver writes into an annotation. Neither proves anything, because clocks of
// several machines are mixed.

import type { CompiledAggregation } from '../../../gateway/core/cluster/compiled-cluster.ts'
import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { recordOf } from '../../../kit/api/json/object-shape.ts'
import type { Clock, Logger } from '../../../kit/api/ports.ts'
import { errorMessage } from '../../../kit/api/validation/error-message.ts'
import { UPDATE_TRIGGER_ANNOTATION } from '../../api/protection.ts'
import { parseMicros } from '../../core/history/micro-time.ts'
import { compareVersions } from '../../core/history/resource-version.ts'

const SECOND = 1_000_000

interface StreamTimeDeps {
  readonly mode: CompiledAggregation['syncTime']
  /** Used by mode Annotation. */
  readonly annotation: string
  /** The newest resourceVersion of the cell, by a consistent read. */
  readVersion(): Promise<string>
  readonly clock: Clock
  readonly log: Logger
  /** The time has advanced without an event of the stream. */
  onMoved(): void
}

interface Milestone {
  readonly version: string
  /** Microseconds. */
  readonly time: number
}

/** Between two reads of the newest resourceVersion. */
const READ_INTERVAL_MS = 5_000
/** Bookmarks come every minute, so usually twelve reads wait for one. */
const MAX_MILESTONES = 32
const MAX_WAIT_MS = 3_600_000
/** Awaited moments closer together than this count as one. */
const ROUND_MICROS = 100_000

export class CellStreamTime {
  readonly #deps: StreamTimeDeps
  #time: number | undefined
  /** Version that the stream has reached; '' = none. */
  #version = ''
  #milestones: readonly Milestone[] = []
  /** Awaited moments, microseconds, rounded up a little. */
  readonly #wanted = new Set<number>()
  #reading = false
  #nextReadMs = Number.NEGATIVE_INFINITY
  #timer: NodeJS.Timeout | undefined
  #timerAtMs = Number.POSITIVE_INFINITY
  #stopped = false
  /** Added to the monotonic clock, milliseconds: the time starts at the wall clock, but never jumps. */
  readonly #epochMs: number

  constructor(deps: StreamTimeDeps) {
    this.#deps = deps
    this.#epochMs = deps.clock.now() - deps.clock.monotonic()
  }

  /** Microseconds, on the same clock as `time`. */
  now(): number {
    const { mode, clock } = this.#deps
    return Math.round((mode === 'ResourceVersion' ? this.#epochMs + clock.monotonic() : clock.now()) * 1000)
  }

  /** Microseconds since the epoch; undefined = unknown. Never goes back. */
  get time(): number | undefined {
    return this.#time
  }

  /** All pods were read. Call before `reached`. */
  replaced(pods: readonly JsonObject[]): void {
    for (const pod of pods) this.observed(pod)
    const { mode } = this.#deps
    // No pod has a timestamp: don't wait for one.
    if ((mode === 'Status' || mode === 'Annotation') && this.#time === undefined) this.#move(this.now())
  }

  /** A pod has changed, or was deleted. */
  observed(pod: JsonObject): void {
    const { mode, annotation } = this.#deps
    if (mode === 'Status') this.#move(statusTime(pod, this.now()))
    if (mode === 'Annotation') this.#move(annotationTime(pod, annotation, this.now()))
  }

  /** The stream has reached this version. */
  reached(version: string): void {
    this.#version = version
    if (this.#deps.mode === 'Clock') this.#move(this.now())
    this.#pass()
  }

  /**
   * A caller waits for the time to pass `moment` (microseconds). In mode ResourceVersion the time advances only on demand. A
   * demand is dropped after a successful read, and kept after a failed one.
   */
  need(moment: number): void {
    if (this.#deps.mode !== 'ResourceVersion' || this.#stopped) return
    // A pending milestone covers it.
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

  /** Schedules the next read: when it satisfies the earliest demand, but not too often. */
  #arm(): void {
    if (this.#stopped || this.#reading || this.#wanted.size === 0) return
    if (this.#milestones.length >= MAX_MILESTONES) return
    const { clock } = this.#deps
    const nowMs = clock.monotonic()
    let least = Number.POSITIVE_INFINITY
    for (const wanted of this.#wanted) least = Math.min(least, wanted)
    const usefulMs = nowMs + (least + 1 - this.now()) / 1000
    const atMs = Math.max(nowMs, usefulMs, this.#nextReadMs)
    // A timer that became due while the process was halted is late.
    if (this.#timer !== undefined && this.#timerAtMs <= atMs && this.#timerAtMs > nowMs) return
    clearTimeout(this.#timer)
    this.#timerAtMs = atMs
    // A distant time is reached in several steps.
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
      const why = errorMessage(error)
      this.#deps.log.debug('the newest resourceVersion of a cell could not be read', { why })
    } finally {
      this.#reading = false
      this.#arm()
    }
  }
}

/**
 * The last moment at which something happened to the pod, microseconds since the epoch; undefined = it has no time. A deletionTimestamp
 * lies in the future by the grace period: what counts is when the deletion was requested.
 * @param nowMicros upper bound: a clock that is ahead must not claim more than has been seen
 */
export function statusTime(pod: JsonObject, nowMicros: number): number | undefined {
  const metadata = recordOf(pod['metadata'])
  const times = [
    timeOf(metadata['creationTimestamp']),
    deletionTime(metadata),
    timeOf(recordOf(metadata['annotations'])[UPDATE_TRIGGER_ANNOTATION]),
  ]
  const { conditions } = recordOf(pod['status'])
  for (const condition of Array.isArray(conditions) ? conditions : []) {
    const { lastProbeTime, lastTransitionTime } = recordOf(condition)
    times.push(timeOf(lastProbeTime), timeOf(lastTransitionTime))
  }
  return latest(times, nowMicros)
}

/** As statusTime, by one annotation of the pod (RFC 3339). */
export function annotationTime(pod: JsonObject, annotation: string, nowMicros: number): number | undefined {
  const annotations = recordOf(recordOf(pod['metadata'])['annotations'])
  if (!Object.hasOwn(annotations, annotation)) return undefined
  return latest([timeOf(annotations[annotation])], nowMicros)
}

function deletionTime({ deletionTimestamp, deletionGracePeriodSeconds }: JsonObject): number {
  const grace = typeof deletionGracePeriodSeconds === 'number' ? Math.max(0, deletionGracePeriodSeconds) : 0
  return timeOf(deletionTimestamp) - grace * SECOND
}

function latest(times: readonly number[], nowMicros: number): number | undefined {
  let last = Number.NEGATIVE_INFINITY
  for (const time of times) if (time > last) last = time
  return last === Number.NEGATIVE_INFINITY ? undefined : Math.min(last, nowMicros)
}

/** NaN if it is not a time: every comparison with it is false. */
function timeOf(value: unknown): number {
  return typeof value === 'string' ? parseMicros(value) : Number.NaN
}
