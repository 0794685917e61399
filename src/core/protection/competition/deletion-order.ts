// Which of several deletions that compete for the quota of one PodProtector are admitted (admissionOrder DeletionOrder): those of pods
// that a scale-down would delete first. Pods of one owner are compared by all rules of the ReplicaSet controller; of different owners
// by all but the number of pods on their nodes, which says nothing about pods of others.

import type { PodFacts, PodScaleFacts } from '../../../api/ports/protection.ts'
import {
  type Candidate,
  candidate,
  comparePods,
  type RankConditions,
  type Rule,
} from '../../scale/rank/compare-pods.ts'
import type { ScalePod } from '../../scale/rank/scale-pod.ts'

export interface RankedPod {
  readonly cell: string
  readonly pod: PodFacts & { readonly scale: PodScaleFacts }
}

export interface Competitor {
  /** undefined = it keeps the place that it has by arrival. */
  readonly ranked: RankedPod | undefined
  /** Its time is nearly over: it comes behind those that can still be answered. */
  readonly late: boolean
}

/** Compared with one another, of pods that are equal by rules 1 to 4: comparing takes the square of their number. */
const MAX_COMPARED = 200
const ACROSS_OWNERS: Pick<Candidate['rank'], 'low' | 'high'> = { low: 0, high: 0 }
/** Rules that come before the number of pods on a node. */
const FIRST_KEYS = 4

/**
 * @param competitors in the order in which they arrived
 * @param known other pods, for the number of pods of an owner on a node
 * @param nowMs wall clock
 * @returns their indices, first the one that is admitted first
 */
export function admissionOrder(
  competitors: readonly Competitor[],
  known: Iterable<RankedPod>,
  nowMs: number,
): readonly number[] {
  const order = [...competitors.keys()].toReversed()
  const places: number[] = []
  const inPlaces: OrderedPod[] = []
  const ranked = competitors.flatMap(({ ranked: one }) => one ?? [])
  if (ranked.length < 2) return order
  const rankings = new Rankings(ranked, known, nowMs)
  for (const [place, index] of order.entries()) {
    const { ranked: one, late = false } = competitors[index] ?? {}
    if (one === undefined) continue
    places.push(place)
    inPlaces.push({ ...rankings.candidates(one), index, late })
  }
  for (const [at, { index }] of rankings.sorted(inPlaces).entries()) order[places[at] ?? 0] = index
  return order
}

/** A pod for comparisons within its owner, and with pods of other owners. */
export interface Comparable {
  readonly owner: string
  readonly own: Candidate
  readonly across: Candidate
}

interface OrderedPod extends Comparable {
  readonly index: number
  readonly late: boolean
}

export class Rankings {
  readonly #conditions: RankConditions
  /** Active pods of an owner on a node. */
  readonly #onNode = new Map<string, Set<string>>()

  constructor(pods: Iterable<RankedPod>, known: Iterable<RankedPod>, nowMs: number) {
    this.#conditions = { window: { fromMs: nowMs, toMs: nowMs } }
    for (const group of [pods, known]) for (const one of group) this.#place(one)
  }

  #place({ cell, pod }: RankedPod): void {
    const { controllerUid, nodeName, phase } = pod.scale
    if (pod.terminating || controllerUid === '' || phase === 'Succeeded' || phase === 'Failed') return
    const key = nodeKey(cell, controllerUid, nodeName)
    const there = this.#onNode.get(key)
    if (there === undefined) this.#onNode.set(key, new Set([pod.uid]))
    else there.add(pod.uid)
  }

  candidates({ cell, pod }: RankedPod): Comparable {
    const { controllerUid, nodeName } = pod.scale
    const there = this.#onNode.get(nodeKey(cell, controllerUid, nodeName))
    // The pod itself may not be known yet.
    const onNode = (there?.size ?? 0) + (there?.has(pod.uid) === true ? 0 : 1)
    const scaled = scaleOf(pod)
    return {
      // An orphan has no others.
      owner: controllerUid === '' ? `pod ${pod.uid}` : `${cell}/${controllerUid}`,
      own: candidate(scaled, { low: onNode, high: onNode }, this.#conditions),
      across: candidate(scaled, ACROSS_OWNERS, this.#conditions),
    }
  }

  /** @returns the rule by which `a` is deleted before `b`; undefined = it is not, or that is open */
  before(a: Comparable, b: Comparable): Rule | undefined {
    const { first, rule } = this.#compare(a, b)
    return first === 'a' ? rule : undefined
  }

  /** Late ones last; what no rule tells apart keeps its order. */
  sorted<T extends Comparable & { readonly late: boolean }>(pods: readonly T[]): readonly T[] {
    const byKeys = [...pods].sort((a, b) => Number(a.late) - Number(b.late) || byFirstKeys(a, b))
    const result: T[] = []
    let start = 0
    for (let end = 1; end <= byKeys.length; end++) {
      const here = byKeys[start]
      const next = byKeys[end]
      const equal = here !== undefined && next !== undefined && here.late === next.late && byFirstKeys(here, next) === 0
      if (equal) continue
      // A loop: there may be more than a call takes arguments.
      for (const pod of this.#sortedGroup(byKeys.slice(start, end))) result.push(pod)
      start = end
    }
    return result
  }

  /** By how many others come behind it: the comparison can go in a circle. */
  #sortedGroup<T extends Comparable>(group: readonly T[]): T[] {
    const compared = group.slice(0, MAX_COMPARED)
    const points = new Map<T, number>(compared.map((one) => [one, 0]))
    for (const [i, a] of compared.entries()) {
      for (const b of compared.slice(i + 1)) {
        const { first } = this.#compare(a, b)
        if (first === 'either') continue
        const winner = first === 'a' ? a : b
        const loser = first === 'a' ? b : a
        points.set(winner, (points.get(winner) ?? 0) + 1)
        points.set(loser, (points.get(loser) ?? 0) - 1)
      }
    }
    const sorted = compared.sort((a, b) => (points.get(b) ?? 0) - (points.get(a) ?? 0))
    return [...sorted, ...group.slice(MAX_COMPARED)]
  }

  #compare(a: Comparable, b: Comparable): ReturnType<typeof comparePods> {
    return a.owner === b.owner
      ? comparePods(a.own, b.own, this.#conditions)
      : comparePods(a.across, b.across, this.#conditions)
  }
}

function byFirstKeys({ across: a }: Comparable, { across: b }: Comparable): number {
  for (let key = 0; key < FIRST_KEYS; key++) {
    const difference = (a.keys[key] ?? 0) - (b.keys[key] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}

function nodeKey(cell: string, owner: string, node: string): string {
  return `${cell}\n${owner}\n${node}`
}

function scaleOf({
  scale,
  name,
  uid,
  labels,
  ready,
  readySinceMs,
  createdMs,
  terminating,
}: RankedPod['pod']): ScalePod {
  return { ...scale, name, uid, labels, ready, readySinceMs, createdMs, terminating }
}

/** @returns undefined when the pod was read without what orders deletions */
export function rankedPod(cell: string, pod: PodFacts): RankedPod | undefined {
  const { scale } = pod
  return scale === undefined ? undefined : { cell, pod: { ...pod, scale } }
}
