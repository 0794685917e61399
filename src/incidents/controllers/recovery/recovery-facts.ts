// Gathers the inputs of a recovery from the live state of the main thread.

import type { LiveCluster } from '../../../gateway/state/clusters.ts'
import type { Clock } from '../../../kit/api/ports.ts'
import type { ClusterHealth } from '../../api/cluster-health.ts'
import type { RecoveryFacts } from '../../core/recovery-checks.ts'

export interface FactsDeps {
  readonly clusters: { get(name: string): LiveCluster | undefined }
  readonly health: ClusterHealth
  readonly clock: Clock
}

/** @param refusedElsewhere disruptive requests that other replicas have refused in the last minute */
export function recoveryFacts(
  { clusters, health, clock }: FactsDeps,
  cluster: string,
  readyNodesBefore: number | undefined,
  refusedElsewhere: number,
): RecoveryFacts {
  const nowMs = clock.monotonic()
  const live = clusters.get(cluster)
  const upstream = health.upstream(cluster)
  const nodes = health.nodes(cluster)
  return {
    endpoints: live === undefined ? undefined : endpointsOf(live, nowMs),
    upstream: upstream && { ...upstream, ageMs: nowMs - upstream.observedAtMs },
    nodes: nodes && { ...nodes, ageMs: nowMs - nodes.observedAtMs },
    readyNodesBefore,
    refusedDisruptive: health.refusedDisruptive(cluster) + refusedElsewhere,
  }
}

/** undefined while an endpoint has not been probed yet and none takes requests. */
function endpointsOf({ endpoints }: LiveCluster, nowMs: number): RecoveryFacts['endpoints'] {
  const enabled = endpoints.describe(nowMs).filter(({ url }) => endpoints.byUrl(url)?.enabled === true)
  const available = enabled.filter(({ available, state }) => available && state === 'healthy').length
  if (available === 0 && enabled.some(({ state }) => state === 'unknown')) return undefined
  return { available, enabled: enabled.length }
}
