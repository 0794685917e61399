// Builds and wires the main thread. See apply-change.ts for how object changes are applied, and threads/thread/gateway-thread.ts for the parts of a
// gateway thread.

import { randomInt } from 'node:crypto'
import { EventEmitter } from 'node:events'
import type { AuditOutputs } from '../../audit/app/outputs.ts'
import type { AuditPolicy } from '../../audit/core/policy.ts'
import { FollowedIssuers } from '../../gateway/controllers/issuers/followed-issuers.ts'
import { probeIdleMs, startEndpointProbes } from '../../gateway/controllers/probes/endpoint-probes.ts'
import { requestFault, startUpstreamRights } from '../../gateway/controllers/rights/upstream-rights.ts'
import { FollowedServers } from '../../gateway/controllers/servers/followed-servers.ts'
import { createUpstreamClustersController } from '../../gateway/controllers/upstream-clusters.ts'
import { CellClocks } from '../../gateway/core/clocks/cell-clock.ts'
import type { CompiledCluster } from '../../gateway/core/cluster/compiled-cluster.ts'
import type { LookedUp } from '../../gateway/core/endpoints/resolution.ts'
import { lookUp } from '../../gateway/io/dns/look-up.ts'
import { HANDSHAKE_TIMEOUT_MS, type PortAdmission } from '../../gateway/io/listener/connections.ts'
import { type ServingPair, TlsContexts } from '../../gateway/io/listener/tls-contexts.ts'
import { tlsPolicy } from '../../gateway/io/listener/tls-policy.ts'
import { READ_KEYS } from '../../gateway/io/reviews/issuer-tokens.ts'
import { type CallsAs, createUpstreamKubeClient } from '../../gateway/io/upstream/kube-client.ts'
import { Upstreams } from '../../gateway/io/upstream/upstreams.ts'
import { HANDSHAKE_ERRORS, LIMITED } from '../../gateway/metrics/descriptors.ts'
import { createMetrics } from '../../gateway/metrics/metrics.ts'
import type { MetricsRecorder } from '../../gateway/metrics/recorder.ts'
import { ClusterTable } from '../../gateway/state/clusters.ts'
import { LATE_BODIES_BYTES } from '../../gateway/state/thread-shares.ts'
import type { Clock, Logger } from '../../kit/api/ports.ts'
import { refuse } from '../../kit/core/refusal/refusal.ts'
import { OpenHeads } from '../../kit/core/shares/open-heads.ts'
import { SharedResource } from '../../kit/core/shares/shared-resource.ts'
import { DialGuard } from '../../kit/io/dial/dial-guard.ts'
import type { LineWriter } from '../../kit/io/logs/line-writer.ts'
import { RareWarnings } from '../../kit/io/logs/rare-warnings.ts'
import { PROGRAM_FILES } from '../../kit/io/program/build.ts'
import { systemClock } from '../../kit/io/world/clock.ts'
import type { KubeClient } from '../../kube/io/client.ts'
import type { KubeCallEvents } from '../../kube/io/client-events.ts'
import { ServingReload } from '../../process/certificates/serving-pair.ts'
import type { Config } from '../../process/config/config.ts'
import type { ThreadHeap } from '../../process/core/memory/ceiling.ts'
import { type OwnPortFailures, ownPortFailures } from '../../process/failures/own-ports.ts'
import { admitClients } from '../connections/admit-clients.ts'
import { startThread } from '../io/threads.ts'
import type { LastGoodStates } from '../last-good/states.ts'
import type { MemoryPlan } from '../memory/memory-plan.ts'
import type { ForwardingWaits } from '../subjects/subject.ts'
import { startInlineThread } from '../threads/pool/inline-thread.ts'
import { ThreadPool } from '../threads/pool/pool.ts'
import type { StartThread } from '../threads/pool/worker-slot.ts'
import { ConfigChanges } from './apply-change.ts'
import { createFailures, shareLimits } from './limit-sharing.ts'

// Outputs of the main thread: log lines, and events of enabled logs.
interface Outputs extends AuditOutputs {
  readonly log: Logger
  /** Access log lines; undefined = disabled. */
  readonly access: LineWriter | undefined
  /** undefined = every request, at level Metadata. */
  readonly auditPolicy: AuditPolicy | undefined
}

/** For tests. */
export interface WiredOverrides {
  /** Looks up server names. */
  readonly lookUp: (name: string) => Promise<LookedUp>
  readonly forwardingWaits: ForwardingWaits
}

const WORD = 2 ** 32

