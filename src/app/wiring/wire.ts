// Builds and wires the main thread. How a change of the objects is applied is in apply-change.ts, what a gateway
// thread consists of in threads/thread/gateway-thread.ts.

import { randomInt } from 'node:crypto'
import type { Clock, ResourceSource } from '../../api/ports/ports.ts'
import type { ProtectionGate } from '../../api/ports/protection.ts'
import type { GlobalLimits } from '../../controllers/limits/global-limits.ts'
import { type EndpointProbes, startEndpointProbes } from '../../controllers/probes/endpoint-probes.ts'
import { requestFault, startUpstreamRights, type UpstreamRights } from '../../controllers/rights/upstream-rights.ts'
import { FollowedServers } from '../../controllers/servers/followed-servers.ts'
import { createUpstreamClustersController } from '../../controllers/upstream-clusters.ts'
import type { CompiledCluster } from '../../core/cluster/compiled-cluster.ts'
import type { LookedUp } from '../../core/endpoints/resolution.ts'
import type { ThreadHeap } from '../../core/memory/ceiling.ts'
import { CellClocks } from '../../core/protection/clocks/cell-clock.ts'
import type { TopReport } from '../../core/top/report.ts'
import { DialGuard } from '../../io/dial/dial-guard.ts'
import { lookUp } from '../../io/dns/look-up.ts'
import type { PortAdmission } from '../../io/listener/connections.ts'
import { type ServingPair, TlsContexts } from '../../io/listener/tls-contexts.ts'
import { tlsPolicy } from '../../io/listener/tls-policy.ts'
import type { LineWriter } from '../../io/logs/line-writer.ts'
import { LIMITED } from '../../io/metrics/descriptors.ts'
import { createMetrics, type GatewayMetrics } from '../../io/metrics/metrics.ts'
import type { MetricsRecorder } from '../../io/metrics/recorder.ts'
import { PROGRAM_FILES } from '../../io/program/build.ts'
import { createUpstreamKubeClient } from '../../io/upstream/kube-client.ts'
import { Upstreams } from '../../io/upstream/upstreams.ts'
import { systemClock } from '../../io/world/clock.ts'
import { startThread } from '../../io/world/threads.ts'
import { ClusterTable } from '../../state/clusters.ts'
import { ServingReload } from '../certificates/serving-reload.ts'
import type { Config } from '../config/config.ts'
import { type OwnPortFailures, ownPortFailures } from '../failures/own-ports.ts'
import { TopCounts } from '../insight/top-counts.ts'
import type { LastGoodStates } from '../last-good/states.ts'
import type { MemoryPlan } from '../memory/memory-plan.ts'
import { startInlineThread } from '../threads/pool/inline-thread.ts'
import { ThreadPool } from '../threads/pool/pool.ts'
import type { StartThread } from '../threads/pool/worker-slot.ts'
import { ConfigChanges } from './apply-change.ts'
import { createFailures } from './create-failures.ts'
import { type LimitSharing, shareLimits } from './limit-sharing.ts'
import { metricsText } from './metrics-text.ts'
import type { Outputs } from './outputs.ts'
import { createOwnPortAdmission } from './own-port-admission.ts'
import { startTracing, type Tracing, type TracingWaits } from './tracing.ts'

/** For tests. */
export interface WiredOverrides {
  /** Looks up the names of servers. */
  readonly lookUp: (name: string) => Promise<LookedUp>
  readonly tracingWaits: TracingWaits
}

