// Whether a cluster's apiservers are overloaded: their error rate and latency. A circuit breaker for the cluster; for one endpoint it is
// ejection. gateway/core/upstream/answer-counts.ts says what counts as an error.

import type { UpstreamHealthOptions } from '../../gateway/core/cluster/compiled-auto-degrade.ts'
import type { UpstreamSeen } from '../api/cluster-health.ts'
import type { Observation } from './hysteresis.ts'

/** Ends when both are at most this fraction of their limit. */
const EXIT_SHARE = 0.5

/** The numbers that decide. */
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
