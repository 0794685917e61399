// Statuses of UpstreamClusters: elects the replica that writes what all replicas report, and runs the controller that writes.

import {
  AutoscalerStatuses,
  type FollowedAutoscaler,
} from '../../gateway/controllers/autoscaler-status/autoscaler-statuses.ts'
import { startClusterStatus } from '../../gateway/controllers/status/cluster-status.ts'
import { isBackedOff, isUnhealthy } from '../../gateway/core/autoscaler-status/report.ts'
import { autoscalerVerdict } from '../../gateway/core/status/autoscaler-health.ts'
import { LEADER_LEASE } from '../../gateway/core/status/gateways.ts'
import { REDIS_AWAY } from '../../gateway/core/status/messages.ts'
import type { Exposition } from '../../gateway/metrics/exposition.ts'
import { type AutoscalerSeries, exposeAutoscalers } from '../../gateway/metrics/main-thread-series.ts'
import type { Logger } from '../../kit/api/ports.ts'
import type { ObjectClient } from '../../kube/api/object-client.ts'
import { leadAlone, leadByLease } from '../../kube/controllers/kernel/leadership.ts'
import { type Running, stopInReverse } from '../../process/components/component.ts'
import type { Config } from '../../process/config/config.ts'
import type { SubjectComponents } from '../subjects/components.ts'
import type { LoadedSubjects } from '../subjects/load.ts'
import type { OnApplied } from '../subjects/subject.ts'
import type { WiredGateway } from '../wiring/wire.ts'

interface StatusParts
  extends Pick<
      WiredGateway,
      'clusters' | 'clock' | 'clocks' | 'clientOf' | 'pool' | 'changes' | 'rights' | 'servers' | 'issuers'
    >,
    Pick<WiredGateway, 'sharing'> {
  readonly config: Config
  /** Client for the objects; undefined = they are files and have no status: autoscaler reports are then in each replica's metrics. */
  readonly client: ObjectClient | undefined
  readonly led: LoadedSubjects['led']
  readonly subjects: Pick<SubjectComponents, 'podProtection' | 'readCache'>
  readonly log: Logger
}

function limitsMessage({ sharing, clusters }: StatusParts, cluster: string): string {
  const schemas = clusters.get(cluster)?.compiled.schemas ?? []
  if (sharing === undefined || !schemas.some(({ shared }) => shared !== undefined)) return ''
  const { mode, part, message } = sharing.limits.status()
  if (mode !== 'parted') return ''
  return `${REDIS_AWAY} (${message}): this replica keeps to 1/${part.replicas} of each shared limit`
}

/** @param adminAddress where other replicas reach the admin listener; '' = nowhere */
export function startStatuses(parts: StatusParts, adminAddress: string): Running {
  const { config, client, subjects, log, clusters, clock, clocks, clientOf, pool, changes } = parts
  const { replicaName: replica } = config
  const leadership = client === undefined ? leadAlone(log) : leadByLease(client, { ...LEADER_LEASE, replica, log })
  const autoscalers = new AutoscalerStatuses({ clusters, connect: clientOf, leadership, clock })
  const leaveAutoscalers = changes.onApplied((_, changed) => autoscalers.update(changed))
  const following: Running = {
    exposeMetrics: (into) => exposeAutoscalerStatuses(into, autoscalers),
    stop: () => {
      leaveAutoscalers()
      return autoscalers.stop()
    },
  }
  if (client === undefined) return following
  const { topics } = pool
  const onApplied: OnApplied = (listener) => changes.onApplied((_, changed) => listener(changed))
  const led = parts.led.map((start) =>
    start({ client, leadership, replica, clusters, clientOf, onApplied, topics, clock, log }),
  )
  const controller = startClusterStatus({
    client,
    replica,
    adminAddress,
    leadership,
    clusters,
    rights: (cluster) => parts.rights.get(cluster),
    podProtection: (cluster) => subjects.podProtection?.stateOf(cluster),
    readCache: (cluster) => subjects.readCache?.resourcesOf(cluster) ?? [],
    autoscaler: (cluster) => autoscalers.get(cluster),
    servers: (cluster) => parts.servers.ofCluster(cluster),
    issuers: (cluster) => parts.issuers.ofCluster(cluster),
    problems: () => changes.inForce.problems,
    clock,
    clocks,
    random: Math.random,
    log,
    ...(parts.sharing !== undefined && { limitsMessage: (name) => limitsMessage(parts, name) }),
  })
  const leave = changes.onApplied((generations, changed) => {
    controller.applied(generations, pool.slots.length, changed)
  })
  return {
    exposeMetrics: async (into) => {
      exposeAutoscalerStatuses(into, autoscalers)
      for (const one of led) await one.exposeMetrics?.(into)
    },
    stop: () => {
      leave()
      return stopInReverse([leadership, following, controller, ...led], log)
    },
  }
}

// Metrics of the cluster-autoscalers that are followed in the clusters.
function exposeAutoscalerStatuses(into: Exposition, autoscalers: AutoscalerStatuses): void {
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
