// The series of one resource of one cluster: requests by verb, scope and code, their durations and sizes.

import type { ActiveCount, RequestRecord } from '../api/request-record.ts'
import {
  formatLabel,
  METRIC_SCOPES,
  METRIC_VERBS,
  metricScope,
  metricVerb,
  VERB_GET,
  VERB_LIST,
  VERB_WATCH,
} from '../core/metric-labels.ts'
import { Distribution, type Exposition, familyOf } from './metric-series.ts'

// Buckets of kube-apiserver's apiserver_request_duration_seconds and apiserver_response_sizes.
const DURATION_BUCKETS = [
  0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60,
]
const SIZE_BUCKETS = [1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9]

/** One resource of one cluster: series per verb and scope, made when first seen. */
export class ResourceSeries {
  readonly #cluster: string
  readonly #names: string
  readonly #kind: string
  readonly #verbs: (VerbSeries | undefined)[] = new Array(METRIC_VERBS.length * METRIC_SCOPES.length).fill(undefined)

  constructor(cluster: string, group: string, version: string, resource: string, subresource: string) {
    this.#cluster = cluster
    this.#kind = `${formatLabel('group', group)},${formatLabel('version', version)},${formatLabel('resource', resource)}`
    this.#names = `${this.#kind},${formatLabel('subresource', subresource)}`
  }

  /** The series that the request belongs to. */
  verb(record: RequestRecord): VerbSeries {
    const verb = metricVerb(record)
    const scope = metricScope(record)
    const index = verb * METRIC_SCOPES.length + scope
    return this.#verbs[index] ?? this.#add(index, verb, scope)
  }

  #add(index: number, verb: number, scope: number): VerbSeries {
    const verbLabel = formatLabel('verb', METRIC_VERBS[verb] ?? 'other')
    const scopeLabel = formatLabel('scope', METRIC_SCOPES[scope] ?? '')
    const series = new VerbSeries(`${this.#cluster},${verbLabel},${this.#names},${scopeLabel}`, verb)
    this.#verbs[index] = series
    return series
  }

  expose(into: Exposition): void {
    let watchers = 0
    let watched = false
    for (const series of this.#verbs) {
      if (series === undefined) continue
      series.expose(into)
      if (series.kind !== VERB_WATCH) continue
      watched = true
      watchers += series.active.value
    }
    if (watched) into.add(WATCHERS, `{${this.#cluster},${this.#kind}}`, watchers)
  }
}

class VerbSeries {
  readonly kind: number
  readonly active: ActiveCount = { value: 0 }
  readonly #labels: string
  readonly #codes = new Map<number, ActiveCount>()
  readonly #duration = new Distribution(DURATION_BUCKETS)
  readonly #sizes: Distribution | undefined
  #longRunning: boolean

  constructor(labels: string, verb: number) {
    this.kind = verb
    this.#longRunning = false
    this.#labels = labels
    // Sizes of reads only, as kube-apiserver: what a write answers is about as long as what it sent.
    this.#sizes = verb === VERB_GET || verb === VERB_LIST ? new Distribution(SIZE_BUCKETS) : undefined
  }

  observe(record: RequestRecord): void {
    const count = this.#codes.get(record.code)
    if (count !== undefined) count.value++
    else this.#codes.set(record.code, { value: 1 })
    if (record.longRunning) {
      this.#longRunning = true
      return
    }
    if (record.durationMs >= 0) this.#duration.observe(record.durationMs / 1000)
    this.#sizes?.observe(record.responseBytes)
  }

  expose(into: Exposition): void {
    const labels = this.#labels
    for (const [code, count] of this.#codes) into.add(TOTAL, `{${labels},code="${codeText(code)}"}`, count.value)
    if (this.#duration.count > 0) this.#duration.expose(into, DURATION, labels)
    if (this.#sizes !== undefined && this.#sizes.count > 0) this.#sizes.expose(into, SIZES, labels)
    if (this.#longRunning || this.active.value > 0) into.add(LONG_RUNNING, `{${labels}}`, this.active.value)
  }
}

/** Three digits, or 0: nothing was sent. */
export function codeText(code: number): string {
  return code >= 100 && code <= 999 ? String(Math.trunc(code)) : '0'
}

const TOTAL = familyOf(
  'portcullis_apiserver_request_total',
  'counter',
  'Requests, by the code that the client got; 0 = none',
)
const DURATION = familyOf(
  'portcullis_apiserver_request_duration_seconds',
  'histogram',
  'From the request head to the end of the answer; long-running requests are not in it',
)
const SIZES = familyOf('portcullis_apiserver_response_sizes', 'histogram', 'Bytes of the bodies of reads')
const LONG_RUNNING = familyOf('portcullis_apiserver_longrunning_requests', 'gauge', 'Long-running requests open')
const WATCHERS = familyOf('portcullis_apiserver_registered_watchers', 'gauge', 'Watches open')
