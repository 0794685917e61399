// What was done with a request, and what would be: forwarded, refused for a reason, or forwarded with a warning of shadow mode.

import type { RefusalReason } from '../../../kit/core/refusal/refusal.ts'
import type { AlsoAsked, Evaluation } from '../explain/evaluate-request.ts'
import type { LogEntry } from './log-entry.ts'

type Asked = AlsoAsked['filter']

export interface Outcome {
  /** RefusalReason; '' = it is forwarded. */
  readonly refused: string
  /** The rule or limit that refuses it; ''. */
  readonly rule: string
  /** `filter/rule` of what would refuse it, were it not in shadow mode. */
  readonly shadow: readonly string[]
}

export interface Comparison {
  readonly was: Outcome
  readonly wouldBe: Outcome
  /** Somebody else is asked (a PodProtector, the body), and is taken to answer as in the log. */
  readonly assumed: boolean
}

/** By no rule of a configuration: where the rules let the request pass, it meets with the same again. */
const INCIDENTS: ReadonlySet<string> = new Set<RefusalReason>([
  'headers-too-large',
  'misdirected',
  'authentication-unavailable',
  'too-many-reviews',
  'impersonation-invalid',
  'impersonation-forbidden',
  'too-many-cancelled',
  'too-many-failures',
  'share-exceeded',
  'no-endpoint',
  'upstream-failed',
  'upgrade-unsupported',
  'upgrade-failed',
  'body-too-large',
  'body-timeout',
  'unsupported-media-type',
  'protection-forbidden',
  'internal',
])

/** Whose refusals these are; `replay` knows only whether it is still asked. */
const ASKED: Readonly<Partial<Record<RefusalReason, readonly Asked[]>>> = {
  // How large the list is, the gateway has learnt.
  'list-too-large': ['list-guard'],
  'disruption-refused': ['disruption'],
  'eviction-refused': ['disruption'],
  'disruption-limited': ['disruption'],
  protected: ['protection'],
  'protection-unavailable': ['protection'],
  'eviction-unavailable': ['protection'],
  'scale-protected': ['scale-protection'],
  // Of scaleProtection, or of a ScaleDownPolicy, which an UpstreamCluster does not have.
  'scale-unavailable': ['scale-protection', 'scale-down-policy'],
  'scale-up-backed-off': ['scale-up-guard'],
}

/** By a limit whose state (tokens, slots) is older than the log: which request meets it when it is empty cannot be known from the log. */
const LIMITS: ReadonlySet<string> = new Set<RefusalReason>(['rate-limited', 'too-many-in-flight', 'too-many-watches'])

/** What flow control decides in shadow mode. */
const SHADOW_OF_LIMITS = 'flow-control/'

/** Refused before it was known who sent it, or to which cluster: nothing can be said of such a request. */
export function isEvaluable({ user, cluster, reason }: LogEntry): boolean {
  return user !== '' || reason === 'unknown-cluster' || (cluster === '' && reason === 'request-info')
}

export function outcomeOfLog({ reason, refusedBy, shadow }: LogEntry): Outcome {
  return { refused: reason, rule: refusedBy, shadow }
}

export function compare(was: Outcome, { refusal, shadow, alsoAsked }: Evaluation): Comparison {
  if (refusal !== undefined && refusal.refused !== 'no-endpoint') {
    return { was, wouldBe: { refused: refusal.refused, rule: refusal.rule, shadow }, assumed: false }
  }
  if (refusal !== undefined && !INCIDENTS.has(was.refused)) {
    return { was, wouldBe: { refused: refusal.refused, rule: refusal.rule, shadow }, assumed: false }
  }
  if (INCIDENTS.has(was.refused)) return { was, wouldBe: { ...was, shadow }, assumed: false }
  const filters = isAskedReason(was.refused) ? (ASKED[was.refused] ?? []) : []
  const asked = filters.map((filter) => askedOf(filter, alsoAsked))
  const still = asked.find((one) => one !== undefined)
  if (still?.shadow === true) {
    const shadowed = `${still.filter}/${was.rule}`
    return { was, wouldBe: { refused: '', rule: '', shadow: [...shadow, shadowed] }, assumed: true }
  }
  if (still !== undefined) return { was, wouldBe: { ...was, shadow }, assumed: true }
  // What those who are asked said in shadow mode they are taken to say again.
  const again = was.shadow.filter((name) => alsoAsked.some(({ filter }) => name.startsWith(`${filter}/`)))
  return {
    was,
    wouldBe: { refused: '', rule: '', shadow: [...shadow, ...again] },
    assumed: alsoAsked.length > 0,
  }
}

function isAskedReason(reason: string): reason is keyof typeof ASKED {
  return Object.hasOwn(ASKED, reason)
}

function askedOf(filter: Asked, alsoAsked: readonly AlsoAsked[]): AlsoAsked | undefined {
  if (filter === 'scale-down-policy') return { filter, shadow: false, text: '' }
  return alsoAsked.find((one) => one.filter === filter)
}

/** Whether it is another answer for the client: the rule that gives the same reason may have another name. */
export function isChange({ was, wouldBe }: Comparison): boolean {
  return was.refused !== wouldBe.refused
}

/** Whether shadow mode would say something else. */
export function isShadowChange({ was, wouldBe }: Comparison): boolean {
  return was.shadow.length !== wouldBe.shadow.length || was.shadow.some((name) => !wouldBe.shadow.includes(name))
}

/**
 * Whether the only difference is whether a limit refuses, so that nothing can be said of this request by itself. A rule that is evaluated
 * before the limits is a change whatever the limits say.
 */
export function dependsOnLimit({ was, wouldBe }: Comparison): boolean {
  const [before, after] = [was.refused, wouldBe.refused]
  if (LIMITS.has(before)) return LIMITS.has(after) || isPastLimits(after)
  return LIMITS.has(after) && isPastLimits(before)
}

/** Whether a request with this outcome has been through the limits. */
function isPastLimits(refused: string): boolean {
  return refused === '' || INCIDENTS.has(refused) || (isAskedReason(refused) && refused !== 'list-too-large')
}

/** The limits that refuse it, or would in shadow mode. */
export function limitsOf({ refused, rule, shadow }: Outcome): string[] {
  const shadowed = shadow.filter((name) => name.startsWith(SHADOW_OF_LIMITS))
  return LIMITS.has(refused) ? [rule, ...shadowed] : shadowed
}

/** The same without what limits say in shadow mode. */
export function withoutShadowOfLimits({ was, wouldBe, assumed }: Comparison): Comparison {
  const rest = (outcome: Outcome): Outcome => {
    return { ...outcome, shadow: outcome.shadow.filter((name) => !name.startsWith(SHADOW_OF_LIMITS)) }
  }
  return { was: rest(was), wouldBe: rest(wouldBe), assumed }
}

/** `forward`, or `refuse REASON (RULE)`. */
export function outcomeText({ refused, rule }: Outcome): string {
  if (refused === '') return 'forward'
  return rule === '' ? `refuse ${refused}` : `refuse ${refused} (${rule})`
}
