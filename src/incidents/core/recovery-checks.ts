// What has to hold at a mode of the degrade ladder until the next one is set. What is not known holds nothing up but the climb: it
// neither lets the recovery go on nor sends it back.

import type { DegradeMode } from '../../gateway/api/upstream-cluster/degrade-modes.ts'
import type { RecoveryCheck } from '../../gateway/api/upstream-cluster/status.ts'
import { isUnhealthy } from '../../scale-up-guard/core/cluster-state/readiness.ts'
import type { Observation } from './hysteresis.ts'
import { observeAnswers } from './upstream-health.ts'

/** What is seen of a cluster at a moment. undefined = not known. */
export interface RecoveryFacts {
  /** Endpoints that are enabled, and how many of them take requests. */
  readonly endpoints: { readonly available: number; readonly enabled: number } | undefined
  readonly upstream: UpstreamFact | undefined
  readonly nodes: NodesFact | undefined
  /** Share of Ready nodes before the incident, in per cent; undefined = nobody has seen it. */
  readonly readyNodesBefore: number | undefined
  /** Disruptive requests that were refused in the last minute, and came from different users or were about different objects. */
  readonly refusedDisruptive: number | undefined
}

/** Answers of upstream in a window. */
export interface UpstreamFact {
  readonly requests: number
  readonly failed5xx: number
  readonly medianMs: number
  /** How old this is. Milliseconds */
  readonly ageMs: number
}

export interface NodesFact {
  readonly ready: number
  readonly total: number
  /** All nodes have been listed since the watch began. */
  readonly complete: boolean
  /** How old this is. Milliseconds */
  readonly ageMs: number
  /** Why they cannot be seen; '' = they can. */
  readonly message: string
}

/** `between`: too bad to climb, too good to go back. */
export interface RecoveryVerdict extends RecoveryCheck {
  readonly observed: Observation
}

/** Older than this, what is known counts as unknown. Milliseconds */
const STALE_AFTER_MS = 60_000
/** Never more than so many per cent of nodes have to be Ready: some are always being repaired. */
const ENOUGH_READY_PERCENT = 95
/** So many nodes, and so many per cent, below what is enough are a loss that sends the recovery back. */
const LOST_NODES = { okTotalUnreadyCount: 3, maxTotalUnreadyPercentage: 20 } as const
const UPSTREAM = { maxErrorPercent: 10, maxLatencyMs: 2_000, minRequests: 20 } as const
/** With so few refused disruptive requests nobody is waiting. */
const SMALL_QUEUE = 10

/** Refused disruptive requests since a mode began: how many there were at most in a minute, and since when they are no more than that. */
export interface RefusedQueue {
  readonly most: number
  /** Monotonic milliseconds. */
  readonly sinceMs: number
}

export const EMPTY_QUEUE: RefusedQueue = { most: 0, sinceMs: 0 }
/** A cluster always has some who scale down and clean up: their number wavers by so many per cent, and does not grow. */
const WAVERS_PERCENT = 10
/** As long as the window that is counted. Milliseconds */
const NOT_GROWN_MS = 60_000

export function followQueue(queue: RefusedQueue, refused: number, nowMs: number): RefusedQueue {
  return refused * 100 > queue.most * (100 + WAVERS_PERCENT) ? { most: refused, sinceMs: nowMs } : queue
}

/** @param refused since this mode began */
export function recoveryChecks(
  mode: DegradeMode,
  facts: RecoveryFacts,
  refused: RefusedQueue,
  nowMs: number,
): readonly RecoveryVerdict[] {
  const checks = [endpointsCheck(facts)]
  if (mode === 'Freeze') {
    // Nothing but health checks and who is exempt gets there, and no heartbeat.
    if (facts.upstream !== undefined && facts.upstream.ageMs <= STALE_AFTER_MS)
      checks.push(upstreamCheck(facts.upstream))
    return checks
  }
  checks.push(upstreamCheck(facts.upstream), nodesCheck(facts, mode))
  if (mode === 'NoDisruption' || mode === 'Limited') checks.push(disruptionCheck(facts, refused, nowMs))
  return checks
}

