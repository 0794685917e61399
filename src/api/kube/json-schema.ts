// The part of JSON Schema that a Kubernetes CRD may use (a "structural schema"), and short ways to write it down.
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema

export interface JsonSchema {
  readonly type: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean'
  readonly description?: string
  readonly properties?: Readonly<Record<string, JsonSchema>>
  /** What every value of a map is; stands instead of `properties`. */
  readonly additionalProperties?: JsonSchema
  readonly required?: readonly string[]
  readonly items?: JsonSchema
  readonly enum?: readonly string[]
  readonly default?: unknown
  readonly format?: 'byte' | 'date-time' | 'int32' | 'int64'
  /** RE2, as Go has it; what is written here means the same in JavaScript. */
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

/** A rule in CEL, which a kube-apiserver checks; here the checks beside the schema say the same. */
export interface CelRule {
  readonly rule: string
  readonly message: string
  /** In CEL, instead of `message` where it can be evaluated. */
  readonly messageExpression?: string
  /** Relative to where the rule stands: `.burst`. */
  readonly fieldPath?: string
  readonly reason?: 'FieldValueInvalid' | 'FieldValueForbidden' | 'FieldValueRequired' | 'FieldValueDuplicate'
}

/** Largest integer of the API: Go's int32. */
export const MAX_INT32 = 2_147_483_647

/** An object with a schema for every field of `T`, so that the types and the schema cannot drift apart. */
export function object<T extends object>(
  description: string,
  properties: Readonly<Record<keyof T & string, JsonSchema>>,
  required: readonly (keyof T & string)[] = [],
): JsonSchema {
  return { type: 'object', description, properties, ...(required.length > 0 && { required }) }
}

/** A whole Kubernetes object: `fields` beside apiVersion, kind and metadata. */
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

export function list(description: string, items: JsonSchema, minItems = 0): JsonSchema {
  return { type: 'array', description, items, ...(minItems > 0 && { minItems }) }
}

/** Any keys, all values of one kind. */
export function map(description: string, values: JsonSchema, more: Partial<JsonSchema> = {}): JsonSchema {
  return { type: 'object', description, additionalProperties: values, ...more }
}

export function text(description: string, more: Partial<JsonSchema> = {}): JsonSchema {
  return { type: 'string', description, ...more }
}

/** A moment, RFC 3339 (metav1.Time and metav1.MicroTime). */
export function time(description: string): JsonSchema {
  return { type: 'string', description, format: 'date-time' }
}

export function oneOf(description: string, values: readonly string[]): JsonSchema {
  return { type: 'string', description, enum: values }
}

/** []byte of Go's JSON. */
export function base64(description: string): JsonSchema {
  return { type: 'string', description, format: 'byte' }
}

export function flag(description: string): JsonSchema {
  return { type: 'boolean', description }
}

export function integer(description: string, minimum: number, maximum: number = MAX_INT32): JsonSchema {
  return { type: 'integer', description, minimum, maximum }
}

/** Go's int32 or int64, any value of it. */
export function wholeNumber(description: string, format: 'int32' | 'int64' = 'int32'): JsonSchema {
  return { type: 'integer', description, format }
}

export function atMost(maxItems: number, schema: JsonSchema): JsonSchema {
  return { ...schema, maxItems }
}

export function checked(schema: JsonSchema, rules: readonly CelRule[]): JsonSchema {
  return { ...schema, 'x-kubernetes-validations': rules }
}
