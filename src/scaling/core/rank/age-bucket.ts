// Ages as the ReplicaSet controller compares them with gate LogarithmicScaleDown: by powers of two of their nanoseconds
// (logarithmicRankDiff, pkg/controller/controller_utils.go). A bucket ends at 2.4 h, 4.9 h, 9.8 h, 19.5 h, ..., so two pods can swap places
// as time passes; when exactly the controller compares is unknown.

/** When the controller may compare; milliseconds since the epoch. `fromMs` = `toMs`: at one known moment. */
export interface ComparisonWindow {
  readonly fromMs: number
  readonly toMs: number
}

/** Which of two pods of different ages is deleted first: the younger one, or within one bucket the one with the lower UID. */
type AgeOrder = 'ByAge' | 'ByUid' | 'Changing'

const NANOS_PER_MS = 1e6

/** -1 for a time that is not in the past, as with a skewed clock. */
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
  // The younger one enters its last bucket at 2^last: if the two ever share a bucket, they share it then.
  const last = ageBucket(younger + span)
  const everEqual = equalFirst || (last > first && older - younger < 2 ** last)
  if (!everEqual) return 'ByAge'
  // The older one enters each bucket before the younger one does.
  const everDifferent = !equalFirst || ageBucket(older + span) !== ageBucket(older)
  return everDifferent ? 'Changing' : 'ByUid'
}

/**
 * When two ages first start or stop sharing a bucket; undefined = not within the window.
 * @param youngerMs a time after `olderMs`
 */
export function firstChangeMs(youngerMs: number, olderMs: number, window: ComparisonWindow): number | undefined {
  const isEqual = (nowMs: number): boolean => bucketAt(youngerMs, nowMs) === bucketAt(olderMs, nowMs)
  const before = isEqual(window.fromMs)
  const moments = [...boundariesMs(youngerMs, window), ...boundariesMs(olderMs, window)].sort((a, b) => a - b)
  return moments.find((moment) => isEqual(moment) !== before)
}

/** The moments within the window at which an age that began at `sinceMs` enters the next bucket, earliest first. */
export function boundariesMs(sinceMs: number, { fromMs, toMs }: ComparisonWindow): readonly number[] {
  const moments: number[] = []
  // Buckets below a millisecond end before it matters.
  const first = Math.max(ageBucket(NANOS_PER_MS), bucketAt(sinceMs, fromMs))
  for (let bucket = first + 1; ; bucket++) {
    const moment = Math.ceil(sinceMs + 2 ** bucket / NANOS_PER_MS)
    if (moment > toMs) return moments
    if (moment > fromMs) moments.push(moment)
  }
}

function bucketAt(sinceMs: number, nowMs: number): number {
  return ageBucket((nowMs - sinceMs) * NANOS_PER_MS)
}
