// The part of JSON Schema that a Kubernetes CRD may use (a "structural schema"), and short ways to write it down.
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema

export interface JsonSchema {
  readonly type: 'object' | 'array' | 'string' | 'integer' | 'boolean'
  readonly description?: string
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: readonly string[]
  readonly items?: JsonSchema
  readonly enum?: readonly string[]
  readonly default?: unknown
  readonly format?: 'byte' | 'date-time'
  readonly minimum?: number
  readonly maximum?: number
  readonly minItems?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly 'x-kubernetes-preserve-unknown-fields'?: true
  readonly 'x-kubernetes-list-type'?: 'map'
  readonly 'x-kubernetes-list-map-keys'?: readonly string[]
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

export function list(description: string, items: JsonSchema, minItems = 0): JsonSchema {
  return { type: 'array', description, items, ...(minItems > 0 && { minItems }) }
}

export function text(description: string, more: Partial<JsonSchema> = {}): JsonSchema {
  return { type: 'string', description, ...more }
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
