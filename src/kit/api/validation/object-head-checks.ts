// The part common to all Kubernetes objects: apiVersion, kind, metadata. For cluster-scoped objects with names like host names.

import { isRecord } from '../json/object-shape.ts'
import { childPath, type FieldErrors, shown } from './field-errors.ts'
import { isObjectName } from './name-syntax.ts'
import { MOST_SUGGESTIONS, unknownNameFix } from './schema-errors.ts'

const OBJECT_FIELDS = ['apiVersion', 'kind', 'metadata', 'spec', 'status']
/** metav1.ObjectMeta, in the order of Go's type. */
export const METADATA_FIELDS: readonly string[] = [
  'name',
  'generateName',
  'namespace',
  'selfLink',
  'uid',
  'resourceVersion',
  'generation',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'labels',
  'annotations',
  'ownerReferences',
  'finalizers',
  'managedFields',
]

type Fields = Readonly<Record<string, unknown>>

export function checkObjectHead(object: Fields, apiVersion: string, kind: string, out: FieldErrors): void {
  checkKnown(object, OBJECT_FIELDS, '', out)
  if (object['apiVersion'] !== apiVersion) {
    out.invalid('apiVersion', `is ${shown(object['apiVersion'] ?? null)}`, `write ${apiVersion}`)
  }
  if (object['kind'] !== kind) out.invalid('kind', `is ${shown(object['kind'] ?? null)}`, `write ${kind}`)
  const { metadata } = object
  if (!isRecord(metadata)) {
    out.required('metadata.name', 'is required', 'add metadata with a name')
    return
  }
  checkKnown(metadata, METADATA_FIELDS, 'metadata', out)
  checkName(metadata['name'] ?? '', out)
  if ((metadata['namespace'] ?? '') !== '') {
    out.invalid('metadata.namespace', `is not allowed: ${kind} is cluster-scoped`, 'remove it')
  }
  checkStrings(metadata['labels'], 'metadata.labels', out)
  checkStrings(metadata['annotations'], 'metadata.annotations', out)
}

function checkName(name: unknown, out: FieldErrors): void {
  if (name === '') out.required('metadata.name', 'is required', 'add a name; it is also a host name of the cluster')
  else if (typeof name !== 'string' || !isObjectName(name)) {
    const fix = 'use lower-case letters, digits, - and ., beginning and ending with a letter or digit'
    out.invalid('metadata.name', `${shown(name)} is not a valid DNS-1123 subdomain`, fix)
  }
}

function checkKnown(object: Fields, known: readonly string[], path: string, out: FieldErrors): void {
  let unknown = 0
  for (const key of Object.keys(object)) {
    if (known.includes(key)) continue
    // Suggesting a name takes longer than finding the error.
    const fix = unknown++ < MOST_SUGGESTIONS ? unknownNameFix(key, known) : 'remove it'
    out.warning(childPath(path, key), 'unknown field, ignored', fix)
  }
}

function checkStrings(map: unknown, path: string, out: FieldErrors): void {
  if (map === undefined || map === null) return
  if (!isRecord(map)) {
    out.invalid(path, 'is not a map', 'write a map of strings')
    return
  }
  for (const [key, value] of Object.entries(map)) {
    if (typeof value !== 'string') out.invalid(`${path}[${key}]`, 'is not a string', 'put the value in quotes')
  }
}
