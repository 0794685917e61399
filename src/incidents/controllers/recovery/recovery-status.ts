// status.degrade as written by the leader: the result of each check of a recovery, or why there was none.

import type { DegradeStatus, RecoveryStatus } from '../../../gateway/api/upstream-cluster/status.ts'
import { metaTime } from '../../../kit/core/text/meta-time.ts'
import { sameJson } from '../../../kit/core/text/same-json.ts'
import type { RecoveryDecision } from '../../core/recovery.ts'
import type { SwitchedCluster } from './switched-cluster.ts'

/**
 * @param sinceMs when the step began, milliseconds since the epoch
 * @param holdingSinceMs since when its checks hold, likewise; undefined = they don't
 */
export function recoveryStatus(
  { state: { step, startedFrom }, checks, waitingFor }: RecoveryDecision,
  sinceMs: number,
  holdingSinceMs: number | undefined,
): RecoveryStatus {
  return {
    step,
    since: metaTime(sinceMs),
    startedFrom,
    ...(holdingSinceMs !== undefined && { holdingSince: metaTime(holdingSinceMs) }),
    checks: checks.map(({ name, ok, message }) => ({ name, ok, message })),
    waitingFor,
  }
}

/** For a recovery that can't be checked: it stays at its step. */
export function blockedStatus(
  { mode, status: { recovery } }: SwitchedCluster,
  waitingFor: string,
  nowMs: number,
): { readonly recovery: RecoveryStatus } {
  const step = mode ?? recovery?.step ?? ''
  const since = recovery?.step === step ? recovery.since : metaTime(nowMs)
  return { recovery: { step, since, startedFrom: recovery?.startedFrom ?? step, checks: [], waitingFor } }
}

/** A merge patch of status.degrade, in which null removes a field; undefined = no change. */
export function statusPatch(before: DegradeStatus, wanted: DegradeStatus): object | undefined {
  const recovery = wanted.recovery && { ...wanted.recovery, holdingSince: wanted.recovery.holdingSince ?? null }
  if (sameJson(before.recovery, wanted.recovery) && before.readyNodesBefore === wanted.readyNodesBefore)
    return undefined
  return { recovery: recovery ?? null, readyNodesBefore: wanted.readyNodesBefore ?? null }
}

/** True unless only numbers in messages have changed. */
export function isUrgent(before: DegradeStatus, wanted: DegradeStatus): boolean {
  return !sameJson(essence(before), essence(wanted))
}

function essence({ recovery, readyNodesBefore }: DegradeStatus): unknown {
  if (recovery === undefined) return [readyNodesBefore ?? null]
  const { step, startedFrom, holdingSince, checks, waitingFor } = recovery
  const held = checks.map(({ name, ok }) => [name, ok])
  return [
    readyNodesBefore ?? null,
    step,
    startedFrom,
    holdingSince === undefined,
    held,
    checks.length === 0 ? waitingFor : '',
  ]
}
