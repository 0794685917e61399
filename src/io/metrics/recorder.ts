// What one thread counts. Nothing leaves the thread until somebody asks for a snapshot: an event costs an addition, not
// a message. The main thread adds the snapshots up and makes the text (metrics.ts).

import type { RequestRecord } from '../../api/ports/request-record.ts'
import type { CompiledCluster } from '../../core/cluster/compiled-cluster.ts'
import { createHttp2Counters, type Http2Counters } from '../../http2/counters.ts'
import type { RetryCause, ReviewResult, ThreadEvents } from './event-metrics.ts'
import { ClusterSeries } from './request-metrics.ts'
import { CounterTable, SeriesStore, type StoreSnapshot } from './series.ts'
import {
  ACCESS_REVIEWS,
  CLIENTS,
  CONNECTIONS,
  EJECTION,
  FLOW,
  GAUGE,
  HANDSHAKES,
  HTTP2,
  HTTP2_FIELDS,
  IS_SET,
  LOG,
  POOL,
  POOL_FIELDS,
  REFUSED_CLIENTS,
  RETRIES,
  RETRY_CAUSES,
  REVIEW_RESULTS,
  TOKEN_CACHE,
  TOKEN_REVIEWS,
} from './series-kinds.ts'
import { createUpstreamCounters, type UpstreamCounters } from './upstream-counters.ts'

/** A cluster and its endpoints: what may appear in labels. */
export interface KnownCluster {
  readonly name: string
  readonly endpoints: readonly string[]
}

export function knownCluster({ name, endpoints }: CompiledCluster): KnownCluster {
  return { name, endpoints: endpoints.map((endpoint) => endpoint.url) }
}

/** All that a thread has counted: plain data that can be sent to another thread. */
export interface MetricsSnapshot {
  readonly process: StoreSnapshot
  /** The first is that of requests for no known cluster. */
  readonly clusters: readonly StoreSnapshot[]
}

/** Tables beside requests, for each cluster. */
interface ClusterTables {
  readonly ejections: CounterTable
  readonly connections: CounterTable
  readonly flows: CounterTable
  readonly pools: CounterTable
}

interface Counted {
  readonly series: ClusterSeries
  readonly tables: ClusterTables
}

