// The counts of each cluster. A request follows a few references to its counters and adds to them: no strings are built and no labels hashed, which
// would cost more than routing the request. The number of series is bounded for any requests: see ClusterSeries.

import type { ActiveCount, RequestRecord } from '../api/request-record.ts'
import {
  isMutating,
  isWellFormedResource,
  METRIC_SCOPES,
  METRIC_VERBS,
  metricScope,
  metricVerb,
  VERB_GET,
  VERB_LIST,
} from '../core/cluster/metric-labels.ts'
import {
  ABORTS,
  ADDED,
  ADMITTED,
  INFLIGHT,
  LONG_RUNNING,
  POLICY_MATCHES,
  REFUSALS,
  REJECTED,
  REQUEST_DURATION,
  REQUEST_TOTAL,
  RESERVED,
  RESOURCE,
  RESPONSE_SIZES,
  SHADOW,
  UPSTREAM,
  VERB,
} from './descriptors.ts'
import type { Metric } from './metric.ts'
import { CodeCounts, type CounterTable, codeOf, observeAt, type SeriesStore } from './series.ts'
import { MAX_RESOURCES, MAX_UNPROVEN_RESOURCES, OTHER, OTHER_CODE, PATH, PROVEN, UNPROVEN } from './series-limits.ts'

/** Rows are created when there is something to count. */
const NO_ROW = -1
// Constants are cheaper in `observe` than the descriptors' fields.
const DURATION_BOUNDS: Float64Array = REQUEST_DURATION.bounds
const SIZE_BOUNDS: Float64Array = RESPONSE_SIZES.bounds
/** Resources found without a map lookup; a power of two. */
const RECENT = 128
const ADDED_BOUNDS: Float64Array = ADDED.bounds

type Nested<T> = Map<string, Map<string, Map<string, Map<string, T>>>>

/**
 * The series of one cluster. Labels come from closed sets (verb, scope), from the configuration (cluster, endpoint, rule, schema), or are resource
 * names, whose number is limited. Users, hosts, paths and user agents are never labels.
 */
export class ClusterSeries {
  readonly store: SeriesStore
  readonly #resources: Nested<ResourceSeries> = new Map()
  #recent: (ResourceSeries | undefined)[] | undefined
  readonly #all: ResourceSeries[] = []
  readonly #path: ResourceSeries
  readonly #other: ResourceSeries
  readonly #readOnly: ActiveCount = { value: 0 }
  readonly #mutating: ActiveCount = { value: 0 }
  readonly #inflight: CounterTable
  /** Offset of the ADDED row. */
  readonly #addedAt: number
  readonly #refusals: CounterTable
  readonly #shadow: CounterTable
  readonly #upstream = new Map<string, CodeCounts>()
  #upstreamRows = 0
  #upstreamRest: CodeCounts | undefined
  readonly #admitted: CounterTable
  readonly #rejected: CounterTable
  readonly #reserved: CounterTable
  readonly #aborts: CounterTable
  readonly #policies: CounterTable
  /** Offset of each policy's row, by index. */
  readonly #policyAt: number[] = []
  #unproven = 0

  constructor(store: SeriesStore) {
    this.store = store
    this.#inflight = store.table(INFLIGHT)
    for (const kind of ['readOnly', 'mutating']) this.#inflight.at(kind, '')
    this.#addedAt = store.table(ADDED).at('', '')
    this.#path = new ResourceSeries(store, ['', '', '', ''], PATH)
    this.#other = new ResourceSeries(store, ['other', 'other', 'other', 'other'], OTHER)
    this.#refusals = store.table(REFUSALS)
    this.#shadow = store.table(SHADOW)
    this.#admitted = store.table(ADMITTED)
    this.#rejected = store.table(REJECTED)
    this.#reserved = store.table(RESERVED)
    this.#aborts = store.table(ABORTS)
    this.#policies = store.table(POLICY_MATCHES)
  }

  started(record: RequestRecord): void {
    if (record.longRunning) record.active = this.#resource(record, false).verb(record).active
    else record.active = isMutating(record) ? this.#mutating : this.#readOnly
    record.active.value++
  }

