// Outcomes of a request, logged and predicted: forwarded, refused for a reason, or forwarded with a shadow mode warning.

import type { RefusalReason } from '../../../kit/core/refusal/refusal.ts'
import type { AlsoAsked, Evaluation } from '../explain/evaluate-request.ts'
import type { LogEntry } from './log-entry.ts'

type Asked = AlsoAsked['filter']

interface ReplayOutcome {
  /** RefusalReason; '' = forwarded. */
  readonly refused: string
  /** The rule or limit that refuses it, or ''. */
  readonly rule: string
  /** `filter/rule` of shadow mode refusals. */
  readonly shadow: readonly string[]
}

export interface ReplayComparison {
  readonly was: ReplayOutcome
  readonly wouldBe: ReplayOutcome
  /** Another check is involved (a PodProtector, the body), and is assumed to decide as in the log. */
  readonly assumed: boolean
}

/** Refusals not caused by configured rules: if the rules admit the request, the same is assumed to happen again. */
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

/** The checks behind these refusals; `replay` only knows whether they still apply. */
const ASKED: Readonly<Partial<Record<RefusalReason, readonly Asked[]>>> = {
  // The size of the list is something the gateway has learned.
  'list-too-large': ['list-guard'],
  'disruption-refused': ['disruption'],
  'eviction-refused': ['disruption'],
  'disruption-limited': ['disruption'],
  protected: ['protection'],
  'protection-unavailable': ['protection'],
  'eviction-unavailable': ['protection'],
  'scale-protected': ['scale-protection'],
  // From scaleProtection, or from a ScaleDownPolicy, which is not part of an UpstreamCluster.
  'scale-unavailable': ['scale-protection', 'scale-down-policy'],
  'scale-up-backed-off': ['scale-up-guard'],
  'not-federated': ['federation'],
  'federated-object-missing': ['federation'],
  'federated-name-twice': ['federation'],
  'federated-watch-merged': ['federation'],
  'federated-write': ['federation'],
  'federated-encoding': ['federation'],
  'federated-version-gone': ['federation'],
  'federated-write-stale': ['federation'],
  'federated-version-ahead': ['federation'],
  'federated-memory': ['federation'],
  'member-forbidden': ['federation'],
  'member-answer': ['federation'],
  'member-unavailable': ['federation'],
  'websocket-origin': ['federation'],
}

/** Refusals by limits whose state (tokens, slots) predates the log: it can't tell which request finds them empty. */
const LIMITS: ReadonlySet<string> = new Set<RefusalReason>(['rate-limited', 'too-many-in-flight', 'too-many-watches'])

/** Prefix of flow control's shadow mode warnings. */
const SHADOW_OF_LIMITS = 'flow-control/'

/** False if it was refused before its user or cluster was known: nothing can be predicted for such a request. */
export function isEvaluable({ user, cluster, reason }: LogEntry): boolean {
  return user !== '' || reason === 'unknown-cluster' || (cluster === '' && reason === 'request-info')
}

export function outcomeOfLog({ reason, refusedBy, shadow }: LogEntry): ReplayOutcome {
  return { refused: reason, rule: refusedBy, shadow }
}

export function compare(was: ReplayOutcome, { refusal, shadow, alsoAsked }: Evaluation): ReplayComparison {
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
  // Checks in shadow mode are assumed to say the same again.
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

/** Whether the client would get another response: a different rule with the same reason does not count. */
export function isChange({ was, wouldBe }: ReplayComparison): boolean {
  return was.refused !== wouldBe.refused
}

/** Whether shadow mode would report something else. */
export function isShadowChange({ was, wouldBe }: ReplayComparison): boolean {
  return was.shadow.length !== wouldBe.shadow.length || was.shadow.some((name) => !wouldBe.shadow.includes(name))
}

/**
 * Whether the only difference is a limit's refusal, so that nothing can be said of this single request. A rule evaluated before the limits
 * is a change in any case.
 */
export function dependsOnLimit({ was, wouldBe }: ReplayComparison): boolean {
  const [before, after] = [was.refused, wouldBe.refused]
  if (LIMITS.has(before)) return LIMITS.has(after) || isPastLimits(after)
  return LIMITS.has(after) && isPastLimits(before)
}

/** Whether a request with this outcome has passed the limits. */
function isPastLimits(refused: string): boolean {
  return refused === '' || INCIDENTS.has(refused) || (isAskedReason(refused) && refused !== 'list-too-large')
}

/** The limits that refuse it, or would in shadow mode. */
export function refusingLimits({ refused, rule, shadow }: ReplayOutcome): string[] {
  const shadowed = shadow.filter((name) => name.startsWith(SHADOW_OF_LIMITS))
  return LIMITS.has(refused) ? [rule, ...shadowed] : shadowed
}

/** Drops what limits report in shadow mode. */
export function withoutShadowOfLimits({ was, wouldBe, assumed }: ReplayComparison): ReplayComparison {
  const rest = (outcome: ReplayOutcome): ReplayOutcome => {
    return { ...outcome, shadow: outcome.shadow.filter((name) => !name.startsWith(SHADOW_OF_LIMITS)) }
  }
  return { was: rest(was), wouldBe: rest(wouldBe), assumed }
}

/** `forward`, or `refuse REASON (RULE)`. */
export function outcomeText({ refused, rule }: ReplayOutcome): string {
  if (refused === '') return 'forward'
  return rule === '' ? `refuse ${refused}` : `refuse ${refused} (${rule})`
}
