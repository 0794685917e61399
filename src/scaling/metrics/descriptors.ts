// Metrics of scale-downs: rows of the table of all threads (gateway/metrics/descriptors.ts), to which program/subjects/subjects.ts adds them.

import type { UnknownReason } from '../../gateway/core/policy/scale-change.ts'
import { type Metric, SubjectMetrics } from '../../gateway/metrics/metric.ts'
import type { ScaleDownOutcome } from '../api/scale-down.ts'

export const SCALING_METRICS = new SubjectMetrics()

export const SCALE_DOWNS: Metric<[string, ScaleDownOutcome]> = SCALING_METRICS.counter(
  'scale_downs_total',
  ['cluster', 'outcome'],
  'Scale-downs to which a ScaleDownPolicy applied, by outcome',
)
/** What became of a write of replicas. */
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

export const SCALE_WRITES: Metric<[string, ScaleOutcome, UncheckedReason | '']> = SCALING_METRICS.counter(
  'scale_writes_total',
  ['cluster', 'outcome', 'reason'],
  'Writes of replicas checked by spec.scaleProtection, by outcome',
)
