// What only the main thread counts, and seldom: by any labels, in a row of numbers for each set of their values. The rows of what
// requests count are in series.ts: there no labels are put together for each event.

import { formatLabel } from '../core/cluster/metric-labels.ts'
import type { Exposition } from './exposition.ts'
import { type Metric, VALUE } from './metric.ts'
import { observeAt } from './series.ts'

/** The series of one metric. One without labels that are shown is there from the start. */
export class MainFamily<Values extends readonly string[] = readonly string[]> {
  readonly #metric: Metric<Values>
  readonly #hidden: ReadonlySet<string>
  /** By the labels as the text format has them. */
  readonly #rows = new Map<string, Float64Array>()

  constructor(metric: Metric<Values>, hidden: ReadonlySet<string>) {
    this.#metric = metric
    this.#hidden = hidden
    if (metric.labels.every((label) => hidden.has(label))) this.#rowOf([])
  }

  /** Counts. `values`: those of its labels, in their order; those of hidden labels make no difference. */
  add(by: number, ...values: Values): void {
    const row = this.#rowOf(values)
    row[VALUE] = (row[VALUE] ?? 0) + by
  }

  /** Sets a gauge. */
  set(value: number, ...values: Values): void {
    this.#rowOf(values)[VALUE] = value
  }

  /** Counts in a histogram. */
  observe(value: number, ...values: Values): void {
    observeAt(this.#rowOf(values), 0, this.#metric.bounds, value)
  }

  /** Its series is no longer shown. */
  remove(...values: Values): void {
    this.#rows.delete(this.#key(values))
  }

  /** No series is shown any more. */
  clear(): void {
    this.#rows.clear()
  }

  readonly expose = (into: Exposition): void => {
    const metric = this.#metric
    into.declare(metric)
    for (const [labels, row] of this.#rows) {
      if (metric.type === 'histogram') into.addHistogram(metric, labels, row, 0)
      else into.add(metric, labels === '' ? '' : `{${labels}}`, row[VALUE] ?? 0)
    }
  }

  #rowOf(values: readonly string[]): Float64Array {
    const key = this.#key(values)
    let row = this.#rows.get(key)
    if (row === undefined) {
      row = new Float64Array(this.#metric.width)
      this.#rows.set(key, row)
    }
    return row
  }

  #key(values: readonly string[]): string {
    let key = ''
    for (const [index, label] of this.#metric.labels.entries()) {
      if (!this.#hidden.has(label)) key += `${key === '' ? '' : ','}${formatLabel(label, values[index] ?? '')}`
    }
    return key
  }
}

/** Families that are shown together. */
export class MainFamilies {
  readonly #hidden: ReadonlySet<string>
  readonly #families: ((into: Exposition) => void)[] = []

  /** @param hidden labels that are left out: what differs in them alone is one series. Default: none */
  constructor(hidden: Iterable<string> = []) {
    this.#hidden = new Set(hidden)
  }

  /** From now on it is shown. Once for each metric. */
  of<Values extends readonly string[]>(metric: Metric<Values>): MainFamily<Values> {
    const family = new MainFamily(metric, this.#hidden)
    this.#families.push(family.expose)
    return family
  }

  readonly expose = (into: Exposition): void => {
    for (const expose of this.#families) expose(into)
  }
}
