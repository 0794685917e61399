// The autoscaler's settings (kubernetes/autoscaler, cluster-autoscaler/clusterstate).

const MINUTE_MS = 60_000

/** Settings of the cluster-autoscaler; `READINESS_DEFAULTS` has its defaults. */
export interface ReadinessOptions {
  /** `--max-node-provision-time`: from ordering a node to its registration. Milliseconds */
  readonly maxNodeProvisionMs: number
  /** `--max-node-startup-time`: from its registration until it must be ready. Milliseconds */
  readonly maxNodeStartupMs: number
  /** `--ok-total-unready-count`: up to this many unready nodes are healthy in any cluster. */
  readonly okTotalUnreadyCount: number
  /** `--max-total-unready-percentage`: so is up to this percentage of all nodes. */
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
