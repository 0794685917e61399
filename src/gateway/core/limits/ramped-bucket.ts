// A token bucket whose rate grows from a known start time: total income is a function of time, so threads share only one number (tokens
// used), and replicas need no communication.

import type { Ramp } from '../cluster/compiled-cluster.ts'
import { type FlowCounter, lockCounter, STARTED, unlockCounter } from './flow-counter.ts'

// The numbers of the counter.
/** Tokens taken or lost since the ramp began. */
const USED = 0
/** `sinceMs` of the ramp that USED belongs to. */
const SINCE = 1

/** A clock set back by more than this restarts the count; small differences between threads do not. */
const CLOCK_STEP_MS = 1_000

/** Requests per second at this time. */
export function rateAt({ startQps, endQps, overMs, sinceMs }: Ramp, nowMs: number): number {
  if (sinceMs === 0) return startQps
  const share = overMs === 0 ? 1 : Math.min(1, Math.max(0, nowMs - sinceMs) / overMs)
  return startQps + (endQps - startQps) * share
}

/** Tokens accrued from the start of the ramp until this time: the area below `rateAt`. */
function incomeUntil({ startQps, endQps, overMs, sinceMs }: Ramp, nowMs: number): number {
  const elapsed = Math.max(0, nowMs - sinceMs) / 1000
  if (sinceMs === 0) return elapsed * startQps
  const over = overMs / 1000
  const ramping = Math.min(elapsed, over)
  const grown = over === 0 ? 0 : ((endQps - startQps) * ramping * ramping) / (2 * over)
  return startQps * ramping + grown + (elapsed - ramping) * endQps
}

/**
 * Takes a token if there is one. At most one second of income is saved up, and at least one token.
 * @param nowMs wall clock, milliseconds since the epoch
 */
export function takeRamped(ramp: Ramp, counter: FlowCounter, nowMs: number): boolean {
  const income = incomeUntil(ramp, nowMs)
  lockCounter(counter)
  const used = usedOf(ramp, counter, nowMs, income)
  const taken = used + 1 <= income
  if (taken) {
    counter.numbers[counter.numbersAt + SINCE] = ramp.sinceMs
    counter.numbers[counter.numbersAt + USED] = used + 1
    if (counter.words[counter.at + STARTED] === 0) Atomics.store(counter.words, counter.at + STARTED, 1)
  }
  unlockCounter(counter)
  return taken
}

function usedOf(ramp: Ramp, counter: FlowCounter, nowMs: number, income: number): number {
  const saved = income - Math.max(1, rateAt(ramp, nowMs))
  const isOther = counter.numbers[counter.numbersAt + SINCE] !== ramp.sinceMs
  if (isOther || counter.words[counter.at + STARTED] === 0) return saved
  const used = counter.numbers[counter.numbersAt + USED] ?? 0
  // The limit changed, or the clock was set back: the stored number is meaningless.
  const wasSetBack = used > incomeUntil(ramp, nowMs + CLOCK_STEP_MS) + 1
  return wasSetBack ? saved : Math.max(used, saved)
}

/** Whole seconds, at least 1, until the next token for a new caller. */
export function secondsToRamped(ramp: Ramp, nowMs: number): number {
  return Math.max(1, Math.ceil(1 / rateAt(ramp, nowMs)))
}
