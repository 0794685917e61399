// What of the autoscaler's settings only its model needs, and what differs between its releases (kubernetes/autoscaler,
// cluster-autoscaler/clusterstate).

import { READINESS_DEFAULTS, type ReadinessOptions } from '../../src/incidents/core/readiness.ts'
import type { BackoffOptions } from '../../src/scale-up-guard/core/cluster-state.ts'

const MINUTE_MS = 60_000

/** Settings of the cluster-autoscaler, with its defaults in `DEFAULTS`. */
export interface ClusterStateOptions extends ReadinessOptions {
  /** `--initial-node-group-backoff-duration`, `--max-node-group-backoff-duration`, `--node-group-backoff-reset-timeout`. Milliseconds */
  readonly backoff: BackoffOptions
  readonly rules: AutoscalerRules
}

/** What changed from release to release. */
export interface AutoscalerRules {
  /** A size is incorrect outside the acceptable range, and not already below the target: up to 1.27 (PR 5894). */
  readonly sizesByRange: boolean
  /** A request that is done takes the backoff of its group along: up to 1.29 (PR 5756). */
  readonly doneClearsBackoff: boolean
  /** A request that times out lowers the target by its increase: since 1.36 (PR 9132). */
  readonly timeoutLowersTarget: boolean
  /** Upcoming nodes are counted only in groups with a request that are not backed off: since 1.36 (PR 9360). */
  readonly upcomingNeedsRequest: boolean
}

export const RULES_1_27: AutoscalerRules = {
  sizesByRange: true,
  doneClearsBackoff: true,
  timeoutLowersTarget: false,
  upcomingNeedsRequest: false,
}
export const RULES_1_28: AutoscalerRules = { ...RULES_1_27, sizesByRange: false }
export const RULES_1_30: AutoscalerRules = { ...RULES_1_28, doneClearsBackoff: false }
export const RULES_1_36: AutoscalerRules = { ...RULES_1_30, timeoutLowersTarget: true, upcomingNeedsRequest: true }

export const DEFAULTS: ClusterStateOptions = {
  ...READINESS_DEFAULTS,
  backoff: { initialMs: 5 * MINUTE_MS, maxMs: 30 * MINUTE_MS, resetMs: 180 * MINUTE_MS },
  rules: RULES_1_36,
}
