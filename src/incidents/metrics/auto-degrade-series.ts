// Metrics of spec.degrade.auto and of the nodes it considers, known only to the leading replica's main thread.

import { AUTO_DEGRADE_ACTIONS, AUTO_DEGRADE_PHASE, CLUSTER_NODES } from '../../gateway/metrics/descriptors.ts'
import type { Exposition } from '../../gateway/metrics/exposition.ts'

/** One cluster. Labels come from closed sets. */
export interface AutoDegradeSeries {
  readonly cluster: string
  readonly phase: string
  readonly actions: ReadonlyMap<string, number>
  /** Keyed by state; undefined = unknown or stale. */
  readonly nodes: Readonly<Record<string, number>> | undefined
}

const PHASES = ['Normal', 'Suspect', 'Degraded', 'Unknown']

export function exposeAutoDegrade(into: Exposition, clusters: readonly AutoDegradeSeries[]): void {
  for (const { cluster, phase, actions, nodes } of clusters) {
    for (const one of PHASES) into.addMetric(AUTO_DEGRADE_PHASE, one === phase ? 1 : 0, cluster, one)
    for (const [action, count] of actions) into.addMetric(AUTO_DEGRADE_ACTIONS, count, cluster, action)
    for (const [state, count] of Object.entries(nodes ?? {})) {
      into.addMetric(CLUSTER_NODES, count, cluster, state)
    }
  }
}
