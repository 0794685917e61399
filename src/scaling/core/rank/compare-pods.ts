// Which of two pods of a ReplicaSet is deleted first: ActivePodsWithRanks.Less (pkg/controller/controller_utils.go). It is not a strict
// order: pods can be equal, and rules 6 and 8 can even form a cycle.

import type { ControllerManager } from '../../../gateway/api/upstream-cluster/controller-manager.ts'
import { ageOrder, type ComparisonWindow } from './age-bucket.ts'
import { type ScalePod, VICTIM_COST } from './scale-pod.ts'

/** In the order in which they apply. */
export const RULES = [
  'Unassigned',
  'Phase',
  'NotReady',
  'DeletionCost',
  'DoubledUp',
  'ReadyTime',
  'Restarts',
  'CreationTime',
] as const
export type Rule = (typeof RULES)[number]

/** Number of active pods of the same owner on a pod's node: the pod itself, and those of other ReplicaSets too. */
interface NodeRank {
  /** Below `high` if others may leave at the same time. */
  readonly low: number
  readonly high: number
}

export interface Candidate {
  readonly pod: ScalePod
  readonly rank: NodeRank
  /** Keys of the rules up to DoubledUp; the lower one is deleted first. */
  readonly keys: readonly number[]
}

export interface Comparison {
  /** `either`: equal by all rules, or the rule's result may change before the controller compares. */
  readonly first: 'a' | 'b' | 'either'
  /** undefined = no rule distinguishes them. */
  readonly rule: Rule | undefined
}

/** Known configuration of the kube-controller-manager; fields default to true. */
export interface RankConditions extends ControllerManager {
  readonly window: ComparisonWindow
  /**
   * A ScaleDownPolicy is about to set deletion costs, on pods not yet known: pods without a cost of their own, or with the policy's, may
   * come in any order.
   */
  readonly costsOpen?: boolean
}

/** podPhaseToOrdinal; every other phase counts as Pending. */
const PHASES: Readonly<Record<string, number>> = { Pending: 0, Unknown: 1, Running: 2 }
const EQUAL: Comparison = { first: 'either', rule: undefined }

export function candidate(pod: ScalePod, rank: NodeRank, conditions: RankConditions): Candidate {
  const { podDeletionCost = true } = conditions
  const isOpen = isCostOpen(pod, conditions)
  const keys = [
    pod.nodeName === '' ? 0 : 1,
    Object.hasOwn(PHASES, pod.phase) ? (PHASES[pod.phase] ?? 0) : 0,
    pod.ready ? 1 : 0,
    podDeletionCost && !isOpen ? pod.deletionCost : 0,
    isOpen ? 0 : -rank.high,
  ]
  return { pod, rank, keys }
}

function isCostOpen({ deletionCost }: ScalePod, { costsOpen = false }: RankConditions): boolean {
  return costsOpen && (deletionCost === 0 || deletionCost === VICTIM_COST)
}

export function isExact({ rank }: Candidate): boolean {
  return rank.low === rank.high
}

export function comparePods(a: Candidate, b: Candidate, conditions: RankConditions): Comparison {
  for (let rule = 0; rule < DOUBLED_UP; rule++) {
    const difference = (a.keys[rule] ?? 0) - (b.keys[rule] ?? 0)
    if (difference !== 0) return difference < 0 ? (A_FIRST[rule] ?? EQUAL) : (B_FIRST[rule] ?? EQUAL)
  }
  // The keys before are equal, so it is open for both.
  if (isCostOpen(a.pod, conditions)) return decided('DeletionCost', 'either')
  const exact = isExact(a) && isExact(b)
  if (exact) {
    if (a.rank.high === b.rank.high) return compareTimes(a.pod, b.pod, conditions)
    return decided('DoubledUp', a.rank.high > b.rank.high ? 'a' : 'b')
  }
  return compareInexact(a, b, conditions)
}

/** Pods on one node have the same rank, whatever it is. */
function compareInexact(a: Candidate, b: Candidate, conditions: RankConditions): Comparison {
  const rest = compareTimes(a.pod, b.pod, conditions)
  if (a.pod.nodeName === b.pod.nodeName) return rest
  const outcomes = new Set<Comparison['first']>()
  if (a.rank.high > b.rank.low) outcomes.add('a')
  if (b.rank.high > a.rank.low) outcomes.add('b')
  if (a.rank.low <= b.rank.high && b.rank.low <= a.rank.high) outcomes.add(rest.first)
  const [only = 'either'] = outcomes
  return decided('DoubledUp', outcomes.size === 1 ? only : 'either')
}

/** The times by which two pods are compared, if no earlier rule distinguishes them; undefined = none does. */
export function comparedTimes(a: ScalePod, b: ScalePod): readonly [number, number] | undefined {
  if (a.ready && b.ready && a.readySinceMs !== b.readySinceMs) return [a.readySinceMs, b.readySinceMs]
  return a.createdMs === b.createdMs ? undefined : [a.createdMs, b.createdMs]
}

function compareTimes(a: ScalePod, b: ScalePod, conditions: RankConditions): Comparison {
  if (a.ready && b.ready && a.readySinceMs !== b.readySinceMs) {
    return compareTime('ReadyTime', a.readySinceMs, b.readySinceMs, a, b, conditions)
  }
  if (a.restarts !== b.restarts) return decided('Restarts', a.restarts > b.restarts ? 'a' : 'b')
  const { sidecarRestarts = true } = conditions
  if (sidecarRestarts && a.sidecarRestarts !== b.sidecarRestarts) {
    return decided('Restarts', a.sidecarRestarts > b.sidecarRestarts ? 'a' : 'b')
  }
  if (a.createdMs === b.createdMs) return EQUAL
  return compareTime('CreationTime', a.createdMs, b.createdMs, a, b, conditions)
}

/** For two different times: no time comes first, then the younger. */
function compareTime(
  rule: Rule,
  timeA: number,
  timeB: number,
  a: ScalePod,
  b: ScalePod,
  { window, logarithmicScaleDown = true }: RankConditions,
): Comparison {
  if (timeA === 0 || timeB === 0) return decided(rule, timeA === 0 ? 'a' : 'b')
  const younger = timeA > timeB ? 'a' : 'b'
  if (!logarithmicScaleDown) return decided(rule, younger)
  const order = timeA > timeB ? ageOrder(timeA, timeB, window) : ageOrder(timeB, timeA, window)
  if (order === 'ByAge') return decided(rule, younger)
  const lower = a.uid === b.uid ? 'either' : isLowerUid(a.uid, b.uid) ? 'a' : 'b'
  return decided(rule, order === 'ByUid' || lower === younger ? lower : 'either')
}

/** Go compares bytes. UIDs are ASCII. */
function isLowerUid(a: string, b: string): boolean {
  return a < b
}

function comparisons(first: Comparison['first']): readonly Comparison[] {
  return RULES.map((rule) => ({ first, rule }))
}

const A_FIRST = comparisons('a')
const B_FIRST = comparisons('b')
const EITHER = comparisons('either')
const DOUBLED_UP = RULES.indexOf('DoubledUp')

/** Shared objects: there may be millions of pairs. */
function decided(rule: Rule, first: Comparison['first']): Comparison {
  const table = first === 'a' ? A_FIRST : first === 'b' ? B_FIRST : EITHER
  return table[RULES.indexOf(rule)] ?? EQUAL
}
