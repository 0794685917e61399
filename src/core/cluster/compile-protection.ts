// spec.podProtection with its defaults.

import { isEmptySelector } from '../../api/pod-protector/label-selector-checks.ts'
import type { LabelSelector } from '../../api/pod-protector/pod-protector.ts'
import {
  type CellAggregation,
  DEFAULT_UPDATE_TRIGGER,
  type PodProtection,
  type UpdateTrigger,
} from '../../api/upstream-cluster/cluster-protection.ts'
import type { CompiledAggregation, CompiledProtection } from './compiled-cluster.ts'

const SECOND_MS = 1000

/** `name` is metadata.name of the cluster. */
export function compileProtection(protection: PodProtection, name: string): CompiledProtection {
  return {
    cell: protection.cell ?? name,
    shadow: protection.shadow ?? false,
    failurePolicy: protection.failurePolicy ?? 'Fail',
    timeoutMs: (protection.timeoutSeconds ?? 10) * SECOND_MS,
    excludedNamespaces: new Set(protection.excludedNamespaces ?? []),
    objectSelector: narrowing(protection.objectSelector),
    aggregation: compileAggregation(protection.aggregation ?? {}),
  }
}

function compileAggregation(aggregation: CellAggregation): CompiledAggregation {
  const { disabled = false, syncTime = 'ResourceVersion', syncTimeAnnotation = '', updateTrigger } = aggregation
  return {
    enabled: !disabled,
    syncTime,
    syncTimeAnnotation: syncTime === 'Annotation' ? syncTimeAnnotation : '',
    podSelector: narrowing(aggregation.podLabelSelector),
    updateTrigger: updateTrigger === undefined || disabled ? undefined : compileTrigger(updateTrigger),
  }
}

function compileTrigger({ namespace, name, intervalSeconds = 1 }: UpdateTrigger): CompiledAggregation['updateTrigger'] {
  return { namespace, name: name ?? DEFAULT_UPDATE_TRIGGER, intervalMs: intervalSeconds * SECOND_MS }
}

/** A selector of everything is as good as none. */
function narrowing(selector: LabelSelector | undefined): LabelSelector | undefined {
  return selector === undefined || isEmptySelector(selector) ? undefined : selector
}
