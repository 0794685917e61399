// Recovery by steps: climbs the degrade ladder one mode at a time, each time when the checks of the mode have held for long enough, and
// goes back one when they fail. The mode itself is in the object, where anybody may change it; this follows.

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

export interface RecoveryOptions {
  /** How long the checks of a mode have to hold. Milliseconds */
  readonly holdMs: number
  /** How long Limited is held at least. Milliseconds */
  readonly rampMs: number
}

/** All times are monotonic milliseconds of this process: a new leader starts the hold again. */
export interface RecoveryState {
  readonly step: DegradeMode
  /** Since when it is at this step. */
  readonly sinceMs: number
  /** The strictest mode that it has been at: it goes back no further. */
  readonly startedFrom: DegradeMode
  /** Since when all checks have held; undefined = they do not. */
  readonly holdingSinceMs: number | undefined
  /** Since when one has failed; undefined = none does. */
  readonly failingSinceMs: number | undefined
  readonly refused: RefusedQueue
  readonly lookedAtMs: number
}

export type RecoveryAction =
  | { readonly kind: 'wait' }
  /** Set this mode. `because`: for Events. */
  | { readonly kind: 'climb' | 'goBack'; readonly to: DegradeMode; readonly because: string }
  /** It is at Off: nothing is left to do. */
  | { readonly kind: 'done' }

export interface RecoveryTurn {
  readonly state: RecoveryState
  readonly action: RecoveryAction
  readonly checks: readonly RecoveryVerdict[]
  /** For people. */
  readonly waitingFor: string
}

/** Between two looks further apart than this, nobody knows what happened: a process may have been suspended. Milliseconds */
export const LONGEST_GAP_MS = 15_000
/** A check fails this long, or for the hold where that is shorter, before the recovery goes back. Milliseconds */
export const FAILING_MS = 10_000

/**
 * One look. Never skips a mode, neither up nor down.
 * @param before of the last look; undefined = this is the first one
 * @param mode spec.degrade.mode as it is now, whoever has set it
 */
export function stepRecovery(
  before: RecoveryState | undefined,
  mode: DegradeMode,
  facts: RecoveryFacts,
  options: RecoveryOptions,
  nowMs: number,
): RecoveryTurn {
  const at = follow(before, mode, nowMs)
  const refused = followQueue(at.refused, facts.refusedDisruptive ?? 0, nowMs)
  if (mode === 'Off') {
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

/** Of a recovery that another leader has begun, or this one before its restart. */
export function resumeRecovery(mode: DegradeMode, startedFrom: DegradeMode, nowMs: number): RecoveryState {
  return { ...follow(undefined, mode, nowMs), startedFrom: stricter(startedFrom, mode) }
}

/** The state once the mode of an action was written: whoever sets the one before again starts its hold again. */
export function afterStep(state: RecoveryState, to: DegradeMode, nowMs: number): RecoveryState {
  return follow(state, to, nowMs)
}

/** A step that somebody else has set, or a look after a long time, starts the hold again. */
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

/** Limited lets more and more through: Off before its end would let all the rest go at once. */
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

/** In steps that keep a status from being written each second of a long hold. */
function roundedMs(ms: number): number {
  const stepMs = ms > 60_000 ? 30_000 : 5_000
  return Math.ceil(ms / stepMs) * stepMs
}
