// Builds everything and ties it together: the only place that knows all parts.

import { randomUUID } from 'node:crypto'
import type { Clock, Logger, Problem, ResourceSource } from '../api/ports.ts'
import type { RequestRecord } from '../api/request-record.ts'
import { type EndpointProbes, startEndpointProbes } from '../controllers/endpoint-probes.ts'
import { createUpstreamClustersController } from '../controllers/upstream-clusters.ts'
import { clusterForAddress, clusterForServerName } from '../core/lookup-cluster.ts'
import type { Gateway, GatewayEvents } from '../gateway/gateway.ts'
import { createRequestHandler, createUpgradeHandler } from '../gateway/serve.ts'
import { createAccessLog } from '../io/access-log.ts'
import { createAccessReviewer } from '../io/access-review.ts'
import { type AuditLog, createAuditLog } from '../io/audit-log.ts'
import { systemClock } from '../io/clock.ts'
import type { LineWriter } from '../io/line-writer.ts'
import type { ListenerOptions } from '../io/listener-socket.ts'
import { createMetrics, type GatewayMetrics } from '../io/metrics.ts'
import { type ServingPair, TlsContexts } from '../io/tls-contexts.ts'
import { createTokenReviewer } from '../io/token-review.ts'
import { Upstreams } from '../io/upstreams.ts'
import { ClusterTable } from '../state/clusters.ts'
import { RunningRequests } from '../state/running.ts'
import type { Config } from './config.ts'

export interface Parts {
  readonly gateway: Gateway
  readonly probes: EndpointProbes
  readonly source: ResourceSource
  readonly metrics: GatewayMetrics
  readonly contexts: TlsContexts
  /** What a listener needs besides its address. */
  readonly listener: Omit<ListenerOptions, 'host' | 'port'>
  /** What the last change of the source brought. */
  config(): { readonly problems: readonly Problem[]; readonly appliedAtMs: number }
  apply: Parameters<ResourceSource['start']>[0]
}

export interface Outputs {
  readonly log: Logger
  /** Lines of the access log; undefined = switched off. */
  readonly access: LineWriter | undefined
  readonly audit: LineWriter | undefined
}

export function wire(config: Config, serving: ServingPair, outputs: Outputs, source: ResourceSource): Parts {
  const clock: Clock = systemClock
  const { log } = outputs
  const metrics = createMetrics()
  const clusters = new ClusterTable()
  const running = new RunningRequests()
  const contexts = new TlsContexts(serving)
  const upstreams = new Upstreams((cluster, endpoint, error) => {
    const live = clusters.get(cluster)
    const known = live?.endpoints.byUrl(endpoint)
    if (live === undefined || known === undefined) return
    const ejections = known.health.ejections
    live.endpoints.onFailure(known, clock.monotonic())
    if (known.health.ejections > ejections) metrics.endpointEjected(cluster, endpoint)
    log.warn('connection to endpoint broke', { cluster, endpoint, error: error.message })
    probes.hurry(cluster, endpoint)
  })
  const probes = startEndpointProbes(clusters, upstreams, clock, Math.random, log, {
    probed: (cluster, endpoint, healthy) => metrics.endpointHealth(cluster, endpoint, healthy),
  })
  const gateway: Gateway = {
    clusters,
    upstreams,
    running,
    clock,
    log,
    tokens: createTokenReviewer(clock.monotonic, (cluster, outcome) => countToken(metrics, cluster, outcome)),
    access: createAccessReviewer(clock.monotonic, (cluster, verdict) =>
      metrics.accessReviewed(cluster, verdict === 'unavailable' ? 'error' : verdict),
    ),
    events: observers(metrics, outputs),
    random: Math.random,
    uuid: randomUUID,
    draining: false,
  }
  const applied: { problems: readonly Problem[]; appliedAtMs: number } = { problems: [], appliedAtMs: 0 }
  const { drainTimeoutMs } = config
  const apply = createUpstreamClustersController({
    clusters,
    upstreams,
    contexts,
    probes,
    running,
    clock,
    log,
    drainTimeoutMs,
    random: Math.random,
    events: {
      applied: (generation, _names, problems) => {
        applied.problems = problems
        applied.appliedAtMs = clock.now()
        countConfig(metrics, clusters, generation, problems, applied.appliedAtMs)
      },
    },
  })
  metrics.beforeScrape(() => updateGauges(metrics, clusters, upstreams, outputs, clock))
  return {
    gateway,
    probes,
    metrics,
    contexts,
    apply,
    source,
    listener: listenerOptions(config, gateway, contexts, metrics),
    config: () => applied,
  }
}

