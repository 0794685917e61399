// Request durations as counts per bucket: these can be added, quantiles can't.

import { short } from '../../../../kit/core/text/figures.ts'
import type { Durations } from '../../../api/parts.ts'
import { quantile } from '../rate-ring.ts'

const NONE: Durations = []
const MS = 1000

/**
 * @param counts by bucket
 * @param total including those above the last bound
 */
export function durationsOf(counts: Float64Array, total: number): Durations {
  if (total <= 0) return NONE
  const found: number[] = []
  let inBuckets = 0
  for (let i = 0; i < counts.length; i++) {
    const count = counts[i] ?? 0
    inBuckets += count
    if (count > 0) found.push(i, count)
  }
  if (total > inBuckets) found.push(counts.length, total - inBuckets)
  return found
}

export function addDurations(all: readonly Durations[]): Durations {
  const some = all.filter(({ length }) => length > 0)
  if (some.length < 2) return some[0] ?? NONE
  const sum = new Map<number, number>()
  for (const durations of some) {
    for (let i = 0; i < durations.length; i += 2) {
      const bucket = durations[i] ?? 0
      sum.set(bucket, (sum.get(bucket) ?? 0) + (durations[i + 1] ?? 0))
    }
  }
  return [...sum].sort(([a], [b]) => a - b).flat()
}

/** Milliseconds; null = there were no requests. @param bounds upper bounds of the buckets, seconds */
export function quantileOf(rank: number, durations: Durations, bounds: Float64Array): number | null {
  if (durations.length === 0) return null
  const counts = new Float64Array(bounds.length)
  let total = 0
  for (let i = 0; i < durations.length; i += 2) {
    const [bucket = 0, count = 0] = [durations[i], durations[i + 1]]
    total += count
    if (bucket < counts.length) counts[bucket] = count
  }
  const seconds = quantile(rank, bounds, counts, total)
  return seconds === null ? null : short(seconds * MS)
}
