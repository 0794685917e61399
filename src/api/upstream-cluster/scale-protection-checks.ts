// What can be wrong with spec.scaleProtection beyond its schema.

import type { Loose } from '../kube/object-shape.ts'
import type { FieldErrors } from '../validation/field-errors.ts'
import { checkNamespaces, checkSelector } from './cluster-protection-checks.ts'
import type { ScaleProtection } from './scale-protection.ts'

/** @param protectsPods spec.podProtection is present */
export function checkScaleProtection(
  { excludedNamespaces = [], objectSelector }: Loose<ScaleProtection>,
  protectsPods: boolean,
  path: string,
  out: FieldErrors,
): void {
  checkNamespaces(excludedNamespaces, `${path}.excludedNamespaces`, out)
  if (objectSelector !== undefined) checkSelector(objectSelector, `${path}.objectSelector`, out, 'workloads')
  if (protectsPods) return
  const message = 'asks no PodProtector without spec.podProtection: answers only name the pods that go'
  out.warning(path, message, 'add podProtection, in shadow mode if need be')
}
