// PodProtector (podseidon.kubewharf.io/v1alpha1, namespaced): how many pods of a workload have to stay available, and the
// deletions that were let through so far. Podseidon's manifests apply unchanged.

import type { KubeObject } from '../kube/meta.ts'

export const POD_PROTECTOR_GROUP = 'podseidon.kubewharf.io'
export const POD_PROTECTOR_VERSION = 'v1alpha1'
export const POD_PROTECTOR_API_VERSION = 'podseidon.kubewharf.io/v1alpha1'
export const POD_PROTECTOR_KIND = 'PodProtector'

/** Of a bucket that has none: it stands for one pod. */
export const DEFAULT_COUNTER = 1

export interface PodProtector extends KubeObject {
  readonly spec: PodProtectorSpec
  readonly status?: PodProtectorStatus
}

export interface PodProtectorSpec {
  /** No available pod is deleted when this many, or fewer, are available. At least 0. */
  readonly minAvailable: number
  /** Seconds that a pod has to be ready without interruption before it counts as available. */
  readonly minReadySeconds: number
  /** The pods that are protected. */
  readonly selector: LabelSelector
  /** The pods that are counted; selects at least what `selector` does. Default: `selector`. */
  readonly aggregationSelector?: LabelSelector
  readonly admissionHistoryConfig?: AdmissionHistoryConfig
}

/** metav1.LabelSelector. Empty selects everything. */
export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>>
  readonly matchExpressions?: readonly LabelSelectorRequirement[]
}

export interface LabelSelectorRequirement {
  readonly key: string
  readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist'
  readonly values?: readonly string[]
}

/** What overrides the settings of the process for one object. */
export interface AdmissionHistoryConfig {
  /** Deletions that may be admitted and not yet seen by the aggregator, in all cells. 0 = no limit. */
  readonly maxConcurrentLag?: number
  /** Buckets kept for single pods; older ones are joined into one. */
  readonly compactThreshold?: number
  /** Milliseconds between an event of a pod and the aggregation that it leads to. */
  readonly aggregationRateMillis?: number
}

export interface PodProtectorStatus {
  /** By cellID. */
  readonly cells: readonly CellStatus[]
  readonly summary: StatusSummary
}

/** A cell: the pods of one list and watch. */
export interface CellStatus {
  readonly cellID: string
  readonly aggregation?: Aggregation
  readonly admissionHistory?: { readonly buckets?: readonly AdmissionBucket[] }
  /** Added: the cell has not reported for too long, so its pods do not count. */
  readonly stale?: boolean
}

/** Counts of pods in a cell as the aggregator saw them. */
export interface Aggregation {
  readonly totalReplicas: number
  readonly availableReplicas: number
  readonly readyReplicas?: number
  readonly scheduledReplicas?: number
  readonly runningReplicas?: number
  /** RFC 3339 with microseconds: of the last event that went in. */
  readonly lastEventTime?: string
  /** Added: of the cell when its pods were counted. */
  readonly resourceVersion?: string
  /** Added: by how many milliseconds the clocks of the cell's API servers were ahead of the aggregator's; absent = no skew is certain. */
  readonly clockSkewMillis?: number
}

/** One deletion that was let through (podUID), or several that were joined (endTime and counter). */
export interface AdmissionBucket {
  readonly startTime: string
  readonly podName?: string
  readonly podUID?: string
  readonly endTime?: string
  /**
   * How many fewer pods will be available than were counted, DEFAULT_COUNTER if absent; 0 = the pod is not counted as available, and
   * must not become so.
   */
  readonly counter?: number
  /** Added: resourceVersion of the pod as it was admitted; of several, the greatest. A snapshot as new that lacks the pod tells that it is gone. */
  readonly resourceVersion?: string
  /** Added: the uids of the pods, of several that were joined; the rest of `counter` is not known by name. */
  readonly podUIDs?: readonly string[]
}

export interface StatusSummary {
  readonly totalReplicas: number
  readonly aggregatedAvailableReplicas: number
  readonly estimatedAvailableReplicas: number
  readonly maxLatencyMillis?: number
  readonly aggregatedReady?: number
  readonly aggregatedScheduled?: number
  readonly aggregatedRunning?: number
}
