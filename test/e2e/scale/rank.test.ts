// 200 random ReplicaSets scaled down by a real kube-controller-manager: each pod that is deleted was certain to go, or one of the k of m.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { JsonObject } from '../../../src/kit/api/json/json-object.ts'
import { SILENT } from '../../../src/kit/api/ports.ts'
import { PODS, REPLICA_SETS } from '../../../src/kube/api/kinds/foreign-kinds.ts'
import { createKubeClient, type KubeClient } from '../../../src/kube/io/client.ts'
import type { ComparisonWindow } from '../../../src/scaling/core/rank/age-bucket.ts'
import type { DeletionRank } from '../../../src/scaling/core/rank/deletion-rank.ts'
import {
  type ReplicaSetFacts,
  rankReplicaSet,
  replicaPodsOf,
  replicaSetFacts,
} from '../../../src/scaling/core/rank/replica-set-pods.ts'
import { scalePod } from '../../../src/scaling/core/rank/scale-pod.ts'
import { startCluster, type TestCluster } from '../../harness/clusters/cluster.ts'
import { waitFor } from '../../harness/wait.ts'

const REPLICA_SET_COUNT = 200
/** Each has one to three ReplicaSets, whose pods share nodes: the rule of doubled-up pods looks at all of them. */
const OWNERS = 100
const NODES = 6
const WINDOW_MS = 60_000
/** Made in so many rounds, so that pods of one ReplicaSet are created in different seconds. */
const ROUNDS = 3
/** "Possible" is always right and of no use: 87 to 97 in a hundred victims are certain, depending on the seed and on the UIDs. */
const LEAST_CERTAIN = 0.8
const NAMESPACE = 'default'
/** No other controller deletes pods, or finds that their nodes are none. */
const CONTROLLERS = '--controllers=replicaset-controller,serviceaccount-controller'

let cluster: TestCluster
let client: KubeClient
before(async () => {
  cluster = await startCluster({ controllerManager: { flags: [CONTROLLERS, '--concurrent-replicaset-syncs=20'] } })
  client = createKubeClient({ kubeconfigFile: cluster.adminKubeconfig, log: SILENT })
})
after(async () => {
  await client?.close()
  await cluster?.stop()
})

/** Numerical Recipes' generator: a red run can be run again. */
let state = Number(process.env['PROPERTY_SEED'] ?? 20_261_122) >>> 0
function below(limit: number): number {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
  return Math.floor((state / 2 ** 32) * limit)
}

function oneOf<T>(...choices: readonly [T, ...T[]]): T {
  return choices[below(choices.length)] ?? choices[0]
}

interface Plan {
  readonly name: string
  /** A ConfigMap stands for the Deployment, whose controller does not run; '' = none, so nothing is related. */
  readonly owner: string
  readonly ownerUid: string
  readonly size: number
  readonly keep: number
  /** How much its pods differ: what was rolled out at once differs in little. */
  readonly kind: 'twins' | 'rollout' | 'any'
}

async function inParallel<T>(items: readonly T[], action: (item: T) => Promise<void>): Promise<void> {
  const queue = [...items]
  const worker = async (): Promise<void> => {
    for (let item = queue.shift(); item !== undefined; item = queue.shift()) await action(item)
  }
  await Promise.all(Array.from({ length: 12 }, worker))
}

function podObject({ name, kind }: Plan, at: number): JsonObject {
  const cost = kind === 'any' ? oneOf('', '', '-10', '100', '2147483647') : ''
  const nodeName = kind === 'any' && below(12) === 0 ? '' : `node-${below(kind === 'twins' ? 2 : NODES)}`
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: `${name}-${at}`,
      namespace: NAMESPACE,
      labels: { rs: name },
      ...(cost !== '' && { annotations: { 'controller.kubernetes.io/pod-deletion-cost': cost } }),
    },
    spec: { ...podSpec(), ...(nodeName !== '' && { nodeName }) },
  }
}

function podSpec(): JsonObject {
  return {
    containers: [{ name: 'main', image: 'none' }],
    initContainers: [{ name: 'sidecar', image: 'none', restartPolicy: 'Always' }],
  }
}

