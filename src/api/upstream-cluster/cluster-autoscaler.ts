// spec.autoscaler and status.autoscaler of an UpstreamCluster: what the cluster-autoscaler of the cluster writes of itself. Added.

/** Present, even when empty: the status of the cluster-autoscaler is followed. */
export interface Autoscaler {
  readonly statusConfigMap?: StatusConfigMap
  /** Seconds without a write after which its status counts as stale, 10 to 3600. */
  readonly staleAfterSeconds?: number
}

/** The autoscaler's `--namespace` and `--status-config-map-name`. */
export interface StatusConfigMap {
  readonly namespace?: string
  readonly name?: string
}

/** The autoscaler as it was written last; conditions say whether that is still true. */
export interface AutoscalerReport {
  /** `Healthy` or `Unhealthy`: all nodes together. */
  readonly health?: string
  /** `InProgress`, `NoActivity` ... */
  readonly scaleUp?: string
  /** `CandidatesPresent`, `NoCandidates` ... */
  readonly scaleDown?: string
  /** Those in backoff first, then unhealthy ones, then by name. */
  readonly groups?: readonly NodeGroupReport[]
  /** Groups beyond the limit, which are not listed. Absent = none. */
  readonly omittedGroups?: number
}

export interface NodeGroupReport {
  readonly name: string
  readonly health?: string
  /** `InProgress`, `NoActivity`, `Backoff`. */
  readonly scaleUp?: string
  /** When `scaleUp` changed last, RFC 3339. */
  readonly scaleUpSince?: string
  readonly scaleDown?: string
  readonly minSize?: number
  readonly maxSize?: number
  /** What the autoscaler has asked the cloud for. */
  readonly target?: number
  /** Nodes of the group. */
  readonly registered?: number
  readonly ready?: number
  readonly unready?: number
  /** Instances without a Node for longer than `--max-node-provision-time`. */
  readonly longUnregistered?: number
  /** Of a backoff. */
  readonly errorCode?: string
  readonly errorMessage?: string
}
