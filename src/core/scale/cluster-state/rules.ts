// The autoscaler's settings, and what differs between its releases (kubernetes/autoscaler, cluster-autoscaler/clusterstate).

const MINUTE_MS = 60_000

/** Settings of the cluster-autoscaler, with its defaults in `DEFAULTS`. */
export interface ClusterStateOptions {
  /** `--max-node-provision-time`: from the order of a node to its registration. Milliseconds */
  readonly maxNodeProvisionMs: number
  /** `--max-node-startup-time`: from its registration until it has to be ready. Milliseconds */
  readonly maxNodeStartupMs: number
  /** `--ok-total-unready-count`: so many unready nodes are healthy in any cluster. */
  readonly okTotalUnreadyCount: number
  /** `--max-total-unready-percentage`: so many per cent of all nodes are. */
  readonly maxTotalUnreadyPercentage: number
  /** `--initial-node-group-backoff-duration`, `--max-node-group-backoff-duration`, `--node-group-backoff-reset-timeout`. Milliseconds */
  readonly backoff: BackoffOptions
  readonly rules: AutoscalerRules
}

export interface BackoffOptions {
  readonly initialMs: number
  readonly maxMs: number
  /** An entry is dropped this long after its last failure. */
  readonly resetMs: number
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
  maxNodeProvisionMs: 15 * MINUTE_MS,
  maxNodeStartupMs: 15 * MINUTE_MS,
  okTotalUnreadyCount: 3,
  maxTotalUnreadyPercentage: 45,
  backoff: { initialMs: 5 * MINUTE_MS, maxMs: 30 * MINUTE_MS, resetMs: 180 * MINUTE_MS },
  rules: RULES_1_36,
}
