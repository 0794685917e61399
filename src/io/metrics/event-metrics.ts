// Events of the main thread, which are rare enough for prom-client. Labels are names from the
// configuration and closed sets.

import { Gauge, type Registry } from 'prom-client'
import { BUILD, treeState } from '../program/build.ts'
import {
  BUILD_INFO,
  CONFIG_CLUSTERS,
  CONFIG_GENERATION,
  CONFIG_PROBLEMS,
  CONFIG_SUCCESS_TIME,
  CONFIG_SUCCESSFUL,
  CREDENTIAL_VALID,
  ENDPOINT_HEALTHY,
} from './descriptors.ts'
import type { Metric } from './metric.ts'

/** What happens on the main thread. */
export interface MainEvents {
  endpointHealth(cluster: string, endpoint: string, healthy: boolean): void
  configApplied(state: ConfigState): void
  /** The result of a check of the gateway's rights in a cluster. */
  rightsAsked(cluster: string, state: RightsResult): void
}

export type RightsResult = 'unasked' | 'granted' | 'missing' | 'rejected' | 'unanswered'

/** The state of the configuration after it was read. */
export interface ConfigState {
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

/** The functions of `MainEvents`, and one that drops endpoints that left the configuration. */
export function createMainEvents(registry: Registry): {
  events: MainEvents
  forget(cluster: string, endpoints: Iterable<string>): void
  /** A cluster that was removed. */
  forgetCluster(cluster: string): void
} {
  const gauge = ({ name, help, labels }: Metric): Gauge =>
    new Gauge({ name, help, labelNames: [...labels], registers: [registry] })
  const healthy = gauge(ENDPOINT_HEALTHY)
  const credential = gauge(CREDENTIAL_VALID)
  const { version, commit: git_commit, from: build } = BUILD
  const about = { version, git_commit, git_tree_state: treeState(BUILD), build, node_version: process.version }
  gauge(BUILD_INFO).set(about, 1)
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

function createConfigMetrics(gauge: (metric: Metric) => Gauge): MainEvents['configApplied'] {
  const generation = gauge(CONFIG_GENERATION)
  const success = gauge(CONFIG_SUCCESSFUL)
  const since = gauge(CONFIG_SUCCESS_TIME)
  const problems = gauge(CONFIG_PROBLEMS)
  const clusters = gauge(CONFIG_CLUSTERS)
  return (state) => {
    generation.set(state.generation)
    clusters.set(state.clusters)
    problems.set({ severity: 'error' }, state.errors)
    problems.set({ severity: 'warning' }, state.warnings)
    success.set(state.errors === 0 ? 1 : 0)
    if (state.errors === 0) since.set(state.nowMs / 1000)
  }
}
