// Checks of a ScaleDownPolicy that its schema cannot express.

import type { FieldError } from '../../kit/api/json/field-error.ts'
import { type Loose, looseView } from '../../kit/api/json/object-shape.ts'
import { FieldErrors, reportable, shown } from '../../kit/api/validation/field-errors.ts'
import { checkLabelSelector } from '../../kit/api/validation/label-selector-checks.ts'
import { isLabelKey } from '../../kit/api/validation/name-syntax.ts'
import type { ScaleDownPolicy, VictimPreference } from './scale-down-policy.ts'
import { SCALE_DOWN_POLICY_SCHEMA } from './schema.ts'

/** Returns every error and warning. Takes any JSON value and never throws; schema errors are not repeated. */
export function checkScaleDownPolicy(object: unknown): readonly FieldError[] {
  const out = new FieldErrors()
  const { spec } = (looseView(SCALE_DOWN_POLICY_SCHEMA, object) ?? {}) as Loose<ScaleDownPolicy>
  if (spec === undefined) return out.found
  const { selector, prefer = [] } = spec
  if (selector !== undefined) checkLabelSelector(selector, 'spec.selector', out)
  for (const [index, preference] of prefer.entries()) {
    if (preference !== undefined) checkPreference(preference, `spec.prefer[${index}]`, out)
  }
  return reportable(out.found, out.more)
}

const FIELDS = [
  ['topologyKey', 'TopologyExcess'],
  ['annotation', 'Annotation'],
] as const

function checkPreference(preference: Loose<VictimPreference>, path: string, out: FieldErrors): void {
  for (const [field, kind] of FIELDS) {
    const value = preference[field]
    const at = `${path}.${field}`
    if (preference.by === kind && value === undefined) out.required(at, `is required by ${kind}`, 'name a key')
    else if (value !== undefined && preference.by !== kind) {
      out.warning(at, `has no effect without by: ${kind}`, 'remove it')
    } else if (value !== undefined && !isLabelKey(value.toLowerCase())) {
      out.invalid(at, `${shown(value)} is not a valid key`, 'write a name, optionally after a DNS name and /')
    }
  }
}
