// Deployments, StatefulSets and ReplicationControllers: which of their pods a new replica count deletes.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { ScalableKind } from '../../../gateway/core/request/scale-target.ts'
import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { deploymentSizes } from './deployment-sizes.ts'
import { type PlannedPod, planScaleDown, type ScaleDownPlan } from './scale-down-plan.ts'

const NOW = Date.parse('2030-01-31T12:00:00Z')
const WINDOW = { fromMs: NOW, toMs: NOW + 60_000 }
const AT = new Date(NOW - 3_600_000).toISOString()

interface Surge {
  readonly maxSurge?: number | string
}

function deployment(replicas: number, { maxSurge = 0 }: Surge = {}, spec: JsonObject = {}): JsonObject {
  const strategy = { type: 'RollingUpdate', rollingUpdate: { maxSurge, maxUnavailable: 1 } }
  const template = { metadata: { labels: { app: 'web' } }, spec: { revision: 3 } }
  return { metadata: { name: 'web', uid: 'web' }, spec: { replicas, strategy, template, ...spec } }
}

/** web-v3 has the template of the Deployment. */
function replicaSet(name: string, replicas: number, annotations: JsonObject = {}, status: JsonObject = {}): JsonObject {
  const revision = Number(name.slice(-1))
  const labels = { app: 'web', 'pod-template-hash': name }
  return {
    metadata: {
      name,
      uid: name,
      annotations,
      creationTimestamp: new Date(NOW - 10_000_000 + revision * 1000).toISOString(),
      ownerReferences: [{ name: 'web', uid: 'web', controller: true }],
    },
    spec: { replicas, selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { revision } } },
    status,
  }
}

function annotated(desired: number, surge = 0): JsonObject {
  return {
    'deployment.kubernetes.io/desired-replicas': `${desired}`,
    'deployment.kubernetes.io/max-replicas': `${desired + surge}`,
  }
}

function pod(
  name: string,
  owner: string,
  node: string,
  status: JsonObject = {},
  metadata: JsonObject = {},
): JsonObject {
  const conditions = [{ type: 'Ready', status: 'True', lastTransitionTime: AT }]
  return {
    metadata: {
      name,
      uid: name,
      labels: { app: 'web', 'pod-template-hash': owner },
      creationTimestamp: AT,
      ownerReferences: [{ uid: owner, controller: true }],
      ...metadata,
    },
    spec: { nodeName: node },
    status: { phase: 'Running', conditions, ...status },
  }
}

function names(pods: readonly PlannedPod[] = []): string[] {
  return pods.map(({ name }) => name)
}

