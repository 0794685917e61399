// Which pods could go in the place of one whose deletion is refused: those that take no quota, and those that a scale-down would delete
// before it.

import type { BetterVictim } from '../../../api/ports/protection.ts'
import type { Rule } from '../../scale/rank/compare-pods.ts'
import { type Comparable, type RankedPod, Rankings } from './deletion-order.ts'

interface Listed extends Comparable {
  readonly one: RankedPod
  readonly late: false
}

/** Kept of all pods of a PodProtector: the first to go. */
const MAX_KEPT = 32

/** The first victims among the pods of one PodProtector in one cell, found once for many refusals. */
export class FirstVictims {
  readonly #rankings: Rankings
  readonly #first: readonly Listed[]

  /** @param pods that the PodProtector selects in the cell */
  constructor(pods: readonly RankedPod[], nowMs: number) {
    this.#rankings = new Rankings(pods, [], nowMs)
    const staying = pods.filter(({ pod }) => !pod.terminating)
    const listed = staying.map((one): Listed => ({ ...this.#rankings.candidates(one), one, late: false }))
    this.#first = this.#rankings.sorted(listed).slice(0, MAX_KEPT)
  }

  /**
   * @param stays whether a pod is still there, and not admitted to be deleted
   * @returns at most `max`, the best first
   */
  betterThan(refused: RankedPod, max: number, stays: (uid: string) => boolean): readonly BetterVictim[] {
    const own = this.#rankings.candidates(refused)
    const found: BetterVictim[] = []
    for (const listed of this.#first) {
      if (found.length === max) break
      const { pod } = listed.one
      if (pod.uid === refused.pod.uid || !stays(pod.uid)) continue
      const rule = this.#rankings.before(listed, own)
      if (!pod.ready) found.push({ name: pod.name, because: 'is not ready: its deletion takes no available pod' })
      else if (rule !== undefined) found.push({ name: pod.name, because: BECAUSE[rule](listed, own) })
    }
    return found
  }
}

const BECAUSE: Readonly<Record<Rule, (better: Comparable, own: Comparable) => string>> = {
  Unassigned: () => 'has no node',
  Phase: ({ own: { pod } }) => `is in phase ${pod.phase}`,
  NotReady: () => 'is not ready: its deletion takes no available pod',
  DeletionCost: (better, own) =>
    `has deletion cost ${better.own.pod.deletionCost}, less than ${own.own.pod.deletionCost}`,
  DoubledUp: ({ own: { pod, rank } }) => `is one of ${rank.high} pods of its owner on node ${pod.nodeName}`,
  ReadyTime: () => 'has been ready for a shorter time',
  Restarts: () => 'has restarted more often',
  CreationTime: () => 'is younger',
}
