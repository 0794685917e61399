// Shapes an object by its kind's schema, as kube-apiserver does with custom resources before validation: unknown fields are pruned, nulls
// dropped, defaults filled in (k8s.io/apiextensions-apiserver/pkg/apiserver/schema/{pruning,defaulting}). Validation: validateShape.

import type { FieldError } from '../../../kit/api/json/field-error.ts'
import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import type { JsonSchema } from '../../../kit/api/json/json-schema.ts'
import { isRecord } from '../../../kit/api/json/object-shape.ts'
import {
  additionalSchema,
  memberSchema,
  ownProperty,
  type SchemaView,
  viewOf,
} from '../../../kit/api/json/schema-view.ts'
import { compareText } from '../../../kit/api/json/sorted-json.ts'
import { findViolations, jsonTypeOf, typesOf, type Violation } from '../../../kit/api/validation/schema-violations.ts'
import { sameJson } from '../../../kit/core/text/same-json.ts'
import {
  duplicate,
  invalidType,
  invalidValue,
  MOST_ERRORS,
  notSupported,
  required,
  tooLong,
  tooMany,
} from './field-error.ts'
import { goJson, goNumber } from './go-values.ts'

interface ShapedObject {
  readonly object: JsonObject
  /** Paths of pruned fields (`spec.foo`, `spec.servers[0].bar`), sorted unless there are very many. */
  readonly unknown: readonly string[]
}

/** More paths than this are not sorted: a response lists a hundred of them. */
const MOST_SORTED = 1_000

/**
 * The object with the fields in the schema; unchanged maps and lists are not copied. `apiVersion`, `kind` and `metadata` of the object
 * itself are left alone (metadata-shape.ts).
 * @param stored the stored object, if this one is a modification of it: unknown fields that are unchanged are kept, since a newer version
 * of this program wrote them. Default: none is kept
 */
export function shapeObject(schema: JsonSchema, object: JsonObject, stored?: JsonObject): ShapedObject {
  const unknown: string[] = []
  const root: SchemaView = { ...viewOf(schema), 'x-kubernetes-embedded-resource': true }
  const pruned = prune(root, object, stored, '', unknown)
  const shaped = fillDefaults(viewOf(schema), dropNulls(viewOf(schema), pruned))
  const sorted = unknown.length > MOST_SORTED ? unknown : unknown.sort(compareText)
  return { object: isRecord(shaped) ? shaped : {}, unknown: sorted }
}

/** The object with the defaults of its schema. */
export function withDefaults(schema: JsonSchema, object: JsonObject): JsonObject {
  const filled = fillDefaults(viewOf(schema), object)
  return isRecord(filled) ? filled : object
}

/**
 * Every way in which the object does not fit the schema, in kube-apiserver's words. Null members must be dropped first (shapeObject). CEL
 * rules are not evaluated.
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
    const items = itemsOf(schema)
    return mapped(value, (item, at) => {
      // Build the path only for values with members: there may be very many.
      return typeof item === 'object' ? prune(items, item, before[at], `${path}[${at}]`, unknown) : item
    })
  }
  if (!isRecord(value)) return value
  const before = isRecord(stored) ? stored : {}
  const preserved = schema?.['x-kubernetes-preserve-unknown-fields'] === true
  const embedded = schema?.['x-kubernetes-embedded-resource'] === true
  return withMembers(value, (key, member) => {
    if (embedded && META_FIELDS.has(key)) return member
    const known = memberSchema(schema, key)
    if (known !== undefined) {
      return typeof member === 'object' ? prune(known, member, before[key], below(path, key), unknown) : member
    }
    if (preserved || (Object.hasOwn(before, key) && sameJson(member, before[key]))) return member
    unknown.push(below(path, key))
    return undefined
  })
}

function below(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`
}

type Members = Readonly<Record<string, unknown>>

/**
 * Maps each member; undefined = remove it. Returns the same map if nothing changes, the usual case: building a map of many members takes
 * longer than everything else here.
 */
function withMembers(map: Members, change: (key: string, member: unknown) => unknown): Members {
  const entries = Object.entries(map)
  let changed: [string, unknown][] | undefined
  for (const [at, entry] of entries.entries()) {
    const [key, member] = entry
    const now = change(key, member)
    if (changed === undefined && now === member && now !== undefined) continue
    changed ??= entries.slice(0, at)
    if (now !== undefined) changed.push(now === member ? entry : [key, now])
  }
  return changed === undefined ? map : Object.fromEntries(changed)
}

/** Maps each item; returns the same list if nothing changes. */
function mapped(list: readonly unknown[], change: (item: unknown, at: number) => unknown): readonly unknown[] {
  const all = list.map(change)
  return all.every((item, at) => item === list[at]) ? list : all
}

/** The schema of the items of a list that itself keeps unknown fields. */
function itemsOf(schema: SchemaView | undefined): SchemaView | undefined {
  if (schema?.items !== undefined) return schema.items
  return schema?.['x-kubernetes-preserve-unknown-fields'] === true ? schema : undefined
}

/** Drops null members, unless the schema allows them or has a default for them. */
function dropNulls(schema: SchemaView | undefined, value: unknown): unknown {
  if (Array.isArray(value)) return mapped(value, (item) => dropNulls(schema?.items, item))
  if (!isRecord(value)) return value
  return withMembers(value, (key, member) => {
    if (typeof member !== 'object') return member
    const known = memberSchema(schema, key)
    const dropped = member === null && known !== undefined && known.nullable !== true && known.default === undefined
    return dropped ? undefined : dropNulls(known, member)
  })
}

