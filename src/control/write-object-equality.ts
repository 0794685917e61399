// Whether two JSON values say the same, whatever the order of their keys.

import { isRecord } from '../api/object-shape.ts'
import type { JsonObject } from '../api/resource-kind.ts'

export function sameJson(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item: unknown, i) => sameJson(item, b[i]))
  }
  if (!isRecord(a) || !isRecord(b)) return false
  const keys = Object.keys(a)
  return keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && sameJson(a[key], b[key]))
}

/** Of everything but `except` at the top. */
export function sameFields(a: JsonObject, b: JsonObject, except: readonly string[]): boolean {
  const rest = (object: JsonObject): JsonObject =>
    Object.fromEntries(Object.entries(object).filter(([key]) => !except.includes(key)))
  return sameJson(rest(a), rest(b))
}
