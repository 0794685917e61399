// Ranks clusters by how bad their troubles are: the order in which an on-call engineer wants to see them.

import type { ClusterTile, Trouble } from '../../api/overview.ts'

/** Below this many requests per second, a share of them means nothing. */
const FEW = 0.2
const ERRORS = 0.01
const REFUSED = 0.05
/** Milliseconds of the 99th percentile: kube-apiserver's objective for a request of a single object. */
const SLOW_MS = 1000
/** Heavier troubles are shown first. */
const WEIGHTS: Readonly<Record<Trouble, number>> = {
  down: 64,
  errors: 32,
  credentials: 16,
  endpoints: 8,
  refused: 4,
  degraded: 2,
  slow: 1,
}

/** @returns worst first */
export function troublesOf(
  tile: Omit<ClusterTile, 'troubles' | 'spark' | 'name' | 'group'>,
  credentialFault: string,
): readonly Trouble[] {
  const { endpoints, requestsPerSecond, errorRatio, refusedRatio, p99, degrade } = tile
  const busy = requestsPerSecond >= FEW
  const found: Trouble[] = []
  if (endpoints.up === 0) found.push('down')
  if (busy && errorRatio >= ERRORS) found.push('errors')
  if (credentialFault !== '') found.push('credentials')
  if (endpoints.up > 0 && endpoints.up < endpoints.all) found.push('endpoints')
  if (busy && refusedRatio >= REFUSED) found.push('refused')
  if (degrade !== null) found.push('degraded')
  if (busy && p99 !== null && p99 >= SLOW_MS) found.push('slow')
  return found
}

/** A switch alone does not count: it was set on purpose. */
export function isHurting({ troubles }: Pick<ClusterTile, 'troubles'>): boolean {
  return troubles.some((trouble) => trouble !== 'degraded')
}

/** Higher is worse; 0 = no troubles. */
export function troubleWeight(troubles: readonly Trouble[]): number {
  return troubles.reduce((sum, trouble) => sum + WEIGHTS[trouble], 0)
}