/** Ready for seconds, hours or days; often in the same second. Every few are around 2^43 ns (2.44 h), where a bucket ends. */
function statusOf({ kind }: Plan, nowMs: number): JsonObject {
  const age =
    kind === 'twins' ? oneOf(600, 600, 601) : oneOf(below(20), 3600 + below(3), 8790 + below(12), below(900_000))
  const time = new Date(nowMs - age * 1000).toISOString().replace(/\.\d+Z/, 'Z')
  const any = kind === 'any'
  const phase = any ? oneOf('Running', 'Running', 'Running', 'Pending', 'Unknown') : 'Running'
  const ready = !any || below(6) > 0 ? 'True' : 'False'
  const restarts = (): number => {
    if (kind === 'rollout') return 0
    return kind === 'twins' ? oneOf(0, 0, 0, 1) : oneOf(0, 0, 1, 5)
  }
  return {
    phase,
    conditions: [{ type: 'Ready', status: ready, ...(below(20) > 0 && { lastTransitionTime: time }) }],
    containerStatuses: [{ name: 'main', image: 'none', imageID: '', ready: true, restartCount: restarts() }],
    initContainerStatuses: [{ name: 'sidecar', image: 'none', imageID: '', ready: true, restartCount: restarts() }],
  }
}

async function createPod(plan: Plan, at: number): Promise<void> {
  await client.create(PODS, podObject(plan, at))
  const patch = { status: statusOf(plan, Date.now()) }
  const options = { fieldManager: 'kubelet', subresource: 'status' } as const
  const name = { namespace: NAMESPACE, name: `${plan.name}-${at}` }
  await client.patch(PODS, name, 'application/merge-patch+json', patch, options)
}

/** Born with as many replicas as there are pods, so that it adopts them and creates none. */
async function createReplicaSet({ name, size, owner, ownerUid }: Plan): Promise<void> {
  const reference = { apiVersion: 'v1', kind: 'ConfigMap', name: owner, uid: ownerUid, controller: true }
  await client.create(REPLICA_SETS, {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: { name, namespace: NAMESPACE, ...(owner !== '' && { ownerReferences: [reference] }) },
    spec: {
      replicas: size,
      selector: { matchLabels: { rs: name } },
      template: { metadata: { labels: { rs: name } }, spec: podSpec() },
    },
  })
}

async function plans(): Promise<Plan[]> {
  const owners = Array.from({ length: OWNERS }, (_, at) => `owner-${at}`)
  const uids = new Map<string, string>([['', '']])
  await inParallel(owners, async (name) => {
    const body = { metadata: { name } }
    const made = await cluster.request(`/api/v1/namespaces/${NAMESPACE}/configmaps`, { method: 'POST', body })
    uids.set(name, made.json().metadata.uid)
  })
  return Array.from({ length: REPLICA_SET_COUNT }, (_, at): Plan => {
    const size = 3 + below(8)
    const owner = below(10) === 0 ? '' : (owners[below(OWNERS)] ?? '')
    const ownerUid = uids.get(owner) ?? ''
    return {
      name: `rs-${at}`,
      owner,
      ownerUid,
      size,
      keep: 1 + below(size - 1),
      kind: oneOf('twins', 'rollout', 'any'),
    }
  })
}

interface World {
  readonly sets: readonly ReplicaSetFacts[]
  readonly pods: readonly JsonObject[]
}

async function world(labelSelector = ''): Promise<World> {
  const [sets, pods] = await Promise.all([
    client.list(REPLICA_SETS, NAMESPACE),
    client.list(PODS, NAMESPACE, labelSelector),
  ])
  return { sets: sets.items.map(replicaSetFacts), pods: pods.items }
}

function rankOf({ sets, pods }: World, name: string, replicas: number, window: ComparisonWindow): DeletionRank {
  const replicaSet = sets.find((one) => one.name === name)
  assert.ok(replicaSet, name)
  return rankReplicaSet({ replicaSet, replicas }, [], sets, pods.map(scalePod), { window })
}

