// Which fields the kinds have that field selectors name: `metadata.name=a,type!=Opaque`.

import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { isRecord } from '../../kit/api/json/object-shape.ts'
import type { ResourceKind } from '../../kube/api/resource-kind.ts'
import { type FieldTerm, parseFieldTerms } from '../../kube/core/selectors/field-terms.ts'
import { isBuiltIn } from '../objects/write-object-decode.ts'

export type FieldSelector = readonly FieldTerm[]

/** Selectors of core kinds for fields elsewhere in the object (pkg/registry/core/event/strategy.go). */
const ELSEWHERE: ReadonlyMap<string, string> = new Map([
  ['source', 'source.component'],
  ['name', 'metadata.name'],
])

/** @throws {SyntaxError} with kube-apiserver's message, also for a field that the kind doesn't support */
export function parseFieldSelector(text: string, kind: ResourceKind): FieldSelector {
  const terms = parseFieldTerms(text)
  for (const { field } of terms) checkField(field, kind)
  return terms
}

export function fieldsMatch(selector: FieldSelector, object: JsonObject): boolean {
  return selector.every(({ field, value, negated }) => (fieldOf(object, field) === value) !== negated)
}

function checkField(field: string, kind: ResourceKind): void {
  const { selectableFields, namespaced } = kind
  if (field === 'metadata.name' || selectableFields.includes(field)) return
  if (field === 'metadata.namespace' && namespaced) return
  // runtime.DefaultMetaV1FieldSelectorConversion, for built-in kinds without selectable fields of their own (Lease).
  if (isBuiltIn(kind) && selectableFields.length === 0) {
    throw new SyntaxError(
      `${JSON.stringify(field)} is not a known field selector: only "metadata.name", "metadata.namespace"`,
    )
  }
  throw new SyntaxError(`field label not supported: ${field}`)
}

/** The field as text; '' if absent. */
function fieldOf(object: JsonObject, field: string): string {
  let value: unknown = object
  for (const key of (ELSEWHERE.get(field) ?? field).split('.')) {
    value = isRecord(value) && Object.hasOwn(value, key) ? value[key] : undefined
  }
  if (typeof value === 'string') return value
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : ''
}
