// Metrics of the cluster-autoscalers of the clusters, which only the main thread of the leading replica knows.

import {
  AUTOSCALER_HEALTHY,
  AUTOSCALER_LAST_UPDATED,
  AUTOSCALER_OMITTED_GROUPS,
  AUTOSCALER_UNREADABLE,
  NODEGROUP_BACKOFF,
  NODEGROUP_REGISTERED,
  NODEGROUP_TARGET,
  NODEGROUP_UNHEALTHY,
} from '../../gateway/metrics/descriptors.ts'
import type { Exposition } from '../../gateway/metrics/exposition.ts'

/** One cluster's autoscaler; of at most as many groups as the status of an UpstreamCluster lists. */
export interface AutoscalerSeries {
  readonly cluster: string
  /** It writes its status, and finds the cluster healthy. */
  readonly healthy: boolean
  /** Milliseconds since the epoch; 0 = not told. */
  readonly writtenAtMs: number
  readonly unreadable: number
  readonly omittedGroups: number
  readonly groups: readonly NodeGroupSeries[]
}

export interface NodeGroupSeries {
  readonly name: string
  readonly backoff: boolean
  readonly unhealthy: boolean
  readonly target: number
  readonly registered: number
}

export function exposeAutoscalers(into: Exposition, followed: readonly AutoscalerSeries[]): void {
  for (const { cluster, healthy, writtenAtMs, unreadable, omittedGroups, groups } of followed) {
    into.addMetric(AUTOSCALER_HEALTHY, healthy ? 1 : 0, cluster)
    if (writtenAtMs > 0) into.addMetric(AUTOSCALER_LAST_UPDATED, writtenAtMs / 1000, cluster)
    into.addMetric(AUTOSCALER_UNREADABLE, unreadable, cluster)
    into.addMetric(AUTOSCALER_OMITTED_GROUPS, omittedGroups, cluster)
    // Two groups of one name, cut or not, would be two samples of one series: Prometheus would refuse the whole scrape.
    for (const { name, backoff, unhealthy, target, registered } of new Map(
      groups.map((one) => [one.name, one]),
    ).values()) {
      into.addMetric(NODEGROUP_BACKOFF, backoff ? 1 : 0, cluster, name)
      into.addMetric(NODEGROUP_TARGET, target, cluster, name)
      into.addMetric(NODEGROUP_REGISTERED, registered, cluster, name)
      into.addMetric(NODEGROUP_UNHEALTHY, unhealthy ? 1 : 0, cluster, name)
    }
  }
}