interface WireDeps {
  readonly config: Config
  readonly memory: Pick<MemoryPlan, 'heap'>
  readonly serving: ServingPair
  readonly outputs: Outputs
  /** Notified of API server calls. */
  readonly calls: KubeCallEvents
  /** Run a single gateway thread inside this one. */
  readonly inline: boolean
  /** Storage of this replica's parts of shared limits. */
  readonly lastGood: LastGoodStates
  /** Stops running parts if another one cannot be built. */
  readonly begun: AsyncDisposableStack
  readonly given?: Partial<WiredOverrides>
}

/** Calls to parts that are built after the caller. */
interface WireEvents {
  /** A connection to an endpoint broke. */
  broken: [cluster: string, endpoint: string]
  /** A cluster may have refused the gateway itself rather than a user. */
  refusing: [cluster: string]
  /** Requests wait for the first check of one of its endpoints. */
  awaited: [cluster: string]
  /** The addresses of a cluster's servers have changed. */
  moved: [cluster: string]
}

export type WiredGateway = ReturnType<typeof wire>

/** Each part is built after those it uses. Nothing runs yet, except the connection to Redis. */
export function wire({ config, memory, serving, outputs, calls, inline, lastGood, begun, given = {} }: WireDeps) {
  const clock: Clock = systemClock
  const { log } = outputs
  const events = new EventEmitter<WireEvents>()
  const onBroken = (cluster: string, endpoint: string): void => void events.emit('broken', cluster, endpoint)
  const metrics = createMetrics()
  const { recorder } = metrics
  const threads = inline ? 1 : config.threads
  const seed = [randomInt(WORD), randomInt(WORD)] as const
  const clusters = new ClusterTable({ thread: threads, threads, seed })
  // The main thread's connections only carry its probes; if one breaks, the next probe decides.
  const guard = new DialGuard(config.allowLocalServers)
  const idleCloseMs = (name: string): number => probeIdleMs(clusters.get(name)?.compiled.healthCheck)
  const upstreams = new Upstreams(onBroken, guard, recorder, undefined, idleCloseMs)
  const clientOf = (name: string, as?: CallsAs): KubeClient =>
    createUpstreamKubeClient({ cluster: () => clusters.get(name), guard, name, log, calls, ...(as && { as }) })
  const sharing = shareLimits(config, clusters, clock, log, lastGood)
  begun.defer(() => sharing?.stop())
  const failures = createFailures(config, sharing?.counter, clock, log)
  const ownFailures = ownPortFailures({
    failures,
    random: Math.random,
    onRefused: () => recorder.add(LIMITED, 1, 'authentication-failures', 'false'),
  })
  const { access, audit, auditPolicy } = outputs
  const pool = new ThreadPool({
    threads,
    start: inline ? startInlineThread : startWorker(memory.heap),
    data: { config, serving, accessLog: access !== undefined, auditLog: audit !== undefined, auditPolicy },
    seed,
    clusters,
    metrics,
    clock,
    log,
    access,
    audit,
    failures,
    onBroken,
    onRefusing: (cluster) => events.emit('refusing', cluster),
    onAwaited: (cluster) => events.emit('awaited', cluster),
  })
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
  events.on('refusing', (cluster) => rights.checkNow(cluster))
  const clocks = new CellClocks(config.protection.settings.clockSkewMs)
  const probes = startEndpointProbes(clusters, upstreams, clock, Math.random, log, {
    // For clusters without protection, too: when it is enabled, the first count must know the clock.
    answered: (cluster, endpoint, date, sentMs, receivedMs) =>
      clocks.observe(cellOf(cluster), endpoint, date, sentMs, receivedMs),
    probed: (cluster, endpoint, healthy) => {
      metrics.endpointHealth(cluster, endpoint, healthy)
      const { kind } = rights.get(cluster)
      if (healthy && (kind === 'unasked' || kind === 'unanswered')) rights.checkNow(cluster)
    },
  })
  events.on('broken', (cluster, endpoint) => probes.probeNow(cluster, endpoint))
  events.on('awaited', (cluster) => probes.awaited(cluster))
  const servers = new FollowedServers({
    lookUp: given.lookUp ?? lookUp,
    client: clientOf,
    clusters,
    clock,
    log,
    onChange: (cluster) => events.emit('moved', cluster),
  })
  const issuers = new FollowedIssuers({ guard, clock, log, publish: (read) => pool.issuerKeys(read) })
  pool.questions.answer(READ_KEYS, async (source) => {
    await issuers.readAgain(source)
    return undefined
  })
  const contexts = new TlsContexts(serving, tlsPolicy(config.tlsMinVersion, config.tlsCipherSuites))
  const controller = createUpstreamClustersController({
    ...{ clusters, upstreams, contexts, probes, servers, issuers, clock, log },
  })
  const changes = new ConfigChanges({ clusters, controller, rights, limits: sharing?.limits, pool, metrics, clock })
  changes.onApplied((_, changed) => forgetClocks(clocks, clusters, changed))
  events.on('moved', (cluster) => {
    changes.compileAgain(cluster).catch((error: unknown) => {
      log.error('the addresses of a server could not be applied', { cluster, error })
    })
  })
  const reload = new ServingReload(config, serving, log, (pair) => {
    contexts.setOwn(pair)
    pool.serving(pair)
  })
  return {
    clock,
    metrics,
    clusters,
    guard,
    upstreams,
    /** A new client of a cluster, with the gateway's own credential. */
    clientOf,
    /** Limits shared by replicas through Redis; undefined = none. */
    sharing,
    /** Counts failures at the main thread's ports. */
    failures: ownFailures,
    /** Admission of clients at the control plane's and the webhooks' ports. */
    admission: createOwnPortAdmission(config, ownFailures, recorder, clock, log),
    pool,
    rights,
    clocks,
    probes,
    servers,
    issuers,
    changes,
    reload,
  }
}

