// Whether so many nodes are unready that rather the control plane has lost them than that all have failed: the formula of the
// cluster-autoscaler, with hysteresis, a selection of nodes, and no decision from old or partial data.

import { isUnhealthy } from '../scale/cluster-state/readiness.ts'
import type { Observation } from './hysteresis.ts'

export interface NodeHealthOptions {
  /** Up to this many unready nodes are not an incident in any cluster. */
  readonly okUnready: number
  /** It begins with strictly more than so many per cent unready, and strictly more than `okUnready`. */
  readonly maxUnreadyPercent: number
  /** It ends with at most so many per cent unready. */
  readonly exitPercent: number
  /** Older than this, what is known of the nodes decides nothing. Milliseconds */
  readonly staleAfterMs: number
}

export const NODE_HEALTH_DEFAULTS: NodeHealthOptions = {
  okUnready: 3,
  maxUnreadyPercent: 45,
  exitPercent: 30,
  staleAfterMs: 60_000,
}

/** The nodes that are selected, as of a moment. */
export interface NodeCounts {
  readonly all: number
  readonly unready: number
  /** Until when all that happened to nodes has been seen. Monotonic milliseconds */
  readonly asOfMs: number
  /** All nodes have been listed since the watch began. */
  readonly complete: boolean
}

export function observeNodes(
  counts: NodeCounts | undefined,
  { okUnready, maxUnreadyPercent, exitPercent, staleAfterMs }: NodeHealthOptions,
  nowMs: number,
): Observation {
  if (counts === undefined || !counts.complete || nowMs - counts.asOfMs > staleAfterMs) return 'unknown'
  const { all, unready } = counts
  // A cluster without nodes is as good as it was: nothing can be lost.
  const bounds = { okTotalUnreadyCount: okUnready, maxTotalUnreadyPercentage: maxUnreadyPercent }
  if (isUnhealthy(unready, all, bounds)) return 'bad'
  return unready <= okUnready || unready * 100 <= exitPercent * all ? 'good' : 'between'
}

/** `12 of 20 nodes unready (60 %)` */
export function nodesText({ all, unready }: NodeCounts): string {
  return `${unready} of ${all} nodes unready (${all === 0 ? 0 : Math.round((unready * 100) / all)} %)`
}
