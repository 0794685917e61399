// Metrics of every request. prom-client finds a series by hashing its labels at each call, which would cost more than
// routing the request does; here a request walks a few maps to a cell, and the text is made when somebody scrapes.
// However odd the requests, the number of series is bounded: see ClusterSeries.

import type { ActiveCount, RequestRecord } from '../api/request-record.ts'
import { formatLabel, isMutating, isWellFormedResource } from '../core/metric-labels.ts'
import { CounterTable, Distribution, type Exposition, familyOf } from './metric-series.ts'
import { codeText, ResourceSeries } from './resource-series.ts'

/** Distinct (group, version, resource, subresource) that one cluster may have; what comes after is `other`. */
const MAX_RESOURCES = 500
/** How many of them requests may bring that no upstream answered well: nobody fills the table with invented names. */
const MAX_UNPROVEN_RESOURCES = 100
/** A scrape exposes so many resources at a time: about a millisecond. */
const RESOURCES_PER_TURN = 25
/** Rows of a table keyed by names of the configuration (rules, schemas, endpoints). */
const MAX_TABLE_ROWS = 1000

const ADDED_BUCKETS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1]

export class RequestMetrics {
  #clusters = new Map<string, ClusterSeries>()
  /** Requests that name no cluster, or one that is gone. */
  readonly #unknown = new ClusterSeries('')

  /** Makes room for these clusters and forgets the series of all others. */
  setClusters(names: Iterable<string>): void {
    const next = new Map<string, ClusterSeries>()
    for (const name of names) next.set(name, this.#clusters.get(name) ?? new ClusterSeries(name))
    this.#clusters = next
  }

  /** Counts the request as running, until `observe`. Cluster and request info are known. */
  started(record: RequestRecord): void {
    if (record.active !== undefined) return
    const active = this.#series(record).activeCount(record)
    active.value++
    record.active = active
  }

  /** Counts the finished request. */
  observe(record: RequestRecord): void {
    if (record.active !== undefined) {
      record.active.value--
      record.active = undefined
    }
    this.#series(record).observe(record)
  }

  /** The lines of all clusters; `pause` lets other work run in between. */
  async expose(into: Exposition, pause: () => Promise<void>): Promise<void> {
    await this.#unknown.expose(into, pause)
    for (const series of this.#clusters.values()) await series.expose(into, pause)
  }

  #series(record: RequestRecord): ClusterSeries {
    return this.#clusters.get(record.cluster) ?? this.#unknown
  }
}

type Nested<T> = Map<string, Map<string, Map<string, Map<string, T>>>>

/**
 * The series of one cluster. Labels come from closed sets (verb, scope), from the configuration (cluster, endpoint,
 * rule, schema), or are names of resources, of which a limited number is taken up. Users, hosts, paths and user agents
 * are never labels.
 */
class ClusterSeries {
  readonly #label: string
  readonly #resources: Nested<ResourceSeries> = new Map()
  readonly #all: ResourceSeries[] = []
  readonly #other: ResourceSeries
  readonly #path: ResourceSeries
  readonly #readOnly: ActiveCount = { value: 0 }
  readonly #mutating: ActiveCount = { value: 0 }
  readonly #added = new Distribution(ADDED_BUCKETS)
  readonly #refusals = new CounterTable(MAX_TABLE_ROWS)
  readonly #shadow = new CounterTable(MAX_TABLE_ROWS)
  readonly #upstream = new CounterTable(MAX_TABLE_ROWS)
  readonly #admitted = new CounterTable(MAX_TABLE_ROWS)
  readonly #rejected = new CounterTable(MAX_TABLE_ROWS)
  readonly #aborts = new CounterTable(MAX_TABLE_ROWS)
  #unproven = 0

  constructor(name: string) {
    this.#label = formatLabel('cluster', name)
    this.#path = new ResourceSeries(this.#label, '', '', '', '')
    this.#other = new ResourceSeries(this.#label, 'other', 'other', 'other', 'other')
  }

  activeCount(record: RequestRecord): ActiveCount {
    if (record.longRunning) return this.#resource(record, false).verb(record).active
    return isMutating(record) ? this.#mutating : this.#readOnly
  }

