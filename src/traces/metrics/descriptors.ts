// Metrics of traces: rows of the table of all threads (gateway/metrics/descriptors.ts), to which program/subjects/subjects.ts adds them.

import { type Metric, SubjectMetrics } from '../../gateway/metrics/metric.ts'

export const TRACE_METRICS = new SubjectMetrics()

export const TRACE_CALLERS: Metric<['traced' | 'limited']> = TRACE_METRICS.counter(
  'tracing_caller_sampled_total',
  ['outcome'],
  'Requests whose traceparent asks for a trace, by whether the rate of such requests allowed it',
)
export const TRACES_DROPPED: Metric<['thread' | 'queue']> = TRACE_METRICS.counter(
  'tracing_requests_dropped_total',
  ['where'],
  'Traced requests whose spans were dropped, because too many waited in their thread or for the collector',
)
export const TRACE_SPANS: Metric<['exported' | 'rejected' | 'failed']> = TRACE_METRICS.counter(
  'tracing_spans_total',
  ['result'],
  'Spans that the collector accepted or refused, or that could not be sent because it was unreachable',
)
export const TRACES_WAITING: Metric<[]> = TRACE_METRICS.gauge(
  'tracing_requests_waiting',
  [],
  'Traced requests whose spans wait to be sent to the collector',
)
