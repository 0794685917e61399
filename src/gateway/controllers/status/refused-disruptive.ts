// How many disruptive requests this replica refused, as its entry of the status tells it: a recovery by steps looks at all of them.

import type { LiveClusters } from './facts.ts'

/** Up to here each number is told. */
const EXACT = 10

/**
 * In the last minute; above EXACT rounded up to a power of two, so that a status is not written every second.
 * @param nowMs milliseconds since the epoch
 */
export function refusedDisruptive(clusters: LiveClusters, name: string, nowMs: number): number {
  const refused = clusters.get(name)?.incident?.refusedInLastMinute(nowMs) ?? 0
  return refused <= EXACT ? refused : 2 ** Math.ceil(Math.log2(refused))
}
