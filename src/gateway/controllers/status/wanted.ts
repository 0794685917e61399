// The status that a replica wants to write: its own entry of status.gateways and, if it leads, everything else.

import { metaTime } from '../../../kit/core/text/meta-time.ts'
import type {
  CachedResourceStatus,
  ClientsSeen,
  GatewayProtection,
  UpstreamClusterStatus,
} from '../../api/upstream-cluster/status.ts'
import { clusterStatus } from '../../core/status/cluster-status.ts'
import { gatewayEntry, withGateway, withoutGone } from '../../core/status/gateways.ts'
import { problemMessage } from '../../core/status/messages.ts'
import type { StatusFacts } from '../../core/status/status-facts.ts'

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
