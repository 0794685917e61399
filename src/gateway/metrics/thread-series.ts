// Metrics about the gateway threads themselves, and about limits that only the main thread sees as a whole.

import {
  THREAD_ANSWERS,
  THREAD_BUSY,
  THREAD_CONNECTIONS,
  THREAD_GENERATION,
  THREAD_REQUEST_RATE,
  THREAD_RESTARTS,
  USER_OVERFLOWS,
} from './descriptors.ts'
import type { Exposition } from './exposition.ts'

/** The state of one gateway thread. */
export interface ThreadState {
  /** Counts from 0; its successor after a crash has the same. */
  readonly thread: number
  /** It answered the last request for its metrics. */
  readonly answers: boolean
  /** Generation of the configuration that it has in force. */
  readonly generation: number
  readonly restarts: number
  /** Connections of clients. */
  readonly connections: number
  /** HTTP/2 requests a second, lately. */
  readonly requestRate: number
  /** Seconds, since it was started. */
  readonly busySeconds: number
}

/** A per-user limit with more users than its table holds. */
export interface OverflowState {
  readonly cluster: string
  readonly schema: string
  readonly overflows: number
}

export function exposeThreads(
  into: Exposition,
  threads: readonly ThreadState[],
  overflows: readonly OverflowState[],
): void {
  for (const { thread, answers, generation, restarts, connections, requestRate, busySeconds } of threads) {
    into.addMetric(THREAD_ANSWERS, answers ? 1 : 0, String(thread))
    into.addMetric(THREAD_GENERATION, generation, String(thread))
    into.addMetric(THREAD_RESTARTS, restarts, String(thread))
    into.addMetric(THREAD_CONNECTIONS, connections, String(thread))
    into.addMetric(THREAD_BUSY, busySeconds, String(thread))
    into.addMetric(THREAD_REQUEST_RATE, requestRate, String(thread))
  }
  for (const { cluster, schema, overflows: count } of overflows) {
    into.addMetric(USER_OVERFLOWS, count, cluster, schema)
  }
}
