// Metrics about the gateway threads themselves, and about limits that only the main thread sees as a whole.

import { formatLabel } from '../../core/cluster/metric-labels.ts'
import { Exposition, type Family, familyOf } from './exposition.ts'

/** One gateway thread as it stands. */
export interface ThreadState {
  /** Counts from 0; its successor after a crash has the same. */
  readonly thread: number
  /** It answered when it was asked for its metrics just now. */
  readonly answers: boolean
  /** The configuration that it has put in force. */
  readonly generation: number
  readonly restarts: number
}

/** A per-user limit with more users than it has places for. */
export interface OverflowState {
  readonly cluster: string
  readonly schema: string
  readonly overflows: number
}

const ANSWERS: Family = familyOf(
  'portcullis_thread_answers',
  'gauge',
  '1 when the gateway thread answered this scrape; else its metrics are those of before',
)
const GENERATION: Family = familyOf(
  'portcullis_thread_config_generation',
  'gauge',
  'The configuration that the gateway thread has put in force',
)
const RESTARTS: Family = familyOf(
  'portcullis_thread_restarts_total',
  'counter',
  'How often a gateway thread died and was replaced',
)
const OVERFLOWS: Family = familyOf(
  'portcullis_flow_control_user_overflows_total',
  'counter',
  'Requests under a per-user limit whose user found no place in its table and shared one with others',
)

/** In the Prometheus text format. */
export function threadSeriesText(threads: readonly ThreadState[], overflows: readonly OverflowState[]): string {
  const exposition = new Exposition()
  for (const { thread, answers, generation, restarts } of threads) {
    const label = `{${formatLabel('thread', String(thread))}}`
    exposition.add(ANSWERS, label, answers ? 1 : 0)
    exposition.add(GENERATION, label, generation)
    exposition.add(RESTARTS, label, restarts)
  }
  for (const { cluster, schema, overflows: count } of overflows) {
    exposition.add(OVERFLOWS, `{${formatLabel('cluster', cluster)},${formatLabel('schema', schema)}}`, count)
  }
  return exposition.text()
}
