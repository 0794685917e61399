// What `portcullis degrade` does to each of many clusters: the mode that it is to have, whether a guard rail stops that, and what applied before,
// which is written into the object with the mode. Operators at other terminals see it there, too.

import type { PlannedChange } from '../../cli/client/change-plan.ts'
import { metadataOf } from '../../cli/client/control-plane.ts'
import {
  DEFAULT_DEGRADE_MODE,
  DEGRADE_MODES,
  type DegradeMode,
} from '../../gateway/api/upstream-cluster/degrade-modes.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { metaTime } from '../../kit/core/text/meta-time.ts'
import type { SwitchChange } from './change.ts'
import type { RecoveryChange } from './recover.ts'
import { degradeOf, deniesAll, goalOf, modeAt } from './state.ts'

/** A merge patch of spec.degrade, made for the object as it was seen. */
export interface PlannedSwitch extends PlannedChange {
  readonly object: JsonObject
  readonly degrade: JsonObject
}

/** A switch that is planned, or why nothing is to be done. */
export type SwitchVerdict =
  | { readonly planned: PlannedSwitch }
  | { readonly unchanged: string }
  | { readonly stopped: string }

/** @param objections of the guard rails to this mode there */
export function planSwitch(
  object: JsonObject,
  change: SwitchChange,
  objections: readonly string[],
  force: boolean,
  nowMs: number,
): SwitchVerdict {
  const { name } = metadataOf(object)
  const { mode } = change
  const from = stateText(object, nowMs)
  const to = change.shadow === true ? `${mode} in shadow` : mode
  if (mode === 'Off') {
    const { mode: written = DEFAULT_DEGRADE_MODE, recovery } = degradeOf(object)
    if (written === 'Off' && recovery === undefined) return { unchanged: 'Off already' }
    const note = deniesAll(object) ? 'its annotation DenyAllRequests=true freezes it whatever the mode' : ''
    return { planned: { name, from, to, note, object, degrade: { ...change, before: null } } }
  }
  if (isCovered(object, change, nowMs)) return { unchanged: `${from} already` }
  const found = [...objections, ...loosening(object, change, nowMs)]
  if (found.length > 0 && !force) return { stopped: found.join('; ') }
  const before = beforeOf(object, nowMs)
  const note = [...found, ...notesOf(object, before, change)].join('; ')
  return { planned: { name, from, to, note, object, degrade: { ...change, ...(before && { before }) } } }
}

/** Takes a switch of many back: by steps to what applied before it, or at once if that is stricter. */
export function planRecovery(
  object: JsonObject,
  recovery: RecoveryChange,
  force: boolean,
  nowMs: number,
): SwitchVerdict {
  const { name } = metadataOf(object)
  const { before, recovery: underWay } = degradeOf(object)
  const from = stateText(object, nowMs)
  if (underWay !== undefined) return { unchanged: `${from} already` }
  const goal = goalOf(object, nowMs)
  const mode = modeAt(object, nowMs)
  if (mode === 'Off' && goal === 'Off') return { unchanged: 'Off already' }
  if (before === undefined && !force) {
    return { unchanged: `${from}, not set together with others: recover it by name, or give --force` }
  }
  if (goal !== 'Off' && before !== undefined && rung(mode) <= rung(goal)) {
    const since = goal === 'Limited' ? metaTime(nowMs) : null
    const cleared = { reason: null, expiresAt: null, shadow: null, recovery: null }
    const degrade = { ...cleared, ...before, since, before: null }
    return { planned: { name, from, to: `${goal} at once`, note: '', object, degrade } }
  }
  const degrade = { recovery: { ...recovery }, expiresAt: null }
  return { planned: { name, from, to: `${goal} by steps`, note: '', object, degrade } }
}

/** The switch in words: `ReadOnly`, `ReadOnly in shadow`, `Limited, on the way back`. */
export function stateText(object: JsonObject, nowMs: number): string {
  if (deniesAll(object)) return 'Freeze by annotation'
  const { shadow = false, recovery } = degradeOf(object)
  const mode = modeAt(object, nowMs)
  if (mode === 'Off') return mode
  return `${mode}${shadow ? ' in shadow' : ''}${recovery === undefined ? '' : ', on the way back'}`
}

/** Whether it is so already, for as long as wanted: the same command again goes on with the rest. */
function isCovered(object: JsonObject, change: SwitchChange, nowMs: number): boolean {
  const { shadow = false, expiresAt, recovery } = degradeOf(object)
  if (deniesAll(object) || modeAt(object, nowMs) !== change.mode || recovery !== undefined) return false
  if (shadow !== (change.shadow === true)) return false
  return expiresAt === undefined || (change.expiresAt !== null && Date.parse(expiresAt) >= Date.parse(change.expiresAt))
}

/** A command about many clusters makes none of them less strict unasked. */
function loosening(object: JsonObject, { mode, shadow }: SwitchChange, nowMs: number): string[] {
  const { reason = '', shadow: isShadow = false, recovery } = degradeOf(object)
  const current = modeAt(object, nowMs)
  if (current === 'Off' || isShadow || deniesAll(object)) return []
  const why = reason === '' ? '' : ` (${reason})`
  if (rung(current) > rung(mode)) {
    const how = recovery === undefined ? 'is' : 'is on its way back by steps at'
    return [`${how} the stricter ${current}${why}: ${mode} would let more through`]
  }
  return shadow === true ? [`refuses by ${current}${why}: the shadow would end that`] : []
}

/** What applied before the first of several switches stays. undefined = it is in the object. */
function beforeOf(object: JsonObject, nowMs: number): JsonObject | undefined {
  const { before, recovery, reason = null, expiresAt = null, shadow = false } = degradeOf(object)
  const mode = deniesAll(object) ? DEFAULT_DEGRADE_MODE : modeAt(object, nowMs)
  if (mode !== 'Off' && before !== undefined) return undefined
  // A recovery that nothing else applied before leads to Off.
  const isOff = mode === 'Off' || recovery !== undefined
  const kept = { reason, expiresAt, shadow: shadow ? true : null }
  return isOff ? { mode: 'Off', reason: null, expiresAt: null, shadow: null } : { mode, ...kept }
}

function notesOf(object: JsonObject, before: JsonObject | undefined, { expiresAt }: SwitchChange): string[] {
  const mode = before?.['mode'] ?? degradeOf(object).before?.mode ?? 'Off'
  if (expiresAt === null || mode === 'Off') return []
  return [`when --ttl expires, the mode is Off, not ${String(mode)} as before: --recover restores it`]
}

function rung(mode: DegradeMode): number {
  return DEGRADE_MODES.indexOf(mode)
}
