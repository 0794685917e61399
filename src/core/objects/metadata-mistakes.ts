// What is wrong with metadata whose types are right (k8s.io/apimachinery/pkg/api/validation/objectmeta.go).

import type { JsonObject } from '../../api/kube/json-object.ts'
import { isRecord } from '../../api/kube/object-shape.ts'
import type { FieldError } from '../../api/kube/status.ts'
import { errorsOfEach, invalidShown, invalidValue, MOST_ERRORS, tooLong } from './field-error.ts'
import { labelValueMistakes, qualifiedNameMistakes, subdomainMistakes, withoutTrailingDash } from './qualified-name.ts'

const MAX_ANNOTATIONS_BYTES = 256 * 1024

/** Not of managedFields: entries that cannot be are not used (managed-entries.ts). */
export function metadataMistakes(metadata: JsonObject): FieldError[] {
  return [
    ...nameMistakes(metadata),
    ...labelsMistakes(metadata['labels']),
    ...annotationMistakes(metadata['annotations']),
    ...ownerMistakes(listOf(metadata['ownerReferences'])),
    ...finalizerMistakes(listOf(metadata['finalizers'])),
  ]
}

function nameMistakes(metadata: JsonObject): FieldError[] {
  const { generateName, name, generation } = metadata
  const mistakes: FieldError[] = []
  if (typeof generateName === 'string') {
    for (const mistake of subdomainMistakes(withoutTrailingDash(generateName))) {
      mistakes.push(invalidValue('metadata.generateName', generateName, mistake))
    }
  }
  if (typeof name === 'string') {
    for (const mistake of subdomainMistakes(name)) mistakes.push(invalidValue('metadata.name', name, mistake))
  }
  if (typeof generation === 'number' && generation < 0) {
    mistakes.push(invalidValue('metadata.generation', generation, 'must be greater than or equal to 0'))
  }
  return mistakes
}

function labelsMistakes(labels: unknown): FieldError[] {
  return errorsOfEach(Object.entries(isRecord(labels) ? labels : {}), ([key, value]) => {
    const ofKey = qualifiedNameMistakes(key).map((mistake) => invalidValue('metadata.labels', key, mistake))
    const ofValue = labelValueMistakes(String(value)).map((mistake) => invalidValue('metadata.labels', value, mistake))
    return [...ofKey, ...ofValue]
  })
}

function annotationMistakes(annotations: unknown): FieldError[] {
  const entries = Object.entries(isRecord(annotations) ? annotations : {})
  const mistakes = errorsOfEach(entries, ([key]) =>
    qualifiedNameMistakes(key.toLowerCase()).map((mistake) => invalidValue('metadata.annotations', key, mistake)),
  )
  const size = entries.reduce((sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(String(value)), 0)
  if (size > MAX_ANNOTATIONS_BYTES) mistakes.push(tooLong('metadata.annotations', MAX_ANNOTATIONS_BYTES))
  return mistakes
}

function ownerMistakes(owners: readonly JsonObject[]): FieldError[] {
  const path = 'metadata.ownerReferences'
  const mistakes: FieldError[] = []
  let controller = ''
  let second = false
  for (const owner of owners) {
    if (mistakes.length >= MOST_ERRORS) break
    const apiVersion = textOf(owner['apiVersion'])
    const kind = textOf(owner['kind'])
    const name = textOf(owner['name'])
    if (apiVersion.split('/').at(-1) === '' || apiVersion.split('/').length > 2) {
      mistakes.push(invalidValue(`${path}.apiVersion`, apiVersion, 'version must not be empty'))
    }
    if (kind === '') mistakes.push(invalidValue(`${path}.kind`, kind, 'must not be empty'))
    if (name === '') mistakes.push(invalidValue(`${path}.name`, name, 'must not be empty'))
    if (textOf(owner['uid']) === '') mistakes.push(invalidValue(`${path}.uid`, '', 'must not be empty'))
    if (apiVersion === 'v1' && kind === 'Event') {
      mistakes.push(invalidShown(path, JSON.stringify(owner), '/v1, Kind=Event is disallowed from being an owner'))
    }
    if (owner['controller'] !== true) continue
    // Each of these errors shows all owners: one of them says it.
    if (second) continue
    if (controller !== '') {
      second = true
      const both = `Found "true" in references for ${controller} and ${kind}/${name}`
      mistakes.push(
        invalidShown(path, JSON.stringify(owners), `Only one reference can have Controller set to true. ${both}`),
      )
    } else controller = `${kind}/${name}`
  }
  return mistakes
}

function finalizerMistakes(finalizers: readonly unknown[]): FieldError[] {
  const path = 'metadata.finalizers'
  const mistakes = errorsOfEach(finalizers, (finalizer) =>
    qualifiedNameMistakes(String(finalizer)).map((mistake) => invalidValue(path, finalizer, mistake)),
  )
  if (finalizers.includes('orphan') && finalizers.includes('foregroundDeletion')) {
    mistakes.push(invalidValue(path, finalizers, 'finalizer orphan and foregroundDeletion cannot be both set'))
  }
  return mistakes
}

function listOf<T>(value: unknown): readonly T[] {
  return Array.isArray(value) ? value : []
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
