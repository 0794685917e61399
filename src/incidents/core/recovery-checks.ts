// The conditions that must hold at one mode of the degrade ladder before the next one is set. An unknown value only stops the climb: it
// neither advances the recovery nor sends it back.

import type { DegradeMode } from '../../gateway/api/upstream-cluster/degrade-modes.ts'
import type { RecoveryCheck } from '../../gateway/api/upstream-cluster/status.ts'
import type { Observation } from './hysteresis.ts'
import { hasTooManyUnready } from './readiness.ts'
import { observeAnswers } from './upstream-health.ts'

/** Observations of a cluster at one moment. undefined = unknown. */
export interface RecoveryFacts {
  /** Without servers, as a cluster that is read from its members, it has neither endpoints nor nodes. Default true. */
  readonly hasServers?: boolean
  /** Enabled endpoints, and how many of them take requests. */
  readonly endpoints: { readonly available: number; readonly enabled: number } | undefined
  readonly upstream: UpstreamFact | undefined
  readonly nodes: NodesFact | undefined
  /** Percentage of Ready nodes before the incident; undefined = it was not observed. */
  readonly readyNodesBefore: number | undefined
  /** Disruptive requests refused in the last minute, counting different users or objects once. */
  readonly refusedDisruptive: number | undefined
}

/** Upstream answers in a window. */
interface UpstreamFact {
  readonly requests: number
  readonly failed5xx: number
  readonly medianMs: number
  /** Age of this observation. Milliseconds */
  readonly ageMs: number
}

interface NodesFact {
  readonly ready: number
  readonly total: number
  /** All nodes have been listed since the watch began. */
  readonly complete: boolean
  /** Age of this observation. Milliseconds */
  readonly ageMs: number
  /** Why they can't be observed; '' = they can. */
  readonly message: string
}

/** `between`: too bad to climb, too good to go back. */
export interface RecoveryVerdict extends RecoveryCheck {
  readonly observed: Observation
}

/** Observations older than this count as unknown. Milliseconds */
const STALE_AFTER_MS = 60_000
/** Never require more than this percentage of Ready nodes: some are always under repair. */
const ENOUGH_READY_PERCENT = 95
/** Falling below the requirement by this many nodes and by this percentage is a loss that sends the recovery back. */
const LOST_NODES = { okTotalUnreadyCount: 3, maxTotalUnreadyPercentage: 20 } as const
const UPSTREAM = { maxErrorPercent: 10, maxLatencyMs: 2_000, minRequests: 20 } as const
/** Up to this many refused disruptive requests do not count as a queue. */
const SMALL_QUEUE = 10

/** Refused disruptive requests since a mode began: the maximum per minute, and since when they have not exceeded it. */
export interface RefusedQueue {
  readonly most: number
  /** Monotonic milliseconds. */
  readonly sinceMs: number
}

export const EMPTY_QUEUE: RefusedQueue = { most: 0, sinceMs: 0 }
/** A cluster always has some clients that scale down and clean up: fluctuation by this percentage is not growth. */
const WAVERS_PERCENT = 10
/** As long as the counted window. Milliseconds */
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
  const { hasServers = true } = facts
  const checks = hasServers ? [endpointsCheck(facts)] : []
  if (mode === 'Freeze') {
    // Only health checks and exempt requests get through, no heartbeats.
    if (facts.upstream !== undefined && facts.upstream.ageMs <= STALE_AFTER_MS)
      checks.push(upstreamCheck(facts.upstream))
    return checks
  }
  checks.push(upstreamCheck(facts.upstream))
  if (hasServers) checks.push(nodesCheck(facts, mode))
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

/** Going back can help only above HeartbeatsOnly: below it, nodes can't become Ready. */
function nodesCheck({ nodes, readyNodesBefore }: RecoveryFacts, mode: DegradeMode): RecoveryVerdict {
  const name = 'Nodes'
  if (nodes === undefined) return verdict(name, 'unknown', 'nodes have not been listed yet')
  if (nodes.message !== '') return verdict(name, 'unknown', `nodes cannot be seen: ${nodes.message}`)
  if (!nodes.complete || nodes.ageMs > STALE_AFTER_MS)
    return verdict(name, 'unknown', 'the known state of the nodes is out of date')
  const { ready, total } = nodes
  const enough = Math.min(readyNodesBefore ?? 100, ENOUGH_READY_PERCENT)
  const before = readyNodesBefore === undefined ? '' : `, ${readyNodesBefore} % were before the incident`
  const message = `${ready} of ${total} nodes are Ready, ${enough} % are needed${before}`
  // A cluster without Nodes, as after an etcd restore, has not recovered.
  if (total === 0 && enough > 0 && readyNodesBefore !== undefined) return verdict(name, 'between', message)
  if (ready * 100 >= enough * total) return verdict(name, 'good', message)
  const lost = Math.ceil((enough * total) / 100) - ready
  const isLoss = mode !== 'HeartbeatsOnly' && hasTooManyUnready(lost, total, LOST_NODES)
  return verdict(name, isLoss ? 'bad' : 'between', message)
}

/**
 * Clients that want to disrupt wait and retry: a growing number of them means that something is wrong. A constant number is normal for the
 * cluster, and Limited admits it at a rate.
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
  if (nowMs - sinceMs >= NOT_GROWN_MS) return verdict(name, 'good', `${count}, and the number does not grow`)
  return verdict(name, 'between', `${count}, and for a minute the number must not grow`)
}
