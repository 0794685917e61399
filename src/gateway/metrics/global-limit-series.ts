// Metrics of limits shared by replicas, known only to the main thread.

import { GLOBAL_LIMIT_AT_HAND, GLOBAL_LIMIT_STATE, REDIS_UP, REPLICAS } from './descriptors.ts'
import type { Exposition } from './exposition.ts'

/** State of one limit. */
export interface GlobalLimitState {
  readonly cluster: string
  readonly schema: string
  readonly mode: 'shared' | 'parted'
  readonly atHand: number
}

/** State of all limits. */
export interface GlobalLimitsState {
  readonly mode: 'shared' | 'returning' | 'parted'
  readonly replicas: readonly string[]
  readonly limits: readonly GlobalLimitState[]
}

/** @param state undefined = there is no Redis, and nothing to expose */
export function exposeGlobalLimits(into: Exposition, state: GlobalLimitsState | undefined): void {
  if (state === undefined) return
  into.addMetric(REDIS_UP, state.mode === 'parted' ? 0 : 1)
  into.addMetric(REPLICAS, state.replicas.length)
  for (const { cluster, schema, mode, atHand } of state.limits) {
    into.addMetric(GLOBAL_LIMIT_STATE, mode === 'shared' ? 1 : 0, cluster, schema)
    into.addMetric(GLOBAL_LIMIT_AT_HAND, atHand, cluster, schema)
  }
}
