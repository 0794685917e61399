// The status that a replica wants to write: its own entry of status.gateways and, if it leads, everything else.

import { metaTime } from '../../../kit/core/text/meta-time.ts'
import type {
  CachedResourceStatus,
  ClientsSeen,
  GatewayProtection,
  UpstreamClusterStatus,
} from '../../api/upstream-cluster/status.ts'
import { LAST_SEEN_STEP_MINUTES } from '../../api/upstream-cluster/status-schema.ts'
import { clusterStatus } from '../../core/status/cluster-status.ts'
import { gatewayEntry, withGateway, withoutGone } from '../../core/status/gateways.ts'
import { problemMessage } from '../../core/status/messages.ts'
import type { StatusFacts } from '../../core/status/status-facts.ts'
import type { LiveClusters } from './facts.ts'

/** The replica that writes. */
interface StatusAuthor {
  readonly replica: string
  readonly threads: number
  readonly leads: boolean
  /** Problem of its shared limits; '' = none. */
  readonly limitsMessage: string
  /** How it protects pods; undefined = it doesn't. */
  readonly podProtection: GatewayProtection | undefined
  /** Its read cache; undefined = none. */
  readonly cache: readonly CachedResourceStatus[] | undefined
  /** The clients that last came through it, and when; undefined = none of those that matter. */
  readonly lastSeen: ClientsSeen | undefined
  /** How many disruptive requests it refused in the last minute, rounded. */
  readonly refused: number
  /** Whether another replica is dead. */
  isGone(replica: string): boolean
}

/** @param nowMs milliseconds since the epoch */
export function wantedStatus(
  facts: StatusFacts,
  before: UpstreamClusterStatus | undefined,
  author: StatusAuthor,
  nowMs: number,
): UpstreamClusterStatus {
  const { replica, threads, leads, limitsMessage, podProtection, cache, lastSeen, refused } = author
  const problem = facts.problems.find(({ severity }) => severity === 'error')
  const message =
    problem === undefined ? limitsMessage : `generation ${facts.generation} is invalid: ${problemMessage(problem)}`
  const own = {
    name: replica,
    threads,
    threadsApplied: facts.inForce === 0 ? 0 : threads,
    observedGeneration: facts.inForce,
    ...(message !== '' && { message }),
    ...(podProtection !== undefined && { podProtection }),
    ...(cache !== undefined && { cache }),
    ...(lastSeen !== undefined && { lastSeen }),
    ...(refused > 0 && { refusedDisruptive: refused }),
  }
  const status = withGateway(before, gatewayEntry(before, own, metaTime(nowMs)))
  if (!leads) return status
  const present = withoutGone(status, (name) => author.isGone(name))
  return clusterStatus(facts, present, nowMs)
}

// What this replica has seen of an incident, for its entry in the status: when clients that matter last came through it, and the disruptive requests
// that it has refused, which a recovery by steps adds up over all replicas.

const STEP_MS = LAST_SEEN_STEP_MINUTES * 60_000

/** undefined = none of them since this replica started. */
export function clientsSeen(clusters: LiveClusters, name: string): ClientsSeen | undefined {
  const incident = clusters.get(name)?.incident
  if (incident === undefined) return undefined
  const controllerManager = incident.lastSeenMs('controllerManager')
  const kubelets = incident.lastSeenMs('kubelets')
  if (controllerManager === 0 && kubelets === 0) return undefined
  return {
    ...(controllerManager !== 0 && { controllerManager: stepOf(controllerManager) }),
    ...(kubelets !== 0 && { kubelets: stepOf(kubelets) }),
  }
}

function stepOf(atMs: number): string {
  return metaTime(Math.floor(atMs / STEP_MS) * STEP_MS)
}

/** Exact up to here. */
const EXACT = 10

/**
 * In the last minute; above EXACT rounded up to a power of two, so that the status is not written every second.
 * @param nowMs milliseconds since the epoch
 */
export function refusedDisruptive(clusters: LiveClusters, name: string, nowMs: number): number {
  const refused = clusters.get(name)?.incident?.refusedInLastMinute(nowMs) ?? 0
  return refused <= EXACT ? refused : 2 ** Math.ceil(Math.log2(refused))
}
