// The subset of JSON Schema that a Kubernetes CRD may use (a "structural schema"), and short ways to write it down.
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema

export interface JsonSchema {
  readonly type: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean'
  readonly description?: string
  readonly properties?: Readonly<Record<string, JsonSchema>>
  /** Schema of every value of a map; excludes `properties`. */
  readonly additionalProperties?: JsonSchema
  readonly required?: readonly string[]
  readonly items?: JsonSchema
  readonly enum?: readonly string[]
  /** API servers fill this in and store it. */
  readonly default?: unknown
  /** The value an absent field implies: filled in by `complete`, never stored. The only place where it is defined. */
  readonly [IMPLIED]?: { readonly value: unknown; readonly template: string }
  readonly format?: 'byte' | 'date-time' | 'int32' | 'int64'
  /** RE2, as in Go; use only what means the same in JavaScript. */
  readonly pattern?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly maxProperties?: number
  readonly 'x-kubernetes-preserve-unknown-fields'?: true
  /** Default atomic. */
  readonly 'x-kubernetes-list-type'?: 'map' | 'set' | 'atomic'
  readonly 'x-kubernetes-list-map-keys'?: readonly string[]
  /** Default granular. */
  readonly 'x-kubernetes-map-type'?: 'granular' | 'atomic'
  readonly 'x-kubernetes-validations'?: readonly CelRule[]
}

/** A CEL rule, evaluated by kube-apiserver; here the checks next to the schema do the same. */
export interface CelRule {
  readonly rule: string
  readonly message: string
  /** CEL expression used instead of `message` where it can be evaluated. */
  readonly messageExpression?: string
  /** Relative to the position of the rule: `.burst`. */
  readonly fieldPath?: string
  readonly reason?: 'FieldValueInvalid' | 'FieldValueForbidden' | 'FieldValueRequired' | 'FieldValueDuplicate'
}

/** A symbol, invisible to JSON, YAML and Object.entries, so that the keyword never reaches an API server. */
const IMPLIED: unique symbol = Symbol('implied default')

declare const OF: unique symbol

/** A schema of the values of T, as the helpers below build it. */
export interface Schema<T> extends JsonSchema {
  /** Type-only, never set. A function, so that neither a wider nor a narrower type fits. */
  readonly [OF]?: (value: T) => T
}

/** The type of the values that a schema describes. */
export type ValueOf<S> = S extends { readonly [OF]?: (value: infer T) => unknown } ? T : unknown

/** Largest integer in the API: Go's int32. */
export const MAX_INT32 = 2_147_483_647

type Fields = Readonly<Record<string, JsonSchema>>
type Flat<T> = { readonly [K in keyof T]: T[K] }
type ObjectOf<F extends Fields, Present extends keyof F> = Flat<
  { readonly [K in Present]: ValueOf<F[K]> } & { readonly [K in Exclude<keyof F, Present>]?: ValueOf<F[K]> }
>

/** @param always fields that are present although the schema does not require them: the gateway itself writes the object, or they have a stored default */
export function object<const F extends Fields, R extends keyof F & string = never, A extends keyof F & string = never>(
  description: string,
  properties: F,
  required: readonly R[] = [],
  _always: readonly A[] = [],
): Schema<ObjectOf<F, R | A>> {
  return { type: 'object', description, properties, ...(required.length > 0 && { required }) }
}

/** A whole Kubernetes object: `fields` plus apiVersion, kind and metadata. */
export function kubeObject(
  description: string,
  apiVersion: string,
  kind: string,
  fields: Readonly<Record<string, JsonSchema>>,
  required: readonly string[] = [],
): JsonSchema {
  return {
    type: 'object',
    description,
    properties: {
      apiVersion: text(`Version of the schema of this object: ${apiVersion}.`),
      kind: text(`What this object is: ${kind}.`),
      metadata: { type: 'object' },
      ...fields,
    },
    ...(required.length > 0 && { required }),
  }
}

export function list<T>(description: string, items: Schema<T>, minItems = 0): Schema<readonly T[]> {
  return { type: 'array', description, items, ...(minItems > 0 && { minItems }) }
}

/** A map with arbitrary keys and values of one schema. */
export function map<T>(
  description: string,
  values: Schema<T>,
  more: Partial<JsonSchema> = {},
): Schema<Readonly<Record<string, T>>> {
  return { type: 'object', description, additionalProperties: values, ...more }
}

export function text(description: string, more: Partial<JsonSchema> = {}): Schema<string> {
  return { type: 'string', description, ...more }
}

/** A timestamp, RFC 3339 (metav1.Time and metav1.MicroTime). */
export function time(description: string): Schema<string> {
  return { type: 'string', description, format: 'date-time' }
}

