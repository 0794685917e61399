// The generator on a real core cluster, with no more rights than deploy/rbac gives it: Podseidon's spec G1, every kind of
// workload, what people and accidents do to workloads and PodProtectors, and a garbage collector that runs meanwhile.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { stringify } from 'yaml'
import {
  CORE_PPR_PATH,
  eraseFromEtcd,
  type ProtectedClusters,
  startProtectedClusters,
} from '../../harness/clusters/protected-clusters.ts'
import { waitFor } from '../../harness/wait.ts'

const FINALIZER = 'podseidon.kubewharf.io/generator'
const REMOVE_CELL = 'podseidon.kubewharf.io/remove-cell-once'
const NAMESPACE = 'default'
const CONFIG = stringify({
  kinds: [{ kind: 'Deployment' }, { kind: 'StatefulSet', protectNonZero: true }, { kind: 'ReplicaSet' }],
})

// biome-ignore lint/suspicious/noExplicitAny: objects of every kind, as the server gave them
type Json = any

let world: ProtectedClusters
before(async () => {
  world = await startProtectedClusters({ workers: 0, coreControllers: true, leastRights: true, generator: CONFIG })
})
after(() => world?.stop())

type Plural = 'deployments' | 'statefulsets' | 'replicasets'

function pathOf(plural: Plural, name = ''): string {
  return `/apis/apps/v1/namespaces/${NAMESPACE}/${plural}${name === '' ? '' : `/${name}`}`
}

function protectorPath(name: string): string {
  return `${CORE_PPR_PATH}/namespaces/${NAMESPACE}/podprotectors/${name}`
}

function workload(kind: string, name: string, spec: object): object {
  const labels = { app: name.slice(0, 63) }
  const containers = [{ name: 'main', image: 'none' }]
  const template = { metadata: { labels }, spec: { containers } }
  return {
    apiVersion: 'apps/v1',
    kind,
    metadata: { name, namespace: NAMESPACE },
    spec: { selector: { matchLabels: labels }, template, ...spec },
  }
}

async function get(path: string): Promise<Json> {
  const answer = await world.core.request(path)
  if (answer.status === 404) return undefined
  assert.equal(answer.status, 200, answer.text)
  return answer.json()
}

async function create(plural: Plural, object: object): Promise<Json> {
  const { status, text, json } = await world.core.request(pathOf(plural), { method: 'POST', body: object })
  assert.equal(status, 201, text)
  return json()
}

async function patch(path: string, body: object): Promise<void> {
  const headers = { 'content-type': 'application/merge-patch+json' }
  const { status, text } = await world.core.request(path, { method: 'PATCH', headers, body })
  assert.equal(status, 200, text)
}

async function remove(path: string): Promise<void> {
  const { status, text } = await world.core.request(path, { method: 'DELETE' })
  assert.ok(status < 300, text)
}

/** The PodProtector, once it keeps so many. */
function keeps(name: string, minAvailable: number): Promise<Json> {
  return waitFor(`PodProtector ${name} to keep ${minAvailable}`, async () => {
    const protector = await get(protectorPath(name))
    if (protector?.spec.minAvailable === minAvailable) return protector
    throw new Error(JSON.stringify(protector?.spec))
  })
}

async function gone(...paths: readonly string[]): Promise<void> {
  for (const path of paths) await waitFor(`${path} to be gone`, async () => (await get(path)) === undefined)
}

function finalizersOf(object: Json): readonly string[] {
  return object.metadata.finalizers ?? []
}

function rolling(replicas: number, maxUnavailable: number | string): object {
  return { replicas, strategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable } } }
}

test('G1: a Deployment has its PodProtector from its first moment to its last', async () => {
  const deployment = pathOf('deployments', 'workload')
  await create('deployments', workload('Deployment', 'workload', { ...rolling(10, '30%'), minReadySeconds: 15 }))
  const made = await keeps('deployment-workload', 7)
  assert.deepEqual(finalizersOf(made), [FINALIZER])
  assert.ok(finalizersOf(await get(deployment)).includes(FINALIZER))
  assert.deepEqual(made.spec, {
    minAvailable: 7,
    minReadySeconds: 15,
    selector: { matchLabels: { app: 'workload' } },
  })
  assert.equal(made.metadata.labels['podseidon.kubewharf.io/source-name'], 'workload')
  await patch(deployment, { spec: { replicas: 20 } })
  await keeps('deployment-workload', 14)
  await remove(protectorPath('deployment-workload'))
  // It stays, and goes on following its Deployment.
  await patch(deployment, { spec: { replicas: 30 } })
  const kept = await keeps('deployment-workload', 21)
  assert.ok(kept.metadata.deletionTimestamp !== undefined)
  assert.deepEqual(finalizersOf(kept), [FINALIZER])
  assert.equal(kept.metadata.uid, made.metadata.uid)
  await remove(`${deployment}?propagationPolicy=Background`)
  await gone(protectorPath('deployment-workload'), deployment)
})

