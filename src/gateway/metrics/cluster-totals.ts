// A cluster's counts for the dashboard, summed over verbs and resources: read from the same rows as the metrics.

import { REFUSAL_TABLE } from '../../kit/core/refusal/refusal.ts'
import { METRIC_SCOPES, VERB_WATCH } from '../core/cluster/metric-labels.ts'
import {
  ADMITTED,
  INFLIGHT,
  LONG_RUNNING,
  POLICY_MATCHES,
  REFUSALS,
  REJECTED,
  REQUEST_DURATION,
  REQUEST_TOTAL,
  UPSTREAM,
  VERB,
} from './descriptors.ts'
import { ROW_FIELDS, type StoreSnapshot } from './series.ts'

/** Counters since the start of the process; current gauges. */
export interface ClusterTotals {
  readonly requests: number
  /** Requests with a 5xx or no response, from upstream or because it was unreachable. */
  readonly errors: number
  /** Refused by a rule of the gateway. */
  readonly refused: number
  readonly inFlight: number
  readonly watches: number
  /** One count per DURATION_BOUNDS entry, followed by the total. */
  readonly durations: Float64Array
  readonly durationCount: number
  /** Keyed by reason and rule, separated by a line break. */
  readonly refusals: ReadonlyMap<string, number>
  readonly endpoints: ReadonlyMap<string, { readonly requests: number; readonly errors: number }>
  /** Keyed by limit name. */
  readonly admitted: ReadonlyMap<string, number>
  readonly rejected: ReadonlyMap<string, number>
  /** Keyed by index of the dispatch policy. */
  readonly policies: ReadonlyMap<string, number>
}

/** Seconds. */
export const DURATION_BOUNDS: Float64Array = REQUEST_DURATION.bounds
const HISTOGRAM_HEAD = 2
/** The gateway's own responses when upstream fails: errors, not refusals. */
const FAILURES: ReadonlySet<string> = new Set(['no-endpoint', 'upstream-failed', 'upgrade-failed', 'internal'])
const SERVER_ERROR = 500

export function refusalCode(reason: string): number {
  const row = Object.entries(REFUSAL_TABLE).find(([name]) => name === reason)
  return row?.[1].code ?? 0
}

export function clusterTotals({ rows, values, names }: StoreSnapshot): ClusterTotals {
  const totals = {
    requests: 0,
    errors: 0,
    refused: 0,
    inFlight: 0,
    watches: 0,
    durations: new Float64Array(DURATION_BOUNDS.length),
    durationCount: 0,
    refusals: new Map<string, number>(),
    endpoints: new Map<string, { requests: number; errors: number }>(),
    admitted: new Map<string, number>(),
    rejected: new Map<string, number>(),
    policies: new Map<string, number>(),
  }
  const add = (map: Map<string, number>, key: string, by: number): void => void map.set(key, (map.get(key) ?? 0) + by)
  for (let row = 0; row < rows.length / ROW_FIELDS; row++) {
    const [kind = 0, first = 0, second = 0, at = 0] = rows.subarray(row * ROW_FIELDS, (row + 1) * ROW_FIELDS)
    const value = values[at] ?? 0
    switch (kind) {
      case REQUEST_TOTAL.id:
        totals.requests += value
        break
      case REQUEST_DURATION.id:
        totals.durationCount += value
        for (let i = 0; i < DURATION_BOUNDS.length; i++) {
          totals.durations[i] = (totals.durations[i] ?? 0) + (values[at + HISTOGRAM_HEAD + i] ?? 0)
        }
        break
      case INFLIGHT.id:
        totals.inFlight += value
        break
      case LONG_RUNNING.id:
        if (isWatchRow(rows, first)) totals.watches += value
        break
      case REFUSALS.id: {
        const reason = names[first] ?? ''
        if (FAILURES.has(reason)) totals.errors += value
        else totals.refused += value
        add(totals.refusals, `${reason}\n${names[second] ?? ''}`, value)
        break
      }
      case UPSTREAM.id: {
        const isError = second >= SERVER_ERROR
        if (isError) totals.errors += value
        const url = names[first] ?? ''
        const endpoint = totals.endpoints.get(url) ?? { requests: 0, errors: 0 }
        endpoint.requests += value
        if (isError) endpoint.errors += value
        totals.endpoints.set(url, endpoint)
        break
      }
      case ADMITTED.id:
        add(totals.admitted, names[first] ?? '', value)
        break
      case REJECTED.id:
        add(totals.rejected, names[first] ?? '', value)
        break
      case POLICY_MATCHES.id:
        add(totals.policies, names[first] ?? '', value)
        break
      default:
    }
  }
  return totals
}

/** @param row the row that the gauge belongs to */
function isWatchRow(rows: Int32Array, row: number): boolean {
  const at = row * ROW_FIELDS
  if (rows[at] !== VERB.id) return false
  return Math.floor((rows[at + 2] ?? 0) / METRIC_SCOPES.length) === VERB_WATCH
}