/** Scales one down. The pods that have gone, and what there was before. */
async function scaleDown({ name, size, keep }: Plan, selector: string): Promise<Scaled> {
  const seen = await world(selector)
  const fromMs = Date.now()
  const own = new Set(seen.pods.map(scalePod).flatMap((pod) => (pod.labels['rs'] === name ? [pod.name] : [])))
  assert.equal(own.size, size)
  const patch = { spec: { replicas: keep } }
  const options = { fieldManager: 'test' }
  await client.patch(REPLICA_SETS, { namespace: NAMESPACE, name }, 'application/merge-patch+json', patch, options)
  const left = await waitFor(`${name} to have ${keep} pods`, async () => {
    const { items } = await client.list(PODS, NAMESPACE, `rs=${name}`)
    const living = items.map(scalePod).filter(({ terminating }) => !terminating)
    return living.length === keep && living.map((pod) => pod.name)
  })
  return { seen, window: { fromMs, toMs: Date.now() }, victims: [...own].filter((pod) => !left.includes(pod)) }
}

interface Scaled {
  readonly seen: World
  /** When the controller compared. */
  readonly window: ComparisonWindow
  readonly victims: readonly string[]
}

function namesOf(verdicts: DeletionRank['certain']): ReadonlySet<string> {
  return new Set(verdicts.map(({ pod }) => pod.name))
}

test('every victim of 200 random scale-downs was certain or possible', async () => {
  const all = await plans()
  for (let round = 0; round < ROUNDS; round++) {
    const due = all.flatMap((plan) =>
      Array.from({ length: plan.size }, (_, at) => ({ plan, at })).filter(({ at }) => at % ROUNDS === round),
    )
    await inParallel(due, ({ plan, at }) => createPod(plan, at))
  }
  await inParallel(all, createReplicaSet)
  await waitFor('every ReplicaSet to have adopted its pods', async () => {
    const { sets, pods } = await world()
    const read = pods.map(scalePod).filter(({ controllerUid }) => controllerUid !== '')
    return all.every(({ name, size }) => {
      const one = sets.find((candidate) => candidate.name === name)
      return one !== undefined && replicaPodsOf(one, read).length === size
    })
  })
  const totals = { victims: 0, certain: 0, decided: 0, sets: 0 }
  const rules = new Map<string, number>()
  // Sets of one owner follow one after the other: each changes the ranks of the next.
  const byOwner = Map.groupBy(all, ({ owner, name }) => owner || name)
  await inParallel([...byOwner.values()], async (siblings) => {
    const selector = `rs in (${siblings.map(({ name }) => name).join()})`
    for (const plan of siblings) {
      const { seen, window, victims } = await scaleDown(plan, selector)
      const actual = rankOf(seen, plan.name, plan.keep, window)
      const certain = namesOf(actual.certain)
      const possible = namesOf(actual.possible.pods)
      for (const victim of victims) {
        assert.ok(certain.has(victim) || possible.has(victim), `${plan.name}: ${victim} was safe`)
      }
      for (const name of certain) assert.ok(victims.includes(name), `${plan.name}: ${name} was certain to go`)
      assert.equal(actual.certain.length + actual.possible.count, victims.length)
      // As the command says it, which does not know when the controller compares.
      const toMs = window.fromMs + WINDOW_MS
      const asked = rankOf(seen, plan.name, plan.keep, { fromMs: window.fromMs, toMs })
      totals.sets++
      totals.victims += victims.length
      totals.certain += asked.certain.length
      if (asked.possible.count === 0) totals.decided++
      for (const { decision } of asked.certain) rules.set(decision.rule, (rules.get(decision.rule) ?? 0) + 1)
    }
  })
  assert.equal(totals.sets, REPLICA_SET_COUNT)
  for (const rule of ['DeletionCost', 'DoubledUp', 'ReadyTime', 'Restarts', 'NotReady', 'Phase', 'Unassigned']) {
    assert.ok((rules.get(rule) ?? 0) > 0, `no victim was decided by ${rule}`)
  }
  const share = ((100 * totals.certain) / totals.victims).toFixed(1)
  assert.ok(
    totals.certain >= LEAST_CERTAIN * totals.victims,
    `only ${share} % of ${totals.victims} victims were certain`,
  )
  console.log(`${totals.victims} victims of ${totals.sets} ReplicaSets: ${share} % were certain before`)
  console.log(`all victims certain in ${totals.decided}; by rule: ${JSON.stringify(Object.fromEntries(rules))}`)
})
