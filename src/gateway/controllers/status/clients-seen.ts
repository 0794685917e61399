// When clients that matter in an incident last came through this replica, for its entry in the status.

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
