// Metrics of the gateway threads themselves, and of limits that only the main thread sees as a whole.

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

/** State of one gateway thread. */
export interface ThreadState {
  /** Counts from 0; a successor after a crash reuses the number. */
  readonly thread: number
  /** It responded to the last request for its metrics. */
  readonly answers: boolean
  /** Generation of its configuration in force. */
  readonly generation: number
  readonly restarts: number
  /** Client connections. */
  readonly connections: number
  /** Recent HTTP/2 requests per second. */
  readonly requestRate: number
  /** Seconds since its start. */
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
