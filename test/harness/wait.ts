// Waiting for a state of the world: look, and look again, until it holds.

import { setTimeout as sleep } from 'node:timers/promises'

/** What is waited for often comes at once: a suite waits some thousands of times. */
const FIRST_INTERVAL_MS = 1
const LAST_INTERVAL_MS = 50

export interface WaitOptions {
  /** Milliseconds until it is given up. Default 50,000: generous, since it is the bound of a failure and not a measure, but below the
   * two minutes after which most tests fail as a whole, so that it is this error that is seen. */
  readonly timeoutMs?: number
  /** Milliseconds between two looks. Default: 1, and twice as much after each look, up to 50. */
  readonly intervalMs?: number
}

/**
 * The first value of `look` that is neither undefined nor false. An error that `look` throws counts as "not yet".
 * Throws after the timeout, naming `what` and the last error.
 */
export async function waitFor<T>(
  what: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
  options: WaitOptions = {},
): Promise<T> {
  const deadline = performance.now() + (options.timeoutMs ?? 50_000)
  let lastError = ''
  let intervalMs = options.intervalMs ?? FIRST_INTERVAL_MS
  for (;;) {
    try {
      const value = await look()
      if (value !== undefined && value !== false) return value
      lastError = ''
    } catch (error) {
      if (error instanceof GiveUp) throw error
      lastError = `: ${error instanceof Error ? error.message : String(error)}`
    }
    if (performance.now() > deadline) throw new Error(`waited in vain for ${what}${lastError}`)
    await sleep(intervalMs)
    if (options.intervalMs === undefined) intervalMs = Math.min(2 * intervalMs, LAST_INTERVAL_MS)
  }
}

const STILL_LOOKS = 5
const STILL_INTERVAL_MS = 40

/** Resolves with a number above 0 that has stopped to grow: it was the same for some looks in a row. */
export async function standsStill(what: string, read: () => number): Promise<number> {
  let before = -1
  let same = 0
  return await waitFor(
    `${what} to stand still`,
    () => {
      const now = read()
      same = now === before && now > 0 ? same + 1 : 0
      before = now
      return same >= STILL_LOOKS && now
    },
    { intervalMs: STILL_INTERVAL_MS },
  )
}

/** Thrown by a look that knows that it will never hold. */
export class GiveUp extends Error {}
