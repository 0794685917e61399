// Whether the pods of each cell are still counted, according to the status of UpstreamClusters: the numbers in a PodProtector stay as they
// are when counting stops.

import { LEASES, UPSTREAM_CLUSTERS } from '../../api/kinds/scheme.ts'
import type { JsonObject } from '../../api/kube/json-object.ts'
import { StatusError } from '../../api/kube/status.ts'
import type { ObjectClient } from '../../api/ports/object-client.ts'
import type { UpstreamClusterStatus } from '../../api/upstream-cluster/status.ts'
import { compileProtection } from '../../core/cluster/compile-protection.ts'
import { conditionOf } from '../../core/status/cluster-status.ts'
import { REPLICA_LABEL_SELECTOR, REPLICA_NAMESPACES, readReplicaLease } from '../../core/status/gateways.ts'
import { metadataOf } from '../client/control-plane.ts'
import { podProtectionOf } from './objects.ts'

export interface CellFault {
  /** RFC 3339; '' = not known. */
  readonly since: string
  readonly message: string
}

/** A Lease older than this many durations belongs to a dead replica, whatever the clock skew. */
const DEAD_DURATIONS = 2

/** By cell; undefined = not known, because the UpstreamClusters are in another API server. @param nowMs since the epoch */
export async function cellFaults(
  client: ObjectClient,
  nowMs: number,
): Promise<ReadonlyMap<string, CellFault> | undefined> {
  const objects = await listed(client)
  if (objects === undefined) return undefined
  const faults = new Map<string, CellFault>()
  const counted = new Set<string>()
  for (const object of objects) {
    const protection = podProtectionOf(object)
    if (protection === undefined) continue
    const { cell, aggregation } = compileProtection(protection, metadataOf(object).name)
    const verdict = aggregation.enabled ? verdictOf((object['status'] ?? {}) as UpstreamClusterStatus, cell) : undefined
    if (verdict === 'counted') counted.add(cell)
    else if (verdict !== undefined) faults.set(cell, verdict)
  }
  // Two clusters may share a cell: one that counts is enough.
  for (const cell of counted) faults.delete(cell)
  if (counted.size > 0 && !(await isAnybodyAlive(client, nowMs))) {
    for (const cell of counted) faults.set(cell, { since: '', message: 'no gateway renews its Lease' })
  }
  return faults
}

/** undefined = no gateway reports on it; older versions do not. */
function verdictOf(status: UpstreamClusterStatus, cell: string): CellFault | 'counted' | undefined {
  const condition = conditionOf(status, 'PodsProtected')
  if (condition === undefined) return undefined
  const entries = (status.gateways ?? []).flatMap(({ podProtection }) => podProtection ?? [])
  const ofCell = entries.filter((entry) => entry.cell === cell)
  if (ofCell.some(({ state }) => state === 'Counting')) return 'counted'
  const broken = ofCell.find(({ state }) => state === 'Broken')
  if (broken === undefined) return { since: condition.lastTransitionTime, message: condition.message }
  const { since, message = '' } = broken
  // The condition repeats the message, unless it has another one that explains it.
  return { since, message: condition.reason === 'Broken' ? message : `${message}; ${condition.message}` }
}

/** Why gateways generate no PodProtectors, each reason once. */
export async function generatorFaults(client: ObjectClient): Promise<readonly string[]> {
  const conditions = ((await listed(client)) ?? []).map(({ status }) =>
    conditionOf((status ?? {}) as UpstreamClusterStatus, 'PodsProtected'),
  )
  const faults = conditions.filter((one) => one?.reason === 'NotGenerated')
  return [...new Set(faults.map((one) => one?.message ?? ''))]
}

async function listed(client: ObjectClient): Promise<readonly JsonObject[] | undefined> {
  try {
    return (await client.list(UPSTREAM_CLUSTERS, '')).items
  } catch (error) {
    if (error instanceof StatusError && (error.code === 403 || error.code === 404)) return undefined
    throw error
  }
}

/** Also true when Leases may not be read. */
async function isAnybodyAlive(client: ObjectClient, nowMs: number): Promise<boolean> {
  try {
    for (const namespace of REPLICA_NAMESPACES) {
      for (const item of (await client.list(LEASES, namespace, REPLICA_LABEL_SELECTOR)).items) {
        const lease = readReplicaLease(item)
        if (lease !== undefined && nowMs - Date.parse(lease.renewTime) < lease.durationMs * DEAD_DURATIONS) return true
      }
    }
    return false
  } catch (error) {
    if (error instanceof StatusError && (error.code === 403 || error.code === 404)) return true
    throw error
  }
}
