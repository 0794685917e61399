// An object brought into the shape of its kind's schema, as kube-apiserver does with custom resources before it validates
// them: unknown fields are pruned, nulls dropped, defaults filled in
// (k8s.io/apiextensions-apiserver/pkg/apiserver/schema/{pruning,defaulting}). Validation: validateShape.

import type { FieldError } from '../../api/kube/field-error.ts'
import type { JsonObject } from '../../api/kube/json-object.ts'
import type { JsonSchema } from '../../api/kube/json-schema.ts'
import { isRecord } from '../../api/kube/object-shape.ts'
import { additionalSchema, memberSchema, ownProperty, type SchemaView, viewOf } from '../../api/kube/schema-view.ts'
import { compareText } from '../../api/kube/sorted-json.ts'
import { sameJson } from '../text/same-json.ts'
import { shapeErrors } from './shape-errors.ts'

export interface ShapedObject {
  readonly object: JsonObject
  /** Paths of what was pruned (`spec.foo`, `spec.servers[0].bar`), sorted. */
  readonly unknown: readonly string[]
}

/**
 * A copy with the fields that the schema knows. `apiVersion`, `kind` and `metadata` of the object itself are left alone
 * (metadata-shape.ts).
 * @param stored what is stored, when the object was made by changing that: an unknown field that has stayed as it was is kept, as a newer
 * version of this program has written it. Default: none is kept
 */
export function shapeObject(schema: JsonSchema, object: JsonObject, stored?: JsonObject): ShapedObject {
  const unknown: string[] = []
  const root: SchemaView = { ...viewOf(schema), 'x-kubernetes-embedded-resource': true }
  const pruned = prune(root, object, stored, '', unknown)
  const shaped = fillDefaults(viewOf(schema), dropNulls(viewOf(schema), pruned))
  return { object: isRecord(shaped) ? shaped : {}, unknown: unknown.sort(compareText) }
}

/** The object with the defaults of its schema. */
export function withDefaults(schema: JsonSchema, object: JsonObject): JsonObject {
  const filled = fillDefaults(viewOf(schema), object)
  return isRecord(filled) ? filled : object
}

/**
 * Every way in which the object does not fit the schema, in the words of kube-apiserver. Null members have to be dropped
 * before (shapeObject). CEL rules are not evaluated.
 */
export function validateShape(schema: JsonSchema, object: JsonObject): readonly FieldError[] {
  return shapeErrors(viewOf(schema), object)
}

const META_FIELDS: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'metadata'])

function prune(
  schema: SchemaView | undefined,
  value: unknown,
  stored: unknown,
  path: string,
  unknown: string[],
): unknown {
  if (Array.isArray(value)) {
    const before: readonly unknown[] = Array.isArray(stored) ? stored : []
    return value.map((item, at) => prune(itemsOf(schema), item, before[at], `${path}[${at}]`, unknown))
  }
  if (!isRecord(value)) return value
  const before = isRecord(stored) ? stored : {}
  const preserved = schema?.['x-kubernetes-preserve-unknown-fields'] === true
  const embedded = schema?.['x-kubernetes-embedded-resource'] === true
  const kept: [string, unknown][] = []
  for (const [key, member] of Object.entries(value)) {
    const at = path === '' ? key : `${path}.${key}`
    const known = memberSchema(schema, key)
    if (embedded && META_FIELDS.has(key)) kept.push([key, member])
    else if (known !== undefined) kept.push([key, prune(known, member, before[key], at, unknown)])
    else if (preserved || (Object.hasOwn(before, key) && sameJson(member, before[key]))) kept.push([key, member])
    else unknown.push(at)
  }
  return Object.fromEntries(kept)
}

/** What holds for the items of a list that itself keeps unknown fields. */
function itemsOf(schema: SchemaView | undefined): SchemaView | undefined {
  if (schema?.items !== undefined) return schema.items
  return schema?.['x-kubernetes-preserve-unknown-fields'] === true ? schema : undefined
}

/** Null members, unless the schema allows them or has a default in their place. */
function dropNulls(schema: SchemaView | undefined, value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => dropNulls(schema?.items, item))
  if (!isRecord(value)) return value
  const kept: [string, unknown][] = []
  for (const [key, member] of Object.entries(value)) {
    const known = memberSchema(schema, key)
    const dropped = member === null && known !== undefined && known.nullable !== true && known.default === undefined
    if (!dropped) kept.push([key, dropNulls(known, member)])
  }
  return Object.fromEntries(kept)
}

function fillDefaults(schema: SchemaView | undefined, value: unknown): unknown {
  if (schema === undefined) return value
  if (Array.isArray(value)) {
    return value.map((item) =>
      fillDefaults(schema.items, isUnwantedNull(item, schema.items) ? defaultOf(schema.items) : item),
    )
  }
  if (!isRecord(value)) return value
  const members = new Map(Object.entries(value))
  for (const [key, known] of Object.entries(schema.properties ?? {})) {
    if (known.default === undefined) continue
    if (!members.has(key) || isUnwantedNull(members.get(key), known)) members.set(key, known.default)
  }
  const additional = additionalSchema(schema)
  for (const [key, member] of members) {
    const known = ownProperty(schema, key)
    if (known !== undefined) members.set(key, fillDefaults(known, member))
    else if (additional !== undefined) {
      members.set(key, fillDefaults(additional, isUnwantedNull(member, additional) ? defaultOf(additional) : member))
    }
  }
  return Object.fromEntries(members)
}

function isUnwantedNull(value: unknown, schema: SchemaView | undefined): boolean {
  return value === null && schema !== undefined && schema.nullable !== true
}

function defaultOf(schema: SchemaView | undefined): unknown {
  return schema?.default ?? null
}
