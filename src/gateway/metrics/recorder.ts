// The counts of one thread. Nothing leaves the thread until a snapshot is taken: an event costs an addition, not a message. The main thread merges
// the snapshots and renders the text (metrics.ts).

import { ABUSE_KINDS, type AbuseKind, createHttp2Counters, type Http2Counters } from '../../http2/counters.ts'
import type { RequestRecord } from '../api/request-record.ts'
import type { CompiledCluster } from '../core/cluster/compiled-cluster.ts'
import {
  CLIENT_CONNECTIONS,
  EARLY_ANSWERS,
  HTTP2_ABUSE,
  HTTP2_CLOSED,
  HTTP2_GOAWAY,
  HTTP2_HEADS_NOT_SENT,
  HTTP2_OPENED,
  HTTP2_REFUSED,
  HTTP2_TIMEOUTS,
  METRICS,
  UPSTREAM_CLOSED,
  UPSTREAM_ENDED_BY_REQUESTS,
  UPSTREAM_FAILED,
  UPSTREAM_OPENED,
} from './descriptors.ts'
import { IS_SET, type Metric, VALUE } from './metric.ts'
import { ClusterSeries } from './request-metrics.ts'
import { SeriesStore, type StoreSnapshot } from './series.ts'
import { createUpstreamCounters, type UpstreamCounters } from './upstream-counters.ts'

// The metric for each field of the plain counter objects. The compiler requires a line for each field.
const HTTP2: FieldCounters<Exclude<keyof Http2Counters, AbuseKind>> = {
  connectionsOpened: [HTTP2_OPENED],
  connectionsClosed: [HTTP2_CLOSED],
  goawayReceived: [HTTP2_GOAWAY, 'received'],
  goawaySent: [HTTP2_GOAWAY, 'sent'],
  streamsRefused: [HTTP2_REFUSED],
  headsNotSent: [HTTP2_HEADS_NOT_SENT],
  pingTimeouts: [HTTP2_TIMEOUTS, 'ping'],
  idleTimeouts: [HTTP2_TIMEOUTS, 'headers'],
  settingsTimeouts: [HTTP2_TIMEOUTS, 'settings'],
  lateBodiesTaken: [EARLY_ANSWERS, 'taken'],
  lateBodiesLeft: [EARLY_ANSWERS, 'left'],
  lateBodiesCut: [EARLY_ANSWERS, 'cut'],
}
const UPSTREAM: FieldCounters<keyof UpstreamCounters> = {
  opened: [UPSTREAM_OPENED],
  connectFailed: [UPSTREAM_FAILED],
  closedByAge: [UPSTREAM_CLOSED, 'age'],
  closedByIdle: [UPSTREAM_CLOSED, 'idle'],
  closedByGoaway: [UPSTREAM_CLOSED, 'goaway'],
  closedByLoss: [UPSTREAM_CLOSED, 'loss'],
  closedBySettingsTimeout: [UPSTREAM_CLOSED, 'settings-timeout'],
  closedByPingTimeout: [UPSTREAM_CLOSED, 'ping-timeout'],
  closedByDrain: [UPSTREAM_CLOSED, 'drain'],
  endedByRequests: [UPSTREAM_ENDED_BY_REQUESTS],
}

/** A cluster and its endpoints: allowed label values. */
export interface ClusterLabels {
  readonly name: string
  readonly endpoints: readonly string[]
}

export function clusterLabels({ name, endpoints }: CompiledCluster): ClusterLabels {
  return { name, endpoints: endpoints.map((endpoint) => endpoint.url) }
}

/**
 * What a thread has counted, as far as it has changed since the last time: plain data that can be sent to another thread. Each has to arrive, in their
 * order.
 */
export interface MetricsChanges {
  readonly process: StoreSnapshot
  /** '' = requests without a known cluster. */
  readonly clusters: readonly StoreSnapshot[]
  /** Clusters whose counts are forgotten; `clusters` may have new ones of the same name. */
  readonly removed: readonly string[]
}