describe('sizes of ReplicaSets: TestScale of the Deployment controller', () => {
  // Replicas of the Deployment before and after with their surge; sizes by revision, the newest ReplicaSet first.
  type Row = readonly [string, [number, number], [number, number], number[], number[]]
  const rows: readonly Row[] = [
    ['normal scaling event: 10 -> 12', [10, 0], [12, 0], [10], [12]],
    ['normal scaling event: 10 -> 5', [10, 0], [5, 0], [10], [5]],
    ['proportional scaling: 5 -> 10', [5, 0], [10, 0], [2, 3], [4, 6]],
    ['proportional scaling: 5 -> 3', [5, 0], [3, 0], [2, 3], [1, 2]],
    ['proportional scaling: 9 -> 4', [9, 0], [4, 0], [8, 1], [4, 0]],
    ['proportional scaling: 7 -> 10', [7, 0], [10, 0], [2, 3, 2], [3, 4, 3]],
    ['proportional scaling: 13 -> 8', [13, 0], [8, 0], [2, 8, 3], [1, 5, 2]],
    ['leftover distribution: 3 -> 4', [3, 0], [4, 0], [1, 1, 1], [2, 1, 1]],
    ['leftover distribution: 3 -> 2', [3, 0], [2, 0], [1, 1, 1], [1, 1, 0]],
    ['proportional scaling: 6 -> 0', [6, 0], [0, 0], [3, 2, 1], [0, 0, 0]],
    ['deployment with surge pods', [10, 2], [20, 2], [6, 6], [11, 11]],
    ['change both surge and size', [10, 3], [50, 6], [5, 8], [22, 34]],
  ]
  for (const [name, [before, surgeBefore], [after, surge], from, to] of rows) {
    test(name, () => {
      const sets = from.map((size, at) => replicaSet(`web-v${3 - at}`, size, annotated(before, surgeBefore)))
      const { sizes } = deploymentSizes(deployment(before, { maxSurge: surge }), sets, after)
      const found = from.map((_, at) => sizes.find(({ replicaSet: { name } }) => name === `web-v${3 - at}`)?.replicas)
      assert.deepEqual(found, to)
    })
  }

  test('saturated but broken new replica set does not affect old pods', () => {
    const surge = { maxSurge: 1 }
    const sets = [replicaSet('web-v3', 2, annotated(2, 1)), replicaSet('web-v2', 1, annotated(2, 1))]
    const sizes = (available: number): number[] => {
      const status = { availableReplicas: available }
      const [, old] = sets
      assert.ok(old)
      const paused = deployment(2, surge, { paused: true })
      return deploymentSizes(paused, [replicaSet('web-v3', 2, annotated(2, 1), status), old], 2)
        .sizes.map(({ replicas }) => replicas)
        .sort()
    }
    assert.deepEqual(sizes(0), [1, 2])
    assert.deepEqual(sizes(2), [0, 2], 'when it is available, the old one is ended')
  })

  test('4 -> 5 without a new ReplicaSet: the newer one grows', () => {
    const sets = [replicaSet('web-v2', 2, annotated(4)), replicaSet('web-v1', 2, annotated(4))]
    const { sizes, rollout } = deploymentSizes(deployment(4), sets, 5)
    assert.deepEqual([sizes.find(({ replicaSet: { name } }) => name === 'web-v2')?.replicas, rollout], [3, true])
  })

  test('without annotations the size of the Deployment stands for what was', () => {
    const sets = [
      replicaSet('web-v3', 2, { 'deployment.kubernetes.io/desired-replicas': '5' }),
      replicaSet('web-v2', 3),
    ]
    const web = { ...deployment(5), status: { replicas: 5 } }
    assert.deepEqual(
      deploymentSizes(web, sets, 3).sizes.map(({ replicas }) => replicas),
      [2, 1],
    )
  })

  test('ReplicaSets of others, and such without pods, have no part in it; Recreate ends what is old', () => {
    const foreign = { ...replicaSet('web-v1', 9), metadata: { name: 'web-v1', uid: 'x' } }
    const sets = [replicaSet('web-v3', 4, annotated(4)), replicaSet('web-v2', 0, annotated(4)), foreign]
    const one = deploymentSizes(deployment(4), sets, 1)
    assert.deepEqual([one.sizes.map(({ replicas }) => replicas), one.rollout], [[1], false])
    const recreate = deployment(4, {}, { strategy: { type: 'Recreate' } })
    const both = [replicaSet('web-v3', 2, annotated(4)), replicaSet('web-v2', 2, annotated(4))]
    assert.deepEqual(
      deploymentSizes(recreate, both, 3).sizes.map(({ replicas }) => replicas),
      [0, 2],
    )
  })
})

function plan(
  kind: ScalableKind,
  workload: JsonObject,
  more: Partial<Parameters<typeof planScaleDown>[0]>,
): ScaleDownPlan {
  return planScaleDown({
    kind,
    workload,
    replicaSets: [],
    pods: [],
    replicas: 1,
    conditions: { window: WINDOW },
    ...more,
  })
}

describe('plans', () => {
  test('a Deployment with one ReplicaSet: pods of the old revision count on their node, and do not go', () => {
    const sets = [replicaSet('web-v3', 3, annotated(3)), replicaSet('web-v2', 0, annotated(3))]
    const pods = [
      pod('a', 'web-v3', 'n1'),
      pod('b', 'web-v3', 'n2'),
      pod('c', 'web-v3', 'n3'),
      pod('old', 'web-v2', 'n2'),
      pod('gone', 'web-v2', 'n3', {}, { deletionTimestamp: AT }),
      pod('done', 'web-v2', 'n3', { phase: 'Succeeded' }),
    ]
    const {
      sets: planned,
      notes,
      from,
      to,
    } = plan('Deployment', deployment(3), { replicaSets: sets, pods, replicas: 2 })
    assert.deepEqual([from, to, notes], [3, 2, []])
    assert.deepEqual(
      planned.map(({ name, certain, possible }) => [name, names(certain), possible.count]),
      [['web-v3', ['b'], 0]],
    )
    assert.equal(planned[0]?.certain[0]?.because, 'pods of its owner on its node: 2, a: 1')
    assert.deepEqual([planned[0]?.from, planned[0]?.to], [3, 2])
  })

  test('a rollout: each ReplicaSet has its share, and what their deletions do to each other is open', () => {
    const sets = [replicaSet('web-v3', 2, annotated(4)), replicaSet('web-v2', 2, annotated(4))]
    const pods = [
      pod('a', 'web-v3', 'n1'),
      pod('b', 'web-v3', 'n2'),
      pod('c', 'web-v2', 'n1'),
      pod('d', 'web-v2', 'n3', { conditions: [] }),
    ]
    const { sets: planned, notes } = plan('Deployment', deployment(4), { replicaSets: sets, pods, replicas: 2 })
    assert.match(notes[0] ?? '', /^a rollout is in progress: .* the rollout continues/)
    assert.deepEqual(
      planned.map(({ name, certain, possible }) => [name, names(certain), names(possible.pods)]),
      [
        ['web-v2', ['d'], []],
        ['web-v3', [], ['a', 'b']],
      ],
    )
  })

  test('a ReplicaSet that a Deployment owns is set back by it', () => {
    const set = replicaSet('web-v3', 2)
    const { notes } = plan('ReplicaSet', set, { replicaSets: [set], pods: [pod('a', 'web-v3', 'n1')] })
    assert.match(notes[0] ?? '', /belongs to web, whose controller resets its replicas/)
  })

  test('a ReplicationController: its own pods and orphans that it adopts; nothing is related, so nodes do not count', () => {
    const workload = { metadata: { name: 'old', uid: 'old' }, spec: { replicas: 3, selector: { app: 'web' } } }
    const cost = { annotations: { 'controller.kubernetes.io/pod-deletion-cost': '-1' } }
    const pods = [
      pod('a', 'old', 'n1'),
      pod('b', 'old', 'n1', {}, cost),
      pod('orphan', '', 'n2', { conditions: [] }, { ownerReferences: [] }),
      pod('other', 'x', 'n2'),
      pod('unlike', 'old', 'n2', {}, { labels: {} }),
    ]
    const { sets } = plan('ReplicationController', workload, { replicaSets: [workload], pods })
    assert.deepEqual(names(sets[0]?.certain), ['orphan', 'b'])
    assert.deepEqual(names(sets[0]?.safe), ['a'])
  })
})

