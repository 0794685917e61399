// Picks the endpoint for a request: a ready one of the policy, by the policy's strategy.

import type { EndpointHealth } from '../../core/endpoints/endpoint-health.ts'
import { affinityHash, PICKERS } from '../../core/endpoints/pick-endpoint.ts'
import type { Endpoint } from '../../state/endpoints.ts'
import type { Permit } from './decision.ts'
import type { Gateway } from './gateway.ts'

const NONE: readonly string[] = []

/** @param tried endpoints (by URL) that have already failed for this request */
export function selectEndpoint(
  gw: Gateway,
  permit: Permit,
  monotonicMs: number,
  tried: readonly string[] = NONE,
): Endpoint | undefined {
  const { live, cluster, policy } = permit
  const { endpoints, cursor } = live.endpoints.candidates(cluster.endpoints, policy, monotonicMs)
  const left = tried.length === 0 ? endpoints : endpoints.filter((endpoint) => !tried.includes(endpoint.url))
  const hash = policy.strategy === 'Affinity' ? affinityHash(permit.user.name, permit.remoteAddress) : 0
  const at = PICKERS[policy.strategy](left, { random: gw.random, cursor, affinityHash: hash })
  return left[at] ?? leastBusy(left, 'healthy') ?? leastBusy(left, 'unknown')
}

/**
 * Fallbacks. A healthy endpoint in backoff, if this request has seen the others fail: the last one
 * is never in backoff. Or one not checked yet: right after a cluster is added, or all its endpoints
 * are replaced, requests need not be refused until the first checks are in.
 */
function leastBusy(endpoints: readonly Endpoint[], state: EndpointHealth['state']): Endpoint | undefined {
  let best: Endpoint | undefined
  for (const endpoint of endpoints) {
    if (!endpoint.enabled || endpoint.health.state !== state) continue
    if (best === undefined || endpoint.inFlight < best.inFlight) best = endpoint
  }
  return best
}
