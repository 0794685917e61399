// Which endpoint gets a request: those of the policy that are ready, by the policy's strategy.

import type { CompiledCluster, CompiledPolicy } from '../core/compiled-cluster.ts'
import { affinityHash, PICKERS } from '../core/pick-endpoint.ts'
import type { UpstreamEndpoint } from '../io/upstream-pool.ts'
import type { LiveCluster } from '../state/clusters.ts'
import type { Endpoint } from '../state/endpoints.ts'
import type { Gateway } from './gateway.ts'

export interface Selection {
  readonly live: LiveCluster
  readonly cluster: CompiledCluster
  readonly policy: CompiledPolicy
  readonly user: string
  readonly remoteAddress: string
}

export interface Selected {
  readonly endpoint: Endpoint
  readonly upstream: UpstreamEndpoint
}

/** @param tried endpoints (by URL) that failed for this request already */
export function selectEndpoint(gw: Gateway, selection: Selection, tried: ReadonlySet<string>): Selected | undefined {
  const { live, cluster, policy } = selection
  const { endpoints, cursor } = live.endpoints.candidates(cluster.endpoints, policy, gw.clock.monotonic())
  const left = tried.size === 0 ? endpoints : endpoints.filter((endpoint) => !tried.has(endpoint.url))
  const hash = policy.strategy === 'Affinity' ? affinityHash(selection.user, selection.remoteAddress) : 0
  const at = PICKERS[policy.strategy](left, { random: gw.random, cursor, affinityHash: hash, exclude: -1 })
  const endpoint = left[at] ?? unchecked(left)
  if (endpoint === undefined) return undefined
  const upstream = gw.upstreams.get(cluster.name, endpoint.url)
  return upstream === undefined ? undefined : { endpoint, upstream }
}

/**
 * An endpoint that nobody has checked yet is better than none: where a cluster has just come, or all of its endpoints were
 * replaced at once, requests need not be refused until the first checks are in.
 */
function unchecked(endpoints: readonly Endpoint[]): Endpoint | undefined {
  let best: Endpoint | undefined
  for (const endpoint of endpoints) {
    if (!endpoint.enabled || endpoint.health.state !== 'unknown') continue
    if (best === undefined || endpoint.inFlight < best.inFlight) best = endpoint
  }
  return best
}
