// When to start again what has crashed: at once, and more slowly when it keeps crashing.

export interface RestartHistory {
  /** Monotonic milliseconds of the last crash. */
  lastMs: number
  /** How long was waited after it; 0 = not at all. */
  delayMs: number
}

/** A crash within this time after the last start is one of a row. */
const ROW_MS = 10_000
const FIRST_DELAY_MS = 1_000
const LONGEST_DELAY_MS = 30_000

export function createRestartHistory(): RestartHistory {
  return { lastMs: Number.NEGATIVE_INFINITY, delayMs: 0 }
}

/** Notes a crash; how long to wait before the next start, milliseconds: 0, and in a row of crashes 1 s doubling to 30 s. */
export function restartDelayMs(history: RestartHistory, nowMs: number): number {
  const inRow = nowMs - (history.lastMs + history.delayMs) < ROW_MS
  history.lastMs = nowMs
  if (!inRow) history.delayMs = 0
  else history.delayMs = Math.min(LONGEST_DELAY_MS, Math.max(FIRST_DELAY_MS, history.delayMs * 2))
  return history.delayMs
}
