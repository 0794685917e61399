// The disasters that protection is for, on real clusters: one service in two workers, whose controllers all speak through the
// gateway. Whatever happens to the control plane, fewer pods than minAvailable are never seen; afterwards all heals by itself.

import assert from 'node:assert/strict'
import { after, afterEach, before, describe, test } from 'node:test'
import { stringify } from 'yaml'
import { type AvailabilityWatch, availablePods, watchAvailability } from '../../harness/clusters/availability.ts'
import type { TestCluster } from '../../harness/clusters/cluster.ts'
import {
  eraseFromEtcd,
  type ProtectedClusters,
  startProtectedClusters,
} from '../../harness/clusters/protected-clusters.ts'
import { kubeconfigThrough } from '../../harness/clusters/upstream-cluster.ts'
import { kubectl } from '../../harness/kubectl/kubectl.ts'
import { waitFor } from '../../harness/wait.ts'

const NAMESPACE = 'shop'
const REPLICAS = 4
const MIN_AVAILABLE = 6
const SELECTOR = 'app=web'
const SLOW = { timeoutMs: 180_000 }
const DEPLOYMENTS = `/apis/apps/v1/namespaces/${NAMESPACE}/deployments`
const WEB = `${DEPLOYMENTS}/web`

let world: ProtectedClusters
let sampled: AvailabilityWatch | undefined

before(async () => {
  world = await startProtectedClusters({ controllers: 'gateway', nodes: 3 })
  await world.createNamespace(NAMESPACE)
  await world.createProtector(NAMESPACE, 'web', {
    minAvailable: MIN_AVAILABLE,
    minReadySeconds: 0,
    selector: { matchLabels: { app: 'web' } },
  })
  for (const worker of world.workers) await worker.apply(deployment())
  await healthy()
})
after(async () => {
  await sampled?.stop()
  await world?.stop()
})

function deployment(): string {
  const template = {
    metadata: { labels: { app: 'web' } },
    spec: { terminationGracePeriodSeconds: 1, containers: [{ name: 'main', image: 'web:1' }] },
  }
  const strategy = { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: '75%', maxSurge: 0 } }
  const spec = { replicas: REPLICAS, strategy, selector: { matchLabels: { app: 'web' } }, template }
  return stringify({ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web', namespace: NAMESPACE }, spec })
}

async function available(): Promise<number[]> {
  const pods = await Promise.all(world.workers.map((worker) => availablePods(worker, NAMESPACE, SELECTOR)))
  return pods.map(({ length }) => length)
}

/** All replicas of both workers are there, the PodProtector has seen them, and nothing is being deleted. */
async function healthy(): Promise<void> {
  const total = REPLICAS * world.workers.length
  await waitFor(
    'the service to be whole',
    async () => {
      const now = await available()
      if (now.some((count) => count !== REPLICAS)) throw new Error(`available: ${now}`)
      return true
    },
    SLOW,
  )
  await waitFor(
    'the PodProtector to say so',
    async () => {
      const { status } = await world.protector(NAMESPACE, 'web')
      const { aggregatedAvailableReplicas, estimatedAvailableReplicas } = status.summary
      if (aggregatedAvailableReplicas !== total || estimatedAvailableReplicas !== total) {
        throw new Error(JSON.stringify(status))
      }
      return true
    },
    SLOW,
  )
}

/** Samples availability during `disaster`, which resolves when the worst has come and gone. */
async function neverBelow(disaster: () => Promise<void>): Promise<void> {
  sampled = watchAvailability(world.workers, {
    namespace: NAMESPACE,
    labelSelector: SELECTOR,
    minAvailable: MIN_AVAILABLE,
  })
  const watch = sampled
  await disaster()
  // However soon it is over: what comes after it counts, too.
  const during = watch.samples
  await waitFor('samples of what comes after', () => watch.samples > during + 10)
  await watch.stop()
  assert.deepEqual(watch.shortfalls, [])
  sampled = undefined
}

/** The disaster has taken what it may take: both workers together are at the minimum, and stay there for some refusals. */
async function atTheMinimum(): Promise<void> {
  const refusals = async (): Promise<number> => {
    const [line = ''] = /^portcullis_refusals_total\{.*protect.*$/m.exec(await world.gateway.metrics()) ?? []
    return Number(line.split(' ').at(-1) ?? 0)
  }
  await waitFor(
    'the minimum',
    async () => {
      const now = await available()
      if (now.reduce((sum, count) => sum + count, 0) !== MIN_AVAILABLE) throw new Error(`available: ${now}`)
      return true
    },
    SLOW,
  )
  const before = await refusals()
  await waitFor('more refusals', async () => (await refusals()) > before + 2, SLOW)
}

async function everywhere(act: (worker: TestCluster, index: number) => Promise<unknown>): Promise<void> {
  await Promise.all(world.workers.map(act))
}

async function patch(worker: TestCluster, body: object): Promise<void> {
  const headers = { 'content-type': 'application/merge-patch+json' }
  const { status, text } = await worker.request(WEB, { method: 'PATCH', headers, body })
  assert.equal(status, 200, text)
}

const OWNERS = `/apis/example.com/v1/namespaces/${NAMESPACE}/shops`
const OWNER_CRD = stringify({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'shops.example.com' },
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: { plural: 'shops', singular: 'shop', kind: 'Shop' },
    versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
  },
})

