// What the leader that carries out spec.degrade.auto keeps of an object that is no longer there.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonObject } from '../../src/api/kube/json-object.ts'
import type { ClusterHealth } from '../../src/api/ports/cluster-health.ts'
import type { FollowEvents } from '../../src/api/ports/object-client.ts'
import { SILENT } from '../../src/api/ports/ports.ts'
import { startAutoDegradeController } from '../../src/controllers/auto-degrade/auto-degrade.ts'
import { compileCluster } from '../../src/core/cluster/compile-cluster.ts'
import { ClusterTable } from '../../src/state/clusters.ts'
import { MemoryObjects } from '../harness/objects/memory-objects.ts'
import { waitFor } from '../harness/wait.ts'

test('an object that was deleted and created again while nobody listened has no past', async (t) => {
  const clusters = new ClusterTable()
  const degrade = { auto: { nodes: {} } }
  const spec = {
    servers: [{ endpoint: 'https://10.0.0.1:6443' }],
    dispatchPolicies: [{ rules: [{ verbs: ['*'] }] }],
    degrade,
  }
  const object = {
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: { name: 'prod' },
    spec,
  } as const
  clusters.change([compileCluster({ object, revision: '1' })], [], 0)
  const health: ClusterHealth = { nodes: () => undefined, upstream: () => undefined, refusedDisruptive: () => 0 }
  let events: FollowEvents | undefined
  const client = new MemoryObjects()
  client.follow = (_kind, _namespace, given) => {
    events = given
    return { stop: () => Promise.resolve() }
  }
  let current: JsonObject = {}
  client.patch = () => Promise.resolve(current)
  const clock = { now: () => Date.UTC(2026, 0), monotonic: () => 0 }
  const controller = startAutoDegradeController({
    client,
    isLeader: () => true,
    clusters,
    health,
    clock,
    log: SILENT,
    lookMs: 1,
  })
  t.after(() => controller.stop())
  const since = '2026-01-01T00:00:00Z'
  const auto = { phase: 'Degraded', reason: 'x', since, causes: ['Nodes'], action: 'Entered', mode: 'NoDisruption' }
  const listed = (uid: string, status: object): JsonObject => ({ metadata: { name: 'prod', uid }, spec, status })
  current = listed('old', { degrade: { auto } })
  events?.onReplace([current])
  events?.onState(true, '')
  await waitFor('the old one', () => controller.describe()[0]?.status.phase === 'Degraded')
  current = listed('new', {})
  events?.onReplace([current])
  await waitFor('the new one', () => controller.describe()[0]?.status.phase === 'Normal')
  assert.equal(controller.describe()[0]?.status.action, undefined)
})
