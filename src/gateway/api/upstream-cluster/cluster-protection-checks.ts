// Checks of spec.podProtection, spec.autoscaler and spec.scaleProtection that their schemas cannot express.

import type { Loose } from '../../../kit/api/json/object-shape.ts'
import { type FieldErrors, shown } from '../../../kit/api/validation/field-errors.ts'
import { checkLabelSelector, isEmptySelector } from '../../../kit/api/validation/label-selector-checks.ts'
import type { LabelSelector } from '../../../kit/api/validation/label-selector-schema.ts'
import { isDnsLabel, isLabelKey, isObjectName } from '../../../kit/api/validation/name-syntax.ts'
import type { Autoscaler } from './cluster-autoscaler.ts'
import type { CellAggregation, PodProtection } from './cluster-protection.ts'
import type { ScaleProtection } from './scale-protection.ts'

const NAME_FIX = 'use lower-case letters, digits, - and ., beginning and ending with a letter or digit'
const NAMESPACE_FIX = 'write the name of a namespace: at most 63 lower-case letters, digits and -; no patterns'

export function checkPodProtection(protection: Loose<PodProtection>, path: string, out: FieldErrors): void {
  const { cell, excludedNamespaces = [], objectSelector, aggregation } = protection
  // The cell is the last segment of the webhook's path, and part of a Lease's name.
  if (cell !== undefined && !isObjectName(cell)) {
    out.invalid(`${path}.cell`, `${shown(cell)} is not a valid cell name`, NAME_FIX)
  }
  checkNamespaces(excludedNamespaces, `${path}.excludedNamespaces`, out)
  if (objectSelector !== undefined) checkSelector(objectSelector, `${path}.objectSelector`, out)
  if (aggregation !== undefined) checkAggregation(aggregation, `${path}.aggregation`, out)
}

function checkNamespaces(namespaces: readonly (string | undefined)[], path: string, out: FieldErrors): void {
  const seen = new Set<string>()
  for (const [index, namespace] of namespaces.entries()) {
    if (namespace === undefined) continue
    const at = `${path}[${index}]`
    if (!isDnsLabel(namespace)) out.invalid(at, `${shown(namespace)} is not a valid namespace`, NAMESPACE_FIX)
    else if (seen.has(namespace)) out.warning(at, 'is named twice', 'remove one of the two')
    seen.add(namespace)
  }
}

function checkAggregation(aggregation: Loose<CellAggregation>, path: string, out: FieldErrors): void {
  const { syncTime, syncTimeAnnotation: key = '', podLabelSelector, updateTrigger, disabled = false } = aggregation
  const at = `${path}.syncTimeAnnotation`
  if (syncTime === 'Annotation' && key === '') {
    out.required(at, 'is required when syncTime is Annotation', 'name the annotation of pods that holds a time')
  } else if (key !== '' && !isLabelKey(key.toLowerCase())) {
    out.invalid(at, `${shown(key)} is not a valid annotation key`, 'write a name, optionally after a DNS name and /')
  } else if (key !== '' && syncTime !== 'Annotation') {
    out.warning(at, 'has no effect without syncTime Annotation', 'set syncTime: Annotation, or remove it')
  }
  if (podLabelSelector !== undefined) checkSelector(podLabelSelector, `${path}.podLabelSelector`, out)
  const { namespace, name } = updateTrigger ?? {}
  if (namespace !== undefined && !isDnsLabel(namespace)) {
    out.invalid(`${path}.updateTrigger.namespace`, `${shown(namespace)} is not a valid namespace`, NAMESPACE_FIX)
  }
  if (name !== undefined && !isObjectName(name)) {
    out.invalid(`${path}.updateTrigger.name`, `${shown(name)} is not a valid pod name`, NAME_FIX)
  }
  if (disabled && updateTrigger !== undefined) {
    const message = 'has no effect with disabled: true'
    out.warning(`${path}.updateTrigger`, message, 'remove one of the two')
  }
}

/** Checks of spec.autoscaler that its schema cannot express. */
export function checkAutoscaler({ statusConfigMap }: Loose<Autoscaler>, path: string, out: FieldErrors): void {
  const { namespace, name } = statusConfigMap ?? {}
  if (namespace !== undefined && !isDnsLabel(namespace)) {
    out.invalid(`${path}.statusConfigMap.namespace`, `${shown(namespace)} is not a valid namespace`, NAMESPACE_FIX)
  }
  if (name !== undefined && !isObjectName(name)) {
    out.invalid(`${path}.statusConfigMap.name`, `${shown(name)} is not a valid ConfigMap name`, NAME_FIX)
  }
}

/**
 * Checks of spec.scaleProtection that its schema cannot express.
 * @param protectsPods spec.podProtection is present
 */
export function checkScaleProtection(
  { excludedNamespaces = [], objectSelector }: Loose<ScaleProtection>,
  protectsPods: boolean,
  path: string,
  out: FieldErrors,
): void {
  checkNamespaces(excludedNamespaces, `${path}.excludedNamespaces`, out)
  if (objectSelector !== undefined) checkSelector(objectSelector, `${path}.objectSelector`, out, 'workloads')
  if (protectsPods) return
  const message = 'checks no PodProtector without spec.podProtection: answers only name the pods that would be deleted'
  out.warning(path, message, 'add podProtection, in shadow mode if need be')
}

/** @param what the selector selects, for people */
function checkSelector(selector: Loose<LabelSelector>, path: string, out: FieldErrors, what = 'pods'): void {
  checkLabelSelector(selector, path, out)
  if (isEmptySelector(selector)) out.warning(path, `is empty: it selects all ${what}`, 'remove it, or name labels')
}
