// Counts the pods of a cell for one protector.

import type { PodFacts } from '../../../api/ports/protection.ts'

export interface PodCounts {
  readonly total: number
  readonly available: number
  readonly ready: number
  readonly scheduled: number
  readonly running: number
  /** Milliseconds until the next pod becomes available; undefined = none waits for it. */
  readonly nextAvailableMs: number | undefined
}

/** For how long a ready pod is known to have been ready, milliseconds. */
export type ReadyFor<Pod> = (pod: Pod) => number

/** Terminating pods do not count at all; finished ones count in `total`, as in Podseidon. */
export function aggregatePods<Pod extends PodFacts>(
  pods: Iterable<Pod>,
  minReadySeconds: number,
  readyFor: ReadyFor<Pod>,
): PodCounts {
  const counts = { total: 0, available: 0, ready: 0, scheduled: 0, running: 0 }
  let nextAvailableMs: number | undefined
  for (const pod of pods) {
    if (pod.terminating) continue
    counts.total += 1
    if (pod.scheduled) counts.scheduled += 1
    if (pod.running) counts.running += 1
    if (!pod.ready) continue
    counts.ready += 1
    const waitMs = untilAvailableMs(pod, minReadySeconds, readyFor)
    if (waitMs <= 0) counts.available += 1
    else if (waitMs < (nextAvailableMs ?? Number.POSITIVE_INFINITY)) nextAvailableMs = waitMs
  }
  return { ...counts, nextAvailableMs }
}

/** IsPodAvailable of Kubernetes (pkg/api/v1/pod/util.go), except that a terminating pod never is. */
export function isAvailable<Pod extends PodFacts>(pod: Pod, minReadySeconds: number, readyFor: ReadyFor<Pod>): boolean {
  return !pod.terminating && pod.ready && untilAvailableMs(pod, minReadySeconds, readyFor) <= 0
}

/** For a pod that is ready. Without minReadySeconds it does not matter since when. */
function untilAvailableMs<Pod>(pod: Pod, minReadySeconds: number, readyFor: ReadyFor<Pod>): number {
  return minReadySeconds > 0 ? minReadySeconds * 1000 - readyFor(pod) : 0
}
