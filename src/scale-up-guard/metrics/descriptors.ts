// Metrics of scale-up guards: rows of the table of all threads (gateway/metrics/descriptors.ts), to which program/subjects/subjects.ts adds them.

import { type Metric, SubjectMetrics } from '../../gateway/metrics/metric.ts'
import type { GuardedWrite } from '../core/guard/check-raise.ts'

export const GUARD_METRICS = new SubjectMetrics()

export const GUARDED_WRITES: Metric<[string, string, GuardedWrite]> = GUARD_METRICS.counter(
  'scale_up_guard_writes_total',
  ['cluster', 'guard', 'result'],
  'Writes of the replicas of a node group that is backed off, by result',
)
export const GUARDED_GROUPS: Metric<[string, string]> = GUARD_METRICS.gauge(
  'scale_up_guard_groups',
  ['cluster', 'guard'],
  'Node groups that a ScaleUpGuard observes, in the leading replica',
)
export const GUARDED_BACKED_OFF: Metric<[string, string]> = GUARD_METRICS.gauge(
  'scale_up_guard_groups_backed_off',
  ['cluster', 'guard'],
  'Node groups that a ScaleUpGuard backs off, in the leading replica',
)
export const GUARD_ACTIONS: Metric<[string, string, string, string]> = GUARD_METRICS.counter(
  'scale_up_guard_actions_total',
  ['cluster', 'guard', 'action', 'result'],
  'Actions of a ScaleUpGuard: backoffs begun or extended, corrections of a target',
)