function listenerOptions(
  config: Config,
  gateway: Gateway,
  contexts: TlsContexts,
  metrics: GatewayMetrics,
): Parts['listener'] {
  const { clusters } = gateway
  return {
    maxHeaderBytes: config.maxHeaderBytes,
    maxConcurrentStreams: config.maxConcurrentStreams,
    headerTimeoutMs: config.headerTimeoutMs,
    contexts,
    clusterForServerName: (name) => clusterForServerName(clusters.index, name),
    clusterForAddress: (address, port) => clusterForAddress(clusters.index, address, port),
    handler: createRequestHandler(gateway),
    onUpgrade: createUpgradeHandler(gateway),
    onConnection: (protocol, by) => metrics.clientConnections(protocol, by),
    onHandshakeError: () => metrics.tlsHandshakeFailed(),
  }
}

/** Who listens to what happens on the request path. */
function observers(metrics: GatewayMetrics, outputs: Outputs): GatewayEvents {
  const { access, audit: auditLines } = outputs
  const writeAccess = access === undefined ? undefined : createAccessLog((line) => access.write(line))
  const audit: AuditLog | undefined =
    auditLines === undefined ? undefined : createAuditLog((line) => auditLines.write(line))
  return {
    requestStarted: (record) => metrics.requestStarted(record),
    responseStarted: (record) => audit?.responseStarted(record),
    requestEnded(record: RequestRecord) {
      metrics.observe(record)
      writeAccess?.(record)
      audit?.responseComplete(record)
    },
    retried: (cluster, cause) => metrics.retried(cluster, cause),
  }
}

function countToken(
  metrics: GatewayMetrics,
  cluster: string,
  outcome: 'hit' | 'authenticated' | 'rejected' | 'unavailable',
): void {
  metrics.tokenCache(cluster, outcome === 'hit')
  if (outcome === 'hit') return
  metrics.tokenReviewed(cluster, outcome === 'authenticated' ? 'allowed' : outcome === 'rejected' ? 'denied' : 'error')
}

function countConfig(
  metrics: GatewayMetrics,
  clusters: ClusterTable,
  generation: number,
  problems: readonly Problem[],
  nowMs: number,
): void {
  const known = [...clusters.values()].map(({ compiled }) => ({
    name: compiled.name,
    endpoints: compiled.endpoints.map((endpoint) => endpoint.url),
  }))
  metrics.clustersChanged(known)
  const errors = problems.filter((problem) => problem.severity === 'error').length
  metrics.configApplied({ generation, nowMs, clusters: known.length, errors, warnings: problems.length - errors })
}

function updateGauges(
  metrics: GatewayMetrics,
  clusters: ClusterTable,
  upstreams: Upstreams,
  outputs: Outputs,
  clock: Clock,
): void {
  for (const { cluster, endpoint, connections } of upstreams.describe()) {
    metrics.upstreamConnections(cluster, endpoint, 'h2', connections)
  }
  for (const live of clusters.values()) {
    for (const flow of live.flows.describe(clock.monotonic())) {
      metrics.flowControlInFlight(live.compiled.name, flow.schema, flow.inFlight)
    }
  }
  if (outputs.access !== undefined) metrics.logLinesDropped('access', outputs.access.dropped())
  if (outputs.audit !== undefined) metrics.logLinesDropped('audit', outputs.audit.dropped())
}