/** Drops servers that no longer exist. Scans all clusters only if necessary: a change costs what it touches. */
function forgetClocks(clocks: CellClocks, clusters: ClusterTable, changed: ReadonlySet<string> | undefined): void {
  const touched = [...(changed ?? [])].map((name) => clusters.get(name)?.compiled)
  if (changed === undefined || touched.some((cluster) => cluster === undefined || cluster.protection !== undefined)) {
    clocks.keepOnly(serversByCell(clusters))
    return
  }
  for (const cluster of touched) if (cluster !== undefined) clocks.keepServers(cellOf(cluster), serversOf(cluster))
}

/** A cluster without protection is assigned to the cell it would be in. */
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

// Admission of clients at the main thread's ports: the embedded API server or the CRD webhook, and the pod protection webhook. Together they count as
// one more listener next to the gateway threads', with the same rules.

/** Memory for incomplete heads of authenticated clients, over all these ports; others have a separate part on top. */
const OPEN_HEAD_BYTES = 4 * 1024 * 1024
const RETRY_SECONDS = 1
/** One in this many connections may belong to clients that have not sent a request with a valid credential. */
const STRANGERS_PART = 4

function createOwnPortAdmission(
  { maxControlConnections }: Config,
  failures: OwnPortFailures,
  recorder: MetricsRecorder,
  clock: Clock,
  log: Logger,
): PortAdmission {
  const givenUp = new RareWarnings({ clock, log })
  const abuse = new RareWarnings({ clock, log })
  const admission = admitClients({
    handshakeTimeoutMs: HANDSHAKE_TIMEOUT_MS,
    max: maxControlConnections,
    maxUnauthenticated: Math.ceil(maxControlConnections / STRANGERS_PART),
    isBlocked: (source) => failures.isBlocked(source),
    onHandshakeFailed: (source) => failures.handshakeFailed(source),
    onGivenUp(limit, source) {
      const isKnown = limit === 'connections'
      recorder.add(LIMITED, 1, 'control-connections', isKnown ? 'true' : 'false')
      const full = isKnown ? '' : `1/${STRANGERS_PART} of `
      const message = `a connection to a port of control plane or webhooks is closed: ${full}--max-control-connections is reached`
      givenUp.warn(`${message}, and its source has most of them`, { source })
    },
    metrics: recorder,
  })
  const shared = new SharedResource('buffered-bytes', OPEN_HEAD_BYTES)
  const heads = new OpenHeads({
    shared,
    refuse(charge) {
      recorder.add(LIMITED, 1, 'control-heads', charge.known ? 'true' : 'false')
      const shares = shared.of(charge)
      const message =
        `${charge.source} is sending ${shares.heldBy(charge.source)} of ${shares.capacity} bytes that heads of requests to control plane ` +
        `and webhooks may take at the same time; retry in ${RETRY_SECONDS} s`
      return refuse('share-exceeded', message, { retryAfterSeconds: RETRY_SECONDS })
    },
  })
  return {
    ...admission,
    heads,
    lateBodies: new SharedResource('late-bodies', LATE_BODIES_BYTES),
    counters: recorder.http2Clients,
    onAbuse(address, kind) {
      abuse.warn('connection to a port of control plane or webhooks ended: its client exceeded a protocol limit', {
        address,
        kind,
      })
    },
    onHandshakeError: () => recorder.add(HANDSHAKE_ERRORS, 1),
  }
}
