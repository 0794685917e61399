// ScaleUpGuard: node groups of Cluster API whose scale-up has failed are backed off, and what failed of it is taken back.

import type { ObjectMeta } from '../kube/meta.ts'
import type { LabelSelector } from '../pod-protector/pod-protector.ts'

export const SCALE_UP_GUARD_KIND = 'ScaleUpGuard'

export interface ScaleUpGuard {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: ObjectMeta
  readonly spec: ScaleUpGuardSpec
  readonly status?: ScaleUpGuardStatus
}

export interface ScaleUpGuardSpec {
  readonly clusterRef: GuardedClusters
  readonly group?: string
  readonly groupSelector?: LabelSelector
  readonly autoscalerUsers?: readonly string[]
  readonly failure?: FailureRules
  readonly backoff?: GuardBackoff
  readonly correctTarget?: boolean
  readonly deleteLongUnregistered?: boolean
  readonly shadow?: boolean
}

/** UpstreamClusters, by name. */
export interface GuardedClusters {
  /** Has the Machines. */
  readonly management: string
  /** Has the Nodes. Default: the same. */
  readonly workload?: string
}

/** Durations as Go writes them. */
export interface FailureRules {
  readonly conditionReasons?: readonly string[]
  readonly minDuration?: string
  readonly noProviderIDFor?: string
  readonly noNodeFor?: string
}

/** Durations as Go writes them. */
export interface GuardBackoff {
  readonly initial?: string
  readonly max?: string
  readonly resetAfter?: string
}

export interface ScaleUpGuardStatus {
  readonly observedGeneration?: number
  readonly groupCount?: number
  readonly backedOffCount?: number
  readonly groups?: readonly GuardedGroup[]
  readonly conditions?: readonly GuardCondition[]
}

export interface GuardedGroup {
  /** As the autoscaler names it: `MachineDeployment/NAMESPACE/NAME`. */
  readonly name: string
  /** `spec.replicas` as it was seen last. */
  readonly target: number
  readonly requests?: readonly GroupRequest[]
  readonly failedCount?: number
  readonly failed?: readonly FailedMachine[]
  /** Machines of the group when it failed. */
  readonly machineCount?: number
  readonly backoffUntil?: string
  readonly backoffSeconds?: number
  readonly backoffReason?: string
  readonly backoffFailedCount?: number
  readonly attempt?: number
  readonly lastFailureTime?: string
  readonly lastAction?: string
  readonly lastActionTime?: string
  readonly neverActed?: string
  readonly machineHealthCheck?: string
  /** Of a MachinePool. */
  readonly missingSince?: readonly string[]
}

export interface GroupRequest {
  readonly increase: number
  readonly at: string
  readonly expectedAdd: string
  readonly by?: string
}

export interface FailedMachine {
  /** '' = a replica of a MachinePool. */
  readonly machine?: string
  readonly uid?: string
  readonly reason: string
  readonly message?: string
}

export interface GuardCondition {
  readonly type: string
  readonly status: 'True' | 'False' | 'Unknown'
  readonly reason: string
  readonly message: string
  readonly observedGeneration?: number
  readonly lastTransitionTime: string
}
