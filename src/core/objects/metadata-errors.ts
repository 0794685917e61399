// What is wrong with metadata whose types are right (k8s.io/apimachinery/pkg/api/validation/objectmeta.go).

import type { FieldError } from '../../api/kube/field-error.ts'
import type { JsonObject } from '../../api/kube/json-object.ts'
import { isRecord, listOf, recordOf, textOf } from '../../api/kube/object-shape.ts'
import {
  labelValueErrors,
  qualifiedNameErrors,
  subdomainErrors,
  withoutTrailingDash,
} from '../../api/validation/name-errors.ts'
import { errorsOfEach, invalidShown, invalidValue, MOST_ERRORS, tooLong } from './field-error.ts'

const MAX_ANNOTATIONS_BYTES = 256 * 1024

/** Not of managedFields: entries that cannot be are not used (managed-entries.ts). */
export function metadataErrors(metadata: JsonObject): FieldError[] {
  return [
    ...nameErrors(metadata),
    ...labelsErrors(metadata['labels']),
    ...annotationErrors(metadata['annotations']),
    ...ownerErrors(listOf(metadata['ownerReferences']).map(recordOf)),
    ...finalizerErrors(listOf(metadata['finalizers'])),
  ]
}

function nameErrors(metadata: JsonObject): FieldError[] {
  const { generateName, name, generation } = metadata
  const errors: FieldError[] = []
  if (typeof generateName === 'string') {
    for (const error of subdomainErrors(withoutTrailingDash(generateName))) {
      errors.push(invalidValue('metadata.generateName', generateName, error))
    }
  }
  if (typeof name === 'string') {
    for (const error of subdomainErrors(name)) errors.push(invalidValue('metadata.name', name, error))
  }
  if (typeof generation === 'number' && generation < 0) {
    errors.push(invalidValue('metadata.generation', generation, 'must be greater than or equal to 0'))
  }
  return errors
}

function labelsErrors(labels: unknown): FieldError[] {
  return errorsOfEach(Object.entries(isRecord(labels) ? labels : {}), ([key, value]) => {
    const ofKey = qualifiedNameErrors(key).map((error) => invalidValue('metadata.labels', key, error))
    const ofValue = labelValueErrors(String(value)).map((error) => invalidValue('metadata.labels', value, error))
    return [...ofKey, ...ofValue]
  })
}

function annotationErrors(annotations: unknown): FieldError[] {
  const entries = Object.entries(isRecord(annotations) ? annotations : {})
  const errors = errorsOfEach(entries, ([key]) =>
    qualifiedNameErrors(key.toLowerCase()).map((error) => invalidValue('metadata.annotations', key, error)),
  )
  const size = entries.reduce((sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(String(value)), 0)
  if (size > MAX_ANNOTATIONS_BYTES) errors.push(tooLong('metadata.annotations', MAX_ANNOTATIONS_BYTES))
  return errors
}

function ownerErrors(owners: readonly JsonObject[]): FieldError[] {
  const path = 'metadata.ownerReferences'
  const errors: FieldError[] = []
  let controller = ''
  let second = false
  for (const owner of owners) {
    if (errors.length >= MOST_ERRORS) break
    const apiVersion = textOf(owner['apiVersion'])
    const kind = textOf(owner['kind'])
    const name = textOf(owner['name'])
    if (apiVersion.split('/').at(-1) === '' || apiVersion.split('/').length > 2) {
      errors.push(invalidValue(`${path}.apiVersion`, apiVersion, 'version must not be empty'))
    }
    if (kind === '') errors.push(invalidValue(`${path}.kind`, kind, 'must not be empty'))
    if (name === '') errors.push(invalidValue(`${path}.name`, name, 'must not be empty'))
    if (textOf(owner['uid']) === '') errors.push(invalidValue(`${path}.uid`, '', 'must not be empty'))
    if (apiVersion === 'v1' && kind === 'Event') {
      errors.push(invalidShown(path, JSON.stringify(owner), '/v1, Kind=Event is disallowed from being an owner'))
    }
    if (owner['controller'] !== true) continue
    // Each of these errors shows all owners: one of them says it.
    if (second) continue
    if (controller !== '') {
      second = true
      const both = `Found "true" in references for ${controller} and ${kind}/${name}`
      errors.push(
        invalidShown(path, JSON.stringify(owners), `Only one reference can have Controller set to true. ${both}`),
      )
    } else controller = `${kind}/${name}`
  }
  return errors
}

function finalizerErrors(finalizers: readonly unknown[]): FieldError[] {
  const path = 'metadata.finalizers'
  const errors = errorsOfEach(finalizers, (finalizer) =>
    qualifiedNameErrors(String(finalizer)).map((error) => invalidValue(path, finalizer, error)),
  )
  if (finalizers.includes('orphan') && finalizers.includes('foregroundDeletion')) {
    errors.push(invalidValue(path, finalizers, 'finalizer orphan and foregroundDeletion cannot be both set'))
  }
  return errors
}
