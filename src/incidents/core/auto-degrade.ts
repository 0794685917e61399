// spec.degrade.auto: when the gateway itself sets a stricter mode, and when it starts the way back. Each condition (unready nodes, an
// overloaded upstream) sets its mode once, when it begins. After that the mode belongs to the recovery or to the operator, who is not
// overruled until the cluster has been good once.

import type {
  AutoDegradeAction,
  AutoDegradeCause,
  AutoDegradePhase,
  AutoDegradeStatus,
} from '../../gateway/api/upstream-cluster/auto-degrade.ts'
import { DEGRADE_MODES, type DegradeMode } from '../../gateway/api/upstream-cluster/degrade-modes.ts'
import type {
  AutoDegradeOptions,
  HysteresisOptions,
  NodeHealthOptions,
} from '../../gateway/core/cluster/compiled-auto-degrade.ts'
import { metaTime } from '../../kit/core/text/meta-time.ts'
import type { NodesSeen, UpstreamSeen } from '../api/cluster-health.ts'
import { type HysteresisState, inactive, type Observation, observe } from './hysteresis.ts'
import { hasTooManyUnready } from './readiness.ts'
import { answersText, observeAnswers } from './upstream-health.ts'

/** What is observed and in force at one moment. */
export interface AutoDegradeInput {
  readonly nodes: NodesSeen | undefined
  readonly upstream: UpstreamSeen | undefined
  /** The mode in force; Off from expiresAt on. */
  readonly mode: DegradeMode
  /** The gateway set it: the reason in the object says so. */
  readonly automatic: boolean
  /** spec.degrade.recovery is set: the mode follows it. */
  readonly recovering: boolean
  /** Monotonic milliseconds. */
  readonly nowMs: number
}

export interface AutoDegradeState {
  readonly nodes: HysteresisState
  readonly upstream: HysteresisState
  readonly phase: AutoDegradePhase
  /** Fixed at the beginning of the phase: a text that changed every second would rewrite the status every second. */
  readonly reason: string
  readonly action: AutoDegradeAction | undefined
  /** The mode that was entered, or would have been in shadow mode. */
  readonly mode: DegradeMode | undefined
  /** The mode to enter: set when a condition begins, until it has been handled. */
  readonly pending: DegradeMode | undefined
  /** The way back should begin. */
  readonly leaving: boolean
  /** The mode that was entered has been in force. */
  readonly inForce: boolean
  /** Since when nothing is known of the nodes; monotonic milliseconds. */
  readonly unknownSinceMs: number | undefined
}

export type AutoDegradeEffect =
  /** Sets spec.degrade.mode and reason. */
  | { readonly kind: 'enter'; readonly mode: DegradeMode; readonly reason: string }
  /** Sets spec.degrade.recovery and reason, unless the mode has been changed by hand. */
  | { readonly kind: 'recover'; readonly mode: DegradeMode; readonly reason: string }

/** Prefix of the reason for modes set by the gateway. */
export const AUTOMATIC = 'automatic: '
/** Never enters a stricter mode than these on its own. */
const MODES: Readonly<Record<AutoDegradeCause, DegradeMode>> = { Nodes: 'NoDisruption', Upstream: 'Limited' }
const OWN_MODES: ReadonlySet<DegradeMode> = new Set(Object.values(MODES))
/** A watch that has just begun needs a moment for its list. */
const UNKNOWN_AFTER_MS = 10_000

/** @param before status.degrade.auto of the previous leader: what it began continues */
export function startAutoDegrade(before: AutoDegradeStatus | undefined, nowMs: number): AutoDegradeState {
  const degraded = before?.phase === 'Degraded'
  const entered = before?.action === 'Entered'
  const began = (cause: AutoDegradeCause): HysteresisState => {
    return { ...inactive(nowMs), active: degraded && before.causes?.includes(cause) === true }
  }
  const mode = before?.mode === undefined ? undefined : DEGRADE_MODES.find((known) => known === before.mode)
  return {
    nodes: began('Nodes'),
    upstream: began('Upstream'),
    phase: before?.phase ?? 'Normal',
    reason: before?.reason ?? '',
    action: degraded ? before.action : undefined,
    mode,
    pending: undefined,
    leaving: entered && !degraded,
    inForce: entered && degraded,
    unknownSinceMs: undefined,
  }
}

