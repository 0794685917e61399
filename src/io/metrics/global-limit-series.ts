// Metrics of the limits that replicas share, which only the main thread knows.

import { formatLabel } from '../../core/cluster/metric-labels.ts'
import { Exposition, type Family, familyOf } from './exposition.ts'

/** One limit as it stands. */
export interface GlobalLimitState {
  readonly cluster: string
  readonly schema: string
  readonly mode: 'shared' | 'parted'
  readonly atHand: number
}

/** All of them. */
export interface GlobalLimitsState {
  readonly mode: 'shared' | 'returning' | 'parted'
  readonly replicas: readonly string[]
  readonly limits: readonly GlobalLimitState[]
}

const REDIS_UP: Family = familyOf(
  'portcullis_global_limit_redis_up',
  'gauge',
  '1 when Redis answers; 0 when limits of all replicas are kept by parts',
)
const REPLICAS: Family = familyOf(
  'portcullis_global_limit_replicas',
  'gauge',
  'Replicas alive; with Redis away, those that were when it was last heard',
)
const STATE: Family = familyOf(
  'portcullis_global_limit_state',
  'gauge',
  '1 when the limit is shared through Redis, 0 when this replica keeps to its part of it',
)
const AT_HAND: Family = familyOf(
  'portcullis_global_limit_at_hand',
  'gauge',
  'Tokens, or slots for requests in flight, that this replica holds of a limit of all replicas',
)

/** In the Prometheus text format; '' without Redis. */
export function globalLimitSeriesText(state: GlobalLimitsState | undefined): string {
  if (state === undefined) return ''
  const exposition = new Exposition()
  exposition.add(REDIS_UP, '', state.mode === 'parted' ? 0 : 1)
  exposition.add(REPLICAS, '', state.replicas.length)
  for (const { cluster, schema, mode, atHand } of state.limits) {
    const labels = `{${formatLabel('cluster', cluster)},${formatLabel('schema', schema)}}`
    exposition.add(STATE, labels, mode === 'shared' ? 1 : 0)
    exposition.add(AT_HAND, labels, atHand)
  }
  return exposition.text()
}
