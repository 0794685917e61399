// Where an object does not fit its schema, in the words of kube-apiserver (k8s.io/kube-openapi/pkg/validation/validate, whose
// results apiextensions-apiserver/pkg/apiserver/validation/validation.go turns into field errors).

import type { FieldError } from '../../api/kube/field-error.ts'
import { isRecord } from '../../api/kube/object-shape.ts'
import {
  duplicate,
  errorsOfEach,
  invalidType,
  invalidValue,
  MOST_ERRORS,
  notSupported,
  required,
  tooMany,
} from './field-error.ts'
import { goJson } from './go-values.ts'
import { numberErrors, textErrors } from './scalar-errors.ts'
import { additionalSchema, memberSchema, ownProperty, type SchemaView } from './schema-view.ts'

/** @param path `spec.servers[0]`; '' = the object itself */
export function errorsOf(schema: SchemaView, value: unknown, path: string): FieldError[] {
  // Lists, not arguments of a call: there may be as many as the object has members.
  return [
    ...typeErrors(schema, value, path),
    ...(typeof value === 'string' ? textErrors(schema, value, path) : []),
    ...(typeof value === 'number' ? numberErrors(schema, value, path) : []),
    ...(Array.isArray(value) ? listErrors(schema, value, path) : []),
    ...enumErrors(schema, value, path),
    ...(isRecord(value) ? objectErrors(schema, value, path) : []),
  ]
}

/** x-kubernetes-list-type: items of a set, and keys of a map, that are there twice (schema/listtype/validation.go). */
export function duplicateItems(schema: SchemaView | undefined, value: unknown, path: string): FieldError[] {
  if (schema === undefined) return []
  if (Array.isArray(value)) {
    const { items } = schema
    const own = ownDuplicates(schema, value, path)
    return [...own, ...errorsOfEach(value.entries(), ([at, item]) => duplicateItems(items, item, `${path}[${at}]`))]
  }
  if (!isRecord(value)) return []
  return errorsOfEach(Object.entries(value), ([key, member]) => {
    const at = ownProperty(schema, key) === undefined ? `${path}[${key}]` : childOf(path, key)
    return duplicateItems(memberSchema(schema, key), member, at)
  })
}

function childOf(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`
}

function typeErrors(schema: SchemaView, value: unknown, path: string): FieldError[] {
  const wanted =
    schema['x-kubernetes-int-or-string'] === true ? ['integer', 'string'] : schema.type ? [schema.type] : []
  if (wanted.length === 0 || (value === null && schema.nullable === true)) return []
  const actual = typeOf(value)
  if (wanted.includes(actual) || (actual === 'integer' && wanted.includes('number'))) return []
  // What should be text of a format is called by it, and what is there instead by its format, if it has one.
  const formatted = schema.format !== undefined && schema.type === 'string' && value !== null
  const name = formatted ? schema.format : wanted.join(',')
  const shown = formatted ? (NUMBER_FORMATS.get(actual) ?? '') : actual
  return [invalidType(path, shown, `${inBody(path)} must be of type ${name}: "${shown}"`)]
}

const NUMBER_FORMATS: ReadonlyMap<string, string> = new Map([
  ['integer', 'int64'],
  ['number', 'float64'],
])

function typeOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number'
  return typeof value
}

function inBody(path: string): string {
  return `${path} in body`
}

function listErrors(schema: SchemaView, value: readonly unknown[], path: string): FieldError[] {
  const { items, minItems, maxItems } = schema
  const errors =
    items === undefined ? [] : errorsOfEach(value.entries(), ([at, item]) => errorsOf(items, item, `${path}[${at}]`))
  if (minItems !== undefined && value.length < minItems) {
    errors.push(invalidValue(path, value.length, `${inBody(path)} should have at least ${minItems} items`))
  }
  if (maxItems !== undefined && value.length > maxItems) errors.push(tooMany(path, value.length, maxItems))
  return errors
}

function enumErrors({ enum: values }: SchemaView, value: unknown, path: string): FieldError[] {
  if (values === undefined || values.length === 0) return []
  const json = goJson(value)
  if (values.some((allowed) => goJson(allowed) === json)) return []
  const supported = values.map((allowed) => (typeof allowed === 'string' ? allowed : goJson(allowed)))
  return [notSupported(path, value, supported)]
}

function objectErrors(schema: SchemaView, value: Readonly<Record<string, unknown>>, path: string): FieldError[] {
  const errors: FieldError[] = []
  const keys = Object.keys(value)
  const { minProperties, maxProperties } = schema
  if (minProperties !== undefined && keys.length < minProperties) {
    errors.push(invalidValue(path, keys.length, `${inBody(path)} should have at least ${minProperties} properties`))
  }
  if (maxProperties !== undefined && keys.length > maxProperties) {
    errors.push(tooMany(path, keys.length, maxProperties))
  }
  const additional = additionalSchema(schema)
  for (const key of keys) {
    if (errors.length >= MOST_ERRORS) break
    if (additional !== undefined && ownProperty(schema, key) === undefined) {
      for (const error of errorsOf(additional, value[key], `${path}.${key}`)) errors.push(error)
    }
  }
  for (const [key, known] of Object.entries(schema.properties ?? {})) {
    if (!Object.hasOwn(value, key)) continue
    for (const error of errorsOf(known, value[key], childOf(path, key))) errors.push(error)
  }
  for (const key of schema.required ?? []) {
    if (!Object.hasOwn(value, key)) errors.push(required(childOf(path, key)))
  }
  return errors
}

function ownDuplicates(schema: SchemaView, items: readonly unknown[], path: string): FieldError[] {
  const type = schema['x-kubernetes-list-type']
  if (type === 'set') {
    return repeated(items).map((at) => duplicate(`${path}[${at}]`, items[at]))
  }
  if (type !== 'map') return []
  const odd = items.findIndex((item) => item !== null && !isRecord(item))
  if (odd >= 0) {
    return [invalidValue(`${path}[${odd}]`, items[odd], 'must be an object for an array of list-type map')]
  }
  const names = schema['x-kubernetes-list-map-keys'] ?? []
  const keys = items.map((item) => {
    const given = names.filter((name) => isRecord(item) && Object.hasOwn(item, name))
    return Object.fromEntries(given.map((name) => [name, isRecord(item) ? item[name] : undefined]))
  })
  return repeated(keys).map((at) => duplicate(`${path}[${at}]`, keys[at]))
}

/** Where each value is for the second time; a third time is not told. */
function repeated(values: readonly unknown[]): number[] {
  const times = new Map<string, number>()
  return values.flatMap((value, at) => {
    const json = goJson(value)
    const before = times.get(json) ?? 0
    times.set(json, before + 1)
    return before === 1 ? [at] : []
  })
}
