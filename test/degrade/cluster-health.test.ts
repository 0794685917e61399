// What is seen of the nodes of a cluster, and when it is not known: a list that is not complete, a cluster that is silent or away.

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { AutoDegrade } from '../../src/gateway/api/upstream-cluster/auto-degrade.ts'
import type { Degrade, UpstreamClusterSpec } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { compileCluster } from '../../src/gateway/core/cluster/compile-cluster.ts'
import { ClusterTable } from '../../src/gateway/state/clusters.ts'
import type { NodesSeen } from '../../src/incidents/api/cluster-health.ts'
import {
  type ClusterHealthObserver,
  EARLY_WATCHES,
  startClusterHealth,
} from '../../src/incidents/controllers/cluster-health/cluster-health.ts'
import type { JsonObject } from '../../src/kit/api/json/json-object.ts'
import { SILENT } from '../../src/kit/api/ports.ts'
import { NODES } from '../../src/kube/api/kinds/foreign-kinds.ts'
import { Election } from '../harness/election.ts'
import { MemoryObjects } from '../harness/objects/memory-objects.ts'
import { waitFor } from '../harness/wait.ts'

const NAME = 'prod'

function node(name: string, ready: boolean, labels: Readonly<Record<string, string>> = {}): JsonObject {
  const conditions = [{ type: 'Ready', status: ready ? 'True' : 'Unknown' }]
  const metadata = { name, labels, creationTimestamp: '2024-01-01T00:00:00Z' }
  return { apiVersion: 'v1', kind: 'Node', metadata, status: { conditions } }
}

/** Counts those that are open. */
class Clients extends MemoryObjects {
  open = 0

  async close(): Promise<void> {
    this.open--
  }
}

class World {
  readonly objects = new Clients()
  readonly clusters = new ClusterTable()
  readonly health: ClusterHealthObserver
  readonly election = new Election()
  nowMs = 0
  #revision = 0

  constructor(t: TestContext, sampleMs = 5) {
    this.health = startClusterHealth({
      clusters: this.clusters,
      leadership: this.election.leadership,
      client: () => {
        this.objects.open++
        return this.objects
      },
      clock: { now: () => Date.UTC(2026, 0), monotonic: () => this.nowMs },
      log: SILENT,
      sampleMs,
    })
    t.after(() => this.health.stop())
  }

  degrade(degrade: Degrade, ...names: readonly string[]): void {
    this.put({ servers: [{ endpoint: 'https://10.0.0.1:6443' }], degrade }, ...names)
  }

