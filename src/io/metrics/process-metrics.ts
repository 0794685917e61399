// Metrics of the process as a whole, and of its calls to API servers: Podseidon's, by their names and labels, with the prefix
// `portcullis_`. All of it happens on the main thread.

import { Registry } from 'prom-client'
import type { KubeCallEvents, KubeCallTarget } from '../kube/client-events.ts'
import { type Labels, MetricFamilies } from './protection-families.ts'

export interface ProcessMetrics {
  /** Calls of all clients of API servers, except those that serve requests. */
  readonly calls: KubeCallEvents
  /** A health request found this check failing. */
  checkFailed(check: string): void
  /** In the Prometheus text format. */
  text(): Promise<string>
}

/** Seconds, as client-go's (component-base/metrics/prometheus/restclient). */
const CALL_SECONDS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60]
/** 64 bytes to 16 MiB. */
const CALL_BYTES = [64, 256, 512, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216]

/** @param monotonic milliseconds */
export function createProcessMetrics(monotonic: () => number): ProcessMetrics {
  const registry = new Registry()
  const families = new MetricFamilies(registry)
  const startMs = monotonic()
  const heartbeat = families.gauge('heartbeat', 'Seconds since the process began', [])
  const failures = families.counter('healthck_failure', 'Failed checks, counted each time health was queried', [
    'check',
    'error',
  ])
  return {
    calls: callEvents(families),
    checkFailed: (check) => failures.inc({ check, error: 'NotReady' }),
    text: () => {
      heartbeat.set((monotonic() - startMs) / 1000)
      return registry.metrics()
    },
  }
}

function callEvents(families: MetricFamilies): KubeCallEvents {
  const on = ['verb', 'host']
  const calls = families.counter('kube_client_requests_total', 'Attempts, by the code of the answer', [
    'code',
    'method',
    'host',
  ])
  const durations = families.histogram(
    'kube_client_request_duration_seconds',
    'Until the whole answer, of a watch until its head',
    on,
    CALL_SECONDS,
  )
  const sent = families.histogram('kube_client_request_size_bytes', 'Bytes of the body', on, CALL_BYTES)
  const received = families.histogram('kube_client_response_size_bytes', 'Bytes of the body', on, CALL_BYTES)
  const resent = families.counter(
    'kube_client_request_retries_total',
    'Calls sent again because the server said when',
    ['code', ...on],
  )
  return {
    answered: (target, code) => calls.inc({ code, method: target.method, host: hostOf(target) }),
    ended(target, durationMs, requestBytes, answerBytes) {
      const labels: Labels = { verb: target.method, host: hostOf(target) }
      durations.observe(labels, durationMs / 1000)
      sent.observe(labels, requestBytes)
      if (answerBytes !== undefined) received.observe(labels, answerBytes)
    },
    resent: (target, code) => resent.inc({ code, verb: target.method, host: hostOf(target) }),
  }
}

function hostOf({ server }: KubeCallTarget): string {
  return URL.canParse(server) ? new URL(server).host : server
}
