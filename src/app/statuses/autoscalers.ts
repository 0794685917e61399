// Wires what is followed of the cluster-autoscalers of the clusters to its metrics.

import type { Logger } from '../../api/ports/ports.ts'
import { AutoscalerStatuses, type FollowedAutoscaler } from '../../controllers/autoscaler-status/autoscaler-statuses.ts'
import { isBackedOff, isUnhealthy } from '../../core/scale/autoscaler-status/report.ts'
import { autoscalerVerdict } from '../../core/status/autoscaler-health.ts'
import type { KubeCallEvents } from '../../io/kube/client-events.ts'
import { type AutoscalerSeries, autoscalerSeriesText } from '../../io/metrics/autoscaler-series.ts'
import { createUpstreamKubeClient } from '../../io/upstream/kube-client.ts'
import type { WiredGateway } from '../wiring/wire.ts'

export function createAutoscalers(
  { clusters, clock, guard }: Pick<WiredGateway, 'clusters' | 'clock' | 'guard'>,
  isLeader: () => boolean,
  log: Logger,
  calls: KubeCallEvents,
): AutoscalerStatuses {
  return new AutoscalerStatuses({
    clusters,
    connect: (name) => createUpstreamKubeClient({ cluster: () => clusters.get(name), guard, name, log, calls }),
    isLeader,
    clock,
  })
}

/** In the Prometheus text format. */
export function autoscalersText(autoscalers: AutoscalerStatuses | undefined): string {
  return autoscalerSeriesText((autoscalers?.all() ?? []).map(seriesOf))
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
