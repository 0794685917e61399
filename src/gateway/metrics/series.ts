// Storage of counts: rows in one array of doubles, so that counting allocates nothing, and copying everything for another thread to merge is a copy
// of a few arrays.

import type { Metric, RowKind } from './metric.ts'

/** A store's rows at one moment: plain data that can be sent to another thread. */
export interface StoreSnapshot {
  /** The cluster; '' = requests without one, and what belongs to the process. */
  readonly cluster: string
  /** The store's number: for the same number, rows are only ever added. */
  readonly id: number
  readonly names: readonly string[]
  /** ROW_FIELDS numbers per row: kind, first, second (see `Kind`), offset in `values`. */
  readonly rows: Int32Array
  readonly values: Float64Array
}

export const ROW_FIELDS = 4

/** Below every number of rows. */
const NEVER = -1

export class SeriesStore {
  readonly cluster: string
  readonly #id: number
  /** `addRow` may replace the array: do not retain it. */
  values: Float64Array = new Float64Array(64)
  #used = 0
  #rows: Int32Array = new Int32Array(16 * ROW_FIELDS)
  #rowCount = 0
  readonly #names: string[] = []
  readonly #nameIndex = new Map<string, number>()
  /** Indexed by metric id. */
  readonly #tables: (CounterTable | undefined)[] = []
  /** As of the last `changes`. */
  #told: Float64Array = new Float64Array(0)
  #toldRows = NEVER

  constructor(cluster: string, id: number) {
    this.cluster = cluster
    this.#id = id
  }

  /** The rows of one metric. */
  table(metric: Metric): CounterTable {
    return this.#tables[metric.id] ?? this.#addTable(metric)
  }

  #addTable(metric: Metric): CounterTable {
    // No holes: it is read for every event and must stay a packed array.
    while (this.#tables.length <= metric.id) this.#tables.push(undefined)
    const table = new CounterTable(this, metric)
    this.#tables[metric.id] = table
    return table
  }