function verdict(name: string, observed: Observation, message: string): RecoveryVerdict {
  return { name, ok: observed === 'good', observed, message }
}

function endpointsCheck({ endpoints }: RecoveryFacts): RecoveryVerdict {
  const name = 'Endpoints'
  if (endpoints === undefined) return verdict(name, 'unknown', 'not known yet')
  const { available, enabled } = endpoints
  const message = `${available} of ${enabled} take requests`
  return verdict(name, available > 0 ? 'good' : 'bad', message)
}

function upstreamCheck(upstream: UpstreamFact | undefined): RecoveryVerdict {
  const name = 'Upstream'
  if (upstream === undefined) return verdict(name, 'unknown', 'answers have not been counted yet')
  const { requests, failed5xx, medianMs, ageMs } = upstream
  if (ageMs > STALE_AFTER_MS) return verdict(name, 'unknown', 'answers have not been counted for a minute')
  const failed = `${failed5xx} of ${requests} requests failed`
  if (requests < UPSTREAM.minRequests) return verdict(name, failed5xx === 0 ? 'good' : 'between', failed)
  const observed = observeAnswers({ requests, failed5xx, medianMs }, UPSTREAM)
  return verdict(name, observed, `${failed}, the median took ${Math.round(medianMs)} ms`)
}

/** Only above HeartbeatsOnly can it help to go back: below, nodes cannot become Ready. */
function nodesCheck({ nodes, readyNodesBefore }: RecoveryFacts, mode: DegradeMode): RecoveryVerdict {
  const name = 'Nodes'
  if (nodes === undefined) return verdict(name, 'unknown', 'nodes have not been listed yet')
  if (nodes.message !== '') return verdict(name, 'unknown', `nodes cannot be seen: ${nodes.message}`)
  if (!nodes.complete || nodes.ageMs > STALE_AFTER_MS) return verdict(name, 'unknown', 'what is known of nodes is old')
  const { ready, total } = nodes
  const enough = Math.min(readyNodesBefore ?? 100, ENOUGH_READY_PERCENT)
  const before = readyNodesBefore === undefined ? '' : `, ${readyNodesBefore} % were before the incident`
  const message = `${ready} of ${total} nodes are Ready, ${enough} % are needed${before}`
  // A cluster whose Nodes are gone, as after a restore of etcd, is not back.
  if (total === 0 && enough > 0 && readyNodesBefore !== undefined) return verdict(name, 'between', message)
  if (ready * 100 >= enough * total) return verdict(name, 'good', message)
  const lost = Math.ceil((enough * total) / 100) - ready
  const isLoss = mode !== 'HeartbeatsOnly' && isUnhealthy(lost, total, LOST_NODES)
  return verdict(name, isLoss ? 'bad' : 'between', message)
}

/**
 * Those who want to disrupt wait and ask again: while more and more of them do, something goes wrong. A number that stays is what
 * the cluster always has, and Limited lets it through at a rate.
 */
function disruptionCheck(
  { refusedDisruptive }: RecoveryFacts,
  { most, sinceMs }: RefusedQueue,
  nowMs: number,
): RecoveryVerdict {
  const name = 'Disruption'
  if (refusedDisruptive === undefined) return verdict(name, 'unknown', 'refused disruptive requests are not counted')
  const count = `${refusedDisruptive} disruptive requests were refused in the last minute`
  if (refusedDisruptive <= SMALL_QUEUE) return verdict(name, 'good', count)
  if (refusedDisruptive * 2 <= most) return verdict(name, 'good', `${count}, ${most} at most since this mode began`)
  if (nowMs - sinceMs >= NOT_GROWN_MS) return verdict(name, 'good', `${count}, and they are not getting more`)
  return verdict(name, 'between', `${count}, and for a minute they must not get more`)
}
