// What happens beside requests: what threads count of it, and what only the main thread knows, which is rare enough
// for prom-client. Labels are names of the configuration and closed sets.

import { Gauge, type Registry } from 'prom-client'

/** What happens in the threads that serve requests. `cluster`, `endpoint`, `schema` are names of the configuration. */
export interface ThreadEvents {
  endpointEjected(cluster: string, endpoint: string): void
  retried(cluster: string, cause: RetryCause): void
  /**
   * Open connections of this thread to an endpoint; `kind` is the class: unary, watch, anonymous, upgrade. To be called
   * before each snapshot: what is not set again is gone.
   */
  upstreamConnections(cluster: string, endpoint: string, kind: string, open: number): void
  /** As `upstreamConnections`. Threads are added up: a count that they share is for one of them to tell. */
  flowControlInFlight(cluster: string, schema: string, running: number): void
  tokenReviewed(cluster: string, result: ReviewResult): void
  tokenCache(cluster: string, hit: boolean): void
  accessReviewed(cluster: string, result: ReviewResult): void
  tlsHandshakeFailed(): void
  /** A connection was closed because its address has too many. */
  clientRefused(): void
  /** +1 when a client connects, -1 when it leaves. */
  clientConnections(protocol: 'h2' | 'http/1.1', by: 1 | -1): void
  /** Lines that a log of this thread dropped because its reader was too slow; the total so far. */
  logLinesDropped(log: 'access' | 'audit' | 'control-audit', total: number): void
}

/** What happens on the main thread. */
export interface MainEvents {
  endpointHealth(cluster: string, endpoint: string, healthy: boolean): void
  configApplied(state: ConfigState): void
  /** What a cluster says of the rights of the gateway. */
  rightsAsked(cluster: string, state: RightsResult): void
}

export type RightsResult = 'unasked' | 'granted' | 'missing' | 'rejected' | 'unanswered'

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

/** The functions of `MainEvents`, and one that forgets endpoints that left the configuration. */
export function createMainEvents(registry: Registry): {
  events: MainEvents
  forget(cluster: string, endpoints: Iterable<string>): void
  /** A cluster that is gone. */
  forgetCluster(cluster: string): void
} {
  const registers = [registry]
  const gauge = (name: string, help: string, labelNames: string[] = []): Gauge =>
    new Gauge({ name: `portcullis_${name}`, help, labelNames, registers })
  const healthy = gauge('endpoint_healthy', '1 when the endpoint takes new requests', ['cluster', 'endpoint'])
  const help = '1 when the cluster accepts the credential of the gateway and grants every right that it needs'
  const credential = gauge('upstream_credential_valid', help, ['cluster'])
  return {
    events: {
      rightsAsked: (cluster, state) => credential.set({ cluster }, state === 'granted' ? 1 : 0),
      endpointHealth: (cluster, endpoint, ok) => {
        healthy.set({ cluster, endpoint }, ok ? 1 : 0)
      },
      configApplied: createConfigMetrics(gauge),
    },
    forget: (cluster, endpoints) => {
      for (const endpoint of endpoints) healthy.remove({ cluster, endpoint })
    },
    forgetCluster: (cluster) => credential.remove({ cluster }),
  }
}

function createConfigMetrics(
  gauge: (name: string, help: string, labelNames?: string[]) => Gauge,
): MainEvents['configApplied'] {
  const generation = gauge('config_generation', 'How often the configuration in force has changed')
  const success = gauge('config_last_reload_successful', '1 when the last reading of the configuration found no error')
  const since = gauge('config_last_reload_success_timestamp_seconds', 'When a reading last found no error')
  const problems = gauge('config_problems', 'Mistakes in the configuration, by severity', ['severity'])
  const clusters = gauge('config_clusters', 'UpstreamClusters in force')
  return (state) => {
    generation.set(state.generation)
    clusters.set(state.clusters)
    problems.set({ severity: 'error' }, state.errors)
    problems.set({ severity: 'warning' }, state.warnings)
    success.set(state.errors === 0 ? 1 : 0)
    if (state.errors === 0) since.set(state.nowMs / 1000)
  }
}
