// Requirements of a label selector, whether written as text or in an object (apimachinery/pkg/labels/selector.go).

import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { isInt64 } from '../../../kit/core/text/int64.ts'

export type Labels = Readonly<Record<string, string>>

/** A requirement on one label. */
export interface LabelRequirement {
  readonly key: string
  readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist' | 'Gt' | 'Lt'
  /** No duplicates; empty for Exists and DoesNotExist, one integer for Gt and Lt. */
  readonly values: ReadonlySet<string>
}

/** All must match; none = every object matches. */
export type LabelRequirements = readonly LabelRequirement[]

/** @param labels of an object; values that are not strings are ignored */
export function labelsMatch(requirements: LabelRequirements, labels: JsonObject): boolean {
  for (let i = 0; i < requirements.length; i++) {
    const requirement = requirements[i]
    if (requirement !== undefined && !meets(requirement, labels)) return false
  }
  return true
}

function meets({ key, operator, values }: LabelRequirement, labels: JsonObject): boolean {
  // Inherited members of Object.prototype are never strings.
  const label = labels[key]
  const has = typeof label === 'string'
  switch (operator) {
    case 'In':
      return has && values.has(label)
    case 'NotIn':
      return !(has && values.has(label))
    case 'Exists':
      return has
    case 'DoesNotExist':
      return !has
    case 'Gt':
      return has && isInt64(label) && integer(label) > integer([...values].join())
    case 'Lt':
      return has && isInt64(label) && integer(label) < integer([...values].join())
  }
}

/** BigInt rejects a plus sign. */
function integer(text: string): bigint {
  return BigInt(text.startsWith('+') ? text.slice(1) : text)
}
