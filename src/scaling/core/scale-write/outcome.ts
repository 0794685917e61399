// Outcomes of a write of replicas; each is a label value.

import type { UnknownReason } from '../../../gateway/core/policy/scale-change.ts'

export type ScaleOutcome =
  /** It lowers nothing, or no pod goes. */
  | 'allowed'
  /** It lowers the count, and the response names the pods that go. */
  | 'warned'
  | 'refused'
  /** Shadow mode: it would have been refused. */
  | 'shadow'
  /** PodProtectors refuse it, and an annotation of the workload overrides them. */
  | 'overridden'
  /** The effect is unknown; the failure policy decided. */
  | 'unchecked'

export type UncheckedReason =
  | UnknownReason
  /** The pods of this kind are unknown here. */
  | 'kind'
  /** More pods than are compared. */
  | 'too-many-pods'
  /** The PodProtectors are unknown, or their pods have not been counted. */
  | 'stale'
  /** A limit of the gateway's own calls. */
  | 'limited'
