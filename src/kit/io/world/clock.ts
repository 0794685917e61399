// The system clock: the only place that reads time for the request path.

import type { Clock } from '../../api/ports.ts'

const ATTEMPTS = 20

/**
 * Offset from `performance.now()`, which counts from the start of a thread, to the clock shared by all threads. The fastest of several attempts
 * counts: a thread interrupted between the two readings would be off forever.
 */
export const MONOTONIC_OFFSET_MS: number = ((): number => {
  let best = Number.POSITIVE_INFINITY
  let offset = 0
  for (let i = 0; i < ATTEMPTS; i++) {
    const before = performance.now()
    const [seconds, nanoseconds] = process.hrtime()
    const after = performance.now()
    if (after - before >= best) continue
    best = after - before
    offset = seconds * 1000 + nanoseconds / 1e6 - (before + after) / 2
  }
  return offset
})()

export const systemClock: Clock = {
  now: () => Date.now(),
  /** Equal in all threads, to about a microsecond. */
  monotonic: () => performance.now() + MONOTONIC_OFFSET_MS,
}
