// A Node as the cluster-autoscaler sees it (utils/kubernetes/ready.go, clusterstate.go). Values of a wrong type count as absent.

import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { recordOf, recordsOf, textOf } from '../../kit/api/json/object-shape.ts'
import type { NodeState } from '../../scale-up-guard/core/cluster-state/readiness.ts'

const TO_BE_DELETED = 'ToBeDeletedByClusterAutoscaler'
const NOT_READY_TAINTS: ReadonlySet<string> = new Set([
  'node.kubernetes.io/not-ready',
  'node.kubernetes.io/disk-pressure',
  'node.kubernetes.io/network-unavailable',
])
/** Conditions that keep pods away when they are True. */
const TROUBLES: ReadonlySet<string> = new Set(['DiskPressure', 'NetworkUnavailable'])

/** Extracts the little that is needed of a large object. */
export function nodeState(node: JsonObject): NodeState {
  const metadata = recordOf(node['metadata'])
  const spec = recordOf(node['spec'])
  const conditions = recordsOf(recordOf(node['status'])['conditions'])
  const taints = recordsOf(spec['taints']).map(({ key }) => textOf(key))
  const createdMs = Date.parse(textOf(metadata['creationTimestamp']))
  return {
    name: textOf(metadata['name']),
    group: '',
    providerID: textOf(spec['providerID']),
    createdMs: Number.isNaN(createdMs) ? 0 : createdMs,
    deleted: taints.includes(TO_BE_DELETED),
    suspended: conditions.some(({ type, status }) => type === 'Suspended' && status === 'True'),
    ready: isReady(conditions) && !taints.some((key) => NOT_READY_TAINTS.has(key)),
  }
}

/** False without a Ready condition: its kubelet has not reported yet. */
function isReady(conditions: readonly Readonly<Record<string, unknown>>[]): boolean {
  let found = false
  for (const { type, status } of conditions) {
    if (type === 'Ready') {
      found = true
      if (status === 'False' || status === 'Unknown') return false
    }
    if (TROUBLES.has(textOf(type)) && status === 'True') return false
  }
  return found
}
