// What `portcullis scale why` prints: a table for people, or one JSON object.

import type { ProtectorAnswer } from '../../api/ports/protection.ts'
import type { PlannedPod, PlannedSet, ScaleDownPlan } from '../../core/scale/rank/scale-down-plan.ts'
import { textTable } from '../client/text-table.ts'
import type { ProtectionAnswer } from './protection.ts'
import type { Target } from './workload.ts'

export interface Answer {
  readonly target: Target
  readonly plan: ScaleDownPlan
  /** undefined = nobody was asked, or could be. */
  readonly protection: ProtectionAnswer | undefined
  /** Whole sentences without a full stop. */
  readonly notes: readonly string[]
}

const HEAD = ['POD', 'NODE', 'VERDICT', 'RULE']

export function jsonReport({ target, plan, protection, notes }: Answer): string {
  const { kind, namespace, name } = target
  const { from, to, sets } = plan
  const answer = { kind, namespace, name, replicas: { from, to }, sets, protection: protection ?? null, notes }
  return `${JSON.stringify(answer, null, 2)}\n`
}

export function textReport({ target, plan: { from, to, sets }, protection }: Answer): string {
  const { resource, namespace, name } = target
  const lines = [`${resource.singular} ${namespace}/${name}: ${from} replicas now, ${to} asked for; ${summary(sets)}\n`]
  for (const set of sets) {
    if (sets.length > 1) lines.push(`\n${set.name}: ${set.from} pods, ${set.to} afterwards\n`)
    lines.push(textTable([HEAD, ...rowsOf(set)]))
  }
  if (protection !== undefined) lines.push(...protectionLines(protection))
  return lines.join('')
}

function summary(sets: readonly PlannedSet[]): string {
  const certain = sets.reduce((all, set) => all + set.certain.length, 0)
  const possible = sets.reduce((all, { possible: { count } }) => all + count, 0)
  const open = sets.reduce((all, { possible: { pods } }) => all + pods.length, 0)
  if (certain + possible === 0) return 'no pod goes'
  if (possible === 0) return certain === 1 ? '1 pod goes' : `${certain} pods go`
  return `${certain + possible} of its pods go: ${certain} certain, ${possible} of ${open} open`
}

function rowsOf({ certain, possible, safe }: PlannedSet): string[][] {
  const row = (verdict: string) => (pod: PlannedPod) => {
    return [pod.name, pod.node || '-', verdict, `${pod.rule}: ${pod.because}`]
  }
  return [
    ...certain.map(row('goes')),
    ...possible.pods.map(row(`${possible.count} of ${possible.pods.length}`)),
    ...safe.map(row('stays')),
  ]
}

function protectionLines({ unasked, protectors, shadow }: ProtectionAnswer): string[] {
  if (unasked !== '') return [`no PodProtector is asked: ${unasked}\n`]
  if (protectors.length === 0) return ['no PodProtector selects these pods\n']
  return protectors.map((answer) => `PodProtector ${answer.protector}: ${numbers(answer)}: ${said(answer, shadow)}\n`)
}

function numbers({ required, requiredAfter, counted, beingDeleted }: ProtectorAnswer): string {
  const after = requiredAfter === required ? '' : ` (${requiredAfter} after the change)`
  return `${required} required${after}, ${counted} counted, ${beingDeleted} being deleted`
}

function said({ deletions, refused: { least, most }, delayed }: ProtectorAnswer, shadow: boolean): string {
  const now = delayed === 0 ? '' : `; ${delayed} have to wait until earlier ones are seen to have happened`
  if (most === 0) return `lets ${deletions === 1 ? 'the deletion' : `all ${deletions} deletions`} pass${now}`
  const number = least === most ? `${most}` : `${least} to ${most}`
  const refuses = shadow ? 'would refuse, were it not in dry run,' : 'refuses'
  return `${refuses} ${number} of ${deletions} deletions: too few would be left${now}`
}
