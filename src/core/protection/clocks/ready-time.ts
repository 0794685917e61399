// For how long a pod has been ready, as bounds that hold whatever any clock says. Timestamps in a pod come from two clocks: its
// API server's (creationTimestamp, the time in managedFields) and its kubelet's (startTime, lastTransitionTime). Only stamps of
// the same clock are subtracted from each other, and the API server's from what its own clock says now.

import type { PodFacts } from '../../../api/ports/protection.ts'
import type { CellTime } from './cell-clock.ts'

/** metav1.Time has whole seconds; the rest was cut off. */
const STEP_MS = 1_000

/** The facts that it takes. */
export type ReadyFacts = Pick<PodFacts, 'readySinceMs' | 'readyWrittenMs' | 'createdMs' | 'startedMs'>

/**
 * At least so long, by the write that said so: milliseconds, for a pod that is ready. 0 = nothing is certain.
 * @param time of the pod's API servers; undefined = not known
 */
export function readyAtLeastMs(
  { readyWrittenMs }: Pick<PodFacts, 'readyWrittenMs'>,
  time: CellTime | undefined,
): number {
  if (time === undefined || readyWrittenMs === 0) return 0
  return Math.max(0, time.earliestMs - readyWrittenMs - STEP_MS)
}

/**
 * At most so long: since it was created, less what its kubelet took to make it ready. Infinite when nothing is known.
 * @param time as above
 */
export function readyAtMostMs(pod: ReadyFacts, time: CellTime | undefined): number {
  const { createdMs } = pod
  if (time === undefined || createdMs === 0) return Number.POSITIVE_INFINITY
  return Math.max(0, Math.max(0, time.latestMs - createdMs) - startUpMs(pod))
}

/** At least so long it took to become ready. Were the kubelet's clock set meanwhile, it would not have been ready when that was written. */
function startUpMs({ createdMs, startedMs, readySinceMs, readyWrittenMs }: ReadyFacts): number {
  if (startedMs === 0 || readySinceMs === 0) return 0
  const writtenMs = readyWrittenMs === 0 ? Number.POSITIVE_INFINITY : readyWrittenMs - createdMs + STEP_MS
  return Math.max(0, Math.min(readySinceMs - startedMs - STEP_MS, writtenMs))
}
