// How many calls a second the gateway itself makes (clientConfig.qps and burst), as with client-go's rate limiter.

export interface Pace {
  /** When the next call would be due if none had been saved up; milliseconds on the caller's clock. */
  dueMs: number
}

export function createPace(): Pace {
  return { dueMs: Number.NEGATIVE_INFINITY }
}

/**
 * Takes the place that is due (0), or returns the milliseconds until one is. A caller that has to wait takes none and asks
 * again: places taken ahead by calls that are never made would delay all later calls.
 * @param qps calls per second; 0 = no limit
 */
export function paceMs(pace: Pace, qps: number, burst: number, nowMs: number): number {
  if (qps <= 0) return 0
  const intervalMs = 1000 / qps
  const saved = Math.max(burst, 1) - 1
  // Never further away than one interval, from now on: a lower rate may have been in force when the last place was taken.
  pace.dueMs = Math.min(pace.dueMs, nowMs + intervalMs)
  const place = Math.max(pace.dueMs, nowMs - saved * intervalMs)
  if (place > nowMs) return place - nowMs
  pace.dueMs = place + intervalMs
  return 0
}
