// Metrics of the process as a whole, and of its API server calls: Podseidon's, with their names and labels. All on the main thread.

import type { KubeCallEvents, KubeCallTarget } from '../../kube/io/client-events.ts'
import type { Exposition } from './exposition.ts'
import { MainFamilies } from './main-families.ts'
import {
  CALL_DURATION,
  CALL_RECEIVED,
  CALL_RETRIES,
  CALL_SENT,
  CALLS,
  CHECK_FAILURES,
  HEARTBEAT,
} from './process-descriptors.ts'

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