async function createOwner(worker: TestCluster, name: string): Promise<string> {
  const body = { apiVersion: 'example.com/v1', kind: 'Shop', metadata: { name, namespace: NAMESPACE } }
  const { status, text, json } = await worker.request(OWNERS, { method: 'POST', body })
  assert.equal(status, 201, text)
  return json().metadata.uid
}

function ownedBy(name: string, uid: string): object {
  return { apiVersion: 'example.com/v1', kind: 'Shop', name, uid, controller: true, blockOwnerDeletion: true }
}

/** Garbage collection learns of a new kind every half minute: until then nothing would follow an owner. */
async function untilCollected(worker: TestCluster): Promise<void> {
  const uid = await createOwner(worker, 'probe')
  const maps = `/api/v1/namespaces/${NAMESPACE}/configmaps`
  const metadata = { name: 'probe', namespace: NAMESPACE, ownerReferences: [ownedBy('probe', uid)] }
  const created = await worker.request(maps, {
    method: 'POST',
    body: { apiVersion: 'v1', kind: 'ConfigMap', metadata },
  })
  assert.equal(created.status, 201, created.text)
  assert.equal((await worker.request(`${OWNERS}/probe`, { method: 'DELETE' })).status, 200)
  await waitFor(
    'garbage collection to know the kind',
    async () => {
      return (await worker.request(`${maps}/probe`)).status === 404
    },
    SLOW,
  )
}

describe('the control plane goes wild', { concurrency: false }, () => {
  afterEach(() => healthy())

  test('the Deployments are erased in etcd, and garbage collection cascades', async () => {
    await neverBelow(async () => {
      await everywhere((worker) => eraseFromEtcd(worker, `/registry/deployments/${NAMESPACE}/web`))
      await atTheMinimum()
      await everywhere((worker) => worker.apply(deployment()))
      await healthy()
    })
  })

  test('the Deployments are deleted by mistake', async () => {
    await neverBelow(async () => {
      await everywhere(async (worker) => {
        const { status, text } = await worker.request(`${WEB}?propagationPolicy=Background`, { method: 'DELETE' })
        assert.equal(status, 200, text)
      })
      await atTheMinimum()
      await everywhere((worker) => worker.apply(deployment()))
      await healthy()
    })
  })

  test('the CRD of the owners is deleted: custom resources, their workloads and the pods go after it (long)', async () => {
    await everywhere(async (worker) => {
      await worker.apply(OWNER_CRD)
      await waitFor('the kind to be served', async () => (await worker.request(OWNERS)).status === 200, SLOW)
      const uid = await createOwner(worker, 'web')
      await patch(worker, { metadata: { ownerReferences: [ownedBy('web', uid)] } })
      await untilCollected(worker)
    })
    await neverBelow(async () => {
      await everywhere(async (worker) => {
        const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/shops.example.com'
        const { status, text } = await worker.request(path, { method: 'DELETE' })
        assert.equal(status, 200, text)
      })
      await everywhere((worker) =>
        waitFor('the cascade to take the Deployment', async () => (await worker.request(WEB)).status === 404, SLOW),
      )
      await atTheMinimum()
      await everywhere((worker) => worker.apply(deployment()))
      await healthy()
    })
  })

  test('wrong replica counts come to both clusters at once', async () => {
    await neverBelow(async () => {
      await everywhere((worker) => patch(worker, { spec: { replicas: 1 } }))
      await atTheMinimum()
      await everywhere((worker) => patch(worker, { spec: { replicas: REPLICAS } }))
      await healthy()
    })
  })

  test('rolling updates run in both clusters at once', async () => {
    await neverBelow(async () => {
      const container = { name: 'main', image: 'web:2' }
      await everywhere((worker) => patch(worker, { spec: { template: { spec: { containers: [container] } } } }))
      await waitFor(
        'both updates to be complete',
        async () => {
          for (const worker of world.workers) {
            const { metadata, status = {} } = (await worker.request(WEB)).json()
            const { observedGeneration, replicas, updatedReplicas, availableReplicas } = status
            if (observedGeneration !== metadata.generation || replicas !== REPLICAS) return false
            if (updatedReplicas !== REPLICAS || availableReplicas !== REPLICAS) return false
          }
          return true
        },
        SLOW,
      )
    })
  })

  test('nodes are drained in both clusters at once', async () => {
    await neverBelow(async () => {
      await everywhere(async (worker) => {
        const kubeconfig = await kubeconfigThrough(world.gateway, worker, worker.admin)
        const { items } = (await worker.request('/api/v1/nodes')).json()
        const [node, other] = items.map(({ metadata }: { metadata: { name: string } }) => metadata.name)
        const drain = ['drain', node, other, '--ignore-daemonsets', '--force', '--timeout=150s']
        const { code, stdout, stderr } = await kubectl(drain, { kubeconfig, timeoutMs: 170_000 })
        assert.equal(code, 0, stdout + stderr)
        const uncordoned = await worker.kubectl(['uncordon', node, other])
        assert.equal(uncordoned.code, 0, uncordoned.stderr)
      })
    })
  })
})

