// Whether a write changes anything of an object.

import type { JsonObject } from '../../api/kube/json-object.ts'
import { sameJson } from '../../core/text/same-json.ts'

/** Compares all top-level fields other than `except`. */
export function sameFields(a: JsonObject, b: JsonObject, except: readonly string[]): boolean {
  const rest = (object: JsonObject): JsonObject =>
    Object.fromEntries(Object.entries(object).filter(([key]) => !except.includes(key)))
  return sameJson(rest(a), rest(b))
}
