// spec.podProtection with its defaults.

import { type Complete, complete, fieldOf, type Schema } from '../../../kit/api/json/json-schema.ts'
import { isEmptySelector } from '../../../kit/api/validation/label-selector-checks.ts'
import type { LabelSelector } from '../../../kit/api/validation/label-selector-schema.ts'
import {
  type CellAggregation,
  POD_PROTECTION_SCHEMA,
  type PodProtection,
  type UpdateTriggerSettings,
} from '../../api/upstream-cluster/cluster-protection.ts'
import { SCALE_PROTECTION_SCHEMA, type ScaleProtection } from '../../api/upstream-cluster/scale-protection.ts'
import type { CompiledAggregation, CompiledProtection, CompiledScaleProtection } from './compiled-cluster.ts'

const SECOND_MS = 1000

/** `name` is metadata.name of the cluster. */
export function compileProtection(
  protection: PodProtection,
  name: string,
  schema: Schema<PodProtection> = POD_PROTECTION_SCHEMA,
): CompiledProtection {
  const { shadow, failurePolicy, timeoutSeconds } = complete(schema, protection)
  return {
    cell: protection.cell ?? name,
    shadow,
    failurePolicy,
    timeoutMs: timeoutSeconds * SECOND_MS,
    excludedNamespaces: new Set(protection.excludedNamespaces ?? []),
    objectSelector: narrowing(protection.objectSelector),
    aggregation: compileAggregation(protection.aggregation, fieldOf(schema, 'aggregation')),
  }
}

function compileAggregation(given: CellAggregation | undefined, schema: Schema<CellAggregation>): CompiledAggregation {
  const { disabled, syncTime, syncTimeAnnotation, podLabelSelector, updateTrigger } = complete(schema, given)
  return {
    enabled: !disabled,
    syncTime,
    syncTimeAnnotation: syncTime === 'Annotation' ? syncTimeAnnotation : '',
    podSelector: narrowing(podLabelSelector),
    updateTrigger:
      updateTrigger === undefined || disabled
        ? undefined
        : compileTrigger(complete(fieldOf(schema, 'updateTrigger'), updateTrigger)),
  }
}

function compileTrigger({
  namespace,
  name,
  intervalSeconds,
}: Complete<UpdateTriggerSettings>): CompiledAggregation['updateTrigger'] {
  return { namespace, name, intervalMs: intervalSeconds * SECOND_MS }
}

/** A selector that matches everything is treated as absent. */
function narrowing(selector: LabelSelector | undefined): LabelSelector | undefined {
  return selector === undefined || isEmptySelector(selector) ? undefined : selector
}

// spec.scaleProtection with its defaults.
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
