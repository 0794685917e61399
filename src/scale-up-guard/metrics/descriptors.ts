// Metrics of scale-up guards: rows of the table of all threads (gateway/metrics/descriptors.ts), to which program/subjects/subjects.ts adds them.

import type { MainFamilies } from '../../gateway/metrics/main-families.ts'
import { type Metric, SubjectMetrics } from '../../gateway/metrics/metric.ts'
import type { GuardedWrite } from '../core/guard/check-raise.ts'

export const GUARD_METRICS = new SubjectMetrics()

export const GUARDED_WRITES: Metric<[string, string, GuardedWrite]> = GUARD_METRICS.counter(
  'scale_up_guard_writes_total',
  ['cluster', 'guard', 'result'],
  'Writes of the replicas of a node group that is backed off, by result',
)
const GUARDED_GROUPS: Metric<[string, string]> = GUARD_METRICS.gauge(
  'scale_up_guard_groups',
  ['cluster', 'guard'],
  'Node groups that a ScaleUpGuard observes, in the leading replica',
)
const GUARDED_BACKED_OFF: Metric<[string, string]> = GUARD_METRICS.gauge(
  'scale_up_guard_groups_backed_off',
  ['cluster', 'guard'],
  'Node groups that a ScaleUpGuard backs off, in the leading replica',
)
export const GUARD_ACTIONS: Metric<[string, string, string, string]> = GUARD_METRICS.counter(
  'scale_up_guard_actions_total',
  ['cluster', 'guard', 'action', 'result'],
  'Actions of a ScaleUpGuard: backoffs begun or extended, corrections of a target',
)

export /** On the main thread. Labels are bounded: guards are objects, and actions a closed set. */
interface GuardMetrics {
  counted(cluster: string, guard: string, groups: number, backedOff: number): void
  acted(cluster: string, guard: string, action: 'backoff' | 'correction', result: 'done' | 'stale' | 'failed'): void
  /** This replica no longer reports its gauges. */
  forget(cluster: string, guard: string): void
}

export function createGuardMetrics(families: MainFamilies): GuardMetrics {
  const groups = families.of(GUARDED_GROUPS)
  const backedOff = families.of(GUARDED_BACKED_OFF)
  const actions = families.of(GUARD_ACTIONS)
  return {
    counted: (cluster, guard, all, off) => {
      groups.set(all, cluster, guard)
      backedOff.set(off, cluster, guard)
    },
    acted: (cluster, guard, action, result) => actions.add(1, cluster, guard, action, result),
    forget: (cluster, guard) => {
      groups.remove(cluster, guard)
      backedOff.remove(cluster, guard)
    },
  }
}
