// How long to wait before trying again: exponential, capped, with full jitter, so that many who failed together do not
// come back together.

export interface Backoff {
  /** Upper bound of the first wait, milliseconds. */
  readonly baseMs: number
  /** Upper bound of every wait, milliseconds. */
  readonly capMs: number
}

/**
 * Milliseconds to wait before attempt number `attempt` + 1.
 * `attempt` counts the failures so far, less one: 0 after the first. `random` is in [0, 1).
 */
export function backoffMs(backoff: Backoff, attempt: number, random: number): number {
  return random * backoffCeilingMs(backoff, attempt)
}

/** The longest that `backoffMs` can be: base * 2^attempt, at most the cap. */
export function backoffCeilingMs(backoff: Backoff, attempt: number): number {
  // 2^1023 is the largest power that a double holds; 0 * Infinity would be NaN.
  return Math.min(backoff.capMs, backoff.baseMs * 2 ** Math.min(Math.max(attempt, 0), 1000))
}