/** The next state, and the effect to apply: repeated on each step until `done` reports it as applied. */
export function stepAutoDegrade(
  state: AutoDegradeState,
  options: AutoDegradeOptions,
  input: AutoDegradeInput,
): { readonly state: AutoDegradeState; readonly effect: AutoDegradeEffect | undefined } {
  const { nowMs } = input
  const seen = options.nodes === undefined ? 'good' : observeNodes(input.nodes, options.nodes, nowMs)
  const answers = options.upstream === undefined ? 'good' : observeAnswers(input.upstream, options.upstream)
  const nodes = next(state.nodes, seen, options.nodes, nowMs)
  const upstream = next(state.upstream, answers, options.upstream, nowMs)
  const unknownSinceMs = seen === 'unknown' ? (state.unknownSinceMs ?? nowMs) : undefined
  const moved = { ...state, nodes, upstream, unknownSinceMs }
  const begun = begunModes(state, moved)
  const pending = strictest([...begun, state.pending])
  const acted = act({ ...moved, pending }, options, input, seen === 'good' && answers !== 'bad')
  return withPhase(acted, options, input, seen)
}

/** A condition that is no longer configured ends at once. */
function next(
  state: HysteresisState,
  observation: Observation,
  options: HysteresisOptions | undefined,
  nowMs: number,
): HysteresisState {
  if (options !== undefined) return observe(state, observation, options, nowMs)
  return state.active || state.changingSinceMs !== undefined ? inactive(nowMs) : state
}

function begunModes(before: AutoDegradeState, now: AutoDegradeState): readonly DegradeMode[] {
  return causesOf(now).flatMap((cause) => (causesOf(before).includes(cause) ? [] : [MODES[cause]]))
}

/** Conditions that have begun and not ended. */
function causesOf({ nodes, upstream }: AutoDegradeState): readonly AutoDegradeCause[] {
  return [...(nodes.active ? (['Nodes'] as const) : []), ...(upstream.active ? (['Upstream'] as const) : [])]
}

function rank(mode: DegradeMode | undefined): number {
  return mode === undefined ? -1 : DEGRADE_MODES.indexOf(mode)
}

function strictest(modes: readonly (DegradeMode | undefined)[]): DegradeMode | undefined {
  return modes.reduce((a, b) => (rank(b) > rank(a) ? b : a), undefined)
}

/** Acts on a condition that begins, continues or ends; `pending` and `leaving` say what to do about it. */
function act(
  state: AutoDegradeState,
  { shadow }: AutoDegradeOptions,
  input: AutoDegradeInput,
  good: boolean,
): AutoDegradeState {
  const { action, mode } = state
  if (causesOf(state).length === 0) {
    const ended = { ...state, pending: undefined, action: undefined, inForce: false }
    if (state.leaving || action === 'Entered') return { ...ended, leaving: true }
    // Left by a leader that died between changing the mode and writing the status about it.
    const orphan = good && isOwn(input) && !input.recovering
    return { ...ended, leaving: orphan, mode: orphan ? input.mode : undefined }
  }
  // It began again before the way back did.
  const pending = state.pending ?? (action === 'Shadow' && !shadow ? mode : undefined)
  if (pending !== undefined) {
    const again = { ...state, leaving: false, pending }
    if (rank(input.mode) >= rank(pending)) {
      const own = action === 'Entered' || state.leaving || isOwn(input)
      return own
        ? { ...again, action: 'Entered', mode: mode ?? input.mode, pending: undefined }
        : { ...again, action: 'Stricter', mode: undefined, pending: undefined }
    }
    return shadow ? { ...again, action: 'Shadow', mode: pending, pending: undefined } : again
  }
  if (action !== 'Entered') return state
  const strict = rank(input.mode) >= rank(mode)
  if (state.inForce && !strict && !input.recovering) return { ...state, action: 'Overruled' }
  return strict && !state.inForce ? { ...state, inForce: true } : state
}

/** A stricter mode was set by an operator, who may have left the reason unchanged. */
function isOwn({ automatic, mode }: AutoDegradeInput): boolean {
  return automatic && OWN_MODES.has(mode)
}

function withPhase(
  state: AutoDegradeState,
  options: AutoDegradeOptions,
  input: AutoDegradeInput,
  seen: Observation,
): { readonly state: AutoDegradeState; readonly effect: AutoDegradeEffect | undefined } {
  const ending = isEnding(state)
  const why = `${reasonOf(state, options, input)}${ending ? ENDING : ''}`
  const phase = phaseOf(state, input, seen)
  // For an unknown state the reason may have changed, and a condition that has begun may have another cause.
  const same = phase === state.phase && ending === state.reason.endsWith(ENDING)
  const told = same && state.reason !== '' && phase !== 'Unknown'
  const reason =
    told && state.pending === undefined ? state.reason : phase === 'Unknown' ? unknownText(input.nodes) : why
  const now = { ...state, phase, reason }
  if (now.pending !== undefined)
    return { state: now, effect: { kind: 'enter', mode: now.pending, reason: `${AUTOMATIC}${why}` } }
  if (now.leaving && now.mode !== undefined) {
    // The mode's original reason no longer holds, and every step of the way back would keep showing it.
    const ended = `${AUTOMATIC}${ON_THE_WAY}${phase === 'Normal' ? `: ${why}` : ''}`
    return { state: now, effect: { kind: 'recover', mode: now.mode, reason: ended } }
  }
  return { state: now, effect: undefined }
}

