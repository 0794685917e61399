// Ages as the ReplicaSet controller compares them with gate LogarithmicScaleDown: by powers of two of their nanoseconds
// (logarithmicRankDiff, pkg/controller/controller_utils.go). A bucket ends at 2.4 h, 4.9 h, 9.8 h, 19.5 h, ..., so two pods change
// places while time passes; when exactly the controller looks is not known.

/** When the controller may compare; milliseconds since the epoch. `fromMs` = `toMs`: at one moment. */
export interface ComparisonWindow {
  readonly fromMs: number
  readonly toMs: number
}

/** Which of two pods of different ages is deleted first: the younger one, or within one bucket the one with the lower UID. */
export type AgeOrder = 'ByAge' | 'ByUid' | 'Changing'

const NANOS_PER_MS = 1e6

/** -1 for what is not older than now, as a skewed clock makes it. */
export function ageBucket(nanos: number): number {
  return nanos > 0 ? Math.trunc(Math.log2(nanos)) : -1
}

/** @param youngerMs a time after `olderMs` */
export function ageOrder(youngerMs: number, olderMs: number, { fromMs, toMs }: ComparisonWindow): AgeOrder {
  const younger = (fromMs - youngerMs) * NANOS_PER_MS
  const older = (fromMs - olderMs) * NANOS_PER_MS
  const span = (toMs - fromMs) * NANOS_PER_MS
  const first = ageBucket(younger)
  const equalFirst = first === ageBucket(older)
  // The younger one enters its last bucket at 2^last: whoever shares a bucket at any time does so then.
  const last = ageBucket(younger + span)
  const everEqual = equalFirst || (last > first && older - younger < 2 ** last)
  if (!everEqual) return 'ByAge'
  // The older one enters each bucket before the younger one does.
  const everDifferent = !equalFirst || ageBucket(older + span) !== ageBucket(older)
  return everDifferent ? 'Changing' : 'ByUid'
}
