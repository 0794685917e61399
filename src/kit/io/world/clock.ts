// The system clock: the only place that reads time for the request path.

import type { Clock } from '../../api/ports.ts'

const ATTEMPTS = 20

/**
 * The offset from `performance.now()`, which counts from the start of a thread, to the clock of all threads. Of several attempts the
 * fastest counts: a thread that is interrupted between two readings would be off for ever.
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
  /** The same for all threads, to less than a microsecond or so. */
  monotonic: () => performance.now() + MONOTONIC_OFFSET_MS,
}
