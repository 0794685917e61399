// Settles a local switch when the API server of the objects is reachable again (decision 27): it is written to the object, unless the
// object's own switch has been changed to a stricter mode in the meantime, which then wins.

import {
  DEFAULT_DEGRADE_MODE,
  DEGRADE_MODES,
  type DegradeMode,
} from '../../../gateway/api/upstream-cluster/degrade-modes.ts'
import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { recordOf, textOf } from '../../../kit/api/json/object-shape.ts'
import { sameJson } from '../../../kit/core/text/same-json.ts'

/** The relevant fields of a switch. */
export interface Switch {
  readonly mode: DegradeMode
  readonly reason: string
  /** RFC 3339; '' = no end. */
  readonly expiresAt: string
  readonly shadow: boolean
}

type Settlement =
  /** The object already agrees. */
  | { readonly kind: 'same' }
  | { readonly kind: 'write'; readonly because: string }
  /** The object's own switch stays. */
  | { readonly kind: 'yield'; readonly because: string }

/**
 * @param base uid and spec.degrade of the object when the switch was thrown; undefined = unknown
 * @param object its current state
 */
export function settleSwitch(
  local: Switch,
  base: { readonly uid: string; readonly degrade: unknown } | undefined,
  object: JsonObject,
  nowMs: number,
): Settlement {
  const { uid } = recordOf(object['metadata'])
  const degrade = recordOf(object['spec'])['degrade']
  const own = readDegrade(degrade)
  if (sameSwitch(own, local)) return { kind: 'same' }
  const unchanged = base !== undefined && base.uid === uid && sameJson(base.degrade ?? {}, degrade ?? {})
  if (unchanged) return { kind: 'write', because: 'the mode of the object has not changed since' }
  const what = `the mode of the object was changed to ${own.mode} in the meantime`
  return strictness(local, nowMs) > strictness(own, nowMs)
    ? { kind: 'write', because: `${what}, and ${local.mode} is stricter` }
    : { kind: 'yield', because: `${what}, and ${local.mode} is not stricter` }
}

/** Reads spec.degrade. */
export function readDegrade(degrade: unknown): Switch {
  const { mode, reason, expiresAt, shadow } = recordOf(degrade)
  const known = DEGRADE_MODES.find((one) => one === mode) ?? DEFAULT_DEGRADE_MODE
  return { mode: known, reason: textOf(reason), expiresAt: textOf(expiresAt), shadow: shadow === true }
}

/** A mode that has expired, or is in shadow mode, refuses nothing. */
function strictness({ mode, expiresAt, shadow }: Switch, nowMs: number): number {
  const isOver = expiresAt !== '' && Date.parse(expiresAt) <= nowMs
  return isOver || shadow ? 0 : DEGRADE_MODES.indexOf(mode)
}

function sameSwitch(a: Switch, b: Switch): boolean {
  return a.mode === b.mode && a.reason === b.reason && a.expiresAt === b.expiresAt && a.shadow === b.shadow
}
