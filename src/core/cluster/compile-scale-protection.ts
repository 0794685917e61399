// spec.scaleProtection with its defaults.

import { complete, type Schema } from '../../api/kube/json-schema.ts'
import type { ScaleProtection } from '../../api/upstream-cluster/scale-protection.ts'
import { SCALE_PROTECTION_SCHEMA } from '../../api/upstream-cluster/scale-protection-schema.ts'
import { narrowing } from './compile-protection.ts'
import type { CompiledScaleProtection } from './compiled-cluster.ts'

export function compileScaleProtection(
  protection: ScaleProtection,
  schema: Schema<ScaleProtection> = SCALE_PROTECTION_SCHEMA,
): CompiledScaleProtection {
  const { shadow, failurePolicy } = complete(schema, protection)
  return {
    shadow,
    failurePolicy,
    excludedNamespaces: new Set(protection.excludedNamespaces ?? []),
    objectSelector: narrowing(protection.objectSelector),
  }
}
