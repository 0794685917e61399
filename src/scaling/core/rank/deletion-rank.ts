// Which pods a ReplicaSet deletes when it has too many (getPodsToDelete, pkg/controller/replicaset/replica_set.go), as far as that is
// determined. The controller sorts by a comparison that is not transitive, so pods that are equal, or beat one another in a cycle, come out
// in any sequence. What holds for any sort: the strongly connected components of "a may come before b" form a chain, and each pod of one
// comes before each pod of the next.

import { boundariesMs } from './age-bucket.ts'
import {
  type Candidate,
  type Comparison,
  comparePods,
  isExact,
  type RankConditions,
  type Rule,
} from './compare-pods.ts'
import type { ScalePod } from './scale-pod.ts'

export interface PodVerdict {
  readonly pod: ScalePod
  /** Number of its owner's pods on its node. */
  readonly rank: number
  readonly decision: RankDecision
}

export interface RankDecision {
  /** Everything, Nothing: all pods go, or none does, and the controller compares none. */
  readonly rule: Rule | Undetermined | 'Everything' | 'Nothing'
  /** Its neighbour on the other side of the line; for an undetermined pod, one that may go instead. */
  readonly against: Pick<PodVerdict, 'pod' | 'rank'> | undefined
}

/** Why it is open which pods of a component go. */
type Undetermined =
  /** No rule distinguishes them. */
  | 'Tie'
  /** Their order changes within the window: an age crosses a power of two. */
  | 'AgeBoundary'
  /** Other ReplicaSets of the same owner shrink at the same time, which changes how many pods share a node. */
  | 'SiblingDeletions'
  /** They beat one another in a cycle. */
  | 'Cycle'
  /** A ScaleDownPolicy chooses among them. */
  | 'Policy'
  /** A ReplicaSet deletes 500 at a time and then compares the rest again. */
  | 'LaterBatch'

export interface DeletionRank {
  /** In the order of the controller. */
  readonly certain: readonly PodVerdict[]
  readonly possible: {
    /** How many of `pods` go. 0 = none is undetermined. */
    readonly count: number
    readonly pods: readonly PodVerdict[]
    /** Which ones go, if the controller compares before `untilMs`; absent = that is open even now. */
    readonly soon?: Soon
  }
  readonly safe: readonly PodVerdict[]
}

interface Soon {
  readonly pods: readonly ScalePod[]
  /** Milliseconds since the epoch. */
  readonly untilMs: number
}

/** BurstReplicas. */
export const MAX_DELETIONS_AT_ONCE = 500

/**
 * Cost: the square of the largest number of pods that are equal by rules 1 to 5.
 * @param candidates active pods of one ReplicaSet
 * @param count how many of them are surplus
 */
export function rankDeletions(
  candidates: readonly Candidate[],
  count: number,
  conditions: RankConditions,
): DeletionRank {
  const none = { count: 0, pods: [] }
  if (count <= 0) return { certain: [], possible: none, safe: without(candidates, 'Nothing') }
  if (count >= candidates.length) return { certain: without(candidates, 'Everything'), possible: none, safe: [] }
  const atOnce = Math.min(count, MAX_DELETIONS_AT_ONCE)
  const certain: Candidate[] = []
  let open: readonly Candidate[] = []
  const safe: Candidate[] = []
  for (const component of components(candidates, conditions)) {
    if (certain.length + component.length <= atOnce && open.length === 0) certain.push(...component)
    else if (certain.length < atOnce && open.length === 0) open = component
    else safe.push(...component)
  }
  if (count > atOnce) return laterBatches(certain, [...open, ...safe], count, conditions)
  const last = open[0] ?? certain.at(-1)
  const next = open[0] ?? safe[0]
  return {
    certain: certain.map((one) => verdict(one, next, conditions)),
    possible: open.length === 0 ? none : possible(open, count - certain.length, conditions),
    safe: safe.map((one) => verdict(one, last, conditions)),
  }
}

function possible(open: readonly Candidate[], count: number, conditions: RankConditions): DeletionRank['possible'] {
  const soon = certainSoon(open, count, conditions)
  return { count, pods: openVerdicts(open, conditions), ...(soon !== undefined && { soon }) }
}

/** With more pods, each of that many boundaries would compare that many pods. */
const MAX_SOON = 50

/** If only ages leave it open: which pods would go now, and when that changes. */
function certainSoon(open: readonly Candidate[], count: number, conditions: RankConditions): Soon | undefined {
  const { window } = conditions
  if (open.length > MAX_SOON || window.fromMs === window.toMs) return undefined
  const goingAt = (nowMs: number): readonly Candidate[] | undefined => {
    return goingFirst(open, count, { ...conditions, window: { fromMs: nowMs, toMs: nowMs } })
  }
  const now = goingAt(window.fromMs)
  if (now === undefined) return undefined
  const times = new Set(open.flatMap(({ pod }) => [pod.readySinceMs, pod.createdMs]))
  const moments = [...times].flatMap((time) => (time === 0 ? [] : boundariesMs(time, window)))
  const isOther = (nowMs: number): boolean => {
    const then = goingAt(nowMs)
    return then === undefined || then.some((one) => !now.includes(one))
  }
  const untilMs = moments.sort((a, b) => a - b).find(isOther) ?? window.toMs
  return { pods: now.map(({ pod }) => pod), untilMs }
}

