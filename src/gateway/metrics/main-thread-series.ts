// What only the main thread knows: gauges that are exposed at each scrape from the state of its parts, and those that its events set.

import { createHash } from 'node:crypto'
import { BUILD, treeState } from '../../kit/io/program/build.ts'
import type { CompiledCluster } from '../core/cluster/compiled-cluster.ts'
import { effectiveMode } from '../core/policy/degrade.ts'
import type { LastGoodStatus } from '../io/last-good/keeper.ts'
import {
  AUTOSCALER_HEALTHY,
  AUTOSCALER_LAST_UPDATED,
  AUTOSCALER_OMITTED_GROUPS,
  AUTOSCALER_UNREADABLE,
  BUILD_INFO,
  CERTIFICATE_EXPIRATION,
  CONFIG_CLUSTERS,
  CONFIG_GENERATION,
  CONFIG_HASH,
  CONFIG_PROBLEMS,
  CONFIG_SUCCESS_TIME,
  CONFIG_SUCCESSFUL,
  CREDENTIAL_VALID,
  DEGRADE_EXPIRATION,
  DEGRADE_MODE,
  ENDPOINT_HEALTHY,
  FILE_RELOADED,
  FLOW_LIMIT,
  GLOBAL_LIMIT_AT_HAND,
  GLOBAL_LIMIT_STATE,
  ISSUER_KEY_FETCHES,
  ISSUER_KEYS,
  LAST_GOOD_AGE,
  LAST_GOOD_BYTES,
  LAST_GOOD_FAILURES,
  LAST_GOOD_WRITTEN,
  LIVE_REPLICAS,
  NODEGROUP_BACKOFF,
  NODEGROUP_REGISTERED,
  NODEGROUP_TARGET,
  NODEGROUP_UNHEALTHY,
  REDIS_UP,
  SERVER_ADDRESSES,
  SERVER_LOOKUPS,
  THREAD_ANSWERS,
  THREAD_BUSY,
  THREAD_CONNECTIONS,
  THREAD_GENERATION,
  THREAD_REQUEST_RATE,
  THREAD_RESTARTS,
  USER_OVERFLOWS,
} from './descriptors.ts'
import type { Exposition } from './exposition.ts'
import type { MainFamilies } from './main-families.ts'

/** Hash bytes: few enough that a double holds it exactly. */
const HASH_BYTES = 6

/** Metrics derived from the clusters in force: the degrade mode, the sizes of limits, and a hash of all objects. @param nowMs wall clock */
export function exposeClusters(into: Exposition, clusters: Iterable<CompiledCluster>, nowMs: number): void {
  const revisions: string[] = []
  for (const { name, revision, degrade, schemas } of clusters) {
    const mode = effectiveMode(degrade, nowMs)
    into.addMetric(DEGRADE_MODE, 1, name, mode, String(degrade.shadow))
    if (mode !== 'Off') into.addMetric(DEGRADE_EXPIRATION, degrade.expiresAtMs / 1000, name)
    for (const { name: schema, kind, max, perUser } of schemas) {
      // A per-user limit has no total that could be full.
      if (kind === 'maxRequestsInflight' && !perUser) into.addMetric(FLOW_LIMIT, max, name, schema)
    }
    // Addresses follow the first space; each replica looks them up itself.
    revisions.push(`${name} ${revision.split(' ')[0] ?? ''}`)
  }
  const digest = createHash('sha256')
    .update(revisions.sort((a, b) => (a < b ? -1 : 1)).join('\n'))
    .digest()
  into.addMetric(CONFIG_HASH, digest.readUIntBE(0, HASH_BYTES))
}

interface ServerSeries {
  readonly cluster: string
  readonly server: string
  readonly addresses: readonly string[]
  /** Look-ups by result. */
  readonly counts: { readonly found: number; readonly empty: number; readonly error: number }
}

/** Metrics of servers whose names are resolved. */
export function exposeServers(into: Exposition, servers: readonly ServerSeries[]): void {
  for (const { cluster, server, addresses, counts } of servers) {
    into.addMetric(SERVER_ADDRESSES, addresses.length, cluster, server)
    for (const [result, count] of Object.entries(counts)) {
      into.addMetric(SERVER_LOOKUPS, count, cluster, server, result)
    }
  }
}

interface IssuerSeries {
  readonly issuer: string
  readonly keys: number
  /** Reads of its keys that succeeded, and others. */
  readonly fetched: number
  readonly notFetched: number
}

