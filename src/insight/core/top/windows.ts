// Counts of the last 1, 5 and 60 minutes, in bounded memory: sketches of ten seconds, one minute and five minutes, where longer ones are
// sums of shorter ones.

import { DIMENSIONS } from '../../../process/api/dimensions.ts'
import { REQUESTS, TALLY_LENGTH } from './measures.ts'
import { addTo, type DimensionSketch, largest, ROW_LENGTH, type Sketch, sumSketches } from './sketch.ts'
import type { TrafficSketch } from './traffic.ts'

/** Selectable windows, minutes. */
export const MINUTES = [1, 5, 60] as const

export type Minutes = (typeof MINUTES)[number]

/** Slot length and number of slots per level: a bit more than a minute, five minutes and an hour. */
const SLOT_MS = 10_000
const LEVELS = [
  { kept: 7, joined: 6 },
  { kept: 6, joined: 5 },
  { kept: 13, joined: 0 },
] as const

/** Rows per dimension of a slot, by each measure: over all clusters, and in one of them. */
const ROWS = 64
const CLUSTER_ROWS = 16
const MIN_ROWS = 3
/** Rows over all clusters together; clusters with the most requests come first. */
const MAX_CLUSTER_ROWS = 2048

interface Slot extends TrafficSketch {
  readonly fromMs: number
  readonly toMs: number
}

/** The result of a query. */
export interface TopSum {
  readonly sketch: Sketch
  /** Over all requests, including those without a row. */
  readonly total: Float64Array
  /** The time actually counted. */
  readonly seconds: number
}

export class TopWindows {
  /** By level, newest first. */
  readonly #levels: Slot[][] = LEVELS.map(() => [])
  /** By level, how many of its newest slots are not yet in a slot of the next level. */
  readonly #loose = LEVELS.map(() => 0)
  #parts: TrafficSketch[] = []
  #fromMs: number

  /** @param nowMs monotonic milliseconds, as everywhere in this file */
  constructor(nowMs: number) {
    this.#fromMs = nowMs
  }

  /** Adds what threads have counted since the last call. */
  add(nowMs: number, parts: readonly TrafficSketch[]): void {
    this.#parts.push(...parts)
    if (nowMs - this.#fromMs >= SLOT_MS) {
      this.#push(0, joinSlots(this.#fromMs, nowMs, this.#parts))
      this.#parts = []
      this.#fromMs = nowMs
    }
  }

