// Metrics of taps and top talkers: rows of the table of all threads (gateway/metrics/descriptors.ts), to which program/subjects/subjects.ts adds them.

import { type Metric, SubjectMetrics } from '../../gateway/metrics/metric.ts'

export const INSIGHT_METRICS = new SubjectMetrics()

export const TAPS: Metric<[]> = INSIGHT_METRICS.gauge('taps', [], 'Taps that run')
export const TAP_EVENTS: Metric<['shown' | 'rate' | 'reader']> = INSIGHT_METRICS.counter(
  'tap_events_total',
  ['outcome'],
  'Events of taps that were shown, or dropped: above the rate of the tap, or because its reader was too slow',
)
export const TAPS_REFUSED: Metric<[]> = INSIGHT_METRICS.counter(
  'taps_refused_total',
  [],
  'Taps refused because of their maximum number',
)
export const TOP_REQUESTS: Metric<[string, string]> = INSIGHT_METRICS.gauge(
  'top_requests_per_second',
  ['by', 'name'],
  'Requests of the ten top talkers in the last five minutes (--top-metrics)',
)
export const TOP_REFUSED: Metric<[string, string]> = INSIGHT_METRICS.gauge(
  'top_refused_requests_per_second',
  ['by', 'name'],
  'Refused requests of the ten top talkers in the last five minutes (--top-metrics)',
)
export const TOP_BYTES: Metric<[string, string]> = INSIGHT_METRICS.gauge(
  'top_bytes_per_second',
  ['by', 'name'],
  'Bytes of bodies of the ten top talkers in the last five minutes (--top-metrics)',
)
export const TOP_UPSTREAM_SECONDS: Metric<[string, string]> = INSIGHT_METRICS.gauge(
  'top_upstream_seconds_per_second',
  ['by', 'name'],
  'Time of upstream for the ten top talkers in the last five minutes (--top-metrics)',
)
