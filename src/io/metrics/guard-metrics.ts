// What scale-up guards do on the main thread. Guards are objects, and what they do is a closed set: the labels are bounded.

import { Counter, Gauge, type Registry } from 'prom-client'
import { GUARD_ACTIONS, GUARDED_BACKED_OFF, GUARDED_GROUPS } from './descriptors.ts'

export interface GuardMetrics {
  counted(cluster: string, guard: string, groups: number, backedOff: number): void
  acted(cluster: string, guard: string, action: 'backoff' | 'correction', result: 'done' | 'stale' | 'failed'): void
  /** Its gauges are no longer this replica's to tell. */
  forget(cluster: string, guard: string): void
}

export function createGuardMetrics(registry: Registry): GuardMetrics {
  const registers = [registry]
  const [groups, backedOff] = [GUARDED_GROUPS, GUARDED_BACKED_OFF].map(
    ({ name, help, labels }) => new Gauge({ name, help, labelNames: [...labels], registers }),
  )
  const { name, help, labels } = GUARD_ACTIONS
  const actions = new Counter({ name, help, labelNames: [...labels], registers })
  return {
    counted: (cluster, guard, all, off) => {
      groups?.set({ cluster, guard }, all)
      backedOff?.set({ cluster, guard }, off)
    },
    acted: (cluster, guard, action, result) => actions.inc({ cluster, guard, action, result }),
    forget: (cluster, guard) => {
      groups?.remove({ cluster, guard })
      backedOff?.remove({ cluster, guard })
    },
  }
}
