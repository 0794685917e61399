// Whether the apiservers of a cluster are overloaded: the share of their answers that are errors, and how long they take. A circuit
// breaker for the cluster; that of one endpoint is its ejection. What counts as an error is in answer-counts.ts.

import type { UpstreamSeen } from '../api/cluster-health.ts'
import type { Observation } from './hysteresis.ts'

export interface UpstreamHealthOptions {
  /** It begins with more than so many per cent of the requests answered with 5xx by upstream, or not at all. */
  readonly maxErrorPercent: number
  /** Or with a median of more than this, milliseconds; 0 = latency does not count. */
  readonly maxLatencyMs: number
  /** With fewer requests in the window nothing is decided. */
  readonly minRequests: number
}

/** It ends with at most so much of both. */
const EXIT_SHARE = 0.5

/** What is looked at. */
type Answers = Pick<UpstreamSeen, 'requests' | 'failed5xx' | 'medianMs'>

export function observeAnswers(seen: Answers | undefined, options: UpstreamHealthOptions): Observation {
  const { maxErrorPercent, maxLatencyMs, minRequests } = options
  if (seen === undefined || seen.requests < minRequests) return 'unknown'
  const { requests, failed5xx, medianMs } = seen
  const slow = maxLatencyMs > 0 ? medianMs / maxLatencyMs : 0
  const failing = (failed5xx * 100) / requests / maxErrorPercent
  const worst = Math.max(slow, failing)
  if (worst > 1) return 'bad'
  return worst <= EXIT_SHARE ? 'good' : 'between'
}

/** `300 of 1000 requests failed upstream (30 %), median latency 400 ms` */
export function answersText({ requests, failed5xx, medianMs }: Answers): string {
  const percent = requests === 0 ? 0 : Math.round((failed5xx * 100) / requests)
  return `${failed5xx} of ${requests} requests failed upstream (${percent} %), median latency ${medianMs} ms`
}
