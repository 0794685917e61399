// Messages for callers that lower replicas: which pods go, and which PodProtectors object.

import { ALLOW_UNTIL_ANNOTATION } from '../../../gateway/api/upstream-cluster/scale-protection.ts'
import type { RefusalCause } from '../../../kit/core/refusal/refusal.ts'
import type { ProtectorAnswer } from '../../../protection/api/protection.ts'
import type { ScaleDownPlan } from '../rank/scale-down-plan.ts'

/** Runes per warning that kube-apiserver allows when there are many. */
const MAX_WARNING = 256
/** Maximum number of warnings that name pods: together with those of other filters they stay below 4,096 runes. */
const MAX_WARNINGS = 12
const MAX_CAUSES = 16
const MAX_NAME = 80

export interface ScaleDown {
  /** `deployments/web`. */
  readonly name: string
  readonly from: number
  readonly to: number
}

function scaleText({ name, from, to }: ScaleDown): string {
  return `${shortened(name)}: ${from} -> ${to} replicas`
}

/**
 * Which pods go: certain ones by name, and how many of the others.
 * @param named false = the caller may not list pods, and is told only how many
 */
export function leavingWarnings(change: ScaleDown, { sets }: ScaleDownPlan, named: boolean): readonly string[] {
  const certain = sets.flatMap(({ certain: pods }) => pods.map(({ name }) => name))
  const open = sets.filter(({ possible }) => possible.count > 0)
  const count = certain.length + open.reduce((all, { possible }) => all + possible.count, 0)
  if (count === 0) return []
  const total = `${scaleText(change)} deletes ${count === 1 ? '1 pod' : `${count} pods`}`
  if (!named) return [total]
  const lines = certain.length === 0 ? [total] : packed(`${total}: `, certain)
  for (const { possible } of open) {
    const among = possible.pods.map(({ name }) => name)
    lines.push(...packed(`${shortened(change.name)}: ${possible.count} of these ${among.length} go: `, among))
    const { soon } = possible
    if (soon === undefined) continue
    lines.push(...packed(`${shortened(change.name)}: if the controller looks within ${soon.seconds}s: `, soon.pods))
  }
  if (lines.length <= MAX_WARNINGS) return lines
  const more = `${shortened(change.name)}: more pods go than are named here; portcullis scale why names all of them`
  return [...lines.slice(0, MAX_WARNINGS - 1), more]
}

/** The names, after `head`, in as many texts as needed. */
function packed(head: string, names: readonly string[]): string[] {
  const texts: string[] = []
  let text = head
  let empty = true
  for (const name of names) {
    const next = empty ? text + name : `${text}, ${name}`
    if (next.length > MAX_WARNING && !empty) {
      texts.push(text)
      text = `and ${name}`
    } else text = next
    empty = false
  }
  return [...texts, text]
}

/** Below 400 characters. @param against the refusing protectors, at least one */
export function refusalText(change: ScaleDown, against: readonly ProtectorAnswer[]): string {
  const [first] = against
  const others = against.length > 1 ? `, and ${against.length - 1} more` : ''
  const why = first === undefined ? '' : `: ${protectorText(first)}${others}`
  return `${scaleText(change)} refused${why}. To let it pass, annotate it first with ${ALLOW_UNTIL_ANNOTATION}, a time (RFC 3339)`
}

/** States what the annotation overrides. @param against at least one */
export function overriddenText({ name }: ScaleDown, [first]: readonly ProtectorAnswer[]): string {
  const protector = shortened(first?.protector ?? '')
  return `${shortened(name)}: ${ALLOW_UNTIL_ANNOTATION} lets this write pass, but PodProtector ${protector} still refuses deletions of pods`
}

function protectorText({ protector, requiredAfter, counted, beingDeleted, deletions }: ProtectorAnswer): string {
  const lag = beingDeleted === 0 ? '' : ` (${beingDeleted} being deleted)`
  return `PodProtector ${shortened(protector)} requires ${requiredAfter}, counts ${counted}${lag}, and ${deletions} would go`
}

export function refusalCauses(against: readonly ProtectorAnswer[]): readonly RefusalCause[] {
  return against.slice(0, MAX_CAUSES).map((answer) => {
    return { reason: 'PodProtector', message: protectorText(answer), field: 'spec.replicas' }
  })
}

function shortened(name: string): string {
  return name.length <= MAX_NAME ? name : `${name.slice(0, MAX_NAME - 3)}...`
}