  /** Adds a row of zeros; returns its number. */
  addRow({ id, width }: RowKind, first: number, second: number): number {
    if (this.#used + width > this.values.length) {
      const grown = new Float64Array(this.values.length * 2)
      grown.set(this.values)
      this.values = grown
    }
    const at = this.#rowCount * ROW_FIELDS
    if (at === this.#rows.length) {
      const grown = new Int32Array(this.#rows.length * 2)
      grown.set(this.#rows)
      this.#rows = grown
    }
    this.#rows[at] = id
    this.#rows[at + 1] = first
    this.#rows[at + 2] = second
    this.#rows[at + 3] = this.#used
    this.#used += width
    return this.#rowCount++
  }

  /** Offset of a row's numbers in `values`. */
  offsetOf(row: number): number {
    return this.#rows[row * ROW_FIELDS + 3] ?? 0
  }

  /** Index of the name, which is added if new. */
  nameIndex(name: string): number {
    const known = this.#nameIndex.get(name)
    if (known !== undefined) return known
    const index = this.#names.push(name) - 1
    this.#nameIndex.set(name, index)
    return index
  }

  /** Adds names that belong together consecutively; returns the index of the first. */
  addNames(names: readonly string[]): number {
    const index = this.#names.length
    this.#names.push(...names)
    return index
  }

  add(at: number, by: number): void {
    this.values[at] = (this.values[at] ?? 0) + by
  }

  set(at: number, value: number): void {
    this.values[at] = value
  }

  /** undefined = it is as it was at the last call. */
  changes(): StoreSnapshot | undefined {
    if (this.#toldRows === this.#rowCount && isStartOf(this.values, this.#told)) return undefined
    const snapshot = this.snapshot()
    this.#told = snapshot.values
    this.#toldRows = this.#rowCount
    return snapshot
  }

  /** Names are shared with the store: they are append-only. */
  snapshot(): StoreSnapshot {
    return {
      cluster: this.cluster,
      id: this.#id,
      names: this.#names,
      rows: this.#rows.slice(0, this.#rowCount * ROW_FIELDS),
      values: this.values.slice(0, this.#used),
    }
  }
}

function isStartOf(values: Float64Array, start: Float64Array): boolean {
  for (let i = 0; i < start.length; i++) if (values[i] !== start[i]) return false
  return true
}

/** Observes a value in the histogram at `at`: count, sum, a number per bound; +Inf is the count. */
export function observeAt(values: Float64Array, at: number, bounds: Float64Array, value: number): void {
  values[at] = (values[at] ?? 0) + 1
  values[at + 1] = (values[at + 1] ?? 0) + value
  for (let i = 0; i < bounds.length; i++) {
    if (value <= (bounds[i] ?? 0)) {
      values[at + 2 + i] = (values[at + 2 + i] ?? 0) + 1
      return
    }
  }
}

/** A limited number of rows of one metric, by two names; the rest is counted together as `other`. */
export class CounterTable {
  readonly #store: SeriesStore
  readonly #metric: Metric
  readonly #rows = new Map<string, Map<string, number>>()
  #size = 0
  #rest = -1
  // The last hit: most tables see the same names repeatedly.
  #first = ''
  #second = ''
  #at = -1

  constructor(store: SeriesStore, metric: Metric) {
    this.#store = store
    this.#metric = metric
  }

  /** `first` and `second` are '' if the metric has no such label. */
  count(first: string, second: string): void {
    this.#store.add(this.at(first, second), 1)
  }

  /** Offset of the row's numbers. */
  at(first: string, second: string): number {
    if (first === this.#first && second === this.#second && this.#at !== -1) return this.#at
    const at = this.#rows.get(first)?.get(second) ?? this.#add(first, second)
    this.#first = first
    this.#second = second
    this.#at = at
    return at
  }

  /** Offsets of all rows. */
  *offsets(): Iterable<number> {
    for (const row of this.#rows.values()) yield* row.values()
    if (this.#rest !== -1) yield this.#rest
  }

  #add(first: string, second: string): number {
    const metric = this.#metric
    const full = this.#size >= metric.limit
    if (full && this.#rest !== -1) return this.#rest
    const a = metric.first === 'none' ? 0 : this.#store.nameIndex(full ? 'other' : first)
    const b = metric.second === 'number' ? 0 : this.#store.nameIndex(full ? 'other' : second)
    const at = this.#store.offsetOf(this.#store.addRow(metric, a, b))
    if (full) {
      this.#rest = at
      return at
    }
    this.#size++
    const row = this.#rows.get(first)
    if (row === undefined) this.#rows.set(first, new Map([[second, at]]))
    else row.set(second, at)
    return at
  }
}

/** Below every code, and below OTHER_CODE. */
const NO_CODE = -2

/** Counters by code under one row or name. */
export class CodeCounts {
  readonly #store: SeriesStore
  readonly #metric: Metric
  readonly #first: number
  readonly #at = new Map<number, number>()
  #lastCode = NO_CODE
  #lastAt = 0

  constructor(store: SeriesStore, metric: Metric, first: number) {
    this.#store = store
    this.#metric = metric
    this.#first = first
  }

  /** False if the code has no row yet. */
  has(code: number): boolean {
    return code === this.#lastCode || this.#at.has(code)
  }

  count(code: number): void {
    if (code !== this.#lastCode) {
      this.#lastAt = this.#at.get(code) ?? this.#add(code)
      this.#lastCode = code
    }
    this.#store.add(this.#lastAt, 1)
  }

  #add(code: number): number {
    const at = this.#store.offsetOf(this.#store.addRow(this.#metric, this.#first, code))
    this.#at.set(code, at)
    return at
  }
}

/** A code as in metrics: three digits, or 0: nothing was sent. */
export function codeOf(code: number): number {
  return code >= 100 && code <= 999 ? Math.trunc(code) : 0
}
