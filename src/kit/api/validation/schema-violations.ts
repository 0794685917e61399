// The one validator: finds where a value does not fit its schema. Callers word the errors: kube/core/objects/structural-schema.ts like kube-apiserver,
// schema-errors.ts with a fix. The order follows k8s.io/kube-openapi/pkg/validation/validate.

import { isRecord } from '../json/object-shape.ts'
import { additionalSchema, memberSchema, ownProperty, type SchemaView } from '../json/schema-view.ts'
import { sortedJson } from '../json/sorted-json.ts'
import { isTimestamp } from './name-syntax.ts'

/** `unknown`: a member that the schema does not define; `listKey`: an item that is not a map, in a list keyed by fields. */
export type Violated =
  | ('type' | 'enum' | 'required' | 'unknown' | 'duplicate' | 'listKey' | 'format' | 'pattern' | 'multipleOf')
  | ('minimum' | 'maximum' | `${'min' | 'max'}${'Length' | 'Items' | 'Properties'}`)

export interface Violation {
  readonly violated: Violated
  /** Path of the value; for `required` and `unknown`, of the member. */
  readonly path: string
  /** Schema of the value; for `required` and `unknown`, of the map. */
  readonly schema: SchemaView
  /** The value; for `duplicate` in a list keyed by fields, only the keys. */
  readonly value: unknown
  /** The member, for `required` and `unknown`; else ''. */
  readonly name: string
}

/** Receives a violation; false = stop. */
type Violations = (violation: Violation) => boolean

/** Formats the path of a member. */
type MemberPath = (path: string, key: string) => string

/**
 * Reports every violation, then duplicates in lists that must not have any (x-kubernetes-list-type). Linear in the size of the value; stops when
 * `found` says so.
 */
export function findViolations(
  schema: SchemaView,
  value: unknown,
  path: string,
  memberPath: MemberPath,
  found: Violations,
): void {
  const walk = new SchemaWalk(memberPath, found)
  walk.value(schema, value, path)
  walk.duplicates(schema, value, path)
}

class SchemaWalk {
  readonly #memberPath: MemberPath
  readonly #found: Violations
  #ended = false

  constructor(memberPath: MemberPath, found: Violations) {
    this.#memberPath = memberPath
    this.#found = found
  }

  value(schema: SchemaView, value: unknown, path: string): void {
    if (this.#ended) return
    if (!isContainer(value)) {
      for (const violated of scalarViolations(schema, value)) this.#report(violated, path, schema, value)
      return
    }
    if (!hasType(schema, value)) this.#report('type', path, schema, value)
    if (Array.isArray(value)) this.#list(schema, value, path)
    if (!isListed(schema, value)) this.#report('enum', path, schema, value)
    if (isRecord(value)) this.#map(schema, value, path)
  }

  #list(schema: SchemaView, value: readonly unknown[], path: string): void {
    const { items, minItems, maxItems } = schema
    for (let at = 0; items !== undefined && at < value.length; at++) {
      // Avoids building paths of valid values: there may be very many.
      if (!isRightScalar(items, value[at])) this.value(items, value[at], `${path}[${at}]`)
    }
    if (minItems !== undefined && value.length < minItems) this.#report('minItems', path, schema, value)
    if (maxItems !== undefined && value.length > maxItems) this.#report('maxItems', path, schema, value)
  }

  #map(schema: SchemaView, value: Readonly<Record<string, unknown>>, path: string): void {
    const keys = Object.keys(value)
    const { minProperties, maxProperties, required = [] } = schema
    if (minProperties !== undefined && keys.length < minProperties) this.#report('minProperties', path, schema, value)
    if (maxProperties !== undefined && keys.length > maxProperties) this.#report('maxProperties', path, schema, value)
    const additional = additionalSchema(schema)
    for (const key of keys) {
      if (ownProperty(schema, key) !== undefined) continue
      if (additional !== undefined) this.#member(additional, value[key], path, key)
      else if (isClosed(schema)) this.#report('unknown', this.#memberPath(path, key), schema, value[key], key)
      if (this.#ended) return
    }
    for (const [key, known] of Object.entries(schema.properties ?? {})) {
      if (has(value, key)) this.#member(known, value[key], path, key)
    }
    for (const key of required) {
      if (!has(value, key)) this.#report('required', this.#memberPath(path, key), schema, undefined, key)
    }
  }

  #member(schema: SchemaView, value: unknown, path: string, key: string): void {
    if (!isRightScalar(schema, value)) this.value(schema, value, this.#memberPath(path, key))
  }

  duplicates(schema: SchemaView | undefined, value: unknown, path: string): void {
    if (schema === undefined || this.#ended) return
    if (Array.isArray(value)) {
      this.#ownDuplicates(schema, value, path)
      for (let at = 0; at < value.length; at++) {
        if (isContainer(value[at])) this.duplicates(schema.items, value[at], `${path}[${at}]`)
      }
      return
    }
    if (!isRecord(value)) return
    for (const [key, member] of Object.entries(value)) {
      if (!isContainer(member)) continue
      const known = ownProperty(schema, key)
      this.duplicates(
        known ?? memberSchema(schema, key),
        member,
        known === undefined ? `${path}[${key}]` : this.#memberPath(path, key),
      )
    }
  }

  /** schema/listtype/validation.go of apiextensions-apiserver. */
  #ownDuplicates(schema: SchemaView, items: readonly unknown[], path: string): void {
    const type = schema['x-kubernetes-list-type']
    if (type !== 'set' && type !== 'map') return
    const odd = type === 'map' ? items.findIndex((item) => item !== null && !isRecord(item)) : -1
    if (odd >= 0) {
      this.#report('listKey', `${path}[${odd}]`, schema, items[odd])
      return
    }
    const keys = type === 'set' ? items : items.map((item) => keysOf(item, schema['x-kubernetes-list-map-keys'] ?? []))
    for (const at of repeated(keys)) this.#report('duplicate', `${path}[${at}]`, schema, keys[at])
  }

