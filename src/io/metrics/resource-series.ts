// The series of one resource of one cluster: requests by verb, scope and code, their durations and sizes.

import type { ActiveCount, RequestRecord } from '../../api/ports/request-record.ts'
import {
  METRIC_SCOPES,
  METRIC_VERBS,
  metricScope,
  metricVerb,
  VERB_GET,
  VERB_LIST,
} from '../../core/cluster/metric-labels.ts'
import { CodeCounts, codeOf, observeAt, type SeriesStore } from './series.ts'
import {
  ACTIVE,
  CODE,
  DURATION_BUCKETS,
  DURATIONS,
  LONG_RUNNING,
  RESOURCE,
  SIZE_BUCKETS,
  SIZES,
  VERB,
} from './series-kinds.ts'

/** One resource of one cluster: series per verb and scope, made when first seen. */
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

  /** Writes the gauges of running requests, which are kept outside of the store, into it. */
  writeActive(): void {
    for (const series of this.#verbs) series?.writeActive()
  }
}

class VerbSeries {
  readonly active: ActiveCount = { value: 0 }
  readonly #store: SeriesStore
  readonly #at: number
  readonly #codes: CodeCounts
  readonly #hasSizes: boolean

  constructor(store: SeriesStore, resource: number, index: number) {
    const row = store.addRow(VERB, resource, index)
    const verb = Math.floor(index / METRIC_SCOPES.length)
    this.#store = store
    this.#at = store.offsetOf(row)
    this.#codes = new CodeCounts(store, CODE, row)
    // Sizes of reads only, as kube-apiserver: what a write answers is about as long as what it sent.
    this.#hasSizes = verb === VERB_GET || verb === VERB_LIST
  }

  observe(record: RequestRecord): void {
    this.#codes.count(codeOf(record.code))
    const at = this.#at
    const values = this.#store.values
    if (record.longRunning) {
      this.#store.add(at + LONG_RUNNING, 1)
      return
    }
    if (record.durationMs >= 0) observeAt(values, at + DURATIONS, DURATION_BUCKETS, record.durationMs / 1000)
    if (this.#hasSizes) observeAt(values, at + SIZES, SIZE_BUCKETS, record.responseBytes)
  }

  writeActive(): void {
    this.#store.set(this.#at + ACTIVE, this.active.value)
  }
}