function fillDefaults(schema: SchemaView | undefined, value: unknown): unknown {
  if (schema === undefined) return value
  if (Array.isArray(value)) {
    return mapped(value, (item) =>
      fillDefaults(schema.items, isUnwantedNull(item, schema.items) ? defaultOf(schema.items) : item),
    )
  }
  if (!isRecord(value)) return value
  const additional = additionalSchema(schema)
  return withMembers(withMissing(schema, value), (key, member) => {
    if (typeof member !== 'object') return member
    const known = ownProperty(schema, key)
    if (known !== undefined) return fillDefaults(known, member)
    if (additional === undefined) return member
    return fillDefaults(additional, isUnwantedNull(member, additional) ? defaultOf(additional) : member)
  })
}

/** Adds the defaults of members that are missing, or null where null is not allowed. */
function withMissing(schema: SchemaView, value: Members): Members {
  let filled: Record<string, unknown> | undefined
  for (const [key, known] of Object.entries(schema.properties ?? {})) {
    if (known.default === undefined) continue
    if (Object.hasOwn(value, key) && !isUnwantedNull(value[key], known)) continue
    filled ??= { ...value }
    filled[key] = known.default
  }
  return filled ?? value
}

function isUnwantedNull(value: unknown, schema: SchemaView | undefined): boolean {
  return value === null && schema !== undefined && schema.nullable !== true
}

function defaultOf(schema: SchemaView | undefined): unknown {
  return schema?.default ?? null
}

// Validation errors in kube-apiserver's words (k8s.io/kube-openapi/pkg/validation/validate, whose results
// apiextensions-apiserver/pkg/apiserver/validation/validation.go turns into field errors).

/** The errors of a value; of very many, the first. Members not in the schema are ignored: they were pruned. */
function shapeErrors(schema: SchemaView, value: unknown): readonly FieldError[] {
  const errors: FieldError[] = []
  const memberPath = (path: string, key: string): string => (path === '' ? key : `${path}.${key}`)
  findViolations(schema, value, '', memberPath, (violation) => {
    const error = errorOf(violation)
    if (error !== undefined) errors.push(error)
    return errors.length < MOST_ERRORS
  })
  return errors
}

function errorOf({ violated, path, schema, value }: Violation): FieldError | undefined {
  const rule = (text: string): FieldError => invalidValue(path, sizeOf(value), `${path} in body should ${text}`)
  switch (violated) {
    case 'type':
      return typeError(schema, value, path)
    case 'format':
      return invalidType(
        path,
        String(value),
        `${path} in body must be of type ${schema.format}: ${JSON.stringify(value)}`,
      )
    case 'enum':
      return notSupported(
        path,
        value,
        (schema.enum ?? []).map((one) => (typeof one === 'string' ? one : goJson(one))),
      )
    case 'required':
      return required(path)
    case 'unknown':
      return undefined
    case 'duplicate':
      return duplicate(path, value)
    case 'listKey':
      return invalidValue(path, value, 'must be an object for an array of list-type map')
    case 'pattern':
      return rule(`match '${schema.pattern}'`)
    case 'multipleOf':
      return rule(`be a multiple of ${goNumber(schema.multipleOf ?? 0)}`)
    case 'minimum':
      return rule(
        `be greater than ${schema.exclusiveMinimum === true ? '' : 'or equal to '}${goNumber(schema.minimum ?? 0)}`,
      )
    case 'maximum':
      return rule(
        `be less than ${schema.exclusiveMaximum === true ? '' : 'or equal to '}${goNumber(schema.maximum ?? 0)}`,
      )
    case 'minLength':
      return rule(`be at least ${schema.minLength} chars long`)
    case 'maxLength':
      return tooLong(path, schema.maxLength ?? 0)
    case 'minItems':
      return rule(`have at least ${schema.minItems} items`)
    case 'maxItems':
      return tooMany(path, countOf(value), schema.maxItems ?? 0)
    case 'minProperties':
      return rule(`have at least ${schema.minProperties} properties`)
    case 'maxProperties':
      return tooMany(path, countOf(value), schema.maxProperties ?? 0)
  }
}

function typeError(schema: SchemaView, value: unknown, path: string): FieldError {
  const actual = jsonTypeOf(value)
  // An expected formatted text is named by its format, and so is the actual value if it has one.
  const formatted = schema.format !== undefined && schema.type === 'string' && value !== null
  const name = formatted ? schema.format : typesOf(schema).join(',')
  const shown = formatted ? (NUMBER_FORMATS.get(actual) ?? '') : actual
  return invalidType(path, shown, `${path} in body must be of type ${name}: "${shown}"`)
}

const NUMBER_FORMATS: ReadonlyMap<string, string> = new Map([
  ['integer', 'int64'],
  ['number', 'float64'],
])

/** Lists and maps are counted; any other value is returned unchanged. */
function sizeOf(value: unknown): unknown {
  return typeof value === 'object' ? countOf(value) : value
}

function countOf(value: unknown): number {
  return Array.isArray(value) ? value.length : isRecord(value) ? Object.keys(value).length : 0
}
