// The series of one resource of one cluster: requests by verb, scope and code, their durations and sizes.

import type { ActiveCount, RequestRecord } from '../api/request-record.ts'
import {
  METRIC_SCOPES,
  METRIC_VERBS,
  metricScope,
  metricVerb,
  VERB_GET,
  VERB_LIST,
} from '../core/cluster/metric-labels.ts'
import { DURATION, LONG_RUNNING, REQUESTS, RESOURCE, RESPONSE_SIZES, VERB } from './descriptors.ts'
import type { Metric } from './metric.ts'
import { CodeCounts, codeOf, observeAt, type SeriesStore } from './series.ts'

/** Rows are created when there is something to count. */
const NO_ROW = -1
// Constants are cheaper in `observe` than the descriptors' fields.
const DURATION_BOUNDS: Float64Array = DURATION.bounds
const SIZE_BOUNDS: Float64Array = RESPONSE_SIZES.bounds

/** One resource of one cluster: series per verb and scope, created on first use. */
export class ResourceSeries {
  readonly #group: string
  readonly #version: string
  readonly #resource: string
  readonly #subresource: string
  readonly #store: SeriesStore
  readonly #row: number
  readonly #verbs: (VerbSeries | undefined)[] = new Array(METRIC_VERBS.length * METRIC_SCOPES.length).fill(undefined)

  /** `standing`: UNPROVEN, PROVEN, PATH or OTHER. */
  constructor(store: SeriesStore, names: readonly [string, string, string, string], standing: number) {
    this.#store = store
    this.#group = names[0]
    this.#version = names[1]
    this.#resource = names[2]
    this.#subresource = names[3]
    this.#row = store.addRow(RESOURCE, store.addNames(names), standing)
  }

  /** Whether the request is for this resource. */
  is(record: RequestRecord): boolean {
    return (
      record.resource === this.#resource &&
      record.apiGroup === this.#group &&
      record.subresource === this.#subresource &&
      record.apiVersion === this.#version
    )
  }

  /** The series that the request belongs to. */
  verb(record: RequestRecord): VerbSeries {
    const index = metricVerb(record) * METRIC_SCOPES.length + metricScope(record)
    return this.#verbs[index] ?? this.#add(index)
  }

  #add(index: number): VerbSeries {
    const series = new VerbSeries(this.#store, this.#row, index)
    this.#verbs[index] = series
    return series
  }

  /** Writes the gauges of running requests, which are kept outside of the store. */
  writeActive(): void {
    for (const series of this.#verbs) series?.writeActive()
  }
}

class VerbSeries {
  readonly active: ActiveCount = { value: 0 }
  readonly #store: SeriesStore
  readonly #row: number
  readonly #codes: CodeCounts
  readonly #hasSizes: boolean
  // Offsets of the rows that belong to this one.
  #longRunningAt = NO_ROW
  #durationsAt = NO_ROW
  #sizesAt = NO_ROW

  constructor(store: SeriesStore, resource: number, index: number) {
    const row = store.addRow(VERB, resource, index)
    const verb = Math.floor(index / METRIC_SCOPES.length)
    this.#store = store
    this.#row = row
    this.#codes = new CodeCounts(store, REQUESTS, row)
    // Sizes of reads only, like kube-apiserver: a write's response is about as long as its request.
    this.#hasSizes = verb === VERB_GET || verb === VERB_LIST
  }

  observe(record: RequestRecord): void {
    this.#codes.count(codeOf(record.code))
    if (record.longRunning) {
      if (this.#longRunningAt === NO_ROW) this.#longRunningAt = this.#addRow(LONG_RUNNING)
      return
    }
    if (record.durationMs >= 0) {
      if (this.#durationsAt === NO_ROW) this.#durationsAt = this.#addRow(DURATION)
      observeAt(this.#store.values, this.#durationsAt, DURATION_BOUNDS, record.durationMs / 1000)
    }
    if (this.#hasSizes) {
      if (this.#sizesAt === NO_ROW) this.#sizesAt = this.#addRow(RESPONSE_SIZES)
      observeAt(this.#store.values, this.#sizesAt, SIZE_BOUNDS, record.responseBytes)
    }
  }

  writeActive(): void {
    if (this.active.value > 0 && this.#longRunningAt === NO_ROW) this.#longRunningAt = this.#addRow(LONG_RUNNING)
    if (this.#longRunningAt !== NO_ROW) this.#store.set(this.#longRunningAt, this.active.value)
  }

  #addRow(metric: Metric): number {
    return this.#store.offsetOf(this.#store.addRow(metric, this.#row, 0))
  }
}
