// kubectl moves objects from client-side to server-side apply with the help of the server: `kubectl apply --server-side` may
// take over what `kubectl apply` wrote before, and the annotation that the latter leaves is kept up to date for a way back
// (k8s.io/apimachinery/pkg/util/managedfields/internal/{lastappliedmanager,lastappliedupdater}.go).

import type { JsonObject } from '../../api/kube/json-object.ts'
import { isRecord } from '../../api/kube/object-shape.ts'
import type { Atom } from './atom.ts'
import { goJson } from './go-values.ts'
import { withoutManagedFields } from './managed-entries.ts'
import { compareValues } from './typed-compare.ts'
import { fieldsOf, typeErrors } from './typed-fields.ts'

const ANNOTATION = 'kubectl.kubernetes.io/last-applied-configuration'
const MAX_ANNOTATIONS_BYTES = 256 * 1024

/** The only manager for which the server does this. */
export const KUBECTL = 'kubectl'

/** Paths (`.spec.x`) that client-side apply wrote, and nobody changed since. */
export function appliedByClient(atom: Atom, live: JsonObject, apiVersion: string): ReadonlySet<string> {
  const applied = lastApplied(live)
  if (applied === undefined || applied['apiVersion'] !== apiVersion) return new Set()
  if (typeErrors(atom, applied).length > 0) return new Set()
  const { modified, added, removed } = compareValues(atom, applied, withoutManagedFields(live))
  return new Set(fieldsOf(atom, applied).difference(modified).difference(added).difference(removed).paths())
}

function lastApplied(object: JsonObject): JsonObject | undefined {
  const text = annotationsOf(object)?.[ANNOTATION]
  if (typeof text !== 'string') return undefined
  try {
    const value: unknown = JSON.parse(text)
    return isRecord(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** The object whose annotation, if it has one, says what was applied now. */
export function withLastApplied(object: JsonObject, applied: JsonObject): JsonObject {
  const annotations = annotationsOf(object)
  const before = annotations?.[ANNOTATION]
  if (annotations === undefined || typeof before !== 'string' || before === '') return object
  const updated: Record<string, unknown> = { ...annotations, [ANNOTATION]: `${goJson(withoutAnnotation(applied))}\n` }
  const size = Object.entries(updated).reduce((sum, [key, text]) => sum + Buffer.byteLength(key + String(text)), 0)
  if (size > MAX_ANNOTATIONS_BYTES) delete updated[ANNOTATION]
  return withAnnotations(object, updated)
}

function withoutAnnotation(applied: JsonObject): JsonObject {
  const annotations = annotationsOf(applied)
  if (annotations === undefined) return applied
  const { [ANNOTATION]: _, ...others } = annotations
  return withAnnotations(applied, others)
}

function annotationsOf(object: JsonObject): JsonObject | undefined {
  const metadata = object['metadata']
  const annotations = isRecord(metadata) ? metadata['annotations'] : undefined
  return isRecord(annotations) ? annotations : undefined
}

function withAnnotations(object: JsonObject, annotations: JsonObject): JsonObject {
  const metadata = object['metadata']
  return { ...object, metadata: { ...(isRecord(metadata) ? metadata : {}), annotations } }
}
