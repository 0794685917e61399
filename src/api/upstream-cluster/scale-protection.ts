// spec.scaleProtection of an UpstreamCluster: whether writes that lower the replicas of a workload are checked against the PodProtectors
// of its pods. Added; KubeGateway has nothing like it.

import type { LabelSelector } from '../pod-protector/pod-protector.ts'

/** Present, even when empty: writes of replicas are checked, and answered with a warning that names the pods that go. */
export interface ScaleProtection {
  /** Evaluate, count and warn, but let pass. */
  readonly shadow?: boolean
  /** What happens to a lowered number that cannot be evaluated. */
  readonly failurePolicy?: 'Fail' | 'Ignore'
  /** Workloads there are not checked. */
  readonly excludedNamespaces?: readonly string[]
  /** Only workloads with these labels are checked. Default: all. */
  readonly objectSelector?: LabelSelector
}

/** On a workload: until then (RFC 3339) its replicas may be lowered whatever PodProtectors say. */
export const ALLOW_UNTIL_ANNOTATION = 'scale.portcullis.io/allow-until'