  observe(record: RequestRecord): void {
    const forwarded = record.attempts > 0 && record.refusal === ''
    const proven = forwarded && record.code > 0 && record.code < 400
    this.#resource(record, proven).verb(record).observe(record)
    if (record.refusal !== '') this.#refusals.cell(record.refusal, record.refusalRule).value++
    if (forwarded) this.#upstream.cell(record.endpoint, codeText(record.code)).value++
    if (record.aborted !== '') this.#aborts.cell(record.aborted, '').value++
    if (record.flowControl !== '') {
      if (record.refusal === '') this.#admitted.cell(record.flowControl, '').value++
      else if (record.code === 429) this.#rejected.cell(record.flowControl, '').value++
    }
    for (let i = 0; i < record.shadow.length; i++) this.#shadow.cell(record.shadow[i] ?? '', '').value++
    if (record.attempts === 1 && record.upstreamMs >= 0 && record.ttfbMs >= 0) {
      this.#added.observe(Math.max(0, record.ttfbMs - record.upstreamMs) / 1000)
    }
  }

  #resource(record: RequestRecord, proven: boolean): ResourceSeries {
    if (!record.isResourceRequest) return this.#path
    const found = this.#resources
      .get(record.apiGroup)
      ?.get(record.apiVersion)
      ?.get(record.resource)
      ?.get(record.subresource)
    return found ?? this.#learn(record, proven)
  }

  #learn(record: RequestRecord, proven: boolean): ResourceSeries {
    if (this.#all.length >= MAX_RESOURCES || !isWellFormedResource(record)) return this.#other
    if (!proven) {
      if (this.#unproven >= MAX_UNPROVEN_RESOURCES) return this.#other
      this.#unproven++
    }
    const { apiGroup, apiVersion, resource, subresource } = record
    const series = new ResourceSeries(this.#label, apiGroup, apiVersion, resource, subresource)
    const bySubresource = child(child(child(this.#resources, apiGroup), apiVersion), resource)
    bySubresource.set(subresource, series)
    this.#all.push(series)
    return series
  }

  async expose(into: Exposition, pause: () => Promise<void>): Promise<void> {
    for (const [index, series] of this.#all.entries()) {
      if (index % RESOURCES_PER_TURN === 0) await pause()
      series.expose(into)
    }
    this.#path.expose(into)
    this.#other.expose(into)
    const label = this.#label
    into.add(INFLIGHT, `{${label},request_kind="readOnly"}`, this.#readOnly.value)
    into.add(INFLIGHT, `{${label},request_kind="mutating"}`, this.#mutating.value)
    this.#added.expose(into, ADDED, label)
    this.#refusals.expose(into, REFUSALS, label, 'reason', 'rule')
    this.#shadow.expose(into, SHADOW, label, 'rule', '')
    this.#upstream.expose(into, UPSTREAM, label, 'endpoint', 'code')
    this.#admitted.expose(into, ADMITTED, label, 'schema', '')
    this.#rejected.expose(into, REJECTED, label, 'schema', '')
    this.#aborts.expose(into, ABORTS, label, 'by', '')
  }
}

function child<T>(map: Map<string, Map<string, T>>, key: string): Map<string, T> {
  let found = map.get(key)
  if (found === undefined) {
    found = new Map()
    map.set(key, found)
  }
  return found
}

const INFLIGHT = familyOf(
  'portcullis_apiserver_current_inflight_requests',
  'gauge',
  'Requests running, long-running ones apart',
)
const ADDED = familyOf(
  'portcullis_added_latency_seconds',
  'histogram',
  'What the gateway added to the time until the response head: that time less what upstream took',
)
const REFUSALS = familyOf(
  'portcullis_refusals_total',
  'counter',
  'Requests that the gateway refused, by reason and by the rule or limit',
)
const SHADOW = familyOf(
  'portcullis_shadow_refusals_total',
  'counter',
  'Requests that would have been refused, were the rule not in shadow mode',
)
const UPSTREAM = familyOf(
  'portcullis_upstream_requests_total',
  'counter',
  'Requests answered by an endpoint, by code; 0 = broken off',
)
const ADMITTED = familyOf(
  'portcullis_flow_control_admitted_total',
  'counter',
  'Requests that a flow control schema let through',
)
const REJECTED = familyOf(
  'portcullis_flow_control_rejected_total',
  'counter',
  'Requests that a flow control schema refused with 429',
)
const ABORTS = familyOf(
  'portcullis_apiserver_request_aborts_total',
  'counter',
  'Requests broken off before the answer was complete',
)
