// Bounds on how long a pod has been ready that hold whatever the clocks say. Timestamps in a pod come from two clocks: its API server's
// (creationTimestamp, the time in managedFields) and its kubelet's (startTime, lastTransitionTime). Timestamps are only subtracted from
// others of the same clock, and the API server's from what its own clock shows now.

import type { CellTime } from '../../../gateway/core/clocks/cell-clock.ts'
import type { PodFacts } from '../../api/protection.ts'

/** metav1.Time has whole seconds, truncated. */
const STEP_MS = 1_000

/** The facts that the bounds are computed from. */
type ReadyFacts = Pick<PodFacts, 'readySinceMs' | 'readyWrittenMs' | 'createdMs' | 'startedMs'>

/**
 * Lower bound in milliseconds for a ready pod, from the write that made it ready. 0 = unknown.
 * @param time of the pod's API servers; undefined = unknown
 */
export function readyAtLeastMs(
  { readyWrittenMs }: Pick<PodFacts, 'readyWrittenMs'>,
  time: CellTime | undefined,
): number {
  if (time === undefined || readyWrittenMs === 0) return 0
  return Math.max(0, time.earliestMs - readyWrittenMs - STEP_MS)
}

/**
 * Upper bound: the time since creation, minus the time its kubelet took to make it ready. Infinity if nothing is known.
 * @param time see above
 */
export function readyAtMostMs(pod: ReadyFacts, time: CellTime | undefined): number {
  const { createdMs } = pod
  if (time === undefined || createdMs === 0) return Number.POSITIVE_INFINITY
  return Math.max(0, Math.max(0, time.latestMs - createdMs) - startUpMs(pod))
}

/** Lower bound of the time until it was ready, even if the kubelet's clock was adjusted in between: it was ready before that was written. */
function startUpMs({ createdMs, startedMs, readySinceMs, readyWrittenMs }: ReadyFacts): number {
  if (startedMs === 0 || readySinceMs === 0) return 0
  const writtenMs = readyWrittenMs === 0 ? Number.POSITIVE_INFINITY : readyWrittenMs - createdMs + STEP_MS
  return Math.max(0, Math.min(readySinceMs - startedMs - STEP_MS, writtenMs))
}
