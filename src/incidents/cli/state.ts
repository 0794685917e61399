// Describes the switch of an UpstreamCluster for `portcullis degrade`.

import { metadataOf } from '../../cli/client/control-plane.ts'
import { DEFAULT_DEGRADE_MODE, type DegradeMode } from '../../gateway/api/upstream-cluster/degrade-modes.ts'
import { parseFeatureGates } from '../../gateway/api/upstream-cluster/feature-gates.ts'
import { type Degrade, FEATURE_GATES_ANNOTATION } from '../../gateway/api/upstream-cluster/upstream-cluster.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import type { SwitchChange } from './change.ts'

export function degradeOf(object: JsonObject): Degrade {
  return (object['spec'] as { degrade?: Degrade } | undefined)?.degrade ?? {}
}

export function describe(object: JsonObject, nowMs: number): string {
  const { name, generation = 1 } = metadataOf(object)
  const { mode = DEFAULT_DEGRADE_MODE, reason = '', expiresAt, shadow = false } = degradeOf(object)
  const what = `${name}: degrade mode ${mode}`
  const why = reason === '' ? '' : `: ${reason}`
  if (mode === 'Off') return `${what} (generation ${generation})${why}`
  const how = shadow ? `${what} in shadow, nothing is refused,` : what
  if (expiresAt === undefined) return `${how} without an end (generation ${generation})${why}`
  const over = switchHasExpired(object, nowMs) ? `, which ended at ${expiresAt}` : ` until ${expiresAt}`
  return `${how}${over} (generation ${generation})${why}`
}

export function switchHasExpired(object: JsonObject, nowMs: number): boolean {
  const { expiresAt } = degradeOf(object)
  return expiresAt !== undefined && Date.parse(expiresAt) <= nowMs
}

/** The mode that the object means now: Off after its expiry. */
export function modeAt(object: JsonObject, nowMs: number): DegradeMode {
  if (deniesAll(object)) return 'Freeze'
  const { mode = DEFAULT_DEGRADE_MODE } = degradeOf(object)
  return switchHasExpired(object, nowMs) ? 'Off' : mode
}

/** Where a recovery ends. */
export function goalOf(object: JsonObject, nowMs: number): DegradeMode {
  const { before } = degradeOf(object)
  const over = before?.expiresAt !== undefined && Date.parse(before.expiresAt) <= nowMs
  return before === undefined || over ? 'Off' : before.mode
}

/** Whether what applied before an earlier switch of many clusters is over, and would mislead a later recovery. */
export function isForgotten(object: JsonObject, mode: DegradeMode, nowMs: number): boolean {
  const { before } = degradeOf(object)
  return before !== undefined && (mode === 'Off' || modeAt(object, nowMs) === 'Off')
}

/** What a replica does once the object is in force. */
export function inForceText(object: JsonObject, nowMs: number): string {
  const { mode = DEFAULT_DEGRADE_MODE, shadow = false } = degradeOf(object)
  if (mode === 'Off' || deniesAll(object)) return 'in force'
  if (switchHasExpired(object, nowMs)) return 'ended'
  return shadow ? 'in shadow' : 'in force'
}

/** Why the effective mode differs from the mode set. */
export function faultsOf(object: JsonObject, change: SwitchChange | undefined): string[] {
  const found: string[] = []
  const { name } = metadataOf(object)
  const { mode = DEFAULT_DEGRADE_MODE, shadow = false } = degradeOf(object)
  if (shadow && mode !== 'Off' && change?.shadow !== true) {
    found.push(
      `${mode} is in shadow on ${name}: nothing is refused, only counted and warned about; give --mode to end the shadow`,
    )
  }
  if (deniesAll(object) && mode !== 'Freeze') {
    found.push(
      `${FEATURE_GATES_ANNOTATION}: DenyAllRequests=true freezes ${name} whatever the mode; remove the annotation`,
    )
  }
  return found
}

export function deniesAll(object: JsonObject): boolean {
  const { annotations } = metadataOf(object)
  return parseFeatureGates(annotations?.[FEATURE_GATES_ANNOTATION] ?? '').enabled.has('DenyAllRequests')
}