export class MetricsRecorder {
  /** Shared by all HTTP/2 client connections. */
  readonly http2Clients: Http2Counters = createHttp2Counters()
  /** Shared by all HTTP/2 connections to endpoints. */
  readonly http2Upstreams: Http2Counters = createHttp2Counters()
  #nextId = 1
  readonly #process = new SeriesStore('', 0)
  /** Requests for no cluster, or a removed one. */
  readonly #unknown: ClusterSeries
  readonly #known = new Set<string>()
  /** Made when something is counted: of thousands of clusters, most may have nothing to count in this thread. */
  readonly #stores = new Map<string, SeriesStore>()
  /** Made by the first request: the main thread has none. */
  readonly #requests = new Map<string, ClusterSeries>()
  /** Since the last `changes`. */
  #removed: string[] = []
  // Consecutive requests of a thread are often for the same cluster.
  #last: ClusterSeries
  readonly #pools = new Map<string, Map<string, UpstreamCounters>>()
  readonly #updates: (() => void)[] = []
  /** Metrics that are dropped unless they are set again. */
  readonly #perSnapshot: readonly Metric[] = METRICS.filter((metric) => metric.merge === 'perSnapshot')

  constructor() {
    this.#unknown = new ClusterSeries(this.#createStore(''))
    this.#last = this.#unknown
    // Counters without labels are shown from the start.
    const unlabelled = METRICS.filter(({ type, labels }) => type === 'counter' && labels.length === 0)
    for (const metric of unlabelled) this.#process.table(metric).at('', '')
    for (const protocol of ['h2', 'http/1.1']) this.#process.table(CLIENT_CONNECTIONS).at(protocol, '')
  }

