// The metrics of the process, of its health checks and of its calls to API servers: Podseidon's, by their names and labels, after `portcullis_`. Only
// the main thread counts them. test/protection/podseidon-metrics.test.ts compares docs/protection.md with them.

import { type Metric, MetricTable } from './metric.ts'

const table = new MetricTable()
export const PROCESS_METRICS: readonly Metric[] = table.metrics

/** Seconds, as client-go's (component-base/metrics/prometheus/restclient). */
const CALL_SECONDS = Float64Array.of(0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60)
/** 64 bytes to 16 MiB. */
const CALL_BYTES = Float64Array.of(
  ...[64, 256, 512, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216],
)

export const HEARTBEAT: Metric<[]> = table.gauge('heartbeat', [], 'Seconds since the process began')
export const CHECK_FAILURES: Metric<[string, string]> = table.counter(
  'healthck_failure',
  ['check', 'error'],
  'Failed checks, counted each time health was queried',
)
export const CALLS: Metric<[string, string, string]> = table.counter(
  'kube_client_requests_total',
  ['code', 'method', 'host'],
  'Attempts, by the code of the answer',
)
export const CALL_DURATION: Metric<[string, string]> = table.histogram(
  'kube_client_request_duration_seconds',
  ['verb', 'host'],
  'Until the whole answer, of a watch until its head',
  CALL_SECONDS,
)
export const CALL_SENT: Metric<[string, string]> = table.histogram(
  'kube_client_request_size_bytes',
  ['verb', 'host'],
  'Bytes of the body',
  CALL_BYTES,
)
export const CALL_RECEIVED: Metric<[string, string]> = table.histogram(
  'kube_client_response_size_bytes',
  ['verb', 'host'],
  'Bytes of the body',
  CALL_BYTES,
)
export const CALL_RETRIES: Metric<[string, string, string]> = table.counter(
  'kube_client_request_retries_total',
  ['code', 'verb', 'host'],
  'Calls sent again because the server said when',
)
