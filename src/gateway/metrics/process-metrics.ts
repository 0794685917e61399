// Metrics of the process as a whole, of its health checks and of its API server calls: Podseidon's, with their names and labels, after `portcullis_`.
// Only the main thread counts them. test/protection/podseidon-metrics.test.ts compares docs/protection.md with them.

import type { KubeCallEvents, KubeCallTarget } from '../../kube/io/client-events.ts'
import type { Exposition } from './exposition.ts'
import { MainFamilies } from './main-families.ts'
import { type Metric, MetricTable } from './metric.ts'

const table = new MetricTable()
export const PROCESS_METRICS: readonly Metric[] = table.metrics
/** Seconds, as client-go's (component-base/metrics/prometheus/restclient). */
const CALL_SECONDS = Float64Array.of(0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60)
/** 64 bytes to 16 MiB. */
const CALL_BYTES = Float64Array.of(
  ...[64, 256, 512, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216],
)
const HEARTBEAT: Metric<[]> = table.gauge('heartbeat', [], 'Seconds since the process began')
const CHECK_FAILURES: Metric<[string, string]> = table.counter(
  'healthck_failure',
  ['check', 'error'],
  'Failed checks, counted each time health was queried',
)
const CALLS: Metric<[string, string, string]> = table.counter(
  'kube_client_requests_total',
  ['code', 'method', 'host'],
  'Attempts, by the code of the answer',
)
const CALL_DURATION: Metric<[string, string]> = table.histogram(
  'kube_client_request_duration_seconds',
  ['verb', 'host'],
  'Until the whole answer, of a watch until its head',
  CALL_SECONDS,
)
const CALL_SENT: Metric<[string, string]> = table.histogram(
  'kube_client_request_size_bytes',
  ['verb', 'host'],
  'Bytes of the body',
  CALL_BYTES,
)
const CALL_RECEIVED: Metric<[string, string]> = table.histogram(
  'kube_client_response_size_bytes',
  ['verb', 'host'],
  'Bytes of the body',
  CALL_BYTES,
)
const CALL_RETRIES: Metric<[string, string, string]> = table.counter(
  'kube_client_request_retries_total',
  ['code', 'verb', 'host'],
  'Calls sent again because the server said when',
)

export interface ProcessMetrics {
  /** Calls of all API server clients, except those that serve requests. */
  readonly calls: KubeCallEvents
  /** A health request found this check failing. */
  checkFailed(check: string): void
  expose(into: Exposition): void
}

/** @param monotonic milliseconds */
export function createProcessMetrics(monotonic: () => number): ProcessMetrics {
  const families = new MainFamilies()
  const startMs = monotonic()
  const heartbeat = families.of(HEARTBEAT)
  const failures = families.of(CHECK_FAILURES)
  return {
    calls: callEvents(families),
    checkFailed: (check) => failures.add(1, check, 'NotReady'),
    expose: (into) => {
      heartbeat.set((monotonic() - startMs) / 1000)
      families.expose(into)
    },
  }
}

function callEvents(families: MainFamilies): KubeCallEvents {
  const calls = families.of(CALLS)
  const durations = families.of(CALL_DURATION)
  const sent = families.of(CALL_SENT)
  const received = families.of(CALL_RECEIVED)
  const resent = families.of(CALL_RETRIES)
  return {
    answered: (target, code) => calls.add(1, code, target.method, hostOf(target)),
    ended(target, durationMs, requestBytes, answerBytes) {
      const { method } = target
      const host = hostOf(target)
      durations.observe(durationMs / 1000, method, host)
      sent.observe(requestBytes, method, host)
      if (answerBytes !== undefined) received.observe(answerBytes, method, host)
    },
    resent: (target, code) => resent.add(1, String(code), target.method, hostOf(target)),
  }
}

function hostOf({ server }: KubeCallTarget): string {
  return URL.canParse(server) ? new URL(server).host : server
}
