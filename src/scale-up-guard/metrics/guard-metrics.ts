// Actions of scale-up guards, on the main thread. Labels are bounded: guards are objects, and actions a closed set.

import type { MainFamilies } from '../../gateway/metrics/main-families.ts'
import { GUARD_ACTIONS, GUARDED_BACKED_OFF, GUARDED_GROUPS } from './descriptors.ts'

export interface GuardMetrics {
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
