// Stepwise recovery: climbs the degrade ladder one mode at a time, each time when the mode's checks have held long enough, and goes back
// one when they fail. The mode itself is in the object, where operators may change it; this follows.

import { DEGRADE_MODES, type DegradeMode } from '../../gateway/api/upstream-cluster/degrade-modes.ts'
import { formatDuration } from '../../kit/core/text/duration.ts'
import {
  EMPTY_QUEUE,
  followQueue,
  type RecoveryFacts,
  type RecoveryVerdict,
  type RefusedQueue,
  recoveryChecks,
} from './recovery-checks.ts'

interface RecoveryOptions {
  /** How long the checks of a mode must hold. Milliseconds */
  readonly holdMs: number
  /** Minimum time in mode Limited. Milliseconds */
  readonly rampMs: number
  /** The mode at which it ends. Default Off. */
  readonly goal?: DegradeMode
}

/** All times are monotonic milliseconds of this process: a new leader restarts the hold. */
export interface RecoveryState {
  readonly step: DegradeMode
  /** Since when it has been at this step. */
  readonly sinceMs: number
  /** The strictest mode so far: it goes back no further. */
  readonly startedFrom: DegradeMode
  /** Since when all checks have held; undefined = they do not. */
  readonly holdingSinceMs: number | undefined
  /** Since when a check has failed; undefined = none does. */
  readonly failingSinceMs: number | undefined
  readonly refused: RefusedQueue
  readonly lookedAtMs: number
}

export type RecoveryAction =
  | { readonly kind: 'wait' }
  /** Set this mode. `because`: for Events. */
  | { readonly kind: 'climb' | 'goBack'; readonly to: DegradeMode; readonly because: string }
  /** It is at its goal or above: nothing is left to do. */
  | { readonly kind: 'done' }

export interface RecoveryDecision {
  readonly state: RecoveryState
  readonly action: RecoveryAction
  readonly checks: readonly RecoveryVerdict[]
  /** For people. */
  readonly waitingFor: string
}

/** After a longer gap between two steps the past is unknown: the process may have been suspended. Milliseconds */
export const LONGEST_GAP_MS = 15_000
/** How long a check must fail before the recovery goes back; or the hold, if that is shorter. Milliseconds */
export const FAILING_MS = 10_000

/**
 * One step. Never skips a mode, up or down.
 * @param before result of the last step; undefined = this is the first one
 * @param mode current spec.degrade.mode, set by the gateway or by hand
 */
export function stepRecovery(
  before: RecoveryState | undefined,
  mode: DegradeMode,
  facts: RecoveryFacts,
  options: RecoveryOptions,
  nowMs: number,
): RecoveryDecision {
  const at = follow(before, mode, nowMs)
  const refused = followQueue(at.refused, facts.refusedDisruptive ?? 0, nowMs)
  const { goal = 'Off' } = options
  if (DEGRADE_MODES.indexOf(mode) <= DEGRADE_MODES.indexOf(goal)) {
    const state = { ...at, holdingSinceMs: undefined, failingSinceMs: undefined, lookedAtMs: nowMs }
    return { state, action: { kind: 'done' }, checks: [], waitingFor: '' }
  }
  const checks = recoveryChecks(mode, facts, refused, nowMs)
  const failed = checks.filter(({ observed }) => observed === 'bad')
  const holds = checks.every(({ ok }) => ok)
  const state: RecoveryState = {
    ...at,
    refused,
    holdingSinceMs: holds ? (at.holdingSinceMs ?? nowMs) : undefined,
    failingSinceMs: failed.length > 0 ? (at.failingSinceMs ?? nowMs) : undefined,
    lookedAtMs: nowMs,
  }
  const needMs = holdOf(mode, options)
  const action = actionOf(state, failed, needMs, Math.min(FAILING_MS, options.holdMs), nowMs)
  return { state, action, checks, waitingFor: waitingFor(state, checks, needMs, nowMs) }
}

/** Resumes a recovery begun by another leader, or by this one before its restart. */
export function resumeRecovery(mode: DegradeMode, startedFrom: DegradeMode, nowMs: number): RecoveryState {
  return { ...follow(undefined, mode, nowMs), startedFrom: stricter(startedFrom, mode) }
}

/** The state once an action's mode was written. Resetting the previous mode by hand restarts its hold. */
export function afterStep(state: RecoveryState, to: DegradeMode, nowMs: number): RecoveryState {
  return follow(state, to, nowMs)
}

/** A step set by hand, or a long gap between steps, restarts the hold. */
function follow(before: RecoveryState | undefined, mode: DegradeMode, nowMs: number): RecoveryState {
  if (before?.step === mode) {
    const gapMs = nowMs - before.lookedAtMs
    const seen = gapMs >= 0 && gapMs <= LONGEST_GAP_MS
    return seen ? before : { ...before, holdingSinceMs: undefined, failingSinceMs: undefined }
  }
  return {
    step: mode,
    sinceMs: nowMs,
    startedFrom: before === undefined ? mode : stricter(before.startedFrom, mode),
    holdingSinceMs: undefined,
    failingSinceMs: undefined,
    refused: EMPTY_QUEUE,
    lookedAtMs: nowMs,
  }
}

/** The stricter of two modes. */
export function stricter(a: DegradeMode, b: DegradeMode): DegradeMode {
  return DEGRADE_MODES.indexOf(a) > DEGRADE_MODES.indexOf(b) ? a : b
}

/** Limited admits more and more: switching to Off before its ramp ends would admit all the rest at once. */
function holdOf(mode: DegradeMode, { holdMs, rampMs }: RecoveryOptions): number {
  return mode === 'Limited' ? Math.max(holdMs, rampMs) : holdMs
}

function actionOf(
  { step, startedFrom, holdingSinceMs, failingSinceMs }: RecoveryState,
  failed: readonly RecoveryVerdict[],
  needMs: number,
  failingMs: number,
  nowMs: number,
): RecoveryAction {
  const rung = DEGRADE_MODES.indexOf(step)
  const above = DEGRADE_MODES[rung - 1]
  const below = DEGRADE_MODES[rung + 1]
  if (holdingSinceMs !== undefined && nowMs - holdingSinceMs >= needMs && above !== undefined) {
    return { kind: 'climb', to: above, because: `the checks of ${step} have held for ${formatDuration(needMs)}` }
  }
  const mayGoBack = rung < DEGRADE_MODES.indexOf(startedFrom) && below !== undefined
  if (failingSinceMs !== undefined && nowMs - failingSinceMs >= failingMs && mayGoBack) {
    return { kind: 'goBack', to: below, because: failed.map(({ name, message }) => `${name}: ${message}`).join('; ') }
  }
  return { kind: 'wait' }
}

function waitingFor(
  { step, holdingSinceMs }: RecoveryState,
  checks: readonly RecoveryVerdict[],
  needMs: number,
  nowMs: number,
): string {
  if (holdingSinceMs === undefined) {
    const open = checks.filter(({ ok }) => !ok)
    return open.map(({ name, message }) => `${name}: ${message}`).join('; ')
  }
  const next = DEGRADE_MODES[DEGRADE_MODES.indexOf(step) - 1] ?? ''
  const leftMs = Math.max(0, needMs - (nowMs - holdingSinceMs))
  return `${next} follows when the checks have held for ${formatDuration(needMs)}, at most ${formatDuration(roundedMs(leftMs))} more`
}

/** Rounded, so that a long hold does not rewrite the status every second. */
function roundedMs(ms: number): number {
  const stepMs = ms > 60_000 ? 30_000 : 5_000
  return Math.ceil(ms / stepMs) * stepMs
}