/** Metrics of issuers. Several sources of keys may have one issuer: clusters that verify it by different CAs. */
export function exposeIssuers(into: Exposition, issuers: readonly IssuerSeries[]): void {
  const sums = new Map<string, IssuerSeries>()
  for (const one of issuers) {
    const before = sums.get(one.issuer) ?? { keys: 0, fetched: 0, notFetched: 0 }
    const { issuer } = one
    const [keys, fetched] = [before.keys + one.keys, before.fetched + one.fetched]
    sums.set(issuer, { issuer, keys, fetched, notFetched: before.notFetched + one.notFetched })
  }
  for (const { issuer, keys, fetched, notFetched } of sums.values()) {
    into.addMetric(ISSUER_KEYS, keys, issuer)
    into.addMetric(ISSUER_KEY_FETCHES, fetched, issuer, 'success')
    into.addMetric(ISSUER_KEY_FETCHES, notFetched, issuer, 'error')
  }
}

/** State of one gateway thread. */
interface ThreadState {
  /** Counts from 0; a successor after a crash reuses the number. */
  readonly thread: number
  /** It responded to the last request for its metrics. */
  readonly answers: boolean
  /** Generation of its configuration in force. */
  readonly generation: number
  readonly restarts: number
  /** Client connections. */
  readonly connections: number
  /** Recent HTTP/2 requests per second. */
  readonly requestRate: number
  /** Seconds since its start. */
  readonly busySeconds: number
}

/** A per-user limit with more users than its table holds. */
interface OverflowState {
  readonly cluster: string
  readonly schema: string
  readonly overflows: number
}

/** Metrics of the gateway threads themselves, and of limits that only the main thread sees as a whole. */
export function exposeThreads(
  into: Exposition,
  threads: readonly ThreadState[],
  overflows: readonly OverflowState[],
): void {
  for (const { thread, answers, generation, restarts, connections, requestRate, busySeconds } of threads) {
    into.addMetric(THREAD_ANSWERS, answers ? 1 : 0, String(thread))
    into.addMetric(THREAD_GENERATION, generation, String(thread))
    into.addMetric(THREAD_RESTARTS, restarts, String(thread))
    into.addMetric(THREAD_CONNECTIONS, connections, String(thread))
    into.addMetric(THREAD_BUSY, busySeconds, String(thread))
    into.addMetric(THREAD_REQUEST_RATE, requestRate, String(thread))
  }
  for (const { cluster, schema, overflows: count } of overflows) {
    into.addMetric(USER_OVERFLOWS, count, cluster, schema)
  }
}

export interface CertificateEnd {
  /** '' = the gateway's own. */
  readonly cluster: string
  readonly certificate: string
  /** Milliseconds since the epoch. */
  readonly endsMs: number
}

/**
 * Metrics of certificates, and of files that are reread when they change.
 * @param reloads by file: whether its content is in force
 */
export function exposeCertificates(
  into: Exposition,
  ends: readonly CertificateEnd[],
  reloads: ReadonlyMap<string, boolean>,
): void {
  for (const { cluster, certificate, endsMs } of ends) {
    into.addMetric(CERTIFICATE_EXPIRATION, endsMs / 1000, cluster, certificate)
  }
  for (const [file, inForce] of reloads) into.addMetric(FILE_RELOADED, inForce ? 1 : 0, file)
}

/** Metrics of the last good states on disk. */
export function exposeLastGood(into: Exposition, states: readonly LastGoodStatus[], nowMs: number): void {
  for (const { name, servedFromMs, writtenMs, bytes, failures } of states) {
    const ageMs = servedFromMs === 0 ? 0 : Math.max(1, nowMs - servedFromMs)
    into.addMetric(LAST_GOOD_AGE, ageMs / 1000, name)
    into.addMetric(LAST_GOOD_WRITTEN, writtenMs / 1000, name)
    into.addMetric(LAST_GOOD_BYTES, bytes, name)
    into.addMetric(LAST_GOOD_FAILURES, failures, name)
  }
}

/** State of one limit. */
interface GlobalLimitState {
  readonly cluster: string
  readonly schema: string
  readonly mode: 'shared' | 'parted'
  readonly atHand: number
}

/** State of all limits. */
interface GlobalLimitsState {
  readonly mode: 'shared' | 'returning' | 'parted'
  readonly replicas: readonly string[]
  readonly limits: readonly GlobalLimitState[]
}

/** Metrics of limits shared by replicas. @param state undefined = there is no Redis, and nothing to expose */
export function exposeGlobalLimits(into: Exposition, state: GlobalLimitsState | undefined): void {
  if (state === undefined) return
  into.addMetric(REDIS_UP, state.mode === 'parted' ? 0 : 1)
  into.addMetric(LIVE_REPLICAS, state.replicas.length)
  for (const { cluster, schema, mode, atHand } of state.limits) {
    into.addMetric(GLOBAL_LIMIT_STATE, mode === 'shared' ? 1 : 0, cluster, schema)
    into.addMetric(GLOBAL_LIMIT_AT_HAND, atHand, cluster, schema)
  }
}

