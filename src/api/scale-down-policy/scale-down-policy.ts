// ScaleDownPolicy: which pods of a workload go first when it is scaled down, in the clusters behind the gateway.

import type { ObjectMeta } from '../kube/meta.ts'
import type { LabelSelector } from '../pod-protector/pod-protector.ts'

export const SCALE_DOWN_POLICY_KIND = 'ScaleDownPolicy'

export interface ScaleDownPolicy {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: ObjectMeta
  readonly spec: ScaleDownPolicySpec
  readonly status?: ScaleDownPolicyStatus
}

export interface ScaleDownPolicySpec {
  /** UpstreamClusters, by name. Default: all. */
  readonly clusters?: readonly string[]
  /** Of the labels of the pods. */
  readonly selector: LabelSelector
  /** The first one in which two pods differ decides. */
  readonly prefer: readonly VictimPreference[]
  /** What happens to a scale-down whose victims cannot be chosen. */
  readonly onUnavailable?: 'Forward' | 'Reject'
  /** Between the costs being seen and the scale-down being forwarded. */
  readonly settleMillis?: number
  /** How long a scale-down is held up at most, settleMillis not counted. */
  readonly maxDelayMillis?: number
  /** Say which pods would be chosen, and change nothing. */
  readonly shadow?: boolean
}

export type PreferenceKind = 'UnschedulableNode' | 'EmptiestNode' | 'TopologyExcess' | 'Annotation' | 'Metric'

export interface VictimPreference {
  readonly by: PreferenceKind
  /** Of nodes, for TopologyExcess. */
  readonly topologyKey?: string
  /** Of pods, for Annotation. */
  readonly annotation?: string
  /** Of pods, for Metric. */
  readonly metric?: PodMetricIdentifier
}

/** As a HorizontalPodAutoscaler names it. */
export interface PodMetricIdentifier {
  readonly name: string
  /** Of the labels of the metric. */
  readonly selector?: LabelSelector
}

export interface ScaleDownPolicyStatus {
  readonly observedGeneration?: number
  readonly conditions?: readonly PolicyCondition[]
  readonly lastScaleDown?: LastScaleDown
}

export interface LastScaleDown {
  readonly time: string
  readonly cluster: string
  /** `deployments/web`. */
  readonly workload: string
  readonly from: number
  readonly to: number
  /** What came of it; for people and scripts. */
  readonly outcome: string
  readonly message?: string
  /** The pods that were given a deletion cost. */
  readonly victims?: readonly string[]
  /** Pods with a deletion cost of somebody else. */
  readonly conflicts?: readonly string[]
}

export interface PolicyCondition {
  readonly type: string
  readonly status: 'True' | 'False' | 'Unknown'
  readonly reason: string
  readonly message: string
  readonly observedGeneration?: number
  readonly lastTransitionTime: string
}
