// Backoff for restarting what has crashed: at once, then with a growing delay if it keeps crashing.

export interface RestartHistory {
  /** Monotonic milliseconds of the last crash. */
  lastMs: number
  /** The delay after it; 0 = none. */
  delayMs: number
}

/** A crash within this time after the last start counts as a repeated one. */
const ROW_MS = 10_000
const FIRST_DELAY_MS = 1_000
const LONGEST_DELAY_MS = 30_000

export function createRestartHistory(): RestartHistory {
  return { lastMs: Number.NEGATIVE_INFINITY, delayMs: 0 }
}

/** Records a crash. Returns the delay before the next start, milliseconds: 0, then 1 s, doubling to 30 s for repeated crashes. */
export function restartDelayMs(history: RestartHistory, nowMs: number): number {
  const inRow = nowMs - (history.lastMs + history.delayMs) < ROW_MS
  history.lastMs = nowMs
  if (!inRow) history.delayMs = 0
  else history.delayMs = Math.min(LONGEST_DELAY_MS, Math.max(FIRST_DELAY_MS, history.delayMs * 2))
  return history.delayMs
}
