// The autoscaler's settings (kubernetes/autoscaler, cluster-autoscaler/clusterstate).

const MINUTE_MS = 60_000

/** Settings of the cluster-autoscaler, with its defaults in `READINESS_DEFAULTS`. */
export interface ReadinessOptions {
  /** `--max-node-provision-time`: from the order of a node to its registration. Milliseconds */
  readonly maxNodeProvisionMs: number
  /** `--max-node-startup-time`: from its registration until it has to be ready. Milliseconds */
  readonly maxNodeStartupMs: number
  /** `--ok-total-unready-count`: so many unready nodes are healthy in any cluster. */
  readonly okTotalUnreadyCount: number
  /** `--max-total-unready-percentage`: so many per cent of all nodes are. */
  readonly maxTotalUnreadyPercentage: number
}

export interface BackoffOptions {
  readonly initialMs: number
  readonly maxMs: number
  /** An entry is dropped this long after its last failure. */
  readonly resetMs: number
}

export const READINESS_DEFAULTS: ReadinessOptions = {
  maxNodeProvisionMs: 15 * MINUTE_MS,
  maxNodeStartupMs: 15 * MINUTE_MS,
  okTotalUnreadyCount: 3,
  maxTotalUnreadyPercentage: 45,
}