const ON_THE_WAY = 'on the way back by steps'

/** Suffix of the reason while all conditions are good again, and must stay good for exitAfter. */
const ENDING = ': healthy again, but not for long enough yet'

function isEnding(state: AutoDegradeState): boolean {
  const active = [state.nodes, state.upstream].filter((condition) => condition.active)
  return active.length > 0 && active.every(({ changingSinceMs }) => changingSinceMs !== undefined)
}

function phaseOf(state: AutoDegradeState, { nodes, nowMs }: AutoDegradeInput, seen: Observation): AutoDegradePhase {
  if (causesOf(state).length > 0) return 'Degraded'
  if (state.nodes.changingSinceMs !== undefined || state.upstream.changingSinceMs !== undefined) return 'Suspect'
  if (seen !== 'unknown') return 'Normal'
  const lost = (nodes?.message ?? '') !== '' || nowMs - (state.unknownSinceMs ?? nowMs) >= UNKNOWN_AFTER_MS
  // Stay silent until then: each new leader would report it.
  return lost ? 'Unknown' : state.phase === 'Unknown' ? 'Unknown' : 'Normal'
}

function reasonOf(state: AutoDegradeState, options: AutoDegradeOptions, { nodes, upstream }: AutoDegradeInput): string {
  const speaks = ({ active, changingSinceMs }: HysteresisState): boolean => active || changingSinceMs !== undefined
  const texts: string[] = []
  if (speaks(state.nodes) && nodes !== undefined) texts.push(nodesText(nodes))
  if (speaks(state.upstream) && upstream !== undefined) texts.push(answersText(upstream))
  if (texts.length > 0) return texts.join('; ')
  return options.nodes === undefined ? 'upstream answers' : 'enough nodes are ready'
}

function unknownText(nodes: NodesSeen | undefined): string {
  if (nodes === undefined) return 'the state of the nodes is unknown: no decision'
  const { message, complete } = nodes
  if (message !== '') return `the state of the nodes is unknown: ${message}: no decision`
  return `the state of the nodes is unknown: ${complete ? 'the cluster has been silent for too long' : 'they have not been listed yet'}: no decision`
}

/** The effect was applied, or was no longer needed. */
export function done(state: AutoDegradeState, effect: AutoDegradeEffect): AutoDegradeState {
  if (effect.kind === 'recover') return { ...state, leaving: false, mode: undefined }
  return { ...state, action: 'Entered', mode: effect.mode, pending: undefined, inForce: false }
}

/** status.degrade.auto. @param nowMs wall clock, milliseconds since the epoch */
export function autoDegradeStatus(
  state: AutoDegradeState,
  before: AutoDegradeStatus | undefined,
  nowMs: number,
): AutoDegradeStatus {
  const { phase, reason, mode, leaving } = state
  const causes = causesOf(state)
  // The next leader must know that the way back has not begun yet.
  const action = leaving ? 'Entered' : state.action
  const same = before?.phase === phase && before.since !== ''
  return {
    phase,
    reason,
    since: same ? before.since : metaTime(nowMs),
    ...(causes.length > 0 && { causes }),
    ...(action !== undefined && { action }),
    ...(action !== undefined && mode !== undefined && { mode }),
  }
}

// Whether so many nodes are unready that the control plane has more likely lost contact than all of them failed: the cluster-autoscaler's
// formula, with hysteresis, a node selector, and no decision based on old or partial data.

/** @param nowMs monotonic milliseconds */
export function observeNodes(
  seen: Pick<NodesSeen, 'total' | 'unready' | 'observedAtMs' | 'complete'> | undefined,
  { okUnready, maxUnreadyPercent, exitPercent, staleAfterMs }: NodeHealthOptions,
  nowMs: number,
): Observation {
  if (seen === undefined || !seen.complete || nowMs - seen.observedAtMs > staleAfterMs) return 'unknown'
  const { total, unready } = seen
  // A cluster without nodes counts as good: nothing can be lost.
  const bounds = { okTotalUnreadyCount: okUnready, maxTotalUnreadyPercentage: maxUnreadyPercent }
  if (hasTooManyUnready(unready, total, bounds)) return 'bad'
  return unready <= okUnready || unready * 100 <= exitPercent * total ? 'good' : 'between'
}

/** `12 of 20 nodes unready (60 %)` */
export function nodesText({ total, unready }: Pick<NodesSeen, 'total' | 'unready'>): string {
  return `${unready} of ${total} nodes unready (${total === 0 ? 0 : Math.round((unready * 100) / total)} %)`
}
