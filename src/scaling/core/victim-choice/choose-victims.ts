// Which pods of a ReplicaSet get a deletion cost before it is scaled down, so that it deletes those that a policy prefers. Costs are rule 4
// of the controller: unassigned, pending and unready pods go first whatever is preferred, and costs set by others take precedence over
// ours.

import type { ControllerManager } from '../../../gateway/api/upstream-cluster/controller-manager.ts'
import { type JsonObject, mapOf } from '../../../kit/api/json/json-object.ts'
import type { VictimPreference } from '../../api/scale-down-policy.ts'
import { type Candidate, comparePods, type RankConditions } from '../rank/compare-pods.ts'
import { ranked } from '../rank/replica-set-pods.ts'
import { type ScalePod, scalePod } from '../rank/scale-pod.ts'
import { type PodCost, podCost } from './own-cost.ts'

/** Maximum number of pods that get a cost in one scale-down. The controller chooses any further victims. */
export const MAX_VICTIMS = 50
/** Unassigned, Phase, NotReady. */
const KEYS_BEFORE_COST = 3

export interface NodeFacts {
  /** It is cordoned, or has a taint NoSchedule or NoExecute. */
  readonly unschedulable: boolean
  readonly labels: Readonly<Record<string, string>>
  /** Pods that keep it from being empty: active ones of any owner, except DaemonSets; undefined = not requested. */
  readonly pods: number | undefined
}

export interface ChoiceInput {
  /** Active pods of the ReplicaSet. */
  readonly pods: readonly JsonObject[]
  /** Pods of all ReplicaSets of the same owner, to count them per node. */
  readonly related: readonly JsonObject[]
  /** How many of `pods` are surplus. */
  readonly count: number
  readonly prefer: readonly VictimPreference[]
  readonly nodes: ReadonlyMap<string, NodeFacts>
  /** The cluster's kube-controller-manager. */
  readonly controller: ControllerManager
}

export interface VictimChoice {
  /** Pods to be given a cost: those whose deletion depends on it. */
  readonly victims: readonly JsonObject[]
  /** Pods with a cost of ours from before that now stay. */
  readonly stale: readonly JsonObject[]
  /** Names of pods with foreign costs, where costs decide. */
  readonly conflicts: readonly string[]
}

interface Choosable extends Candidate {
  readonly object: JsonObject
  readonly cost: PodCost['kind']
}

export function chooseVictims(input: ChoiceInput): VictimChoice {
  const { count } = input
  const all = choosable(input)
  const own = all.filter(({ cost }) => cost === 'own')
  const { group, left } = decidedByCost(all, count)
  const foreign = group.filter(({ cost }) => cost === 'foreign')
  // Their owners want them to go before pods without a cost.
  const before = foreign.filter(({ pod }) => pod.deletionCost < 0).length
  const open = group.filter(({ cost }) => cost !== 'foreign')
  const wanted = Math.min(left - before, open.length, MAX_VICTIMS)
  const victims = wanted <= 0 || left === group.length ? [] : choose(open, wanted, { ...input, all })
  const chosen = new Set(victims)
  return {
    victims: victims.map(({ object }) => object),
    stale: own.filter((one) => !chosen.has(one)).map(({ object }) => object),
    conflicts: foreign.map(({ pod }) => pod.name).slice(0, MAX_VICTIMS),
  }
}

/** The pods as the controller sees them without our costs. */
function choosable(input: ChoiceInput): Choosable[] {
  const { pods, related } = input
  const costs = pods.map((pod) => podCost(pod).kind)
  const read = pods.map((pod, index) => {
    const facts = scalePod(pod)
    return costs[index] === 'own' ? { ...facts, deletionCost: 0 } : facts
  })
  return ranked(read, related.map(scalePod), conditionsOf(input.controller)).map((one, index) => {
    return { ...one, object: pods[index] ?? {}, cost: costs[index] ?? 'none' }
  })
}

