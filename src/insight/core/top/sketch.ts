// The names with the largest sums, from a thread's last seconds or from several sketches added up. A true sum lies between the count and
// the count plus a known error; a name without a row has at most `missing`.

import { RANKED, TALLY_LENGTH } from './measures.ts'
import { nthLargest } from './nth-largest.ts'

/** Numbers per row: the tally, then the error of each measure. */
export const ROW_LENGTH: number = 2 * TALLY_LENGTH

/** Plain data that can be posted to another thread. */
export interface Sketch {
  readonly names: readonly string[]
  /** ROW_LENGTH numbers per name. */
  readonly rows: Float64Array
  /** By measure, the upper bound for a name without a row. */
  readonly missing: Float64Array
}

/** One dimension: over all clusters, and per cluster. */
export interface DimensionSketch {
  readonly all: Sketch
  readonly clusters: ReadonlyMap<string, Sketch>
  /** By measure, the upper bound for a name in a cluster that is not in the map. */
  readonly unseen: Float64Array
}

/** Adds up sketches of different requests: from different times, threads or replicas. */
export class SketchSum {
  readonly #places = new Map<string, number>()
  readonly #names: string[] = []
  /** ROW_LENGTH numbers per name: the tally, then the error minus the `missing` of the sketches that contain the name. */
  #rows = new Float64Array(ROW_LENGTH * 16)
  readonly #missing = new Float64Array(TALLY_LENGTH)

  add({ names, rows, missing }: Sketch): void {
    addTo(this.#missing, missing)
    for (const [index, name] of names.entries()) {
      const at = this.#placeOf(name) * ROW_LENGTH
      const from = index * ROW_LENGTH
      const sums = this.#rows
      for (let i = 0; i < ROW_LENGTH; i++) sums[at + i] = (sums[at + i] ?? 0) + (rows[from + i] ?? 0)
      for (let i = 0; i < TALLY_LENGTH; i++) {
        sums[at + TALLY_LENGTH + i] = (sums[at + TALLY_LENGTH + i] ?? 0) - (missing[i] ?? 0)
      }
    }
  }

  /** All rows, or those that are among the first `count` by any measure. */
  sketch(count: number = Number.POSITIVE_INFINITY): Sketch {
    const rows = this.#rows.slice(0, this.#names.length * ROW_LENGTH)
    // A sketch without the name may have omitted up to its `missing`: that is an error, too.
    for (let at = TALLY_LENGTH; at < rows.length; at += ROW_LENGTH) {
      for (let i = 0; i < TALLY_LENGTH; i++) rows[at + i] = Math.max(0, (rows[at + i] ?? 0) + (this.#missing[i] ?? 0))
    }
    return largest({ names: this.#names.slice(), rows, missing: this.#missing.slice() }, count)
  }

  #placeOf(name: string): number {
    const known = this.#places.get(name)
    if (known !== undefined) return known
    const place = this.#names.push(name) - 1
    this.#places.set(name, place)
    if ((place + 1) * ROW_LENGTH > this.#rows.length) {
      const grown = new Float64Array(this.#rows.length * 2)
      grown.set(this.#rows)
      this.#rows = grown
    }
    return place
  }
}

/** Keeps the rows among the first `count` by any measure; the rest goes into `missing`. */
export function largest(sketch: Sketch, count: number): Sketch {
  const { names, rows } = sketch
  if (names.length <= count) return sketch
  const chosen = new Uint8Array(names.length)
  // No rows: nthLargest must not be called for the first of none.
  if (count <= 0) return chosenOf(sketch, chosen)
  const column = new Float64Array(names.length)
  for (let measure = 0; measure < RANKED; measure++) {
    for (let place = 0; place < names.length; place++) column[place] = mostOf(rows, place, measure)
    // A zero never makes a name rank.
    const limit = Math.max(Number.MIN_VALUE, nthLargest(column.slice(), count - 1))
    let room = count
    for (const most of column) if (most > limit) room--
    for (let place = 0; place < names.length; place++) {
      const most = column[place] ?? 0
      if (most > limit || (most === limit && room-- > 0)) chosen[place] = 1
    }
  }
  return chosenOf(sketch, chosen)
}

function chosenOf({ names, rows, missing }: Sketch, chosen: Uint8Array): Sketch {
  const keptNames: string[] = []
  const kept: number[] = []
  const most = missing.slice()
  for (const [place, name] of names.entries()) {
    if (chosen[place] === 1) {
      keptNames.push(name)
      kept.push(place)
    } else {
      for (let i = 0; i < TALLY_LENGTH; i++) most[i] = Math.max(most[i] ?? 0, mostOf(rows, place, i))
    }
  }
  const keptRows = new Float64Array(kept.length * ROW_LENGTH)
  for (const [to, from] of kept.entries()) {
    keptRows.set(rows.subarray(from * ROW_LENGTH, (from + 1) * ROW_LENGTH), to * ROW_LENGTH)
  }
  return { names: keptNames, rows: keptRows, missing: most }
}

function mostOf(rows: Float64Array, place: number, measure: number): number {
  const at = place * ROW_LENGTH + measure
  return (rows[at] ?? 0) + (rows[at + TALLY_LENGTH] ?? 0)
}

/** A sketch without rows: any name has at most `missing`. */
function emptySketch(missing: Float64Array): Sketch {
  return { names: [], rows: new Float64Array(0), missing }
}

/** The sum of several for some clusters; [] = over all clusters. All rows, or those among the first `count` by any measure. */
export function sumSketches(parts: readonly DimensionSketch[], clusters: readonly string[], count?: number): Sketch {
  const sum = new SketchSum()
  for (const part of parts) {
    if (clusters.length === 0) sum.add(part.all)
    for (const cluster of clusters) sum.add(part.clusters.get(cluster) ?? emptySketch(part.unseen))
  }
  return sum.sketch(count)
}

export function addTo(sum: Float64Array, numbers: Float64Array): void {
  for (let i = 0; i < sum.length; i++) sum[i] = (sum[i] ?? 0) + (numbers[i] ?? 0)
}