  /** Adds new and changed clusters, and forgets removed ones, which are counted as '' from now on. */
  clustersChanged(changed: Iterable<ClusterLabels>, removed: Iterable<string> = []): void {
    for (const name of removed) {
      this.#known.delete(name)
      if (this.#stores.delete(name)) this.#removed.push(name)
      this.#requests.delete(name)
      this.#pools.delete(name)
    }
    for (const { name, endpoints } of changed) {
      this.#known.add(name)
      const pools = this.#pools.get(name)
      if (pools === undefined) continue
      for (const endpoint of pools.keys()) if (!endpoints.includes(endpoint)) pools.delete(endpoint)
    }
    this.#last = this.#unknown
  }

  /** Counts the request as in flight (or long-running) until `observe`; cluster and request info are known. Again, if a member serves it. */
  requestStarted(record: RequestRecord): void {
    leave(record)
    this.#of(record.cluster).started(record)
  }

  /** Once per request, at its end; also for requests that `requestStarted` was not called for. */
  observe(record: RequestRecord): void {
    leave(record)
    this.#of(record.cluster).observe(record)
  }

  /**
   * Adds to the count with these label values, in the descriptor's order. An unknown cluster counts as ''. Allocates nothing once the values have
   * been seen.
   */
  add(metric: Metric<[]>, by: number): void
  add<A extends string>(metric: Metric<[A]>, by: number, a: NoInfer<A>): void
  add<A extends string, B extends string>(metric: Metric<[A, B]>, by: number, a: NoInfer<A>, b: NoInfer<B>): void
  add<A extends string, B extends string, C extends string>(
    metric: Metric<[A, B, C]>,
    by: number,
    a: NoInfer<A>,
    b: NoInfer<B>,
    c: NoInfer<C>,
  ): void
  add(metric: Metric, by: number, a = '', b = '', c = ''): void {
    const store = this.#storeOf(metric, a)
    const table = store.table(metric)
    store.add(metric.perCluster ? table.at(b, c) : table.at(a, b), by)
  }

  /** Like `add`, but sets the value; for a `perSnapshot` metric until the next `changes`. */
  set(metric: Metric<[]>, value: number): void
  set<A extends string>(metric: Metric<[A]>, value: number, a: NoInfer<A>): void
  set<A extends string, B extends string>(metric: Metric<[A, B]>, value: number, a: NoInfer<A>, b: NoInfer<B>): void
  set<A extends string, B extends string, C extends string>(
    metric: Metric<[A, B, C]>,
    value: number,
    a: NoInfer<A>,
    b: NoInfer<B>,
    c: NoInfer<C>,
  ): void
  set(metric: Metric, value: number, a = '', b = '', c = ''): void {
    const store = this.#storeOf(metric, a)
    const table = store.table(metric)
    const at = metric.perCluster ? table.at(b, c) : table.at(a, b)
    store.set(at + VALUE, value)
    if (metric.merge === 'perSnapshot') store.set(at + IS_SET, 1)
  }

  /** Counters of an endpoint's connections; may be requested before `clustersChanged` names the endpoint. */
  upstream(cluster: string, endpoint: string): UpstreamCounters {
    let pools = this.#pools.get(cluster)
    if (pools === undefined) {
      pools = new Map()
      this.#pools.set(cluster, pools)
    }
    let counters = pools.get(endpoint)
    if (counters === undefined) {
      counters = createUpstreamCounters()
      pools.set(endpoint, counters)
    }
    return counters
  }

  /** Called before `changes`, to set gauges whose state lives elsewhere. */
  beforeSnapshot(update: () => void): void {
    this.#updates.push(update)
  }

  changes(): MetricsChanges {
    for (const update of this.#updates) update()
    for (const [cluster, pools] of this.#pools) {
      const store = this.#storeFor(cluster)
      if (store === this.#unknown.store) continue
      for (const [endpoint, counters] of pools) writeUpstream(store, endpoint, counters)
    }
    writeHttp2(this.#process, 'client', this.http2Clients)
    writeHttp2(this.#process, 'upstream', this.http2Upstreams)
    for (const series of [this.#unknown, ...this.#requests.values()]) series.writeActive()
    const stores = [this.#unknown.store, ...this.#stores.values()]
    const clusters = stores.flatMap((store) => store.changes() ?? [])
    // What is not set again is missing from the next changes.
    for (const store of stores) this.#unset(store)
    const removed = this.#removed
    this.#removed = []
    return { process: this.#process.snapshot(), clusters, removed }
  }

  #unset(store: SeriesStore): void {
    for (const metric of this.#perSnapshot) {
      for (const at of store.table(metric).offsets()) {
        store.set(at + VALUE, 0)
        store.set(at + IS_SET, 0)
      }
    }
  }

  #storeOf(metric: Metric, cluster: string): SeriesStore {
    return metric.perCluster ? this.#storeFor(cluster) : this.#process
  }

  #of(cluster: string): ClusterSeries {
    const last = this.#last
    if (last.store.cluster === cluster) return last
    const found = this.#requests.get(cluster) ?? this.#begin(cluster)
    this.#last = found
    return found
  }

  #begin(cluster: string): ClusterSeries {
    if (!this.#known.has(cluster)) return this.#unknown
    const series = new ClusterSeries(this.#storeFor(cluster))
    this.#requests.set(cluster, series)
    return series
  }

  #storeFor(cluster: string): SeriesStore {
    const last = this.#last.store
    if (last.cluster === cluster) return last
    const made = this.#stores.get(cluster)
    if (made !== undefined) return made
    if (!this.#known.has(cluster)) return this.#unknown.store
    const store = this.#createStore(cluster)
    this.#stores.set(cluster, store)
    return store
  }

  #createStore(cluster: string): SeriesStore {
    return new SeriesStore(cluster, this.#nextId++)
  }
}

/** The metric, and the value of its last label if it has another one besides the object's name. */
type FieldCounter = readonly [metric: Metric, label?: string]

type FieldCounters<Fields extends string> = Readonly<Record<Fields, FieldCounter>>

/** Writes the counters of one side's connections. */
function writeHttp2(store: SeriesStore, side: 'client' | 'upstream', counters: Http2Counters): void {
  for (const kind of ABUSE_KINDS) store.set(store.table(HTTP2_ABUSE).at(side, kebabCase(kind)), counters[kind])
  writeFields(store, side, HTTP2, counters)
}

/** Writes the counters of one endpoint's connections. */
function writeUpstream(store: SeriesStore, endpoint: string, counters: UpstreamCounters): void {
  writeFields(store, endpoint, UPSTREAM, counters)
}

function writeFields<Fields extends string>(
  store: SeriesStore,
  name: string,
  fields: FieldCounters<Fields>,
  counters: Readonly<Record<Fields, number>>,
): void {
  for (const field in fields) {
    const [metric, label = ''] = fields[field]
    store.set(store.table(metric).at(name, label), counters[field])
  }
}

/** It is not counted as running any more. */
function leave(record: RequestRecord): void {
  if (record.active === undefined) return
  record.active.value--
  record.active = undefined
}

/** `rapidReset` -> `rapid-reset`. */
function kebabCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}