/** Pods that are equal by the rules before the cost, and of which only some go: `left` of them. */
function decidedByCost(
  all: readonly Choosable[],
  count: number,
): { readonly group: readonly Choosable[]; readonly left: number } {
  const groups = new Map<string, Choosable[]>()
  for (const one of all) {
    const key = one.keys.slice(0, KEYS_BEFORE_COST).join()
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [one])
    else group.push(one)
  }
  // Each key is one digit.
  const inOrder = [...groups].sort(([a], [b]) => (a < b ? -1 : 1))
  let left = count
  for (const [, group] of inOrder) {
    if (left <= group.length) return { group, left }
    left -= group.length
  }
  return { group: [], left: 0 }
}

interface Preferring extends Pick<ChoiceInput, 'prefer' | 'nodes' | 'controller'> {
  /** All pods of the ReplicaSet. */
  readonly all: readonly Choosable[]
}

/** One at a time: each changes how full its node and its zone are. */
function choose(open: readonly Choosable[], wanted: number, facts: Preferring): Choosable[] {
  const measures = facts.prefer.map((one) => measureOf(one, facts))
  const left = new Set(inOrderOfDeletion(open, conditionsOf(facts.controller)))
  const chosen: Choosable[] = []
  while (chosen.length < wanted) {
    let best: Choosable | undefined
    let bestValues: readonly number[] = []
    for (const one of left) {
      const values = measures.map((measure) => measure.valueFor(one))
      if (best !== undefined && !isLess(values, bestValues)) continue
      best = one
      bestValues = values
    }
    if (best === undefined) break
    left.delete(best)
    chosen.push(best)
    for (const { gone } of measures) gone(best)
  }
  return chosen
}

function isLess(a: readonly number[], b: readonly number[]): boolean {
  for (const [index, value] of a.entries()) {
    const other = b[index] ?? 0
    if (value !== other) return value < other
  }
  return false
}

/**
 * By the controller's rules, but with exact ages: it compares their powers of two, so two pods may swap places as time passes, and the
 * choice would differ from what was announced. Pods that are equal by all rules are ordered by name.
 */
function inOrderOfDeletion(open: readonly Choosable[], conditions: RankConditions): readonly Choosable[] {
  return open.toSorted((a, b) => {
    const { first } = comparePods(a, b, conditions)
    if (first === 'either') return a.pod.name < b.pod.name ? -1 : 1
    return first === 'a' ? -1 : 1
  })
}

interface Measure {
  /** The lower one goes first. */
  valueFor(one: Choosable): number
  gone(one: Choosable): void
}

const LAST = Number.POSITIVE_INFINITY
const nothing = (): void => undefined

function measureOf(preference: VictimPreference, { all, nodes }: Preferring): Measure {
  const { by, topologyKey = '', annotation = '' } = preference
  switch (by) {
    case 'UnschedulableNode':
      return { valueFor: ({ pod }) => (nodes.get(pod.nodeName)?.unschedulable === true ? 0 : 1), gone: nothing }
    case 'EmptiestNode': {
      const counts = new Map([...nodes].map(([name, { pods = LAST }]) => [name, pods]))
      return {
        valueFor: ({ pod }) => counts.get(pod.nodeName) ?? LAST,
        gone: ({ pod }) => void counts.set(pod.nodeName, (counts.get(pod.nodeName) ?? LAST) - 1),
      }
    }
    case 'TopologyExcess': {
      const domainOf = ({ nodeName }: ScalePod): string | undefined => nodes.get(nodeName)?.labels[topologyKey]
      const counts = new Map<string, number>()
      const add = ({ pod }: Choosable, by: number): void => {
        const domain = domainOf(pod)
        if (domain !== undefined) counts.set(domain, (counts.get(domain) ?? 0) + by)
      }
      for (const one of all) add(one, 1)
      return {
        valueFor: ({ pod }) => {
          const domain = domainOf(pod)
          return domain === undefined ? LAST : -(counts.get(domain) ?? 0)
        },
        gone: (one) => add(one, -1),
      }
    }
    case 'Annotation':
      return { valueFor: ({ object }) => numberIn(mapOf(object, 'annotations')[annotation]), gone: nothing }
  }
}

function numberIn(text: string | undefined): number {
  const value = text === undefined || text.trim() === '' ? Number.NaN : Number(text)
  return Number.isNaN(value) ? LAST : value
}

/** Without logarithmic comparison of ages. */
function conditionsOf(controller: ControllerManager): RankConditions {
  return { ...controller, logarithmicScaleDown: false, window: { fromMs: 0, toMs: 0 } }
}