/** Bounded as in Gateway API: never negative, and not long. */
export const DURATION_PATTERN = '^([0-9]{1,5}(h|m|s|ms)){1,4}$'

/** A duration as Go writes it, without fractions: `90s`, `1h30m` (metav1.Duration). */
export function duration(description: string): Schema<string> {
  return { type: 'string', description, maxLength: 28, pattern: DURATION_PATTERN }
}

/** A text whose allowed values are checked outside the schema. */
export function typedText<T extends string>(description: string): Schema<T> {
  return { type: 'string', description }
}

export function oneOf<const T extends string>(description: string, values: readonly T[]): Schema<T> {
  return { type: 'string', description, enum: values }
}

/** Like oneOf; '' is the same as absent. */
export function oneOfOrNone<const T extends string>(description: string, values: readonly T[]): Schema<T> {
  return { type: 'string', description, enum: ['', ...values] }
}

/** []byte in Go's JSON. */
export function base64(description: string): Schema<string> {
  return { type: 'string', description, format: 'byte' }
}

export function flag(description: string): Schema<boolean> {
  return { type: 'boolean', description }
}

export function integer(description: string, minimum: number, maximum: number = MAX_INT32): Schema<number> {
  return { type: 'integer', description, minimum, maximum }
}

/** Any value of Go's int32 or int64. */
export function wholeNumber(description: string, format: 'int32' | 'int64' = 'int32'): Schema<number> {
  return { type: 'integer', description, format }
}

export function atMost<S extends JsonSchema>(maxItems: number, schema: S): S {
  return { ...schema, maxItems }
}

/** Adds keywords to a schema. */
export function also<S extends JsonSchema>(more: Partial<JsonSchema>, schema: S): S {
  return { ...schema, ...more }
}

/** A list whose items are identified by a field. */
export function byKey<S extends JsonSchema>(key: string, schema: S): S {
  return { ...schema, 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': [key] }
}

/** A list or object that is replaced as a whole. */
export function atomic<S extends JsonSchema>(schema: S): S {
  const key = schema.type === 'array' ? 'x-kubernetes-list-type' : 'x-kubernetes-map-type'
  return { ...schema, [key]: 'atomic' }
}

/** Keeps unknown fields, which come from newer versions. */
export function open<S extends JsonSchema>(schema: S): S {
  return { ...schema, 'x-kubernetes-preserve-unknown-fields': true }
}

export function checked<S extends JsonSchema>(schema: S, rules: readonly CelRule[]): S {
  return { ...schema, 'x-kubernetes-validations': rules }
}

/** Defines what an absent field means. The description states it at `{default}`, else at its end. */
export function defaultsTo<T extends string | number | boolean>(value: NoInfer<T>, schema: Schema<T>): Schema<T> {
  const said = schema[IMPLIED]?.template ?? schema.description ?? ''
  const template = said.includes('{default}') ? said : `${said} Default {default}.`
  return { ...schema, description: template.replace('{default}', String(value)), [IMPLIED]: { value, template } }
}

/** Like defaultsTo, but API servers store the value. */
export function storedDefault<T extends string | number | boolean>(value: NoInfer<T>, schema: Schema<T>): Schema<T> {
  return { ...defaultsTo(value, schema), default: value }
}

/** The value an absent field implies; undefined if the schema defines none. */
export function impliedDefault(schema: JsonSchema): unknown {
  return schema[IMPLIED]?.value
}

type Scalar = string | number | boolean

/** T with every text, number and flag present. */
export type Complete<T> = {
  readonly [K in keyof T]-?: Exclude<T[K], undefined> extends Scalar ? Exclude<T[K], undefined> : T[K]
}

const ZERO: Readonly<Partial<Record<JsonSchema['type'], Scalar>>> = {
  string: '',
  boolean: false,
  integer: 0,
  number: 0,
}

/** Fills in absent texts, numbers and flags: their default, else Go's zero value. Lists and maps stay as they are. */
export function complete<T extends object>(schema: Schema<T>, value: T | undefined): Complete<T> {
  const filled: Record<string, unknown> = { ...value }
  for (const [key, known] of Object.entries(schema.properties ?? {})) {
    filled[key] ??= known[IMPLIED]?.value ?? known.default ?? ZERO[known.type]
  }
  // The schema describes T.
  return filled as Complete<T>
}

/** The item schema of a list. */
export function itemOf<T>(schema: Schema<readonly T[]>): Schema<T> {
  if (schema.items === undefined) throw new Error('the schema has no items')
  return schema.items
}

/** The schema of a field. */
export function fieldOf<T extends object, K extends keyof T & string>(
  schema: Schema<T>,
  key: K,
): Schema<Exclude<T[K], undefined>> {
  const field = schema.properties?.[key]
  if (field === undefined) throw new Error(`the schema has no ${key}`)
  return field
}
