// What incidents run with the leader of the statuses: the health of clusters, and the two controllers that change their degrade mode by it.

import type { Exposition } from '../../gateway/metrics/exposition.ts'
import type { ClusterTable } from '../../gateway/state/clusters.ts'
import type { Clock, Logger } from '../../kit/api/ports.ts'
import type { ClosableClient, ObjectClient } from '../../kube/api/object-client.ts'
import type { Leading } from '../../kube/controllers/kernel/leadership.ts'
import { type Running, stopInReverse } from '../../process/components/component.ts'
import type { ClusterHealth } from '../api/cluster-health.ts'
import {
  type AutoDegradeController,
  type AutoDegradeSeries,
  exposeAutoDegrade,
  startAutoDegradeController,
} from '../controllers/auto-degrade/auto-degrade.ts'
import { startClusterHealth } from '../controllers/cluster-health/cluster-health.ts'
import { startDegradeRecovery } from '../controllers/recovery/recovery.ts'

export interface IncidentsDeps {
  /** API server of the objects. */
  readonly client: ObjectClient
  readonly leadership: Leading
  readonly replica: string
  readonly clusters: ClusterTable
  /** Connects as the gateway itself. */
  clientOf(cluster: string): ClosableClient
  /** Calls the listener now and whenever UpstreamClusters have changed, with their names, until the returned function is called. */
  onApplied(listener: (changed: ReadonlySet<string> | undefined) => void): () => void
  readonly clock: Clock
  readonly log: Logger
}

export function startIncidents(deps: IncidentsDeps): Running {
  const { client, leadership, replica, clusters, clientOf, onApplied, clock, log } = deps
  const health = startClusterHealth({
    clusters,
    leadership,
    refusedDisruptive: (name) => clusters.get(name)?.incident.refusedInLastMinute(clock.now()) ?? 0,
    client: clientOf,
    clock,
    log,
  })
  const autoDegrade = startAutoDegradeController({ client, leadership, clusters, health, clock, log })
  const recovery = startDegradeRecovery({ client, replica, leadership, clusters, health, clock, log })
  const leave = onApplied((changed) => health.update(changed))
  return {
    exposeMetrics: (into) => exposeAutoDegradePhases(into, autoDegrade, health),
    stop: () => {
      leave()
      return stopInReverse([health, recovery, autoDegrade], log)
    },
  }
}

// While the degrade switch of a cluster is automatic: its phase, what was done, and the nodes.
function exposeAutoDegradePhases(
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
