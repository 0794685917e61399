// Paces the gateway's own calls (clientConfig.qps and burst): who comes too early waits, as with client-go's rate limiter.

export interface Pace {
  /** When the next call would be due if none had been saved up; milliseconds on the caller's clock. */
  dueMs: number
}

export function createPace(): Pace {
  return { dueMs: Number.NEGATIVE_INFINITY }
}

/**
 * Takes the next place and returns how long to wait for it, milliseconds; 0 = go.
 * @param qps calls per second; 0 = no limit
 */
export function paceMs(pace: Pace, qps: number, burst: number, nowMs: number): number {
  if (qps <= 0) return 0
  const intervalMs = 1000 / qps
  const saved = Math.max(burst, 1) - 1
  const place = Math.max(pace.dueMs, nowMs - saved * intervalMs)
  pace.dueMs = place + intervalMs
  return Math.max(0, place - nowMs)
}
