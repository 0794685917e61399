// Statuses of UpstreamClusters: the election of the replica that writes what all replicas report, and the controller that writes.

import { randomUUID } from 'node:crypto'
import type { ObjectClient } from '../api/ports/object-client.ts'
import type { Logger } from '../api/ports/ports.ts'
import { startClusterStatus } from '../controllers/status/cluster-status.ts'
import { REDIS_AWAY } from '../core/status/messages.ts'
import { startLeaderElection } from '../io/kube/leader-lease.ts'
import type { Config } from './config/config.ts'
import type { Protection } from './protection/protection.ts'
import type { WiredGateway } from './wire.ts'

export interface Statuses {
  stop(): Promise<void>
}

function limitsMessage({ limits, clusters }: WiredGateway, cluster: string): string {
  const schemas = clusters.get(cluster)?.compiled.schemas ?? []
  if (limits === undefined || !schemas.some(({ shared }) => shared !== undefined)) return ''
  const { mode, replicas, message } = limits.status()
  if (mode !== 'parted') return ''
  return `${REDIS_AWAY} (${message}): this replica keeps to 1/${Math.max(1, replicas.length)} of each shared limit`
}

/** Where the Leases of the gateway are: a namespace that every API server has. */
const NAMESPACE = 'default'
const LEADER_LEASE = 'portcullis-leader'

/** Objects that are files have no status: `client` is undefined then. */
export function startStatuses(
  config: Config,
  parts: WiredGateway,
  client: ObjectClient | undefined,
  protection: Pick<Protection, 'stateOf'>,
  log: Logger,
): Statuses | undefined {
  if (client === undefined) return undefined
  const { replicaName: replica } = config
  const { clusters, clock, clocks, pool, changes } = parts
  const identity = `${replica}_${randomUUID()}`
  const lease = startLeaderElection(client, { namespace: NAMESPACE, name: LEADER_LEASE, identity, log })
  const controller = startClusterStatus({
    client,
    replica,
    isLeader: () => lease.isLeader(),
    clusters,
    rights: (cluster) => parts.rights.get(cluster),
    podProtection: (cluster) => protection.stateOf(cluster),
    problems: () => changes.inForce.problems,
    clock,
    clocks,
    random: Math.random,
    log,
    ...(parts.limits !== undefined && { limitsMessage: (name) => limitsMessage(parts, name) }),
  })
  const leave = changes.onApplied((generations, changed) => controller.applied(generations, pool.slots.length, changed))
  return {
    async stop() {
      leave()
      await controller.stop()
      await lease.stop()
    },
  }
}
