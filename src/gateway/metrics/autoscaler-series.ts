// Metrics of the clusters' cluster-autoscalers, known only to the leading replica's main thread.

import {
  AUTOSCALER_HEALTHY,
  AUTOSCALER_LAST_UPDATED,
  AUTOSCALER_OMITTED_GROUPS,
  AUTOSCALER_UNREADABLE,
  NODEGROUP_BACKOFF,
  NODEGROUP_REGISTERED,
  NODEGROUP_TARGET,
  NODEGROUP_UNHEALTHY,
} from './descriptors.ts'
import type { Exposition } from './exposition.ts'

/** One cluster's autoscaler; with at most as many groups as an UpstreamCluster's status lists. */
export interface AutoscalerSeries {
  readonly cluster: string
  /** It writes its status, and considers the cluster healthy. */
  readonly healthy: boolean
  /** Milliseconds since the epoch; 0 = not stated. */
  readonly writtenAtMs: number
  readonly unreadable: number
  readonly omittedGroups: number
  readonly groups: readonly NodeGroupSeries[]
}

interface NodeGroupSeries {
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
    // Two groups with the same name, truncated or not, would be duplicate samples of one series: Prometheus would reject the whole scrape.
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
