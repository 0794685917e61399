// The two ways to install pod protection, side by side: a worker whose kube-controller-manager speaks through the gateway and has
// no webhook, and one whose API server asks the webhook and whose controllers have never heard of the gateway.

import assert from 'node:assert/strict'
import { after, before, type TestContext, test } from 'node:test'
import { stringify } from 'yaml'
import { availablePods, watchAvailability } from '../../harness/clusters/availability.ts'
import type { TestCluster } from '../../harness/clusters/cluster.ts'
import { type ProtectedClusters, startProtectedClusters } from '../../harness/clusters/protected-clusters.ts'
import { installWebhooks } from '../../harness/clusters/protection-webhooks.ts'
import { kubeconfigThrough } from '../../harness/clusters/upstream-cluster.ts'
import { waitFor } from '../../harness/wait.ts'

const REPLICAS = 4
const MIN_AVAILABLE = 3
const SLOW = { timeoutMs: 60_000 }
const WEBHOOKS = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations'

let world: ProtectedClusters
before(async () => {
  world = await startProtectedClusters({
    nodes: 1,
    leastRights: true,
    flags: ['--protection-listen=127.0.0.1:WEBHOOK'],
  })
  const [first, second] = [world.worker(0), world.worker(1)]
  const user = first.componentUser('kube-controller-manager')
  const kubeconfig = await kubeconfigThrough(world.gateway, first, user, { path: true })
  await installWebhooks(world, [second])
  await Promise.all([first.startControllerManager({ kubeconfig }), second.startControllerManager()])
})
after(() => world?.stop())

function replicaSet(namespace: string): string {
  const labels = { app: namespace }
  const containers = [{ name: 'main', image: 'none' }]
  return stringify({
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: { name: 'web', namespace },
    spec: {
      replicas: REPLICAS,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { terminationGracePeriodSeconds: 1, containers } },
    },
  })
}

async function scale(worker: TestCluster, namespace: string, replicas: number): Promise<void> {
  const { code, stderr } = await worker.kubectl(['scale', 'rs/web', '-n', namespace, `--replicas=${replicas}`])
  assert.equal(code, 0, stderr)
}

async function whole(worker: TestCluster, namespace: string): Promise<void> {
  await waitFor(
    `all pods of ${namespace}`,
    async () => {
      const { length } = await availablePods(worker, namespace, `app=${namespace}`)
      if (length !== REPLICAS) throw new Error(`${length} are available`)
      return true
    },
    SLOW,
  )
  await world.untilSummary(namespace, 'web', [REPLICAS, REPLICAS, REPLICAS])
}

/** A ReplicaSet is scaled to nothing by mistake, and back. @param refusal what its controller is told */
async function scaledToNothing(t: TestContext, index: number, namespace: string, refusal: RegExp): Promise<void> {
  const worker = world.worker(index)
  await world.createNamespace(namespace)
  await world.createProtector(namespace, 'web', {
    minAvailable: MIN_AVAILABLE,
    minReadySeconds: 0,
    selector: { matchLabels: { app: namespace } },
  })
  await worker.apply(replicaSet(namespace))
  await whole(worker, namespace)
  const labelSelector = `app=${namespace}`
  const sampled = watchAvailability([worker], { namespace, labelSelector, minAvailable: MIN_AVAILABLE })
  t.after(() => sampled.stop())
  await scale(worker, namespace, 0)
  await waitFor(
    'the refusal',
    async () => {
      const { stdout } = await worker.kubectl([
        'get',
        'events',
        '-n',
        namespace,
        '--field-selector=reason=FailedDelete',
      ])
      if (refusal.test(stdout)) return true
      throw new Error(stdout)
    },
    SLOW,
  )
  const { summary } = await world.untilSummary(namespace, 'web', [MIN_AVAILABLE, MIN_AVAILABLE, MIN_AVAILABLE])
  assert.equal(summary.aggregatedReady, MIN_AVAILABLE)
  await scale(worker, namespace, REPLICAS)
  await whole(worker, namespace)
  await sampled.stop()
  assert.deepEqual(sampled.shortfalls, [])
  assert.equal(sampled.lowest, MIN_AVAILABLE)
}

/** Those that came through the gateway. */
function podDeletions(name: string): unknown[] {
  return world.gateway.accessLog().filter(({ cluster, verb, resource }) => {
    return cluster === name && verb === 'delete' && resource === 'pods'
  })
}

test('controllers through the gateway, no webhook: a ReplicaSet scaled to nothing keeps its minimum, and heals', async (t) => {
  const { items } = (await world.worker(0).request(WEBHOOKS)).json()
  assert.deepEqual(items, [])
  await scaledToNothing(t, 0, 'gateway', /replicaset\/web +Error deleting: .*PodProtector gateway\/web reports too few/)
  assert.ok(podDeletions('worker-1').length > 1)
})

test('the webhook alone, controllers direct: a ReplicaSet scaled to nothing keeps its minimum, and heals', async (t) => {
  await scaledToNothing(
    t,
    1,
    'webhook',
    /replicaset\/web +Error deleting: admission webhook .* denied the request: PodProtector webhook\/web reports too few/,
  )
  assert.deepEqual(podDeletions('worker-2'), [])
})
