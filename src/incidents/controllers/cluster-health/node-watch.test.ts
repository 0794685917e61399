import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemoryObjects } from '../../../../test/harness/objects/memory-objects.ts'
import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { SILENT } from '../../../kit/api/ports.ts'
import { NodeWatch, nodeState } from './node-watch.ts'

class Client extends MemoryObjects {
  close(): Promise<void> {
    return Promise.resolve()
  }
}

test('what a cluster says when its nodes cannot be watched goes into status and onto terminals: cut, and printable', async () => {
  const clock = { now: () => 0, monotonic: () => 0 }
  const options = { cluster: 'prod', client: new Client(), selector: undefined, startupMs: 0, proofMs: 1, clock }
  const watch = new NodeWatch({ ...options, log: SILENT })
  watch.onState(false, `nodes is forbidden: \u001b[2J\u009b\n${'x'.repeat(10_000)}`)
  const { message } = watch.seen()
  assert.match(message, /^nodes is forbidden: [^\p{Cc}]{200,}$/u)
  assert.ok(message.length <= 500)
  await watch.stop()
})

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