/** In shadow mode deletions are evaluated, and let through. */
async function setShadow(shadow: boolean): Promise<void> {
  const headers = { 'content-type': 'application/merge-patch+json' }
  for (const { name } of world.workers) {
    const path = `/apis/proxy.kubegateway.io/v1alpha1/upstreamclusters/${name}`
    const body = { spec: { podProtection: { shadow } } }
    const { status, text } = await world.core.request(path, { method: 'PATCH', headers, body })
    assert.equal(status, 200, text)
    await waitFor('the change to be in force', async () => {
      const { metadata, status: applied } = (await world.core.request(path)).json()
      const [gateway] = applied?.gateways ?? []
      return gateway?.observedGeneration === metadata.generation
    })
  }
}

// What the others show is worth nothing if it would be the same without protection.
test('in shadow mode the same disaster takes what it wants, and is seen to', async () => {
  await setShadow(true)
  const watch = watchAvailability(world.workers, {
    namespace: NAMESPACE,
    labelSelector: SELECTOR,
    minAvailable: MIN_AVAILABLE,
  })
  await everywhere((worker) => patch(worker, { spec: { replicas: 1 } }))
  await waitFor('both to be down to one', async () => (await available()).every((count) => count === 1), SLOW)
  await waitFor('that to be seen', () => watch.lowest === 2, SLOW)
  await watch.stop()
  assert.notEqual(watch.shortfalls.length, 0)
  assert.match(await world.gateway.metrics(), /^portcullis_shadow_refusals_total\{.*protect/m)
  await setShadow(false)
  await everywhere((worker) => patch(worker, { spec: { replicas: REPLICAS } }))
  await healthy()
})

test('the core cluster is away: no available pod is deleted, and the answer says why; the rest works', async () => {
  const [pod] = await availablePods(world.worker(0), NAMESPACE, SELECTOR)
  assert.ok(pod)
  const [apiserver] = world.core.apiservers
  assert.ok(apiserver)
  await neverBelow(async () => {
    await apiserver.kill()
    const refused = await world.deletePod(0, NAMESPACE, pod.metadata.name)
    assert.equal(refused.status, 503, refused.text)
    assert.equal(refused.json().reason, 'ServiceUnavailable')
    assert.match(refused.json().message, /PodProtector/)
    const evicted = await world.evictPod(0, NAMESPACE, pod.metadata.name)
    assert.equal(evicted.status, 429, evicted.text)
    assert.equal((await world.through(0, `/api/v1/namespaces/${NAMESPACE}/pods`)).status, 200)
    await apiserver.restart()
    await waitFor(
      'the pod to go',
      async () => {
        const { status, text } = await world.deletePod(0, NAMESPACE, pod.metadata.name)
        assert.ok(status < 300, text)
        return true
      },
      SLOW,
    )
  })
  await healthy()
})
