// spec.podProtection of an UpstreamCluster: whether deletions of its pods are checked against PodProtectors, and how its pods are
// counted for them. Added; KubeGateway has nothing like it. Podseidon has these as flags of its processes for a cell.

import type { LabelSelector } from '../pod-protector/pod-protector.ts'

/** Present, even when empty: deletions and evictions of pods are checked. */
export interface PodProtection {
  /** Name of the cluster in status.cells of PodProtectors. Pods of clusters of one name are counted together. Default metadata.name. */
  readonly cell?: string
  /** Evaluate, count, record and warn, but let pass. */
  readonly shadow?: boolean
  /** What happens to a deletion that cannot be evaluated. */
  readonly failurePolicy?: ProtectionFailurePolicy
  /** Seconds that a deletion waits for its evaluation, 1 to 30. */
  readonly timeoutSeconds?: number
  /** Pods there are not protected. */
  readonly excludedNamespaces?: readonly string[]
  /** Only pods with these labels are protected. Default: all. */
  readonly objectSelector?: LabelSelector
  readonly aggregation?: CellAggregation
  /** Which of several deletions that compete for the quota of one PodProtector are admitted. */
  readonly admissionOrder?: AdmissionOrder
  /** How long deletions wait for competitors. Only with admissionOrder DeletionOrder. */
  readonly gather?: GatherWindow
  /** Whether refusals name pods that could go instead. */
  readonly hints?: VictimHints
}

/** Arrival: those that arrived last first, as of Podseidon. DeletionOrder: those first that a scale-down would delete first. */
export type AdmissionOrder = 'Arrival' | 'DeletionOrder'

export interface GatherWindow {
  /** Milliseconds that a deletion waits for others; 0 = not at all. */
  readonly maxMillis?: number
  /** It waits only while at most this share of the counted pods may still be deleted, percent, rounded up. */
  readonly whenRemainingAtMostPercent?: number
}

export interface VictimHints {
  readonly enabled?: boolean
  /** Pods named in one refusal. */
  readonly max?: number
}

export type ProtectionFailurePolicy = 'Fail' | 'Ignore'

/** How the pods of the cell are counted. */
export interface CellAggregation {
  /** Somebody else counts them: Podseidon's aggregator. */
  readonly disabled?: boolean
  readonly syncTime?: SyncTime
  /** Annotation of pods that holds their time, RFC 3339; required with syncTime Annotation. */
  readonly syncTimeAnnotation?: string
  /** Only these pods are listed and counted. Default: all. */
  readonly podLabelSelector?: LabelSelector
  /** A pod that is written again and again, so that an idle cell still sends events. Default: none. */
  readonly updateTrigger?: UpdateTrigger
}

/**
 * How it is known up to which moment the pods have been seen. ResourceVersion: by the versions of the cluster itself. Clock:
 * when an event came. Status: the latest time in a pod's status. Annotation: what an annotation of the pod says.
 */
export type SyncTime = 'ResourceVersion' | 'Clock' | 'Status' | 'Annotation'

export interface UpdateTrigger {
  readonly namespace: string
  readonly name?: string
  readonly intervalSeconds?: number
}
