// What this replica has seen of an incident, for its entry in the status: when clients that matter last came through it, and the disruptive requests
// that it has refused, which a recovery by steps adds up over all replicas.

import { metaTime } from '../../../kit/core/text/meta-time.ts'
import type { ClientsSeen } from '../../api/upstream-cluster/status.ts'
import { LAST_SEEN_STEP_MINUTES } from '../../api/upstream-cluster/status-schema.ts'
import type { LiveClusters } from './facts.ts'

const STEP_MS = LAST_SEEN_STEP_MINUTES * 60_000

/** undefined = none of them since this replica started. */
export function clientsSeen(clusters: LiveClusters, name: string): ClientsSeen | undefined {
  const incident = clusters.get(name)?.incident
  if (incident === undefined) return undefined
  const controllerManager = incident.lastSeenMs('controllerManager')
  const kubelets = incident.lastSeenMs('kubelets')
  if (controllerManager === 0 && kubelets === 0) return undefined
  return {
    ...(controllerManager !== 0 && { controllerManager: stepOf(controllerManager) }),
    ...(kubelets !== 0 && { kubelets: stepOf(kubelets) }),
  }
}

function stepOf(atMs: number): string {
  return metaTime(Math.floor(atMs / STEP_MS) * STEP_MS)
}

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