  observe(record: RequestRecord): void {
    const forwarded = record.attempts > 0 && record.refusal === ''
    const proven = forwarded && record.code > 0 && record.code < 400
    this.#resource(record, proven).verb(record).observe(record)
    if (forwarded) this.#countUpstream(record.endpoint, codeOf(record.code))
    else if (record.refusal !== '') this.#refusals.count(record.refusal, record.refusalRule)
    if (record.policy >= 0) this.store.add(this.#policyAt[record.policy] ?? this.#learnPolicies(record.policy), 1)
    if (record.flowControl !== '') {
      if (record.refusal === '') this.#admitted.count(record.flowControl, '')
      else if (record.code === 429) this.#rejected.count(record.flowControl, '')
      if (record.reserved) this.#reserved.count(record.flowControl, '')
    }
    if (record.aborted !== '') this.#aborts.count(record.aborted, '')
    for (let i = 0; i < record.shadow.length; i++) this.#shadow.count(record.shadow[i] ?? '', '')
    if (record.attempts === 1 && record.upstreamMs >= 0 && record.ttfbMs >= 0) {
      const added = record.ttfbMs > record.upstreamMs ? (record.ttfbMs - record.upstreamMs) / 1000 : 0
      observeAt(this.store.values, this.#addedAt, ADDED_BOUNDS, added)
    }
  }

  /** Writes the gauges of running requests, which are kept outside of the store. */
  writeActive(): void {
    this.store.set(this.#inflight.at('readOnly', ''), this.#readOnly.value)
    this.store.set(this.#inflight.at('mutating', ''), this.#mutating.value)
    this.#path.writeActive()
    this.#other.writeActive()
    for (const series of this.#all) series.writeActive()
  }

  /** Creates rows up to this policy: the array stays packed. */
  #learnPolicies(policy: number): number {
    while (this.#policyAt.length <= policy) this.#policyAt.push(this.#policies.at(String(this.#policyAt.length), ''))
    return this.#policyAt[policy] ?? 0
  }

  #countUpstream(endpoint: string, code: number): void {
    const counts = this.#upstream.get(endpoint)
    if (counts?.has(code)) counts.count(code)
    else this.#learnUpstream(endpoint, code)
  }

  #learnUpstream(endpoint: string, code: number): void {
    if (this.#upstreamRows >= UPSTREAM.limit) {
      this.#upstreamRest ??= new CodeCounts(this.store, UPSTREAM, this.store.nameIndex('other'))
      this.#upstreamRest.count(OTHER_CODE)
      return
    }
    this.#upstreamRows++
    let counts = this.#upstream.get(endpoint)
    if (counts === undefined) {
      counts = new CodeCounts(this.store, UPSTREAM, this.store.nameIndex(endpoint))
      this.#upstream.set(endpoint, counts)
    }
    counts.count(code)
  }

  #resource(record: RequestRecord, proven: boolean): ResourceSeries {
    if (!record.isResourceRequest) return this.#path
    const slot = slotOf(record)
    const recent = this.#recent?.[slot]
    if (recent?.is(record)) return recent
    const found = this.#resources
      .get(record.apiGroup)
      ?.get(record.apiVersion)
      ?.get(record.resource)
      ?.get(record.subresource)
    const series = found ?? this.#learn(record, proven)
    if (series !== this.#other) {
      this.#recent ??= new Array(RECENT).fill(undefined)
      this.#recent[slot] = series
    }
    return series
  }

  #learn(record: RequestRecord, proven: boolean): ResourceSeries {
    if (this.#all.length >= MAX_RESOURCES) return this.#other
    if (!proven && this.#unproven >= MAX_UNPROVEN_RESOURCES) return this.#other
    if (!isWellFormedResource(record)) return this.#other
    if (!proven) this.#unproven++
    const { apiGroup, apiVersion, resource, subresource } = record
    const names = [apiGroup, apiVersion, resource, subresource] as const
    const series = new ResourceSeries(this.store, names, proven ? PROVEN : UNPROVEN)
    const bySubresource = child(child(child(this.#resources, apiGroup), apiVersion), resource)
    bySubresource.set(subresource, series)
    this.#all.push(series)
    return series
  }
}

/** A resource's cache slot: names of equal length rarely have the same letters here. */
function slotOf(record: RequestRecord): number {
  const { resource, subresource, apiGroup } = record
  const { length } = resource
  if (length === 0) return 0
  const first = resource.charCodeAt(0)
  const middle = resource.charCodeAt(length >> 1)
  return (length * 31 + first * 7 + middle + subresource.length * 11 + apiGroup.length * 3) & (RECENT - 1)
}

function child<T>(map: Map<string, Map<string, T>>, key: string): Map<string, T> {
  let found = map.get(key)
  if (found === undefined) {
    found = new Map()
    map.set(key, found)
  }
  return found
}

/** One resource of one cluster: series of requests, their durations and sizes per verb, scope and code, created on first use. */
class ResourceSeries {
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
    this.#codes = new CodeCounts(store, REQUEST_TOTAL, row)
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
      if (this.#durationsAt === NO_ROW) this.#durationsAt = this.#addRow(REQUEST_DURATION)
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
