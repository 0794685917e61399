// Metrics of what happens beside requests: endpoints, reviews, configuration, connections. Rare enough for prom-client.
// Labels are names of the configuration and closed sets; series of what left the configuration are removed.

import { Counter, Gauge, type Registry } from 'prom-client'

/** What happens beside requests. `cluster`, `endpoint` and `schema` are names of the configuration. */
export interface EventMetrics {
  endpointHealth(cluster: string, endpoint: string, healthy: boolean): void
  endpointEjected(cluster: string, endpoint: string): void
  retried(cluster: string, cause: RetryCause): void
  /** Open connections to an endpoint; `kind` is the class: unary, watch, anonymous, upgrade. */
  upstreamConnections(cluster: string, endpoint: string, kind: string, open: number): void
  flowControlInFlight(cluster: string, schema: string, running: number): void
  tokenReviewed(cluster: string, result: ReviewResult): void
  tokenCache(cluster: string, hit: boolean): void
  accessReviewed(cluster: string, result: ReviewResult): void
  configApplied(state: ConfigState): void
  tlsHandshakeFailed(): void
  /** +1 when a client connects, -1 when it leaves. */
  clientConnections(protocol: 'h2' | 'http/1.1', by: 1 | -1): void
  /** Lines that a log dropped because its reader was too slow; the total so far. */
  logLinesDropped(log: 'access' | 'audit' | 'process', total: number): void
}

/** What the configuration is like after it was read. */
export interface ConfigState {
  readonly generation: number
  /** Wall clock, milliseconds. */
  readonly nowMs: number
  /** UpstreamClusters in force. */
  readonly clusters: number
  readonly errors: number
  readonly warnings: number
}

/** Why a request is sent again: upstream refused it unseen, did not connect, or a read got no answer. */
export type RetryCause = 'refused' | 'connect' | 'read'
export type ReviewResult = 'allowed' | 'denied' | 'error'

/** Clusters in force and their endpoints. */
export type KnownEndpoints = ReadonlyMap<string, ReadonlySet<string>>

/** The functions of `EventMetrics`, and one that forgets what left the configuration. */
export function createEventMetrics(registry: Registry): { events: EventMetrics; retain(known: KnownEndpoints): void } {
  const endpoints = createEndpointMetrics(registry)
  const reviews = createReviewMetrics(registry)
  return {
    events: { ...endpoints.events, ...reviews.events, ...createProcessMetrics(registry) },
    retain: (known) => {
      for (const series of [...endpoints.series, ...reviews.series]) series.retain(known)
    },
  }
}

/** A prom-client metric whose labels are remembered, so that they can be removed again. */
class ClusterSeries {
  readonly #metric: Counter | Gauge
  readonly #seen = new Map<string, Record<string, string>>()

  constructor(metric: Counter | Gauge) {
    this.#metric = metric
  }

  inc(labels: Record<string, string>): void {
    this.#remember(labels)
    this.#metric.inc(labels, 1)
  }

