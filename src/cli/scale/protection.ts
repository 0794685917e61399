// What PodProtectors say to the deletions of a scale-down: the same rules as in the gateway, for all of them at once, with the numbers
// that the protectors will have after the change.

import type { PodFacts, ProtectionRequest } from '../../api/ports/protection.ts'
import { minAvailableAfter } from '../../core/protection/generator/requirement-after.ts'
import { type Finding, refuses } from '../../core/protection/ledger/verdicts.ts'
import { freePass } from '../../core/protection/quota/evaluate.ts'
import { podFacts } from '../../core/protection/quota/pod-facts.ts'
import type { ProtectionSettings } from '../../core/protection/requests/protection-settings.ts'
import type { PlannedPod, ScaleDownPlan } from '../../core/scale/rank/scale-down-plan.ts'
import type { LiveProtector, ProtectorTable } from '../../state/protectors.ts'
import { findingsOf } from '../protect/explain-deletion.ts'
import type { ProtectedCell } from '../protect/why.ts'
import { whyNotAsked } from '../protect/why.ts'
import type { ReadWorkload, Target } from './workload.ts'

export interface ProtectorAnswer {
  /** `namespace/name`. */
  readonly protector: string
  /** spec.minAvailable now, and after the change. */
  readonly required: number
  readonly requiredAfter: number
  readonly counted: number
  /** Admitted before, and not yet seen to have happened. */
  readonly beingDeleted: number
  /** Of the pods that go, those that it protects. */
  readonly deletions: number
  /** So many of them are refused, at least and at most: which pods go may be open. */
  readonly refused: { readonly least: number; readonly most: number }
  /** So many are refused for now, and pass when earlier ones have been seen to happen. */
  readonly delayed: number
}

export interface ProtectionAnswer {
  readonly cell: string
  /** Nothing is refused, only counted. */
  readonly shadow: boolean
  /** Why nobody is asked; '' = protectors are. */
  readonly unasked: string
  readonly protectors: readonly ProtectorAnswer[]
  /** A deletion is refused, or may be. */
  readonly refuses: boolean
}

export interface ProtectionQuestion {
  readonly asked: ProtectedCell
  readonly table: ProtectorTable
  readonly settings: ProtectionSettings
}

export function askProtectors(
  { asked, table, settings }: ProtectionQuestion,
  target: Target,
  { workload, pods }: ReadWorkload,
  plan: ScaleDownPlan,
  nowMs: number,
): ProtectionAnswer {
  const { cell, shadow } = asked
  const facts = new Map(pods.flatMap((pod) => podFacts(pod) ?? []).map((pod) => [pod.uid, pod]))
  const named = (list: readonly PlannedPod[]): PodFacts[] => list.flatMap(({ uid }) => facts.get(uid) ?? [])
  const some = plan.sets.flatMap(({ certain, possible }) => named([...certain, ...possible.pods]))
  const unasked = new Set(some.map((pod) => whyNotAsked(pod, asked)))
  if (!unasked.has('')) return { cell, shadow, unasked: [...unasked][0] ?? '', protectors: [], refuses: false }
  const victims = some.filter((pod) => whyNotAsked(pod, asked) === '')
  const live = new Map(victims.flatMap((pod) => table.matching(pod.namespace, pod.labels)).map((one) => [one.key, one]))
  const isTheirs = (one: LiveProtector, pod: PodFacts): boolean => {
    return victims.includes(pod) && table.matching(pod.namespace, pod.labels).includes(one)
  }
  const protectors = [...live.values()].map((one) => {
    const ask = (costly: boolean): Answer => {
      const chosen = plan.sets.flatMap(({ certain, possible: { count, pods: open } }) => {
        return [...named(certain), ...sorted(named(open), costly).slice(0, count)]
      })
      const deleted = chosen.filter((pod) => isTheirs(one, pod))
      const spec = {
        ...one.protector.spec,
        minAvailable: minAvailableAfter(one.protector, workload, target.kind, plan.to),
      }
      return answerOf({ ...one, protector: { ...one.protector, spec } }, deleted, asked, settings, nowMs)
    }
    return protectorAnswer(one, ask(true), ask(false))
  })
  return {
    cell,
    shadow,
    unasked: '',
    protectors,
    refuses: !shadow && protectors.some(({ refused }) => refused.most > 0),
  }
}

/** Those first that take most of what a protector can spare, or least. */
function sorted(pods: readonly PodFacts[], costly: boolean): PodFacts[] {
  const cost = ({ ready, forceDelete }: PodFacts): number => (ready && !forceDelete ? 1 : 0)
  return pods.toSorted((a, b) => (costly ? cost(b) - cost(a) : cost(a) - cost(b)))
}

interface Answer {
  readonly required: number
  readonly deletions: number
  readonly findings: readonly Finding[]
  readonly refused: number
  readonly delayed: number
}

function answerOf(
  live: LiveProtector,
  pods: readonly PodFacts[],
  { cell }: ProtectedCell,
  settings: ProtectionSettings,
  nowMs: number,
): Answer {
  const requests = pods.map((pod): ProtectionRequest => {
    const how = { cause: 'DeletePod', via: 'filter', criterion: undefined, user: '', dryRun: true } as const
    return { cell, pod, ...how, shadow: false, timeoutMs: 0 }
  })
  // What nobody can refuse takes nothing, and neither does what is recorded only.
  const asking = requests.filter((request) => freePass(request) === undefined)
  const findings = findingsOf(asking, live, settings, nowMs)
  const refusals = findings.filter((finding, at) => refuses(finding) && asking[at]?.pod.forceDelete !== true)
  const delayed = refusals.filter(({ result }) => result === 'Retry').length
  const { minAvailable: required } = live.protector.spec
  return { required, deletions: pods.length, findings, refused: refusals.length - delayed, delayed }
}

function protectorAnswer({ key, protector }: LiveProtector, most: Answer, least: Answer): ProtectorAnswer {
  const { summary } = protector.status ?? {}
  const first = most.findings[0] ?? least.findings[0]
  return {
    protector: key,
    required: protector.spec.minAvailable,
    requiredAfter: most.required,
    counted: first?.count ?? summary?.aggregatedAvailableReplicas ?? 0,
    beingDeleted: first?.lag ?? 0,
    deletions: most.deletions,
    refused: { least: Math.min(least.refused, most.refused), most: Math.max(least.refused, most.refused) },
    delayed: most.delayed,
  }
}
