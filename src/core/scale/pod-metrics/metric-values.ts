// What the custom metrics API says of the pods of a namespace: a MetricValueList, of v1beta1 or v1beta2, reduced to a number for each pod.
// k8s.io/metrics/pkg/apis/custom_metrics

import type { JsonObject } from '../../../api/kube/json-object.ts'
import { recordOf, recordsOf, textOf } from '../../../api/kube/object-shape.ts'
import { parseQuantity } from './quantity.ts'

/** By pod. Those that are missing have no value that can be relied on. */
export type PodMetric = ReadonlyMap<string, number>

/** Between a measurement and now, either way: clocks differ. What is older says nothing of what the pod does now. */
export const MAX_METRIC_AGE_MS: number = 5 * 60_000

/** Never throws: an adapter is anybody's program. Of several values of one pod the highest counts. */
export function podMetric(list: JsonObject, namespace: string, nowMs: number): PodMetric {
  const found = new Map<string, number>()
  for (const item of recordsOf(list['items'])) {
    const { kind, name, namespace: within = namespace } = recordOf(item['describedObject'])
    const pod = textOf(name)
    const value = numberOf(item['value'])
    if (kind !== 'Pod' || pod === '' || within !== namespace || value === undefined) continue
    if (!isFresh(item['timestamp'], nowMs)) continue
    found.set(pod, Math.max(value, found.get(pod) ?? value))
  }
  return found
}

/** Quantities are text, and Kubernetes reads numbers, too. */
function numberOf(value: unknown): number | undefined {
  return typeof value === 'string' || typeof value === 'number' ? parseQuantity(String(value)) : undefined
}

function isFresh(timestamp: unknown, nowMs: number): boolean {
  const atMs = typeof timestamp === 'string' ? Date.parse(timestamp) : Number.NaN
  // Not of NaN either.
  return Math.abs(nowMs - atMs) <= MAX_METRIC_AGE_MS
}
