// What becomes of a write of replicas, each a label value.

import type { UnknownReason } from './scale-change.ts'

export type ScaleOutcome =
  /** It lowers nothing, or nobody goes. */
  | 'allowed'
  /** It lowers the number, and the answer names the pods that go. */
  | 'warned'
  | 'refused'
  /** Shadow mode: it would have been refused. */
  | 'shadow'
  /** PodProtectors refuse it, and an annotation of the workload lets it pass. */
  | 'overridden'
  /** Nobody could tell; the failure policy decided. */
  | 'unchecked'

export type UncheckedReason =
  | UnknownReason
  /** Of a kind whose pods are not known here. */
  | 'kind'
  /** More pods than are compared. */
  | 'too-many-pods'
  /** The PodProtectors are not known, or nobody has counted their pods. */
  | 'stale'
  /** A limit of the gateway's own calls. */
  | 'limited'
