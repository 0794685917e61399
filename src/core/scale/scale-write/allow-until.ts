// The annotation by which people let a scale-down pass that PodProtectors refuse, for a time.

import { type JsonObject, mapOf } from '../../../api/kube/json-object.ts'
import { ALLOW_UNTIL_ANNOTATION } from '../../../api/upstream-cluster/scale-protection.ts'

const RFC3339 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/i

/** @param workload as it was before the write: one write cannot both allow itself and lower the number */
export function isAllowed(workload: JsonObject, nowMs: number): boolean {
  const until = mapOf(workload, 'annotations')[ALLOW_UNTIL_ANNOTATION] ?? ''
  return RFC3339.test(until) && Date.parse(until) > nowMs
}
