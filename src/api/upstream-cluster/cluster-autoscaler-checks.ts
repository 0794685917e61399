// What can be wrong with spec.autoscaler beyond its schema.

import type { Loose } from '../kube/object-shape.ts'
import { type FieldErrors, shown } from '../validation/field-errors.ts'
import { isDnsLabel, isObjectName } from '../validation/name-syntax.ts'
import type { Autoscaler } from './cluster-autoscaler.ts'

export function checkAutoscaler({ statusConfigMap }: Loose<Autoscaler>, path: string, out: FieldErrors): void {
  const { namespace, name } = statusConfigMap ?? {}
  if (namespace !== undefined && !isDnsLabel(namespace)) {
    const fix = 'write one as Kubernetes has it: at most 63 lower-case letters, digits and -; no patterns'
    out.invalid(`${path}.statusConfigMap.namespace`, `${shown(namespace)} is not a valid namespace`, fix)
  }
  if (name !== undefined && !isObjectName(name)) {
    const fix = 'use lower-case letters, digits, - and ., beginning and ending with a letter or digit'
    out.invalid(`${path}.statusConfigMap.name`, `${shown(name)} is not a valid ConfigMap name`, fix)
  }
}
