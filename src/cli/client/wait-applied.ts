// Waits until every replica of the gateway, with all its threads, has a change in force. Replicas are those that renew their Lease;
// status.gateways says what they have in force.

import type { GatewayStatus, UpstreamClusterStatus } from '../../gateway/api/upstream-cluster/status.ts'
import { UPSTREAM_CLUSTERS } from '../../gateway/api/upstream-cluster-kind.ts'
import { REPLICA_LABEL_SELECTOR, REPLICA_NAMESPACES, readReplicaLease } from '../../gateway/core/status/gateways.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { textTable } from '../../kit/core/text/text-table.ts'
import { LEASES } from '../../kube/api/kinds/lease-kind.ts'
import type { ObjectClient } from '../../kube/api/object-client.ts'
import { metadataOf } from './control-plane.ts'

interface WaitDeps {
  readonly client: ObjectClient
  readonly timeoutMs: number
  /** Milliseconds since the epoch. */
  readonly now: () => number
  readonly out: (text: string) => void
  readonly err: (text: string) => void
  /** Between two polls. Default 250 ms. */
  readonly pollMs?: number
  /** Text for a replica that has it in force. Default `in force`. */
  readonly inForce?: string
}

interface Row {
  readonly replica: string
  readonly alive: boolean
  readonly gateway: GatewayStatus | undefined
  readonly applied: boolean
}

export interface Look {
  readonly generation: number
  readonly rows: readonly Row[]
  /** Why it will never be in force; '' = it may. */
  readonly invalid: string
}

/** A Lease older than this many durations belongs to a dead replica, whatever the clock skew. */
const DEAD_DURATIONS = 2
/**
 * An object that is invalid only because of a Secret may still come into force otherwise, in particular its degrade switch: poll this
 * many more times.
 */
export const MAX_INVALID_LOOKS = 8

/**
 * Prints what each replica has in force, once all have it or the timeout is reached.
 * @returns the exit code: 1 if a replica doesn't have it, or none is alive
 */
export async function waitApplied(deps: WaitDeps, cluster: string): Promise<number> {
  const { timeoutMs, now, out, err } = deps
  const deadlineMs = now() + timeoutMs
  const alive = new LiveReplicas()
  for (let invalidLooks = 0; ; ) {
    const look = await lookAt(deps, cluster, alive)
    if (look.invalid !== '') invalidLooks++
    const waiting = look.rows.filter(({ alive, applied }) => alive && !applied)
    const anyAlive = look.rows.some(({ alive }) => alive)
    const done = anyAlive && waiting.length === 0
    if (!done && invalidLooks < MAX_INVALID_LOOKS && now() < deadlineMs) {
      await new Promise((resolve) => setTimeout(resolve, deps.pollMs ?? 250))
      continue
    }
    out(table(cluster, look, deps.inForce ?? 'in force'))
    const gone = look.rows.filter(({ alive, applied }) => !alive && !applied).map(({ replica }) => replica)
    if (gone.length > 0) {
      err(
        `warning: no Lease is renewed by ${gone.join(', ')}: if it still serves, isolated from this API server, it does not have this\n`,
      )
    }
    if (done) return 0
    if (look.invalid !== '') err(`error: generation ${look.generation} of ${cluster} is invalid: ${look.invalid}\n`)
    else if (!anyAlive) err(`error: no gateway renews its Lease (${REPLICA_NAMESPACES.join(', ')}); is one running?\n`)
    else {
      const names = waiting.map(({ replica }) => replica).join(', ')
      err(`error: generation ${look.generation} of ${cluster} is not in force yet on: ${names}\n`)
    }
    return 1
  }
}

/** Detects which replicas renew their Lease, as far as one run of a command can tell. */
export class LiveReplicas {
  /** The renewTime at the first poll. */
  readonly #first = new Map<string, string>()

  isAlive(object: JsonObject, nowMs: number): { replica: string; alive: boolean } | undefined {
    const lease = readReplicaLease(object)
    if (lease === undefined) return undefined
    const { replica, renewTime, durationMs } = lease
    const first = this.#first.get(replica) ?? renewTime
    this.#first.set(replica, first)
    const ageMs = nowMs - Date.parse(renewTime)
    return { replica, alive: first !== renewTime || ageMs < durationMs * DEAD_DURATIONS }
  }
}

async function lookAt(deps: WaitDeps, cluster: string, replicas: LiveReplicas): Promise<Look> {
  const object = await deps.client.get(UPSTREAM_CLUSTERS, { namespace: '', name: cluster })
  return lookOf(object, await aliveReplicas(deps, replicas))
}

/** Names of the replicas that renew their Lease. */
export async function aliveReplicas(
  { client, now }: Pick<WaitDeps, 'client' | 'now'>,
  replicas: LiveReplicas,
): Promise<ReadonlySet<string>> {
  const alive = new Set<string>()
  for (const namespace of REPLICA_NAMESPACES) {
    for (const item of (await client.list(LEASES, namespace, REPLICA_LABEL_SELECTOR)).items) {
      const lease = replicas.isAlive(item, now())
      if (lease?.alive === true) alive.add(lease.replica)
    }
  }
  return alive
}

/** What each replica has in force of an object, as its status says. */
export function lookOf(object: JsonObject, alive: ReadonlySet<string>): Look {
  const generation = metadataOf(object).generation ?? 1
  const status = (object['status'] ?? {}) as UpstreamClusterStatus
  const gateways = new Map((status.gateways ?? []).map((gateway) => [gateway.name, gateway]))
  const rows = [...new Set([...gateways.keys(), ...alive])].sort().map((replica): Row => {
    const gateway = gateways.get(replica)
    return { replica, alive: alive.has(replica), gateway, applied: hasApplied(gateway, generation) }
  })
  const ready = status.conditions?.find(({ type }) => type === 'Ready')
  const invalid = ready?.reason === 'Invalid' && (ready.observedGeneration ?? 0) >= generation ? ready.message : ''
  return { generation, rows, invalid }
}

function hasApplied(gateway: GatewayStatus | undefined, generation: number): boolean {
  if (gateway === undefined) return false
  return gateway.observedGeneration >= generation && gateway.threads > 0 && gateway.threadsApplied >= gateway.threads
}

function table(cluster: string, { generation, rows }: Look, inForce: string): string {
  const lines = [['REPLICA', 'THREADS', 'GENERATION', 'APPLIED AT', 'STATE']]
  for (const { replica, alive, gateway, applied } of rows) {
    const state = !alive ? 'gone' : applied ? inForce : (gateway?.message ?? 'not yet')
    const threads = gateway === undefined ? '0' : `${gateway.threadsApplied}/${gateway.threads}`
    lines.push([replica, threads, String(gateway?.observedGeneration ?? 0), gateway?.appliedAt ?? '-', state])
  }
  return `${cluster}, generation ${generation}:\n${textTable(lines, '  ')}`
}