  #report(violated: Violated, path: string, schema: SchemaView, value: unknown, name = ''): void {
    if (!this.#ended && !this.#found({ violated, path, schema, value, name })) this.#ended = true
  }
}

/** JSON has no undefined: treated as absent. */
function has(value: Readonly<Record<string, unknown>>, key: string): boolean {
  return Object.hasOwn(value, key) && value[key] !== undefined
}

/** JSON types that the schema allows; none = any. */
export function typesOf(schema: SchemaView): readonly string[] {
  if (schema['x-kubernetes-int-or-string'] === true) return ['integer', 'string']
  return schema.type === undefined ? [] : [schema.type]
}

export function jsonTypeOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number'
  return typeof value
}

function hasType(schema: SchemaView, value: unknown): boolean {
  const { type, nullable = false } = schema
  const actual = jsonTypeOf(value)
  if (actual === type || (actual === 'integer' && type === 'number') || (value === null && nullable)) return true
  if (schema['x-kubernetes-int-or-string'] === true) return actual === 'integer' || actual === 'string'
  return type === undefined
}

/** Whether members that it does not list are unknown. */
function isClosed(schema: SchemaView): boolean {
  return schema.type === 'object' && schema['x-kubernetes-preserve-unknown-fields'] !== true
}

function isListed({ enum: values = [] }: SchemaView, value: unknown): boolean {
  if (values.length === 0 || values.includes(value)) return true
  if (!isContainer(value)) return false
  const json = sortedJson(value)
  return values.some((one) => sortedJson(one) === json)
}

function isContainer(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

function isRightScalar(schema: SchemaView, value: unknown): boolean {
  return !isContainer(value) && scalarViolations(schema, value).length === 0
}

const NONE: readonly Violated[] = []

function scalarViolations(schema: SchemaView, value: unknown): readonly Violated[] {
  const type = hasType(schema, value) ? NONE : (['type'] as const)
  const own =
    typeof value === 'string'
      ? textViolations(schema, value)
      : typeof value === 'number'
        ? numberViolations(schema, value)
        : NONE
  const listed = isListed(schema, value) ? NONE : (['enum'] as const)
  return type === NONE && own === NONE && listed === NONE ? NONE : [...type, ...own, ...listed]
}

/** The first applicable violation of length and pattern, and that of the format. */
function textViolations(schema: SchemaView, text: string): readonly Violated[] {
  const rule = textRule(schema, text)
  const { format } = schema
  // strfmt.IsDateTime: RFC 3339 in any case; here also rejects what Go could not parse.
  const isFormat = format === 'byte' ? isBase64(text) : format !== 'date-time' || isTimestamp(text.toUpperCase())
  if (rule === undefined) return isFormat ? NONE : ['format']
  return isFormat ? [rule] : [rule, 'format']
}

function textRule({ minLength, maxLength, pattern }: SchemaView, text: string): Violated | undefined {
  const length = minLength === undefined && maxLength === undefined ? 0 : runes(text)
  if (maxLength !== undefined && length > maxLength) return 'maxLength'
  if (minLength !== undefined && length < minLength) return 'minLength'
  return pattern !== undefined && !patternOf(pattern).test(text) ? 'pattern' : undefined
}

function numberViolations(schema: SchemaView, value: number): readonly Violated[] {
  const { minimum, maximum, multipleOf, exclusiveMinimum = false, exclusiveMaximum = false } = schema
  const found: Violated[] = []
  if (multipleOf !== undefined && !Number.isInteger(value / multipleOf)) found.push('multipleOf')
  if (minimum !== undefined && (value < minimum || (exclusiveMinimum && value === minimum))) found.push('minimum')
  if (maximum !== undefined && (value > maximum || (exclusiveMaximum && value === maximum))) found.push('maximum')
  return found.length === 0 ? NONE : found
}

function runes(text: string): number {
  let count = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    const pair = code >= 0xd800 && code < 0xdc00 && (text.charCodeAt(at + 1) & 0xfc00) === 0xdc00
    if (pair) at++
    count++
  }
  return count
}

/** Patterns come from our own schemas, so they are few. */
const PATTERNS = new Map<string, RegExp>()

function patternOf(pattern: string): RegExp {
  let compiled = PATTERNS.get(pattern)
  if (compiled === undefined) {
    compiled = new RegExp(pattern, 'u')
    PATTERNS.set(pattern, compiled)
  }
  return compiled
}

/** Standard base64 with padding, in one line; empty text is invalid (govalidator.IsBase64). */
function isBase64(text: string): boolean {
  if (text.length === 0 || text.length % 4 !== 0) return false
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0
  return /^[A-Za-z0-9+/]*$/.test(text.slice(0, text.length - padding))
}

function keysOf(item: unknown, names: readonly string[]): Readonly<Record<string, unknown>> {
  if (!isRecord(item)) return {}
  return Object.fromEntries(names.filter((name) => Object.hasOwn(item, name)).map((name) => [name, item[name]]))
}

/** Index of each value's second occurrence; further ones are not reported. */
function repeated(values: readonly unknown[]): number[] {
  const times = new Map<string, number>()
  return values.flatMap((value, at) => {
    const json = sortedJson(value)
    const before = times.get(json) ?? 0
    times.set(json, before + 1)
    return before === 1 ? [at] : []
  })
}