/** The pods that go, in order; undefined = not determined. */
function goingFirst(
  candidates: readonly Candidate[],
  count: number,
  conditions: RankConditions,
): readonly Candidate[] | undefined {
  const going: Candidate[] = []
  for (const component of components(candidates, conditions)) {
    if (going.length === count) break
    going.push(...component)
  }
  return going.length === count ? going : undefined
}

/** For later batches, ranks and ages will have changed. */
function laterBatches(
  certain: readonly Candidate[],
  others: readonly Candidate[],
  count: number,
  conditions: RankConditions,
): DeletionRank {
  return {
    certain: certain.map((one) => verdict(one, others[0], conditions)),
    possible: { count: count - certain.length, pods: without(others, 'LaterBatch') },
    safe: [],
  }
}

/** Components in the order of deletion; pods that the controller can't distinguish share one. */
export function components(candidates: readonly Candidate[], conditions: RankConditions): Candidate[][] {
  const depth = candidates.every(isExact) ? ALL_KEYS : ALL_KEYS - 1
  const byKeys = (a: Candidate, b: Candidate): number => {
    for (let key = 0; key < depth; key++) {
      const difference = (a.keys[key] ?? 0) - (b.keys[key] ?? 0)
      if (difference !== 0) return difference
    }
    return 0
  }
  const sorted = [...candidates].sort(byKeys)
  const found: Candidate[][] = []
  let start = 0
  for (let end = 1; end <= sorted.length; end++) {
    const here = sorted[start]
    const next = sorted[end]
    if (here !== undefined && next !== undefined && byKeys(here, next) === 0) continue
    found.push(...componentsOfGroup(sorted.slice(start, end), conditions))
    start = end
  }
  return found
}

const ALL_KEYS = 5

/**
 * Each pod scores two points per pod that comes before it and one per pod that may. Sorted by score, components are contiguous, and one
 * ends where the total score equals that of the pods up to there among themselves (Landau's theorem on tournaments, with draws).
 */
function componentsOfGroup(group: readonly Candidate[], conditions: RankConditions): Candidate[][] {
  const scored = group.map((one) => ({ one, points: 0 }))
  for (const [i, a] of scored.entries()) {
    for (let j = i + 1; j < scored.length; j++) {
      const b = scored[j]
      if (b === undefined) continue
      const { first } = comparePods(a.one, b.one, conditions)
      if (first !== 'a') a.points += first === 'b' ? 2 : 1
      if (first !== 'b') b.points += first === 'a' ? 2 : 1
    }
  }
  scored.sort((a, b) => a.points - b.points)
  const found: Candidate[][] = []
  let component: Candidate[] = []
  let points = 0
  for (const [index, { one, points: own }] of scored.entries()) {
    component.push(one)
    points += own
    if (points !== index * (index + 1)) continue
    found.push(component)
    component = []
  }
  return found
}

function verdict(one: Candidate, other: Candidate | undefined, conditions: RankConditions): PodVerdict {
  const rule = other === undefined ? undefined : comparePods(one, other, conditions).rule
  return decided(one, rule ?? 'Tie', other)
}

/** Each with a pod that may go instead, and why that is open. */
function openVerdicts(open: readonly Candidate[], conditions: RankConditions): PodVerdict[] {
  return open.map((one) => {
    for (const other of open) {
      const comparison = other === one ? undefined : comparePods(one, other, conditions)
      if (comparison?.first === 'either') return decided(one, whyOpen(comparison), other)
    }
    const winner = open.find((other) => other !== one && comparePods(other, one, conditions).first === 'a')
    return decided(one, 'Cycle', winner)
  })
}

function whyOpen({ rule }: Comparison): Undetermined {
  if (rule === 'DoubledUp') return 'SiblingDeletions'
  if (rule === 'DeletionCost') return 'Policy'
  return rule === undefined ? 'Tie' : 'AgeBoundary'
}

function without(candidates: readonly Candidate[], rule: RankDecision['rule']): PodVerdict[] {
  return candidates.map((one) => decided(one, rule, undefined))
}

function decided({ pod, rank }: Candidate, rule: RankDecision['rule'], other: Candidate | undefined): PodVerdict {
  const against = other && { pod: other.pod, rank: other.rank.high }
  return { pod, rank: rank.high, decision: { rule, against } }
}
