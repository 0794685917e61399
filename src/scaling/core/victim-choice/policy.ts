// ScaleDownPolicies as the request path uses them: plain data, because it crosses threads. An invalid one is not in force.

import type { FieldError } from '../../../kit/api/json/field-error.ts'
import { type JsonObject, nameOf, namespaceOf } from '../../../kit/api/json/json-object.ts'
import { complete } from '../../../kit/api/json/json-schema.ts'
import { isRecord } from '../../../kit/api/json/object-shape.ts'
import type { LabelSelector } from '../../../kit/api/validation/label-selector-schema.ts'
import { createSchemaCheck } from '../../../kit/api/validation/schema-errors.ts'
import type { ScaleDownPolicySpec, VictimPreference } from '../../api/scale-down-policy.ts'
import { checkScaleDownPolicy } from '../../api/scale-down-policy-kind.ts'
import { SCALE_DOWN_POLICY_SCHEMA, SCALE_DOWN_POLICY_SPEC_SCHEMA } from '../../api/schema.ts'

export interface CompiledScaleDownPolicy {
  readonly namespace: string
  readonly name: string
  /** UpstreamClusters, by name; empty = all. */
  readonly clusters: readonly string[]
  readonly selector: LabelSelector
  readonly prefer: readonly VictimPreference[]
  readonly onUnavailable: 'Forward' | 'Reject'
  readonly settleMs: number
  readonly maxDelayMs: number
  readonly shadow: boolean
}

export type ReadPolicy =
  | { readonly kind: 'policy'; readonly policy: CompiledScaleDownPolicy }
  /** Why it is not in force; a sentence. */
  | { readonly kind: 'invalid'; readonly why: string }

const checkShape = createSchemaCheck(SCALE_DOWN_POLICY_SCHEMA)

/** Never throws: unvalidated objects may have any shape. */
export function readScaleDownPolicy(object: JsonObject): ReadPolicy {
  const errors = [...checkShape(object, '').problems, ...checkScaleDownPolicy(object)].filter(isError)
  const { spec } = object
  if (errors.length > 0 || !isRecord(spec)) {
    const why = errors.map(({ path, message, fix }) => `${path} ${message}${fix === '' ? '' : `: ${fix}`}`).join('; ')
    return { kind: 'invalid', why: why === '' ? 'spec is missing' : why }
  }
  const given = spec as unknown as ScaleDownPolicySpec
  const { onUnavailable, settleMillis, maxDelayMillis, shadow } = complete(SCALE_DOWN_POLICY_SPEC_SCHEMA, given)
  return {
    kind: 'policy',
    policy: {
      namespace: namespaceOf(object),
      name: nameOf(object),
      clusters: given.clusters ?? [],
      selector: given.selector,
      prefer: given.prefer,
      onUnavailable,
      settleMs: settleMillis,
      maxDelayMs: maxDelayMillis,
      shadow,
    },
  }
}

function isError({ severity }: FieldError): boolean {
  return severity === 'error'
}
