// What the leader that carries out spec.degrade.auto keeps of an object that is no longer there, or has changed.

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { compileCluster } from '../../src/gateway/core/cluster/compile-cluster.ts'
import { ClusterTable } from '../../src/gateway/state/clusters.ts'
import type { ClusterHealth, NodesSeen } from '../../src/incidents/api/cluster-health.ts'
import {
  type AutoDegradeController,
  startAutoDegradeController,
} from '../../src/incidents/controllers/auto-degrade/auto-degrade.ts'
import type { JsonObject } from '../../src/kit/api/json/json-object.ts'
import { SILENT } from '../../src/kit/api/ports.ts'
import type { FollowEvents } from '../../src/kube/api/object-client.ts'
import { leadAlone } from '../../src/kube/controllers/kernel/leadership.ts'
import { MemoryObjects } from '../harness/objects/memory-objects.ts'
import { waitFor } from '../harness/wait.ts'

const SPEC = {
  servers: [{ endpoint: 'https://10.0.0.1:6443' }],
  dispatchPolicies: [{ rules: [{ verbs: ['*'] }] }],
  degrade: { auto: { nodes: {} } },
} as const

/** All are ready. */
const NODES: NodesSeen = {
  ready: 8,
  unready: 0,
  total: 8,
  notStarted: 0,
  complete: true,
  observedAtMs: Number.POSITIVE_INFINITY,
  message: '',
}

interface Scene {
  readonly client: MemoryObjects
  readonly controller: AutoDegradeController
  events(): FollowEvents
}

function begin(t: TestContext, nodes?: NodesSeen): Scene {
  const clusters = new ClusterTable()
  const object = {
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: { name: 'prod' },
    spec: SPEC,
  } as const
  clusters.change([compileCluster({ object, revision: '1' })], [], 0)
  const health: ClusterHealth = { nodes: () => nodes, upstream: () => undefined, refusedDisruptive: () => 0 }
  let events: FollowEvents | undefined
  const client = new MemoryObjects()
  client.follow = (_kind, _namespace, given) => {
    events = given
    return { stop: () => Promise.resolve() }
  }
  const clock = { now: () => Date.UTC(2026, 0), monotonic: () => 0 }
  const leadership = leadAlone(SILENT)
  const controller = startAutoDegradeController({ client, leadership, clusters, health, clock, log: SILENT, lookMs: 1 })
  t.after(() => controller.stop())
  return { client, controller, events: () => events ?? assert.fail('no replica follows') }
}

test('an object that was deleted and created again while the watch was down has no past', async (t) => {
  const { client, controller, events } = begin(t)
  let current: JsonObject = {}
  client.patch = () => Promise.resolve(current)
  const since = '2026-01-01T00:00:00Z'
  const auto = { phase: 'Degraded', reason: 'x', since, causes: ['Nodes'], action: 'Entered', mode: 'NoDisruption' }
  const listed = (uid: string, status: object): JsonObject => ({ metadata: { name: 'prod', uid }, spec: SPEC, status })
  current = listed('old', { degrade: { auto } })
  events().onReplace([current])
  events().onState(true, '')
  await waitFor('the old one', () => controller.describe()[0]?.status.phase === 'Degraded')
  current = listed('new', {})
  events().onReplace([current])
  await waitFor('the new one', () => controller.describe()[0]?.status.phase === 'Normal')
  assert.equal(controller.describe()[0]?.status.action, undefined)
})

test('what the API server answers to a write does not hide what has changed since', async (t) => {
  const { client, controller, events } = begin(t)
  const version = (resourceVersion: string, spec: object): JsonObject => {
    return { metadata: { name: 'prod', uid: 'u', resourceVersion }, spec, status: {} }
  }
  let writes = 0
  client.patch = () => {
    // Another writer takes `auto` away: that comes before the answer to the write before it.
    if (writes++ === 0) events().onChange('MODIFIED', version('3', { ...SPEC, degrade: {} }))
    return Promise.resolve(version('2', SPEC))
  }
  events().onReplace([version('1', SPEC)])
  events().onState(true, '')
  await waitFor('the write', () => writes > 0)
  await waitFor('it to be left alone', () => controller.describe().length === 0)
  assert.equal(writes, 1)
})

test('the way back takes away the reason that the mode had: it says what is so now, at Limited too', async (t) => {
  const { client, events } = begin(t, NODES)
  const patches: JsonObject[] = []
  const auto = { phase: 'Normal', reason: 'x', since: '2026-01-01T00:00:00Z', action: 'Entered', mode: 'NoDisruption' }
  const reason = 'automatic: 8 of 8 nodes unready (100 %)'
  const object = {
    metadata: { name: 'prod', uid: 'u', resourceVersion: '1' },
    spec: { ...SPEC, degrade: { ...SPEC.degrade, mode: 'NoDisruption', reason } },
    status: { degrade: { auto } },
  }
  client.patch = (_kind, _at, _type, body) => {
    patches.push(body as JsonObject)
    return Promise.resolve(object)
  }
  events().onReplace([object])
  events().onState(true, '')
  await waitFor('the way back', () => patches.length > 0)
  const { degrade } = Object(patches[0]?.['spec'])
  assert.ok(degrade.recovery !== undefined)
  assert.equal(degrade.reason, 'automatic: on the way back by steps: enough nodes are ready')
})