test('other kinds: a StatefulSet, a ReplicaSet without an owner, a Deployment that recreates, a long name', async () => {
  const long = `long-${'x'.repeat(70)}-end`
  await create('statefulsets', workload('StatefulSet', 'db', { replicas: 4, serviceName: 'db' }))
  await create('replicasets', workload('ReplicaSet', 'lonely', { replicas: 8 }))
  await create('deployments', workload('Deployment', 'again', { replicas: 4, strategy: { type: 'Recreate' } }))
  await create('deployments', workload('Deployment', long, rolling(3, 1)))
  const [db] = [await keeps('statefulset-db', 3), await keeps('deployment-again', 0)]
  assert.deepEqual(db.spec.selector, { matchLabels: { app: 'db' } })
  const lonely = await waitFor('the PodProtector of the ReplicaSet', () => get(protectorPath('replicaset-lonely')))
  assert.ok(lonely.spec.minAvailable > 0, JSON.stringify(lonely.spec))
  const longProtector = await keeps(`deployment-${long}`, 2)
  assert.ok(longProtector.metadata.labels['podseidon.kubewharf.io/source-name'].length <= 63)
  // Those of Deployments are not protected twice.
  const { items } = await get(`${CORE_PPR_PATH}/namespaces/${NAMESPACE}/podprotectors`)
  const names = items.map((item: Json) => item.metadata.name)
  assert.deepEqual(
    names.filter((name: string) => name.startsWith('replicaset-')),
    ['replicaset-lonely'],
  )
  for (const path of [pathOf('replicasets', 'lonely'), pathOf('deployments', 'again'), pathOf('deployments', long)]) {
    await remove(path)
  }
  await gone(...['replicaset-lonely', 'deployment-again', `deployment-${long}`].map(protectorPath))
  await gone(pathOf('deployments', long))
})

test('protectNonZero: who is deleted while it has replicas stays, and so does its PodProtector', async () => {
  const path = pathOf('statefulsets', 'db')
  await remove(`${path}?propagationPolicy=Background`)
  await patch(path, { spec: { replicas: 8 } })
  const protector = await keeps('statefulset-db', 7)
  assert.equal(protector.metadata.deletionTimestamp, undefined)
  await patch(path, { spec: { replicas: 0 } })
  await gone(protectorPath('statefulset-db'), path)
})

test('what people change is repaired; what is theirs is kept; cells are forgotten once', async () => {
  await create('deployments', workload('Deployment', 'drift', rolling(10, '30%')))
  await keeps('deployment-drift', 7)
  const kubectl = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await world.core.kubectl([...args, '-n', NAMESPACE])
    assert.equal(code, 0, stderr)
    return stdout
  }
  const path = protectorPath('deployment-drift')
  await patch(path, { spec: { admissionHistoryConfig: { aggregationRateMillis: 2500 } } })
  await kubectl('patch', 'ppr', 'deployment-drift', '--type=merge', '-p', '{"spec":{"minAvailable":1}}')
  await keeps('deployment-drift', 7)
  await kubectl('label', 'ppr', 'deployment-drift', 'podseidon.kubewharf.io/source-name-')
  await waitFor('the label', async () => {
    const { metadata } = await get(path)
    return metadata.labels?.['podseidon.kubewharf.io/source-name'] === 'drift'
  })
  await patch(pathOf('deployments', 'drift'), { spec: { replicas: 20 } })
  const repaired = await keeps('deployment-drift', 14)
  assert.deepEqual(repaired.spec.admissionHistoryConfig, { aggregationRateMillis: 2500 })

  const cell = (cellID: string, count: number): object => {
    const aggregation = { totalReplicas: count, availableReplicas: count, readyReplicas: count }
    return { cellID, aggregation, admissionHistory: {} }
  }
  const summary = { totalReplicas: 30, aggregatedAvailableReplicas: 30, estimatedAvailableReplicas: 30 }
  await patch(`${path}/status`, { status: { cells: [cell('live', 20), cell('dead', 10)], summary } })
  await kubectl('annotate', 'ppr', 'deployment-drift', `${REMOVE_CELL}=dead`)
  await waitFor('the annotation to go', async () => {
    return (await get(path)).metadata.annotations?.[REMOVE_CELL] === undefined
  })
  const { status } = await get(path)
  assert.deepEqual(
    status.cells.map(({ cellID }: Json) => cellID),
    ['live'],
  )
  assert.equal(status.summary.estimatedAvailableReplicas, 20)
  await remove(pathOf('deployments', 'drift'))
  await gone(path)
})

test('a Deployment erased in etcd leaves its PodProtector, though its ReplicaSets are collected', async () => {
  const object = workload('Deployment', 'lost', rolling(4, 1))
  await create('deployments', object)
  const before = await keeps('deployment-lost', 3)
  const replicaSets = async (): Promise<number> =>
    (await get(`${pathOf('replicasets')}?labelSelector=app%3Dlost`)).items.length
  await waitFor('a ReplicaSet', async () => (await replicaSets()) === 1)
  await eraseFromEtcd(world.core, `/registry/deployments/${NAMESPACE}/lost`)
  await waitFor('the garbage collector', async () => (await replicaSets()) === 0)
  const left = await get(protectorPath('deployment-lost'))
  assert.deepEqual(left?.spec, before.spec)
  assert.equal(left.metadata.deletionTimestamp, undefined)
  // Re-created, it finds it again.
  await create('deployments', object)
  await patch(pathOf('deployments', 'lost'), { spec: { replicas: 6 } })
  const after = await keeps('deployment-lost', 5)
  assert.equal(after.metadata.uid, before.metadata.uid)
  await waitFor('the finalizer', async () => {
    return finalizersOf(await get(pathOf('deployments', 'lost'))).includes(FINALIZER)
  })
  await remove(pathOf('deployments', 'lost'))
  await gone(protectorPath('deployment-lost'), pathOf('deployments', 'lost'))
})

test('nothing of it was forbidden', () => {
  assert.doesNotMatch(world.gateway.logs(), /forbidden/i)
})
