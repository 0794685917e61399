// Wires what spec.degrade.auto does to its metrics.

import type { ClusterHealth } from '../../api/ports/cluster-health.ts'
import type { AutoDegradeController } from '../../controllers/auto-degrade/auto-degrade.ts'
import { type AutoDegradeSeries, autoDegradeSeriesText } from '../../io/metrics/auto-degrade-series.ts'

export interface AutoDegradeSources {
  readonly controller: AutoDegradeController
  readonly health: Pick<ClusterHealth, 'nodes'>
}

/** In the Prometheus text format. */
export function autoDegradeText(sources: AutoDegradeSources | undefined): string {
  if (sources === undefined) return ''
  const { controller, health } = sources
  return autoDegradeSeriesText(
    controller.describe().map(({ cluster, status: { phase }, actions }) => {
      return { cluster, phase, actions, nodes: nodesOf(health, cluster) }
    }),
  )
}

function nodesOf(health: Pick<ClusterHealth, 'nodes'>, cluster: string): AutoDegradeSeries['nodes'] {
  const seen = health.nodes(cluster)
  if (seen?.complete !== true || seen.message !== '') return undefined
  const { ready, unready, notStarted, total } = seen
  return { ready, unready, starting: notStarted, leaving: total - ready - unready - notStarted }
}
