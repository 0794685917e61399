import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { nodeState } from './node-state.ts'

function node(conditions: unknown, taints: unknown = []): JsonObject {
  const metadata = { name: 'a', creationTimestamp: '2024-01-01T00:00:00Z' }
  return { apiVersion: 'v1', kind: 'Node', metadata, spec: { taints }, status: { conditions } }
}

test('ready is what the cluster-autoscaler calls ready', () => {
  const ready = { type: 'Ready', status: 'True' }
  const taint = (key: string): unknown => [{ key, effect: 'NoSchedule' }]
  const table: readonly (readonly [string, JsonObject, boolean])[] = [
    ['ready', node([ready]), true],
    ['not ready', node([{ type: 'Ready', status: 'False' }]), false],
    ['lost', node([{ type: 'Ready', status: 'Unknown' }]), false],
    ['never heard of', node([]), false],
    ['memory pressure', node([ready, { type: 'MemoryPressure', status: 'True' }]), true],
    ['disk pressure', node([ready, { type: 'DiskPressure', status: 'True' }]), false],
    ['disk pressure, not known', node([ready, { type: 'DiskPressure', status: 'Unknown' }]), true],
    ['no network', node([ready, { type: 'NetworkUnavailable', status: 'True' }]), false],
    ['not-ready taint', node([ready], taint('node.kubernetes.io/not-ready')), false],
    ['disk-pressure taint', node([ready], taint('node.kubernetes.io/disk-pressure')), false],
    ['network taint', node([ready], taint('node.kubernetes.io/network-unavailable')), false],
    ['cordoned', node([ready], taint('node.kubernetes.io/unschedulable')), true],
    ['with a wrong shape', node('Ready', 7), false],
  ]
  for (const [name, object, want] of table) assert.equal(nodeState(object).ready, want, name)
})

test('a node that is being deleted, or is suspended, is neither ready nor unready', () => {
  const ready = { type: 'Ready', status: 'True' }
  assert.equal(nodeState(node([ready], [{ key: 'ToBeDeletedByClusterAutoscaler' }])).deleted, true)
  assert.equal(nodeState(node([ready, { type: 'Suspended', status: 'True' }])).suspended, true)
  assert.equal(nodeState(node([ready])).createdMs, Date.UTC(2024, 0, 1))
})
