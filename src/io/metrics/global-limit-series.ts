// Metrics of the limits that replicas share, which only the main thread knows.

import { GLOBAL_LIMIT_AT_HAND, GLOBAL_LIMIT_STATE, REDIS_UP, REPLICAS } from './descriptors.ts'
import { Exposition } from './exposition.ts'

/** The state of one limit. */
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

/** In the Prometheus text format; '' without Redis. */
export function globalLimitSeriesText(state: GlobalLimitsState | undefined): string {
  if (state === undefined) return ''
  const exposition = new Exposition()
  exposition.addMetric(REDIS_UP, state.mode === 'parted' ? 0 : 1)
  exposition.addMetric(REPLICAS, state.replicas.length)
  for (const { cluster, schema, mode, atHand } of state.limits) {
    exposition.addMetric(GLOBAL_LIMIT_STATE, mode === 'shared' ? 1 : 0, cluster, schema)
    exposition.addMetric(GLOBAL_LIMIT_AT_HAND, atHand, cluster, schema)
  }
  return exposition.text()
}
