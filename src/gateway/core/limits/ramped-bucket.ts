// A token bucket whose rate grows from a moment on that all know: what has come in by a time is a function of that time, so that
// threads share one number (how much was taken), and replicas need to tell each other nothing.

import type { Ramp } from '../cluster/compiled-cluster.ts'
import { type FlowCounter, lockCounter, STARTED, unlockCounter } from './flow-counter.ts'

// The numbers of the counter.
/** Tokens taken or lost, of all that have come in since the ramp began. */
const USED = 0
/** `sinceMs` of the ramp that USED is about. */
const SINCE = 1

/** A clock that was set back by more than this begins again; threads that read the clock a moment apart do not. */
const CLOCK_STEP_MS = 1_000

/** Requests per second at this time. */
export function rateAt({ startQps, endQps, overMs, sinceMs }: Ramp, nowMs: number): number {
  if (sinceMs === 0) return startQps
  const share = overMs === 0 ? 1 : Math.min(1, Math.max(0, nowMs - sinceMs) / overMs)
  return startQps + (endQps - startQps) * share
}

/** Tokens that have come in between the begin of the ramp and this time: the area below `rateAt`. */
function incomeUntil({ startQps, endQps, overMs, sinceMs }: Ramp, nowMs: number): number {
  const elapsed = Math.max(0, nowMs - sinceMs) / 1000
  if (sinceMs === 0) return elapsed * startQps
  const over = overMs / 1000
  const ramping = Math.min(elapsed, over)
  const grown = over === 0 ? 0 : ((endQps - startQps) * ramping * ramping) / (2 * over)
  return startQps * ramping + grown + (elapsed - ramping) * endQps
}

/**
 * Takes a token, if there is one. What is saved up is what comes in within a second, and one token at least.
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
  // Limits of another size, or a clock that was set back: nobody waits for what such a number says.
  const wasSetBack = used > incomeUntil(ramp, nowMs + CLOCK_STEP_MS) + 1
  return wasSetBack ? saved : Math.max(used, saved)
}

/** Whole seconds, at least 1, until a token comes in for whoever asks next. */
export function secondsToRamped(ramp: Ramp, nowMs: number): number {
  return Math.max(1, Math.ceil(1 / rateAt(ramp, nowMs)))
}
