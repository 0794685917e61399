// Disruptive requests refused by this replica, for its entry in the status: a recovery by steps adds up all replicas.

import type { LiveClusters } from './facts.ts'

/** Exact up to here. */
const EXACT = 10

/**
 * In the last minute; above EXACT rounded up to a power of two, so that the status is not written every second.
 * @param nowMs milliseconds since the epoch
 */
export function refusedDisruptive(clusters: LiveClusters, name: string, nowMs: number): number {
  const refused = clusters.get(name)?.incident?.refusedInLastMinute(nowMs) ?? 0
  return refused <= EXACT ? refused : 2 ** Math.ceil(Math.log2(refused))
}
