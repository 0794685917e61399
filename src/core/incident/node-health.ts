// Whether so many nodes are unready that rather the control plane has lost them than that all have failed: the formula of the
// cluster-autoscaler, with hysteresis, a selection of nodes, and no decision from old or partial data.

import type { NodesSeen } from '../../api/ports/cluster-health.ts'
import { isUnhealthy } from '../scale/cluster-state/readiness.ts'
import type { Observation } from './hysteresis.ts'

export interface NodeHealthOptions {
  /** Up to this many unready nodes are not an incident in any cluster. */
  readonly okUnready: number
  /** It begins with strictly more than so many per cent unready, and strictly more than `okUnready`. */
  readonly maxUnreadyPercent: number
  /** It ends with at most so many per cent unready, or at most `okUnready`. */
  readonly exitPercent: number
  /** Older than this, what is known of the nodes decides nothing. Milliseconds */
  readonly staleAfterMs: number
}

/** @param nowMs monotonic milliseconds */
export function observeNodes(
  seen: Pick<NodesSeen, 'total' | 'unready' | 'observedAtMs' | 'complete'> | undefined,
  { okUnready, maxUnreadyPercent, exitPercent, staleAfterMs }: NodeHealthOptions,
  nowMs: number,
): Observation {
  if (seen === undefined || !seen.complete || nowMs - seen.observedAtMs > staleAfterMs) return 'unknown'
  const { total, unready } = seen
  // A cluster without nodes is as good as it was: nothing can be lost.
  const bounds = { okTotalUnreadyCount: okUnready, maxTotalUnreadyPercentage: maxUnreadyPercent }
  if (isUnhealthy(unready, total, bounds)) return 'bad'
  return unready <= okUnready || unready * 100 <= exitPercent * total ? 'good' : 'between'
}

/** `12 of 20 nodes unready (60 %)` */
export function nodesText({ total, unready }: Pick<NodesSeen, 'total' | 'unready'>): string {
  return `${unready} of ${total} nodes unready (${total === 0 ? 0 : Math.round((unready * 100) / total)} %)`
}
