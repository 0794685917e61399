// Metrics that only the main thread counts, and rarely: with arbitrary labels, in a row of numbers per set of label values. Rows counted by requests
// are in series.ts, which builds no labels per event.

import { formatLabel } from '../core/cluster/metric-labels.ts'
import type { Exposition } from './exposition.ts'
import { type Metric, VALUE } from './metric.ts'
import { observeAt } from './series.ts'

/** The series of one metric. A metric without visible labels has its series from the start. */
export class MainFamily<Values extends readonly string[] = readonly string[]> {
  readonly #metric: Metric<Values>
  readonly #hidden: ReadonlySet<string>
  /** Keyed by labels in text format. */
  readonly #rows = new Map<string, Float64Array>()

  constructor(metric: Metric<Values>, hidden: ReadonlySet<string>) {
    this.#metric = metric
    this.#hidden = hidden
    if (metric.labels.every((label) => hidden.has(label))) this.#rowOf([])
  }

  /** Counts. `values`: its label values, in order; hidden labels make no difference. */
  add(by: number, ...values: Values): void {
    const row = this.#rowOf(values)
    row[VALUE] = (row[VALUE] ?? 0) + by
  }

  /** Sets a gauge. */
  set(value: number, ...values: Values): void {
    this.#rowOf(values)[VALUE] = value
  }

  /** Observes a value in a histogram. */
  observe(value: number, ...values: Values): void {
    observeAt(this.#rowOf(values), 0, this.#metric.bounds, value)
  }

  /** Removes its series. */
  remove(...values: Values): void {
    this.#rows.delete(this.#key(values))
  }

  /** Removes all series. */
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

/** Families exposed together. */
export class MainFamilies {
  readonly #hidden: ReadonlySet<string>
  readonly #families: ((into: Exposition) => void)[] = []

  /** @param hidden labels to omit: series that only differ in these are merged. Default: none */
  constructor(hidden: Iterable<string> = []) {
    this.#hidden = new Set(hidden)
  }

  /** Exposes the metric from now on. Once per metric. */
  of<Values extends readonly string[]>(metric: Metric<Values>): MainFamily<Values> {
    const family = new MainFamily(metric, this.#hidden)
    this.#families.push(family.expose)
    return family
  }

  readonly expose = (into: Exposition): void => {
    for (const expose of this.#families) expose(into)
  }
}
