// NoExecute taints: they evict the pods of a node that do not tolerate them.

import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { isRecord, recordOf } from '../../../kit/api/json/object-shape.ts'

const NO_EXECUTE = 'NoExecute'

/** Key and value of the first NoExecute taint that a write adds to the node; undefined = none. */
export function addedNoExecute(before: JsonObject, after: JsonObject): string | undefined {
  const known = new Set(noExecuteTaints(before))
  return noExecuteTaints(after).find((taint) => !known.has(taint))
}

/** Includes the value: a toleration may be for one value only, so another value is another taint. */
function noExecuteTaints(node: JsonObject): string[] {
  const { taints } = recordOf(node['spec'])
  if (!Array.isArray(taints)) return []
  const found: string[] = []
  for (const taint of taints as readonly unknown[]) {
    if (!isRecord(taint) || taint['effect'] !== NO_EXECUTE) continue
    const { key, value } = taint
    found.push(typeof value === 'string' && value !== '' ? `${String(key)}=${value}` : String(key))
  }
  return found
}
