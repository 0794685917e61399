// PodProtectors hold for deletions and evictions that come through a federated cluster, by the names of the member, as they do for direct ones.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { KubeResponse } from '../../harness/clusters/kube-request.ts'
import { createPod, type ProtectedClusters, startProtectedClusters } from '../../harness/clusters/protected-clusters.ts'
import { upstreamClusterFor } from '../../harness/clusters/upstream-cluster.ts'
import { federatedClusters, prepareMember, readThrough } from '../../harness/federation/federated-clusters.ts'
import { PATIENT } from '../../harness/patience.ts'
import { waitFor } from '../../harness/wait.ts'

const NAMESPACE = 'shop'
const SHOWN = 'worker-1--shop'
const PODS = `/api/v1/namespaces/${SHOWN}/pods`
const RBAC = 'rbac.authorization.k8s.io'

let world: ProtectedClusters
before(async () => {
  world = await startProtectedClusters({ workers: 1 })
  const worker = world.worker(0)
  await prepareMember(worker, ['alice'])
  const writer = {
    apiVersion: `${RBAC}/v1`,
    kind: 'ClusterRoleBinding',
    metadata: { name: 'alice' },
    roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: 'cluster-admin' },
    subjects: [{ apiGroup: RBAC, kind: 'User', name: 'alice' }],
  }
  await worker.apply(JSON.stringify(writer))
  const [, all] = federatedClusters([worker])
  const cached = { podProtection: {}, cache: [{ version: 'v1', resource: 'pods' }] }
  for (const object of [upstreamClusterFor(worker, { spec: cached }), all])
    await world.core.apply(JSON.stringify(object))
  await world.createNamespace(NAMESPACE)
  const selector = { matchLabels: { app: 'web' } }
  await world.createProtector(NAMESPACE, 'web', { minAvailable: 2, minReadySeconds: 0, selector })
  for (let i = 0; i < 4; i++) await createPod(worker, NAMESPACE, `web-${i}`, { labels: { app: 'web' } })
  await world.untilSummary(NAMESPACE, 'web', [4, 4, 4])
  await waitFor('the pods of all', async () => {
    const { status, text, json } = await ask('GET', PODS)
    if (status !== 200) throw new Error(text)
    return json().items.length === 4
  })
}, PATIENT)
after(() => world?.stop())

function ask(method: string, path: string, body?: object): Promise<KubeResponse> {
  return readThrough(world.gateway, path, { method, ...(body !== undefined && { body }) })
}

function evict(name: string): Promise<KubeResponse> {
  const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace: SHOWN } }
  return ask('POST', `${PODS}/${name}/eviction`, body)
}

test('as many go as may, by a deletion and by an eviction, and no more', PATIENT, async () => {
  const deleted = await ask('DELETE', `${PODS}/web-0`, { gracePeriodSeconds: 0 })
  assert.equal(deleted.status, 200, deleted.text)
  assert.equal(deleted.json().metadata.namespace, SHOWN)
  assert.equal((await evict('web-1')).status, 201)
  await world.untilSummary(NAMESPACE, 'web', [2, 2, 2])
  for (const answer of [await ask('DELETE', `${PODS}/web-2`), await evict('web-3')]) {
    assert.equal(answer.status, 429, answer.text)
    assert.match(answer.json().message, /web/)
  }
  const collection = await ask('DELETE', `${PODS}?labelSelector=app%3Dweb`)
  assert.equal(collection.status, 429, collection.text)
  assert.equal((await ask('GET', PODS)).json().items.length, 2)
})

test('a deletion of several is answered with those that went, by their shown names', PATIENT, async () => {
  const removed = await ask('DELETE', `${PODS}?labelSelector=app%3Dnone`)
  assert.equal(removed.status, 200, removed.text)
  await createPod(world.worker(0), NAMESPACE, 'other', { labels: { app: 'other' } })
  const other = await ask('DELETE', `${PODS}?labelSelector=app%3Dother`, { gracePeriodSeconds: 0 })
  assert.deepEqual(
    other.json().items.map(({ metadata }: { metadata: { namespace: string } }) => metadata.namespace),
    [SHOWN],
    other.text,
  )
})