describe('StatefulSets', () => {
  const statefulSet = (spec: JsonObject): JsonObject => ({
    metadata: { name: 'db', uid: 'db' },
    spec: { replicas: 4, ...spec },
  })
  const pods = (...list: readonly (readonly [number, JsonObject?, JsonObject?])[]): JsonObject[] =>
    list.map(([ordinal, status, metadata]) => pod(`db-${ordinal}`, 'db', `n${ordinal}`, status, metadata))
  const unready = { conditions: [] }

  test('the highest ordinals go, by number, whatever cost and readiness', () => {
    const cost = { annotations: { 'controller.kubernetes.io/pod-deletion-cost': '-1' } }
    const all = pods([0, {}, cost], [2], [10, unready], [9], [1])
    const { sets, notes } = plan('StatefulSet', statefulSet({}), { pods: all, replicas: 2 })
    assert.deepEqual(names(sets[0]?.certain), ['db-10', 'db-9', 'db-2'])
    assert.deepEqual(names(sets[0]?.safe), ['db-0', 'db-1'])
    assert.deepEqual(notes, [])
  })

  test('spec.ordinals.start; names without an ordinal are left alone', () => {
    const odd = pod('db-x', 'db', 'n')
    const all = [...pods([4], [5], [6], [7]), odd]
    const { sets } = plan('StatefulSet', statefulSet({ ordinals: { start: 5 } }), { pods: all, replicas: 2 })
    assert.deepEqual(
      [names(sets[0]?.certain), names(sets[0]?.safe)],
      [
        ['db-7', 'db-4'],
        ['db-5', 'db-6', 'db-x'],
      ],
    )
  })

  test('OrderedReady waits for those that stay, Parallel does not', () => {
    const rows: readonly (readonly [JsonObject[], RegExp])[] = [
      [pods([0], [1, unready], [2], [3]), /^db-1, which stays, is not available/],
      [pods([0], [1, {}, { deletionTimestamp: AT }], [2]), /^db-1, which stays, is not available/],
      [pods([1], [2], [3]), /^db-0, which stays, does not exist/],
      [pods([0], [2], [3]), /^db-1, which stays, does not exist/],
      [pods([0], [1], [2], [3, {}, { deletionTimestamp: AT }]), /^db-3 is terminating/],
      [pods([0], [1], [2, unready], [3, unready]), /^db-3 is not available, nor is db-2/],
    ]
    for (const [all, pattern] of rows) {
      assert.match(plan('StatefulSet', statefulSet({}), { pods: all, replicas: 2 }).notes[0] ?? '', pattern)
      const parallel = statefulSet({ podManagementPolicy: 'Parallel' })
      assert.deepEqual(plan('StatefulSet', parallel, { pods: all, replicas: 2 }).notes, [])
    }
    const fine = pods([0], [1], [2], [3, unready])
    assert.deepEqual(plan('StatefulSet', statefulSet({}), { pods: fine, replicas: 2 }).notes, [], 'one alone may go')
    const young = statefulSet({ minReadySeconds: 7200 })
    assert.match(plan('StatefulSet', young, { pods: fine, replicas: 2 }).notes[0] ?? '', /^db-0/)
  })

  test('claims that are deleted, too', () => {
    const spec = { persistentVolumeClaimRetentionPolicy: { whenScaled: 'Delete' }, volumeClaimTemplates: [{}, {}] }
    const { notes } = plan('StatefulSet', statefulSet(spec), { pods: pods([0], [1], [2]), replicas: 1 })
    assert.match(notes[0] ?? '', /^4 PersistentVolumeClaims are deleted/)
  })
})