  set(labels: Record<string, string>, value: number): void {
    this.#remember(labels)
    if (this.#metric instanceof Gauge) this.#metric.set(labels, value)
  }

  retain(known: KnownEndpoints): void {
    for (const [key, labels] of this.#seen) {
      const endpoints = known.get(labels['cluster'] ?? '')
      const endpoint = labels['endpoint']
      if (endpoints !== undefined && (endpoint === undefined || endpoints.has(endpoint))) continue
      this.#metric.remove(labels)
      this.#seen.delete(key)
    }
  }

  #remember(labels: Record<string, string>): void {
    const key = Object.values(labels).join('\n')
    if (!this.#seen.has(key)) this.#seen.set(key, labels)
  }
}

type Part<K extends keyof EventMetrics> = { events: Pick<EventMetrics, K>; series: ClusterSeries[] }

function createEndpointMetrics(
  registry: Registry,
): Part<'endpointHealth' | 'endpointEjected' | 'retried' | 'upstreamConnections' | 'flowControlInFlight'> {
  const registers = [registry]
  const healthy = new ClusterSeries(
    new Gauge({
      name: 'portcullis_endpoint_healthy',
      help: '1 when the endpoint takes new requests',
      labelNames: ['cluster', 'endpoint'],
      registers,
    }),
  )
  const ejections = new ClusterSeries(
    new Counter({
      name: 'portcullis_endpoint_ejections_total',
      help: 'How often an endpoint was taken out because requests to it failed',
      labelNames: ['cluster', 'endpoint'],
      registers,
    }),
  )
  const retries = new ClusterSeries(
    new Counter({
      name: 'portcullis_upstream_retries_total',
      help: 'Requests sent again to another endpoint, by cause',
      labelNames: ['cluster', 'cause'],
      registers,
    }),
  )
  const connections = new ClusterSeries(
    new Gauge({
      name: 'portcullis_upstream_connections',
      help: 'Open connections to an endpoint, by class',
      labelNames: ['cluster', 'endpoint', 'class'],
      registers,
    }),
  )
  const running = new ClusterSeries(
    new Gauge({
      name: 'portcullis_flow_control_inflight_requests',
      help: 'Requests that hold a slot of a flow control schema',
      labelNames: ['cluster', 'schema'],
      registers,
    }),
  )
  return {
    events: {
      endpointHealth: (cluster, endpoint, ok) => healthy.set({ cluster, endpoint }, ok ? 1 : 0),
      endpointEjected: (cluster, endpoint) => ejections.inc({ cluster, endpoint }),
      retried: (cluster, cause) => retries.inc({ cluster, cause }),
      upstreamConnections: (cluster, endpoint, kind, open) => connections.set({ cluster, endpoint, class: kind }, open),
      flowControlInFlight: (cluster, schema, count) => running.set({ cluster, schema }, count),
    },
    series: [healthy, ejections, retries, connections, running],
  }
}

function createReviewMetrics(registry: Registry): Part<'tokenReviewed' | 'tokenCache' | 'accessReviewed'> {
  const registers = [registry]
  const tokens = new ClusterSeries(
    new Counter({
      name: 'portcullis_token_reviews_total',
      help: 'TokenReviews sent upstream, by result',
      labelNames: ['cluster', 'result'],
      registers,
    }),
  )
  const cache = new ClusterSeries(
    new Counter({
      name: 'portcullis_token_cache_lookups_total',
      help: 'Bearer tokens looked up in the cache',
      labelNames: ['cluster', 'result'],
      registers,
    }),
  )
  const access = new ClusterSeries(
    new Counter({
      name: 'portcullis_access_reviews_total',
      help: 'SubjectAccessReviews sent upstream for impersonation asked by clients, by result',
      labelNames: ['cluster', 'result'],
      registers,
    }),
  )
  return {
    events: {
      tokenReviewed: (cluster, result) => tokens.inc({ cluster, result }),
      tokenCache: (cluster, hit) => cache.inc({ cluster, result: hit ? 'hit' : 'miss' }),
      accessReviewed: (cluster, result) => access.inc({ cluster, result }),
    },
    series: [tokens, cache, access],
  }
}

function createProcessMetrics(
  registry: Registry,
): Pick<EventMetrics, 'configApplied' | 'tlsHandshakeFailed' | 'clientConnections' | 'logLinesDropped'> {
  const registers = [registry]
  const gauge = (name: string, help: string, labelNames: string[] = []): Gauge =>
    new Gauge({ name: `portcullis_${name}`, help, labelNames, registers })
  const generation = gauge('config_generation', 'How often the configuration in force has changed')
  const success = gauge('config_last_reload_successful', '1 when the last reading of the configuration found no error')
  const since = gauge('config_last_reload_success_timestamp_seconds', 'When a reading last found no error')
  const problems = gauge('config_problems', 'Mistakes in the configuration, by severity', ['severity'])
  const clusters = gauge('config_clusters', 'UpstreamClusters in force')
  const connections = gauge('client_connections', 'Open connections of clients', ['protocol'])
  const dropped = gauge('log_lines_dropped', 'Lines that a log dropped because its reader was too slow', ['log'])
  const handshakes = new Counter({
    name: 'portcullis_apiserver_tls_handshake_errors_total',
    help: 'TLS handshakes that clients did not complete',
    registers,
  })
  for (const protocol of ['h2', 'http/1.1']) connections.set({ protocol }, 0)
  return {
    configApplied: (state) => {
      generation.set(state.generation)
      clusters.set(state.clusters)
      problems.set({ severity: 'error' }, state.errors)
      problems.set({ severity: 'warning' }, state.warnings)
      success.set(state.errors === 0 ? 1 : 0)
      if (state.errors === 0) since.set(state.nowMs / 1000)
    },
    tlsHandshakeFailed: () => handshakes.inc(),
    clientConnections: (protocol, by) => connections.inc({ protocol }, by),
    logLinesDropped: (log, total) => dropped.set({ log }, total),
  }
}
