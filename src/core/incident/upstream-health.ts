// Whether the apiservers of a cluster are overloaded: the share of their answers that are errors, and how long they take. A circuit
// breaker for the cluster; that of one endpoint is its ejection.

import type { Observation } from './hysteresis.ts'

export interface UpstreamHealthOptions {
  /** It begins with more than so many per cent of answers 5xx or 429 by upstream itself. */
  readonly maxErrorPercent: number
  /** Or with a median of more than this, milliseconds; 0 = latency does not count. */
  readonly maxLatencyMs: number
  /** With fewer answers in the window nothing is decided. */
  readonly minimumAnswers: number
}

/** It ends with at most so much of both. */
const EXIT_SHARE = 0.5

export const UPSTREAM_HEALTH_DEFAULTS: UpstreamHealthOptions = {
  maxErrorPercent: 25,
  maxLatencyMs: 0,
  minimumAnswers: 50,
}

/** Answers of upstream in the window: without watches and what was refused here. */
export interface AnswerCounts {
  readonly all: number
  readonly errors: number
  /** Until the first byte of a response. Milliseconds */
  readonly medianLatencyMs: number
}

export function observeAnswers(counts: AnswerCounts | undefined, options: UpstreamHealthOptions): Observation {
  const { maxErrorPercent, maxLatencyMs, minimumAnswers } = options
  if (counts === undefined || counts.all < minimumAnswers) return 'unknown'
  const { all, errors, medianLatencyMs } = counts
  const slow = maxLatencyMs > 0 ? medianLatencyMs / maxLatencyMs : 0
  const failing = (errors * 100) / all / maxErrorPercent
  const worst = Math.max(slow, failing)
  if (worst > 1) return 'bad'
  return worst <= EXIT_SHARE ? 'good' : 'between'
}