export interface WiredGateway {
  readonly clusters: ClusterTable
  readonly pool: ThreadPool
  readonly probes: EndpointProbes
  /** Servers whose names are looked up. */
  readonly servers: FollowedServers
  readonly rights: UpstreamRights
  /** Of the probes. */
  readonly upstreams: Upstreams
  /** Of the connections of the main thread. */
  readonly guard: DialGuard
  /** The clocks of protected cells. */
  readonly clocks: CellClocks
  readonly source: ResourceSource
  /** Of all threads. */
  readonly metrics: { text(): Promise<string>; readonly contentType: string } & Pick<
    GatewayMetrics,
    'guards' | 'totals'
  >
  readonly clock: Clock
  /** Counts of the main thread. */
  readonly recorder: MetricsRecorder
  /** Lines of the audit log; undefined = switched off. */
  readonly audit: LineWriter | undefined
  /** Who asks most; undefined = nobody counts. */
  readonly top: TopCounts | undefined
  /** Limits that replicas share over Redis; undefined = none. */
  readonly limits: GlobalLimits | undefined
  /** Redis, and the files that say who the gateway is there; undefined = none. */
  readonly sharing: LimitSharing | undefined
  /** undefined = nothing is traced. */
  readonly tracing: Tracing | undefined
  /** The configuration in force, and its listeners. */
  readonly changes: ConfigChanges
  /** The gateway's own certificate. */
  readonly reload: ServingReload
  /** Credentials and handshakes that fail at the ports of the main thread. */
  readonly failures: OwnPortFailures
  /** Of the ports of control plane and webhooks. */
  readonly admission: PortAdmission
}

const WORD = 2 ** 32

export interface WireDeps {
  readonly config: Config
  readonly memory: Pick<MemoryPlan, 'heap'>
  readonly serving: ServingPair
  readonly outputs: Outputs
  readonly source: ResourceSource
  /** One gateway thread, inside this one. */
  readonly inline: boolean
  /** The gate that evaluates pod deletions, as it is at the moment. */
  readonly protection: () => ProtectionGate | undefined
  /** Where parts of shared limits are kept. */
  readonly lastGood: LastGoodStates
  /** Stops what is made here, in case that something else cannot be made. */
  readonly begun: AsyncDisposableStack
  readonly given?: Partial<WiredOverrides>
}

