// Events of the main thread. Labels are names from the configuration and closed sets.

import { BUILD, treeState } from '../../kit/io/program/build.ts'
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
import type { MainFamilies } from './main-families.ts'

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
