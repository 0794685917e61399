// A JsonSchema with everything a structural schema of Kubernetes may contain, whether JsonSchema's type names it or not.
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema

import type { JsonSchema } from './json-schema.ts'

export interface SchemaView {
  readonly type?: string
  readonly description?: string
  readonly properties?: Readonly<Record<string, SchemaView>>
  /** `true` as in OpenAPI: members of any shape. */
  readonly additionalProperties?: SchemaView | boolean
  readonly items?: SchemaView
  readonly required?: readonly string[]
  readonly default?: unknown
  readonly nullable?: boolean
  readonly enum?: readonly unknown[]
  readonly format?: string
  readonly pattern?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly exclusiveMinimum?: boolean
  readonly exclusiveMaximum?: boolean
  readonly multipleOf?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly minProperties?: number
  readonly maxProperties?: number
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean
  readonly 'x-kubernetes-embedded-resource'?: boolean
  readonly 'x-kubernetes-int-or-string'?: boolean
  readonly 'x-kubernetes-list-type'?: string
  readonly 'x-kubernetes-list-map-keys'?: readonly string[]
  readonly 'x-kubernetes-map-type'?: string
}

export function viewOf(schema: JsonSchema): SchemaView {
  return schema
}

/** The schema of a member; undefined if the schema does not define it. */
export function memberSchema(schema: SchemaView | undefined, key: string): SchemaView | undefined {
  return ownProperty(schema, key) ?? additionalSchema(schema)
}

export function ownProperty(schema: SchemaView | undefined, key: string): SchemaView | undefined {
  const properties = schema?.properties
  return properties !== undefined && Object.hasOwn(properties, key) ? properties[key] : undefined
}

/** The schema of a map's members. */
export function additionalSchema(schema: SchemaView | undefined): SchemaView | undefined {
  const additional = schema?.additionalProperties
  if (additional === undefined || additional === false) return undefined
  return additional === true ? ANYTHING : additional
}

const ANYTHING: SchemaView = { 'x-kubernetes-preserve-unknown-fields': true, nullable: true }
