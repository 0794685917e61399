// Reads objects of unchecked shape: a missing or mistyped field reads as undefined, '' or 0.

import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { isRecord } from '../../kit/api/json/object-shape.ts'

/** The value at `path`, e.g. `spec.template.metadata`; keys that contain a dot can't be reached. */
export function valueAt(value: unknown, path: string): unknown {
  let at: unknown = value
  for (const key of path.split('.')) at = isRecord(at) ? at[key] : undefined
  return at
}

export function textAt(value: unknown, path: string): string {
  const found = valueAt(value, path)
  return typeof found === 'string' ? found : ''
}

export function numberAt(value: unknown, path: string, otherwise = 0): number {
  const found = valueAt(value, path)
  return typeof found === 'number' ? found : otherwise
}

export function listAt(value: unknown, path: string): readonly unknown[] {
  const found = valueAt(value, path)
  return Array.isArray(found) ? found : []
}

export function objectAt(value: unknown, path: string): JsonObject {
  const found = valueAt(value, path)
  return isRecord(found) ? found : {}
}
