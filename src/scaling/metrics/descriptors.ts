// Metrics of scale-downs: rows of the table of all threads (gateway/metrics/descriptors.ts), to which program/subjects/subjects.ts adds them.

import { type Metric, SubjectMetrics } from '../../gateway/metrics/metric.ts'
import type { ScaleDownOutcome } from '../api/scale-down.ts'
import type { ScaleOutcome, UncheckedReason } from '../core/scale-write/outcome.ts'

export const SCALING_METRICS = new SubjectMetrics()

export const SCALE_DOWNS: Metric<[string, ScaleDownOutcome]> = SCALING_METRICS.counter(
  'scale_downs_total',
  ['cluster', 'outcome'],
  'Scale-downs to which a ScaleDownPolicy applied, by outcome',
)
export const SCALE_WRITES: Metric<[string, ScaleOutcome, UncheckedReason | '']> = SCALING_METRICS.counter(
  'scale_writes_total',
  ['cluster', 'outcome', 'reason'],
  'Writes of replicas checked by spec.scaleProtection, by outcome',
)
