// Statuses of UpstreamClusters: the election of the replica that writes what all replicas report, and the controller that writes.

import { randomUUID } from 'node:crypto'
import type { ObjectClient } from '../../api/ports/object-client.ts'
import type { Logger } from '../../api/ports/ports.ts'
import { startAutoDegradeController } from '../../controllers/auto-degrade/auto-degrade.ts'
import type { AutoscalerStatuses } from '../../controllers/autoscaler-status/autoscaler-statuses.ts'
import { startClusterHealth } from '../../controllers/cluster-health/cluster-health.ts'
import { startDegradeRecovery } from '../../controllers/degrade/recovery.ts'
import { startClusterStatus } from '../../controllers/status/cluster-status.ts'
import { LEADER_LEASE } from '../../core/status/gateways.ts'
import { REDIS_AWAY } from '../../core/status/messages.ts'
import type { KubeCallEvents } from '../../io/kube/client-events.ts'
import { startLeaderElection } from '../../io/kube/leader-lease.ts'
import { createUpstreamKubeClient } from '../../io/upstream/kube-client.ts'
import type { Config } from '../config/config.ts'
import type { Protection } from '../protection/protection.ts'
import { type ScaleDownControllers, startScaleDowns } from '../scale/scale-downs.ts'
import type { WiredGateway } from '../wiring/wire.ts'
import type { AutoDegradeSources } from './auto-degrade.ts'
import { createAutoscalers } from './autoscalers.ts'

export interface Statuses {
  /** The cluster-autoscalers that are followed here. */
  readonly autoscalers: AutoscalerStatuses
  /** undefined = objects are files, and nobody can change their mode. */
  readonly autoDegrade: AutoDegradeSources | undefined
  stop(): Promise<void>
}

function limitsMessage({ limits, clusters }: WiredGateway, cluster: string): string {
  const schemas = clusters.get(cluster)?.compiled.schemas ?? []
  if (limits === undefined || !schemas.some(({ shared }) => shared !== undefined)) return ''
  const { mode, part, message } = limits.status()
  if (mode !== 'parted') return ''
  return `${REDIS_AWAY} (${message}): this replica keeps to 1/${part.replicas} of each shared limit`
}

/** Objects that are files have no status: `client` is undefined then, and what autoscalers say is in the metrics of each replica. */
export function startStatuses(
  config: Config,
  parts: WiredGateway,
  client: ObjectClient | undefined,
  protection: Pick<Protection, 'stateOf'>,
  calls: KubeCallEvents,
  log: Logger,
  adminAddress: string,
): Statuses {
  const { replicaName: replica } = config
  const { clusters, clock, clocks, guard, pool, changes } = parts
  let leads = (): boolean => client === undefined
  const autoscalers = createAutoscalers(parts, () => leads(), log, calls)
  const leaveAutoscalers = changes.onApplied((_, changed) => autoscalers.update(changed))
  const stopAutoscalers = (): Promise<void> => {
    leaveAutoscalers()
    return autoscalers.stop()
  }
  if (client === undefined) return { autoscalers, autoDegrade: undefined, stop: stopAutoscalers }
  const identity = `${replica}_${randomUUID()}`
  let scaleDowns: ScaleDownControllers | undefined
  const onChange = (): void => {
    autoscalers.update()
    scaleDowns?.leaderChanged()
  }
  const lease = startLeaderElection(client, { ...LEADER_LEASE, identity, log, onChange })
  leads = () => lease.isLeader()
  scaleDowns = startScaleDowns(parts, client, replica, leads, log, calls)
  const health = startClusterHealth({
    clusters,
    isLeader: leads,
    refusedDisruptive: (name) => clusters.get(name)?.incident.refusedInLastMinute(clock.now()) ?? 0,
    client: (name) => createUpstreamKubeClient({ cluster: () => clusters.get(name), guard, name, log, calls }),
    clock,
    log,
  })
  const autoDegrade = startAutoDegradeController({ client, isLeader: leads, clusters, health, clock, log })
  const controller = startClusterStatus({
    client,
    replica,
    adminAddress,
    isLeader: leads,
    clusters,
    rights: (cluster) => parts.rights.get(cluster),
    podProtection: (cluster) => protection.stateOf(cluster),
    autoscaler: (cluster) => autoscalers.get(cluster),
    servers: (cluster) => parts.servers.ofCluster(cluster),
    problems: () => changes.inForce.problems,
    clock,
    clocks,
    random: Math.random,
    log,
    ...(parts.limits !== undefined && { limitsMessage: (name) => limitsMessage(parts, name) }),
  })
  const recovery = startDegradeRecovery({ client, replica, isLeader: leads, clusters, health, clock, log })
  const leave = changes.onApplied((generations, changed) => {
    controller.applied(generations, pool.slots.length, changed)
    health.update(changed)
  })
  return {
    autoscalers,
    autoDegrade: { controller: autoDegrade, health },
    async stop() {
      leave()
      await autoDegrade.stop()
      await recovery.stop()
      await scaleDowns?.stop()
      await health.stop()
      await controller.stop()
      await stopAutoscalers()
      await lease.stop()
    },
  }
}