export function wire(deps: WireDeps): WiredGateway {
  const { config, memory, serving, outputs, source, inline, protection, lastGood, begun, given = {} } = deps
  const clock: Clock = systemClock
  const { log, access, audit } = outputs
  const metrics = createMetrics()
  const threads = inline ? 1 : config.threads
  const seed = [randomInt(WORD), randomInt(WORD)] as const
  const clusters = new ClusterTable({ thread: threads, threads, seed })
  // Connections of the main thread carry only its probes; if one breaks, the next probe decides.
  const guard = new DialGuard(config.allowLocalServers)
  const upstreams = new Upstreams((cluster, endpoint) => probes.probeNow(cluster, endpoint), guard, metrics.recorder)
  begun.defer(() => upstreams.destroy())
  const clocks = new CellClocks(config.protection.settings.clockSkewMs)
  const probes = startEndpointProbes(clusters, upstreams, clock, Math.random, log, {
    // For clusters without protection, too: when it is switched on, the first count must know the clock.
    answered: (cluster, endpoint, date, sentMs, receivedMs) =>
      clocks.observe(cellOf(cluster), endpoint, date, sentMs, receivedMs),
    probed: (cluster, endpoint, healthy) => {
      metrics.endpointHealth(cluster, endpoint, healthy)
      const { kind } = rights.get(cluster)
      if (healthy && (kind === 'unasked' || kind === 'unanswered')) rights.checkNow(cluster)
    },
  })
  begun.defer(() => probes.stop())
  const rights = startUpstreamRights({
    clusters,
    upstreams,
    clock,
    random: Math.random,
    log,
    onChange: (cluster, state) => {
      metrics.rightsAsked(cluster, state.kind)
      pool.credentialFault(cluster, requestFault(state))
    },
  })
  begun.defer(() => rights.stop())
  const data = {
    config,
    serving,
    accessLog: access !== undefined,
    auditLog: audit !== undefined,
    auditPolicy: outputs.auditPolicy,
  }
  const start: StartThread = inline ? startInlineThread : startWorker(memory.heap)
  const onBroken = (cluster: string, endpoint: string): void => probes.probeNow(cluster, endpoint)
  const sharing = shareLimits(config, clusters, clock, log, lastGood)
  const limits = sharing?.limits
  begun.defer(() => sharing?.stop())
  begun.defer(() => limits?.stop())
  const failures = createFailures(config, sharing?.counter, clock, log)
  const ownFailures = ownPortFailures({
    failures,
    random: Math.random,
    onRefused: () => metrics.recorder.add(LIMITED, 1, 'authentication-failures', 'false'),
  })
  const onRefusing = (cluster: string): void => rights.checkNow(cluster)
  const outward = { clock, log, access, audit, onBroken, onRefusing, protection, failures }
  const pool = new ThreadPool({ threads, start, data, seed, clusters, metrics, ...outward })
  begun.defer(() => pool.end())
  const contexts = new TlsContexts(serving, tlsPolicy(config.tlsMinVersion, config.tlsCipherSuites))
  const servers = new FollowedServers({
    lookUp: given.lookUp ?? lookUp,
    client: (name) => createUpstreamKubeClient({ cluster: () => clusters.get(name), guard, name, log }),
    clusters,
    clock,
    log,
    onChange: (cluster) => {
      void changes.compileAgain(cluster).catch((error: unknown) => {
        log.error('the addresses of a server could not be applied', { cluster, error })
      })
    },
  })
  begun.defer(() => servers.stop())
  const controller = createUpstreamClustersController({ clusters, upstreams, contexts, probes, servers, clock, log })
  const reload = new ServingReload(config, serving, log, (pair) => {
    contexts.setOwn(pair)
    pool.serving(pair)
  })
  const changes = new ConfigChanges({ clusters, controller, rights, limits, pool, metrics, clock })
  changes.onApplied((_, changed) => forgetClocks(clocks, clusters, changed))
  const tracing = startTracing({ config, pool, metrics, clock, log, waits: given.tracingWaits })
  begun.defer(() => tracing?.stop())
  const top = config.top ? new TopCounts({ pool, clock }) : undefined
  begun.defer(() => top?.stop())
  const firstTen = (): readonly TopReport[] => config.topMetrics.flatMap((by) => top?.firstTen(by) ?? [])
  const text = metricsText({ metrics, pool, clusters, outputs, clock, limits, firstTen })
  return {
    clusters,
    pool,
    probes,
    servers,
    rights,
    upstreams,
    guard,
    clocks,
    source,
    metrics: { text, contentType: metrics.contentType, guards: metrics.guards, totals: metrics.totals },
    clock,
    recorder: metrics.recorder,
    audit,
    top,
    limits,
    sharing,
    tracing,
    changes,
    reload,
    failures: ownFailures,
    admission: createOwnPortAdmission(config, ownFailures, metrics.recorder, clock, log),
  }
}

/** Drops servers that no longer exist. Looks at all clusters only when necessary: a change costs what it touches. */
function forgetClocks(clocks: CellClocks, clusters: ClusterTable, changed: ReadonlySet<string> | undefined): void {
  const touched = [...(changed ?? [])].map((name) => clusters.get(name)?.compiled)
  if (changed === undefined || touched.some((cluster) => cluster === undefined || cluster.protection !== undefined)) {
    clocks.keepOnly(serversByCell(clusters))
    return
  }
  for (const cluster of touched) if (cluster !== undefined) clocks.keepServers(cellOf(cluster), serversOf(cluster))
}

/** A cluster without protection is in the cell that it would be in. */
function serversByCell(clusters: ClusterTable): ReadonlyMap<string, ReadonlySet<string>> {
  const servers = new Map<string, ReadonlySet<string>>()
  for (const { compiled } of clusters.values()) {
    const cell = cellOf(compiled)
    servers.set(cell, new Set([...(servers.get(cell) ?? []), ...serversOf(compiled)]))
  }
  return servers
}

function serversOf({ endpoints }: CompiledCluster): ReadonlySet<string> {
  return new Set(endpoints.map(({ url }) => url))
}

function cellOf({ name, protection }: CompiledCluster): string {
  return protection?.cell ?? name
}

function startWorker(heap: ThreadHeap): StartThread {
  return (data, events) => startThread(PROGRAM_FILES.threadEntry, `gateway-${data.place.thread}`, data, events, heap)
}
