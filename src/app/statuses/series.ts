// The metrics of what is followed in the clusters: their cluster-autoscalers, and their nodes while the degrade switch is automatic.

import type { ClusterHealth } from '../../api/ports/cluster-health.ts'
import type { AutoDegradeController } from '../../controllers/auto-degrade/auto-degrade.ts'
import type { AutoscalerStatuses, FollowedAutoscaler } from '../../controllers/autoscaler-status/autoscaler-statuses.ts'
import { isBackedOff, isUnhealthy } from '../../core/scale/autoscaler-status/report.ts'
import { autoscalerVerdict } from '../../core/status/autoscaler-health.ts'
import { type AutoDegradeSeries, exposeAutoDegrade } from '../../io/metrics/auto-degrade-series.ts'
import { type AutoscalerSeries, exposeAutoscalers } from '../../io/metrics/autoscaler-series.ts'
import type { Exposition } from '../../io/metrics/exposition.ts'

export function exposeAutoscalerStatuses(into: Exposition, autoscalers: AutoscalerStatuses): void {
  exposeAutoscalers(into, autoscalers.all().map(seriesOf))
}

function seriesOf({ cluster, fact, unreadable }: FollowedAutoscaler): AutoscalerSeries {
  const { report, writtenAtMs } = fact
  return {
    cluster,
    healthy: autoscalerVerdict(fact).status === 'True',
    writtenAtMs,
    unreadable,
    omittedGroups: report?.omittedGroups ?? 0,
    groups: (report?.groups ?? []).map((group) => {
      const { name, target = 0, registered = 0 } = group
      return { name, backoff: isBackedOff(group), unhealthy: isUnhealthy(group), target, registered }
    }),
  }
}

export function exposeAutoDegradePhases(
  into: Exposition,
  controller: AutoDegradeController,
  health: Pick<ClusterHealth, 'nodes'>,
): void {
  exposeAutoDegrade(
    into,
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