  /** @param only these clusters; [] = over all */
  sum(dimension: number, minutes: Minutes, only: readonly string[], nowMs: number): TopSum {
    const slots = this.#slotsOf(minutes, nowMs)
    const parts = [...this.#parts, ...slots]
    const fromMs = Math.min(this.#fromMs, ...slots.map((slot) => slot.fromMs))
    const seconds = Math.max(0, nowMs - fromMs) / 1000
    const total = new Float64Array(TALLY_LENGTH)
    if (only.length === 0) {
      for (const part of parts) addTo(total, part.total)
      return { sketch: sumSketches(partsOf(parts, dimension), only), total, seconds }
    }
    const clusters = onlyOf(sumSketches(partsOf(parts, CLUSTER), []), new Set(only))
    for (let at = 0; at < clusters.rows.length; at += ROW_LENGTH)
      addTo(total, clusters.rows.subarray(at, at + ROW_LENGTH))
    const sketch = dimension === CLUSTER ? clusters : sumSketches(partsOf(parts, dimension), only)
    return { sketch, total, seconds }
  }

  /** Number of rows in memory. */
  rows(): number {
    let rows = 0
    for (const slot of this.#levels.flat()) {
      for (const { all, clusters } of slot.dimensions) {
        rows += all.names.length
        for (const { names } of clusters.values()) rows += names.length
      }
    }
    return rows
  }

  #push(level: number, slot: Slot): void {
    const slots = this.#levels[level]
    const limits = LEVELS[level]
    if (slots === undefined || limits === undefined) return
    slots.unshift(slot)
    const loose = (this.#loose[level] ?? 0) + 1
    this.#loose[level] = loose
    slots.length = Math.min(slots.length, limits.kept)
    if (limits.joined === 0 || loose < limits.joined) return
    const joined = slots.slice(0, limits.joined)
    this.#loose[level] = 0
    this.#push(level + 1, joinSlots(joined.at(-1)?.fromMs ?? slot.fromMs, slot.toMs, joined))
  }

  /** Covers each moment once: finer slots only where no coarser slot contains them. A slot counts if its middle is in the window. */
  #slotsOf(minutes: Minutes, nowMs: number): readonly Slot[] {
    const last = MINUTES.indexOf(minutes)
    const found: Slot[] = []
    for (let level = 0; level <= last; level++) {
      const slots = this.#levels[level] ?? []
      found.push(...(level === last ? slots : slots.slice(0, this.#loose[level] ?? 0)))
    }
    return found.filter(({ fromMs, toMs }) => nowMs - (fromMs + toMs) / 2 < minutes * 60_000)
  }
}

function partsOf(parts: readonly TrafficSketch[], dimension: number): DimensionSketch[] {
  return parts.flatMap((part) => part.dimensions[dimension] ?? [])
}

/** The rows of these names. A name without a row has at most `missing`. */
function onlyOf({ names, rows, missing }: Sketch, only: ReadonlySet<string>): Sketch {
  const places = names.flatMap((name, place) => (only.has(name) ? [place] : []))
  const kept = new Float64Array(places.length * ROW_LENGTH)
  for (const [to, from] of places.entries())
    kept.set(rows.subarray(from * ROW_LENGTH, (from + 1) * ROW_LENGTH), to * ROW_LENGTH)
  const most = places.length === only.size ? new Float64Array(TALLY_LENGTH) : missing
  return { names: places.map((place) => names[place] ?? ''), rows: kept, missing: most }
}

function joinSlots(fromMs: number, toMs: number, parts: readonly TrafficSketch[]): Slot {
  const total = new Float64Array(TALLY_LENGTH)
  for (const part of parts) addTo(total, part.total)
  const dimensions = DIMENSIONS.map((_, dimension) => joinDimension(partsOf(parts, dimension)))
  return { fromMs, toMs, total, dimensions }
}

function joinDimension(parts: readonly DimensionSketch[]): DimensionSketch {
  const names = new Set<string>()
  for (const { clusters } of parts) for (const name of clusters.keys()) names.add(name)
  const fair = Math.floor(MAX_CLUSTER_ROWS / Math.max(1, names.size) / 6)
  const count = Math.min(CLUSTER_ROWS, Math.max(MIN_ROWS, fair))
  const sums = [...names].map((name) => ({ name, sketch: sumSketches(parts, [name], count) }))
  sums.sort((a, b) => requestsOf(b.sketch) - requestsOf(a.sketch))
  let room = MAX_CLUSTER_ROWS
  const clusters = new Map<string, Sketch>()
  const unseen = new Float64Array(TALLY_LENGTH)
  for (const part of parts) addTo(unseen, part.unseen)
  for (const { name, sketch } of sums) {
    if (sketch.names.length <= room) {
      room -= sketch.names.length
      clusters.set(name, sketch)
    } else {
      // Keep no rows: there may be 10,000 clusters in each slot.
      const { missing } = largest(sketch, 0)
      for (let i = 0; i < TALLY_LENGTH; i++) unseen[i] = Math.max(unseen[i] ?? 0, missing[i] ?? 0)
    }
  }
  return { all: sumSketches(parts, [], ROWS), clusters, unseen }
}

function requestsOf({ rows }: Sketch): number {
  let requests = 0
  for (let at = REQUESTS; at < rows.length; at += ROW_LENGTH) requests += rows[at] ?? 0
  return requests
}

const CLUSTER = DIMENSIONS.indexOf('cluster')
