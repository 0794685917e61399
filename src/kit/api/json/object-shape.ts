// Prepares objects of unknown shape for checks: drops what Kubernetes drops, and offers rules that a schema cannot express a view without any value
// of a wrong type, so that they need not check types again.

import type { JsonSchema } from './json-schema.ts'

/** Like `T`, but anything may be missing. */
export type Loose<T> = T extends readonly (infer Item)[]
  ? readonly (Loose<Item> | undefined)[]
  : T extends object
    ? { readonly [Key in keyof T]?: Loose<T[Key]> | undefined }
    : T

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** {} for anything but a record. */
export function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : {}
}

/** '' for anything but a text. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** [] for anything but a list. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** The items that are records. */
export function recordsOf(value: unknown): readonly Readonly<Record<string, unknown>>[] {
  return listOf(value).filter(isRecord)
}

/**
 * A copy as an API server would store it: known fields that are null and empty choices are removed, schema defaults are filled in. Unknown fields
 * stay, for validation to find.
 */
export function normalize(schema: JsonSchema, value: unknown): unknown {
  if (Array.isArray(value)) {
    const { items } = schema
    return items === undefined ? value : value.map((item: unknown) => normalize(items, item))
  }
  if (isRecord(value) && schema.additionalProperties !== undefined) return mapValues(schema.additionalProperties, value)
  if (!isRecord(value) || schema.properties === undefined) return value
  const entries: [string, unknown][] = []
  for (const [key, member] of Object.entries(value)) {
    const known = propertyOf(schema, key)
    if (known === undefined) entries.push([key, member])
    else if (member !== null && !(member === '' && known.enum !== undefined && known.enum.includes(''))) {
      entries.push([key, normalize(known, member)])
    }
  }
  for (const [key, known] of Object.entries(schema.properties)) {
    if (known.default !== undefined && (value[key] === undefined || value[key] === null)) {
      entries.push([key, known.default])
    }
  }
  return Object.fromEntries(entries)
}

/** Returns the same map if nothing changes: there may be very many members. */
function mapValues(schema: JsonSchema, value: Readonly<Record<string, unknown>>): unknown {
  if (Object.values(value).every((member) => normalize(schema, member) === member)) return value
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, normalize(schema, member)]))
}

/** The value without anything of a wrong type. List items keep their positions. */
export function looseView(schema: JsonSchema, value: unknown): unknown {
  switch (schema.type) {
    case 'string':
      return typeof value === 'string' ? value : undefined
    case 'boolean':
      return typeof value === 'boolean' ? value : undefined
    case 'number':
      return typeof value === 'number' ? value : undefined
    case 'integer':
      return Number.isInteger(value) ? value : undefined
    case 'array': {
      const { items } = schema
      if (!Array.isArray(value) || items === undefined) return undefined
      return value.map((item: unknown) => looseView(items, item))
    }
    case 'object': {
      if (!isRecord(value)) return undefined
      const { additionalProperties: values } = schema
      const fields = Object.entries(schema.properties ?? {})
      const known = values === undefined ? fields : Object.keys(value).map((key) => [key, values] as const)
      return looseFields(known, value)
    }
  }
}

function looseFields(
  fields: readonly (readonly [string, JsonSchema])[],
  value: Readonly<Record<string, unknown>>,
): unknown {
  const entries = fields.flatMap(([key, schema]): [string, unknown][] => {
    const member = Object.hasOwn(value, key) ? looseView(schema, value[key]) : undefined
    return member === undefined ? [] : [[key, member]]
  })
  return Object.fromEntries(entries)
}

function propertyOf(schema: JsonSchema, key: string): JsonSchema | undefined {
  const { properties } = schema
  return properties !== undefined && Object.hasOwn(properties, key) ? properties[key] : undefined
}