export class MetricsRecorder implements ThreadEvents {
  /** To be given to all HTTP/2 connections of clients. */
  readonly http2Clients: Http2Counters = createHttp2Counters()
  /** To be given to all HTTP/2 connections to endpoints. */
  readonly http2Upstreams: Http2Counters = createHttp2Counters()
  #nextId = 1
  readonly #process = new SeriesStore('', 0)
  readonly #processRows: {
    clients: CounterTable
    logs: CounterTable
    http2: CounterTable
    handshakes: number
    refused: number
  }
  /** Requests that name no cluster, or one that is gone. */
  readonly #unknown: Counted
  readonly #clusters = new Map<string, Counted>()
  // Requests of a thread come in runs for the same cluster.
  #last: Counted
  readonly #pools = new Map<string, Map<string, UpstreamCounters>>()
  readonly #updates: (() => void)[] = []

  constructor() {
    this.#unknown = this.#create('')
    this.#last = this.#unknown
    const store = this.#process
    this.#processRows = {
      handshakes: store.offsetOf(store.addRow(HANDSHAKES, 0, 0)),
      refused: store.offsetOf(store.addRow(REFUSED_CLIENTS, 0, 0)),
      clients: new CounterTable(store, CLIENTS),
      logs: new CounterTable(store, LOG),
      http2: new CounterTable(store, HTTP2),
    }
    for (const protocol of ['h2', 'http/1.1']) this.#processRows.clients.at(protocol, '')
  }

  /** Makes room for clusters that are new or have changed, and forgets others, which are counted as '' from now on. */
  clustersChanged(changed: Iterable<KnownCluster>, removed: Iterable<string> = []): void {
    for (const name of removed) {
      this.#clusters.delete(name)
      this.#pools.delete(name)
    }
    for (const { name, endpoints } of changed) {
      if (!this.#clusters.has(name)) this.#clusters.set(name, this.#create(name))
      const pools = this.#pools.get(name)
      if (pools === undefined) continue
      for (const endpoint of pools.keys()) if (!endpoints.includes(endpoint)) pools.delete(endpoint)
    }
    this.#last = this.#unknown
  }

  /** Counts the request as in flight (or long-running) until `observe`; cluster and request info are known. */
  requestStarted(record: RequestRecord): void {
    if (record.active === undefined) this.#of(record.cluster).series.started(record)
  }

  /** Once per request, at its end; also for requests that `requestStarted` was not called for. */
  observe(record: RequestRecord): void {
    if (record.active !== undefined) {
      record.active.value--
      record.active = undefined
    }
    this.#of(record.cluster).series.observe(record)
  }

  retried(cluster: string, cause: RetryCause): void {
    this.#count(cluster, RETRIES + RETRY_CAUSES.indexOf(cause))
  }

  tokenReviewed(cluster: string, result: ReviewResult): void {
    this.#count(cluster, TOKEN_REVIEWS + REVIEW_RESULTS.indexOf(result))
  }

  tokenCache(cluster: string, hit: boolean): void {
    this.#count(cluster, TOKEN_CACHE + (hit ? 0 : 1))
  }

  accessReviewed(cluster: string, result: ReviewResult): void {
    this.#count(cluster, ACCESS_REVIEWS + REVIEW_RESULTS.indexOf(result))
  }

  endpointEjected(cluster: string, endpoint: string): void {
    this.#of(cluster).tables.ejections.count(endpoint, '')
  }

  clientConnections(protocol: 'h2' | 'http/1.1', by: 1 | -1): void {
    this.#process.add(this.#processRows.clients.at(protocol, ''), by)
  }

  tlsHandshakeFailed(): void {
    this.#process.add(this.#processRows.handshakes, 1)
  }

  clientRefused(): void {
    this.#process.add(this.#processRows.refused, 1)
  }

  logLinesDropped(log: 'access' | 'audit' | 'control-audit', total: number): void {
    this.#process.set(this.#processRows.logs.at(log, ''), total)
  }

  upstreamConnections(cluster: string, endpoint: string, kind: string, open: number): void {
    const { series, tables } = this.#of(cluster)
    setGauge(series.store, tables.connections.at(endpoint, kind), open)
  }

  flowControlInFlight(cluster: string, schema: string, running: number): void {
    const { series, tables } = this.#of(cluster)
    setGauge(series.store, tables.flows.at(schema, ''), running)
  }

  /** The counters of the connections to an endpoint; may be asked for before `clustersChanged` names it. */
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

  /** Called before every snapshot, to set gauges whose state lives elsewhere. */
  beforeSnapshot(update: () => void): void {
    this.#updates.push(update)
  }

  snapshot(): MetricsSnapshot {
    const clusters = [this.#unknown, ...this.#clusters.values()]
    for (const update of this.#updates) update()
    for (const [cluster, pools] of this.#pools) {
      const counted = this.#clusters.get(cluster)
      if (counted !== undefined) writePools(counted, pools)
    }
    this.#writeHttp2('client', this.http2Clients)
    this.#writeHttp2('upstream', this.http2Upstreams)
    for (const { series } of clusters) series.writeActive()
    const stores = clusters.map(({ series }) => series.store.snapshot())
    // What is not set again until the next snapshot is gone by then.
    for (const counted of clusters) unsetGauges(counted)
    return { process: this.#process.snapshot(), clusters: stores }
  }

  #writeHttp2(side: string, counters: Http2Counters): void {
    const at = this.#processRows.http2.at(side, '')
    for (const [index, field] of HTTP2_FIELDS.entries()) this.#process.set(at + index, counters[field])
  }

  #count(cluster: string, offset: number): void {
    const { series } = this.#of(cluster)
    series.store.add(series.at + offset, 1)
  }

  #of(cluster: string): Counted {
    const last = this.#last
    if (last.series.store.cluster === cluster) return last
    const found = this.#clusters.get(cluster) ?? this.#unknown
    this.#last = found
    return found
  }

  #create(name: string): Counted {
    const series = new ClusterSeries(name, this.#nextId++)
    const { store } = series
    return {
      series,
      tables: {
        ejections: new CounterTable(store, EJECTION),
        connections: new CounterTable(store, CONNECTIONS),
        flows: new CounterTable(store, FLOW),
        pools: new CounterTable(store, POOL),
      },
    }
  }
}

function setGauge(store: SeriesStore, at: number, value: number): void {
  store.set(at + GAUGE, value)
  store.set(at + IS_SET, 1)
}

function unsetGauges({ series: { store }, tables }: Counted): void {
  for (const table of [tables.connections, tables.flows]) {
    for (const at of table.offsets()) {
      store.set(at + GAUGE, 0)
      store.set(at + IS_SET, 0)
    }
  }
}

function writePools({ series: { store }, tables }: Counted, pools: ReadonlyMap<string, UpstreamCounters>): void {
  for (const [endpoint, counters] of pools) {
    const at = tables.pools.at(endpoint, '')
    for (const [index, field] of POOL_FIELDS.entries()) store.set(at + index, counters[field])
  }
}