// Metrics of the clusters' cluster-autoscalers, known only to the leading replica's main thread.

/** One cluster's autoscaler; with at most as many groups as an UpstreamCluster's status lists. */
export interface AutoscalerSeries {
  readonly cluster: string
  /** It writes its status, and considers the cluster healthy. */
  readonly healthy: boolean
  /** Milliseconds since the epoch; 0 = not stated. */
  readonly writtenAtMs: number
  readonly unreadable: number
  readonly omittedGroups: number
  readonly groups: readonly NodeGroupSeries[]
}

interface NodeGroupSeries {
  readonly name: string
  readonly backoff: boolean
  readonly unhealthy: boolean
  readonly target: number
  readonly registered: number
}

export function exposeAutoscalers(into: Exposition, followed: readonly AutoscalerSeries[]): void {
  for (const { cluster, healthy, writtenAtMs, unreadable, omittedGroups, groups } of followed) {
    into.addMetric(AUTOSCALER_HEALTHY, healthy ? 1 : 0, cluster)
    if (writtenAtMs > 0) into.addMetric(AUTOSCALER_LAST_UPDATED, writtenAtMs / 1000, cluster)
    into.addMetric(AUTOSCALER_UNREADABLE, unreadable, cluster)
    into.addMetric(AUTOSCALER_OMITTED_GROUPS, omittedGroups, cluster)
    // Two groups with the same name, truncated or not, would be duplicate samples of one series: Prometheus would reject the whole scrape.
    for (const { name, backoff, unhealthy, target, registered } of new Map(
      groups.map((one) => [one.name, one]),
    ).values()) {
      into.addMetric(NODEGROUP_BACKOFF, backoff ? 1 : 0, cluster, name)
      into.addMetric(NODEGROUP_TARGET, target, cluster, name)
      into.addMetric(NODEGROUP_REGISTERED, registered, cluster, name)
      into.addMetric(NODEGROUP_UNHEALTHY, unhealthy ? 1 : 0, cluster, name)
    }
  }
}

// Events of the main thread. Labels are names from the configuration and closed sets.

/** Events on the main thread. */
export interface MainEvents {
  endpointHealth(cluster: string, endpoint: string, healthy: boolean): void
  configApplied(state: ConfigState): void
  /** Result of checking the gateway's permissions in a cluster. */
  rightsAsked(cluster: string, state: RightsResult): void
}

type RightsResult = 'unasked' | 'granted' | 'missing' | 'rejected' | 'unanswered'

/** The state of the configuration after a read. */
interface ConfigState {
  readonly generation: number
  /** Wall clock, milliseconds. */
  readonly nowMs: number
  /** UpstreamClusters in force. */
  readonly clusters: number
  readonly errors: number
  readonly warnings: number
}

/** Clusters in force and their endpoints. */
export type KnownEndpoints = ReadonlyMap<string, ReadonlySet<string>>

/** Implements `MainEvents`, and drops endpoints that left the configuration. */
export function createMainEvents(families: MainFamilies): {
  events: MainEvents
  forget(cluster: string, endpoints: Iterable<string>): void
  /** A cluster was removed. */
  forgetCluster(cluster: string): void
} {
  const healthy = families.of(ENDPOINT_HEALTHY)
  const credential = families.of(CREDENTIAL_VALID)
  families.of(BUILD_INFO).set(1, BUILD.version, BUILD.commit, treeState(BUILD), BUILD.from, process.version)
  return {
    events: {
      rightsAsked: (cluster, state) => credential.set(state === 'granted' ? 1 : 0, cluster),
      endpointHealth: (cluster, endpoint, ok) => {
        healthy.set(ok ? 1 : 0, cluster, endpoint)
      },
      configApplied: createConfigMetrics(families),
    },
    forget: (cluster, endpoints) => {
      for (const endpoint of endpoints) healthy.remove(cluster, endpoint)
    },
    forgetCluster: (cluster) => credential.remove(cluster),
  }
}

function createConfigMetrics(families: MainFamilies): MainEvents['configApplied'] {
  const generation = families.of(CONFIG_GENERATION)
  const success = families.of(CONFIG_SUCCESSFUL)
  const since = families.of(CONFIG_SUCCESS_TIME)
  const problems = families.of(CONFIG_PROBLEMS)
  const clusters = families.of(CONFIG_CLUSTERS)
  return (state) => {
    generation.set(state.generation)
    clusters.set(state.clusters)
    problems.set(state.errors, 'error')
    problems.set(state.warnings, 'warning')
    success.set(state.errors === 0 ? 1 : 0)
    if (state.errors === 0) since.set(state.nowMs / 1000)
  }
}
