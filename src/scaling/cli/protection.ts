// What PodProtectors say to the deletions of a scale-down, as the gateway would ask them.

import type { ProtectionSettings } from '../../process/api/protection-settings.ts'
import type { PodFacts, ProtectorAnswer } from '../../protection/api/protection.ts'
import { type ProtectedCell, whyNotAsked } from '../../protection/cli/why.ts'
import { podFacts } from '../../protection/core/quota/pod-facts.ts'
import { askProtectors } from '../../protection/core/scale-down/ask-protectors.ts'
import type { ProtectorTable } from '../../protection/state/protectors.ts'
import { leavingPods } from '../core/protection/leaving-pods.ts'
import type { ScaleDownPlan } from '../core/rank/scale-down-plan.ts'
import type { ReadWorkload, Target } from './workload.ts'

export interface ProtectionAnswer {
  readonly cell: string
  /** Nothing is refused, only counted. */
  readonly shadow: boolean
  /** Why protectors are not asked; '' = they are. */
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

export function protectionAnswer(
  { asked, table, settings }: ProtectionQuestion,
  target: Target,
  { workload, pods }: ReadWorkload,
  plan: ScaleDownPlan,
  nowMs: number,
): ProtectionAnswer {
  const { cell, shadow } = asked
  const unasked = whyUnasked(asked, plan, pods)
  if (unasked !== '') return { cell, shadow, unasked, protectors: [], refuses: false }
  const sets = leavingPods(plan, pods, (pod) => whyNotAsked(pod, asked) === '')
  const question = { cell, kind: target.kind, workload, replicas: plan.to, sets }
  const protectors = askProtectors(question, table, settings, nowMs)
  const refuses = !shadow && protectors.some(({ refused }) => refused.most > 0)
  return { cell, shadow, unasked: '', protectors, refuses }
}

/** '' = at least one pod to be removed is protected. */
function whyUnasked(asked: ProtectedCell, { sets }: ScaleDownPlan, pods: ReadWorkload['pods']): string {
  const leaving = new Set(sets.flatMap(({ certain, possible }) => [...certain, ...possible.pods]).map(({ uid }) => uid))
  if (leaving.size === 0) return 'no pod goes'
  const going: PodFacts[] = pods.flatMap((pod) => podFacts(pod) ?? []).filter(({ uid }) => leaving.has(uid))
  const whys = new Set(going.map((pod) => whyNotAsked(pod, asked)))
  return whys.has('') ? '' : ([...whys][0] ?? '')
}