  put(part: Partial<UpstreamClusterSpec>, ...names: readonly string[]): void {
    const spec = { dispatchPolicies: [{ rules: [{ verbs: ['*'] }] }], servers: [], ...part }
    const common = { apiVersion: 'proxy.kubegateway.io/v1alpha1', kind: 'UpstreamCluster', spec } as const
    for (const name of names.length === 0 ? [NAME] : names) {
      const object = { ...common, metadata: { name } }
      this.clusters.change([compileCluster({ object, revision: String(++this.#revision) })], [], 0)
      this.health.update(new Set([name]))
    }
  }

  until(what: string, holds: (seen: NodesSeen) => boolean): Promise<NodesSeen> {
    return waitFor(what, () => {
      const seen = this.health.nodes(NAME)
      return seen !== undefined && holds(seen) && seen
    })
  }
}

const AUTO: AutoDegrade = { nodes: { staleAfter: '40s' } }

test('nodes are watched by the leader, for clusters that ask for a decision, and for no others', async (t) => {
  const world = new World(t)
  world.objects.put(NODES, node('a', true))
  world.degrade({})
  assert.equal(world.health.nodes(NAME), undefined)
  assert.equal(world.health.upstream(NAME), undefined)
  assert.equal(world.objects.open, 0)
  for (const asks of [{ auto: AUTO }, { recovery: {} }, { mode: 'ReadOnly' as const }]) {
    world.degrade(asks)
    await world.until('the nodes', ({ complete }) => complete)
    assert.equal(world.objects.open, 1)
    await waitFor('answers', () => world.health.upstream(NAME))
    world.election.leads = false
    await waitFor('the watch to end', () => world.objects.open === 0)
    assert.equal(world.health.nodes(NAME), undefined)
    world.election.leads = true
    await world.until('the nodes again', ({ complete }) => complete)
    world.degrade({})
    await waitFor('the watch to end', () => world.objects.open === 0)
  }
})

test('a cluster that is read from its members has no nodes to watch, and its answers are known', async (t) => {
  const world = new World(t)
  world.degrade({ mode: 'ReadOnly', recovery: {} })
  await world.until('the nodes', ({ complete }) => complete)
  world.put({ members: [{ name: 'east' }], degrade: { mode: 'ReadOnly', recovery: {} } })
  await waitFor('the watch to end', () => world.objects.open === 0)
  assert.equal(world.health.nodes(NAME), undefined)
  await waitFor('answers', () => world.health.upstream(NAME))
})

test('a switch of many clusters begins few node watches at once: the rest follow, and where something decides by nodes they begin at once', async (t) => {
  const names = Array.from({ length: 3 * EARLY_WATCHES }, (_, n) => `c-${n}`)
  const world = new World(t, 1_000_000)
  world.degrade({ mode: 'ReadOnly' }, ...names)
  await waitFor('the first ones', () => world.objects.open > 0)
  assert.equal(world.objects.open, EARLY_WATCHES)
  const late = names.at(-1) ?? ''
  world.degrade({ mode: 'ReadOnly', recovery: {} }, late)
  world.degrade({ auto: AUTO }, 'automatic')
  assert.equal(world.objects.open, EARLY_WATCHES + 2)
  await waitFor('the nodes', () => world.health.nodes(late)?.complete && world.health.nodes('automatic')?.complete)
  world.degrade({}, ...names)
  await waitFor('the others to end', () => world.objects.open === 1)
  const other = new World(t)
  other.degrade({ mode: 'ReadOnly' }, ...names)
  await waitFor('all of them', () => other.objects.open === names.length)
})

test('nodes are counted as they come, change and go; young ones are not unready', async (t) => {
  const world = new World(t)
  world.objects.put(NODES, node('a', true))
  world.objects.put(NODES, node('b', false))
  const young = node('c', false)
  world.objects.put(NODES, { ...young, metadata: { name: 'c', creationTimestamp: '2025-12-31T23:50:00Z' } })
  world.degrade({ auto: AUTO })
  const seen = await world.until('all nodes', ({ complete }) => complete)
  const { ready, unready, notStarted, total, message } = seen
  assert.deepEqual(
    { ready, unready, notStarted, total, message },
    { ready: 1, unready: 1, notStarted: 1, total: 3, message: '' },
  )
  world.objects.put(NODES, node('a', false))
  await world.until('another unready one', (now) => now.unready === 2 && now.ready === 0)
  world.objects.remove(NODES, 'b')
  await world.until('one to be gone', (now) => now.total === 2)
})

test('an idle cluster is asked for a sign of life, and one that gives none grows old', async (t) => {
  const world = new World(t)
  world.objects.put(NODES, node('a', true))
  world.degrade({ auto: AUTO })
  await world.until('the nodes', ({ complete }) => complete)
  assert.equal(world.objects.reads.length, 0)
  world.nowMs = 10_000
  await world.until('the sign of life', ({ observedAtMs }) => observedAtMs === 10_000)
  assert.equal(world.objects.reads.length, 1)
  world.objects.away = true
  world.nowMs = 100_000
  await waitFor('the question', () => world.health.nodes(NAME)?.complete)
  world.nowMs = 200_000
  assert.equal((await world.until('old data', ({ complete }) => complete)).observedAtMs, 10_000)
  world.objects.away = false
  world.nowMs = 300_000
  await world.until('new data', ({ observedAtMs }) => observedAtMs === 300_000)
})
