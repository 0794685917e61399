// Retry budget of a cluster, so that retries do not double the load of an ailing one.

/** Requests and retries of the last WINDOW_SECONDS, one slot per second. */
export interface RetryBudget {
  readonly requests: Uint32Array
  readonly retries: Uint32Array
  /** The second that the newest slot counts. */
  second: number
  /** Sums of the slots. */
  requestsInWindow: number
  retriesInWindow: number
}

const WINDOW_SECONDS = 10
const RETRIES_PER_REQUEST = 0.1
/**
 * Retries per window that are always allowed. When an apiserver is killed, others must take over all reads it was serving at once, even if
 * traffic has only just begun: up to --max-requests-inflight, 400 by default. Over the window that is 40 per second, which no apiserver
 * notices.
 */
export const MINIMUM_RETRIES = 400

export function createRetryBudget(): RetryBudget {
  return {
    requests: new Uint32Array(WINDOW_SECONDS),
    retries: new Uint32Array(WINDOW_SECONDS),
    second: 0,
    requestsInWindow: 0,
    retriesInWindow: 0,
  }
}

/** A client's request is sent upstream for the first time. `nowMs` is monotonic. */
export function onRequest(budget: RetryBudget, nowMs: number): void {
  const slot = advance(budget, nowMs)
  budget.requests[slot] = (budget.requests[slot] ?? 0) + 1
  budget.requestsInWindow++
}

/** Takes one retry from the budget; false = none is left. */
export function tryRetry(budget: RetryBudget, nowMs: number): boolean {
  const slot = advance(budget, nowMs)
  const allowed = Math.max(MINIMUM_RETRIES, budget.requestsInWindow * RETRIES_PER_REQUEST)
  if (budget.retriesInWindow + 1 > allowed) return false
  budget.retries[slot] = (budget.retries[slot] ?? 0) + 1
  budget.retriesInWindow++
  return true
}

/** Clears the slots that have left the window. @returns the current slot */
function advance(budget: RetryBudget, nowMs: number): number {
  const second = Math.floor(nowMs / 1000)
  if (second > budget.second) {
    const from = Math.max(budget.second + 1, second - WINDOW_SECONDS + 1)
    for (let each = from; each <= second; each++) {
      const slot = each % WINDOW_SECONDS
      budget.requestsInWindow -= budget.requests[slot] ?? 0
      budget.retriesInWindow -= budget.retries[slot] ?? 0
      budget.requests[slot] = 0
      budget.retries[slot] = 0
    }
    budget.second = second
  }
  return budget.second % WINDOW_SECONDS
}
