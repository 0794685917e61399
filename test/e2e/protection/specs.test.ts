// Podseidon's own end-to-end specs (A1, W1 to W6; G1 is in generator.test.ts) on a core cluster and two workers, through the
// gateway, through the webhook, and through both.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { KubeResponse } from '../../harness/clusters/kube-request.ts'
import {
  CORE_PPR_PATH,
  createPod,
  type ProtectedClusters,
  setPodStatus,
  startProtectedClusters,
} from '../../harness/clusters/protected-clusters.ts'
import { installWebhooks } from '../../harness/clusters/protection-webhooks.ts'
import { waitFor } from '../../harness/wait.ts'

const TOO_FEW = /reports too few \w+ replicas to admit pod deletion/
const FULL = /has full admission buffer and is temporarily unable to admit pod deletion/
const REFUSED = new RegExp(`${TOO_FEW.source}|${FULL.source}`)
/** The namespace in deploy/rbac/protection-worker.yaml. */
const TRIGGER_NAMESPACE = 'portcullis-update-trigger'
const UPDATE_TRIGGER = { aggregation: { updateTrigger: { namespace: TRIGGER_NAMESPACE } } }
const LABEL = 'podseidon-e2e/test'

let world: ProtectedClusters
before(async () => {
  world = await startProtectedClusters({
    flags: ['--protection-listen=127.0.0.1:WEBHOOK', '--protection-aggregation-rate=1s'],
    podProtection: UPDATE_TRIGGER,
  })
  // With the service account that a pod there needs.
  await world.createNamespace(TRIGGER_NAMESPACE)
})
after(() => world?.stop())

type Way = 'gateway' | 'webhook'
type Means = 'DELETE' | 'eviction'

function remove(
  way: Way,
  means: Means,
  worker: number,
  namespace: string,
  name: string,
  fields?: object,
): Promise<KubeResponse> {
  const pod = `/api/v1/namespaces/${namespace}/pods/${name}`
  const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace }, ...fields }
  const [path, options] =
    means === 'DELETE' ? [pod, { method: 'DELETE' }] : [`${pod}/eviction`, { method: 'POST', body: eviction }]
  return way === 'gateway' ? world.through(worker, path, options) : world.worker(worker).request(path, options)
}

function assertRefused(answer: KubeResponse, message: RegExp): void {
  assert.equal(answer.status, 429, answer.text)
  const { reason, message: text } = answer.json()
  assert.equal(reason, 'TooManyRequests')
  assert.match(text, message)
}

function assertDone(answer: KubeResponse): void {
  assert.ok(answer.status < 300, `${answer.status} ${answer.text}`)
}

let specs = 0
/** A namespace of its own for each spec, in all clusters. */
async function namespaceFor(title: string): Promise<string> {
  const name = `${title.toLowerCase()}-${++specs}`
  await world.createNamespace(name)
  return name
}

function selector(namespace: string): object {
  return { matchLabels: { [LABEL]: namespace } }
}

async function pods(namespace: string, numbers: readonly number[], options: object = {}): Promise<void> {
  for (const [worker, count] of numbers.entries()) {
    const name = (i: number): string => `${world.worker(worker).name}-pod-${i}`
    await Promise.all(
      Array.from({ length: count }, (_, i) =>
        createPod(world.worker(worker), namespace, name(i), { labels: { [LABEL]: namespace }, ...options }),
      ),
    )
  }
}

function specsThrough(way: Way): void {
  for (const means of ['DELETE', 'eviction'] as const) {
    test(`W1 by ${means}: what is above the minimum may go, and no more`, async () => {
      const namespace = await namespaceFor('w1')
      const admissionHistoryConfig = { compactThreshold: 100, aggregationRateMillis: 2000 }
      const spec = { minAvailable: 5, minReadySeconds: 0, selector: selector(namespace), admissionHistoryConfig }
      await world.createProtector(namespace, 'protector', spec)
      await pods(namespace, [3, 4])
      await world.untilSummary(namespace, 'protector', [7, 7, 7])
      assertDone(await remove(way, means, 0, namespace, 'worker-1-pod-0'))
      assertDone(await remove(way, means, 1, namespace, 'worker-2-pod-0'))
      assertRefused(await remove(way, means, 0, namespace, 'worker-1-pod-1'), REFUSED)
      await world.untilSummary(namespace, 'protector', [5, 5, 5])
      assertRefused(await remove(way, means, 0, namespace, 'worker-1-pod-1'), TOO_FEW)
      assert.equal((await world.worker(0).request(`/api/v1/namespaces/${namespace}/pods/worker-1-pod-1`)).status, 200)
    })
  }

  test('W2: a collection keeps the minimum', async () => {
    const namespace = await namespaceFor('w2')
    await world.createProtector(namespace, 'protector', {
      minAvailable: 5,
      minReadySeconds: 0,
      selector: selector(namespace),
    })
    await pods(namespace, [3, 4])
    await world.untilSummary(namespace, 'protector', [7, 7, 7])
    const path = `/api/v1/namespaces/${namespace}/pods?labelSelector=${encodeURIComponent(`${LABEL}=${namespace}`)}`
    const options = { method: 'DELETE' }
    const answer = await (way === 'gateway' ? world.through(0, path, options) : world.worker(0).request(path, options))
    assertRefused(answer, REFUSED)
    await world.untilSummary(namespace, 'protector', [5, 5, 5])
  })

  test('W3: maxConcurrentLag holds', async () => {
    const namespace = await namespaceFor('w3')
    // No aggregator counts: what is admitted stays unseen.
    const admissionHistoryConfig = { maxConcurrentLag: 1, aggregationRateMillis: 600_000 }
    const spec = { minAvailable: 1, minReadySeconds: 0, selector: selector(namespace), admissionHistoryConfig }
    await pods(namespace, [5])
    await world.createProtector(namespace, 'protector', spec)
    const aggregation = {
      totalReplicas: 5,
      availableReplicas: 5,
      readyReplicas: 5,
      scheduledReplicas: 5,
      runningReplicas: 5,
    }
    const summary = { totalReplicas: 5, aggregatedAvailableReplicas: 5, estimatedAvailableReplicas: 5 }
    const status = { cells: [{ cellID: 'worker-1', aggregation, admissionHistory: {} }], summary }
    const written = await world.core.request(
      `${CORE_PPR_PATH}/namespaces/${namespace}/podprotectors/protector/status`,
      {
        method: 'PATCH',
        headers: { 'content-type': 'application/merge-patch+json' },
        body: { status },
      },
    )
    assert.equal(written.status, 200, written.text)
    await waitFor('the gateway to know it', async () =>
      /worker-1/.test(JSON.stringify(await world.protector(namespace, 'protector'))),
    )
    assertDone(
      await waitFor('the first to go', async () => {
        const answer = await remove(way, 'DELETE', 0, namespace, 'worker-1-pod-0')
        return answer.status < 300 && answer
      }),
    )
    assertRefused(await remove(way, 'DELETE', 0, namespace, 'worker-1-pod-1'), FULL)
    assertRefused(await remove(way, 'eviction', 0, namespace, 'worker-1-pod-1'), FULL)
  })

  test('W4: an unready pod may go', async () => {
    const namespace = await namespaceFor('w4')
    await world.createProtector(namespace, 'protector', {
      minAvailable: 2,
      minReadySeconds: 0,
      selector: selector(namespace),
    })
    await pods(namespace, [1], { without: ['Ready', 'ContainersReady'] })
    await world.untilSummary(namespace, 'protector', [1, 0, 0])
    assertDone(await remove(way, 'DELETE', 0, namespace, 'worker-1-pod-0'))
  })

  test('W5: a pod that is ready, but not yet available, may go', async () => {
    const namespace = await namespaceFor('w5')
    await world.createProtector(namespace, 'protector', {
      minAvailable: 2,
      minReadySeconds: 600,
      selector: selector(namespace),
    })
    await pods(namespace, [1])
    const { summary } = await world.untilSummary(namespace, 'protector', [1, 0, 0])
    assert.equal(summary.aggregatedReady, 1)
    assertDone(await remove(way, 'DELETE', 0, namespace, 'worker-1-pod-0'))
  })

  for (const how of ['DELETE, pod annotated', 'eviction, pod annotated', 'eviction annotated'] as const) {
    test(`W6, ${how}: by the criterion Running`, async () => {
      const namespace = await namespaceFor('w6')
      const means = how.startsWith('DELETE') ? 'DELETE' : 'eviction'
      const annotations = { 'podseidon.kubewharf.io/health-criterion': 'Running' }
      await world.createProtector(namespace, 'protector', {
        minAvailable: 1,
        minReadySeconds: 0,
        selector: selector(namespace),
      })
      await pods(namespace, [1])
      const unready = { labels: { [LABEL]: namespace }, without: ['Ready', 'ContainersReady'] }
      await createPod(world.worker(1), namespace, 'worker-2-pod-0', unready)
      await world.untilSummary(namespace, 'protector', [2, 1, 1])
      assertRefused(await remove(way, means, 0, namespace, 'worker-1-pod-0'), TOO_FEW)
      if (how.endsWith('pod annotated')) {
        const annotated = await world.worker(0).request(`/api/v1/namespaces/${namespace}/pods/worker-1-pod-0`, {
          method: 'PATCH',
          headers: { 'content-type': 'application/merge-patch+json' },
          body: { metadata: { annotations } },
        })
        assert.equal(annotated.status, 200)
        assertDone(await remove(way, means, 0, namespace, 'worker-1-pod-0'))
      } else {
        const fields = { metadata: { name: 'worker-1-pod-0', namespace, annotations } }
        assertDone(await remove(way, means, 0, namespace, 'worker-1-pod-0', fields))
      }
    })
  }
}

test('A1: pods are counted, buckets of pods that are gone vanish by the update trigger alone', async () => {
  const namespace = await namespaceFor('a1')
  const spec = {
    minAvailable: 1,
    minReadySeconds: 5,
    selector: selector(namespace),
    admissionHistoryConfig: { aggregationRateMillis: 1000 },
  }
  await world.createProtector(namespace, 'protector', spec)
  await pods(namespace, [3, 4], { without: ['Ready'] })
  await world.untilSummary(namespace, 'protector', [7, 0, 0])
  for (const [worker, name] of [
    [0, 'worker-1-pod-0'],
    [0, 'worker-1-pod-1'],
    [1, 'worker-2-pod-0'],
    [1, 'worker-2-pod-1'],
  ] as const) {
    await setPodStatus(world.worker(worker), namespace, name)
  }
  const ready = await waitFor('the ready ones to be seen', async () => {
    const { status } = await world.protector(namespace, 'protector')
    return status.summary.aggregatedReady === 4 && status
  })
  assert.equal(ready.summary.aggregatedAvailableReplicas, 0)
  // Nothing happens to the pods: time alone makes them available.
  const counted = await world.untilSummary(namespace, 'protector', [7, 4, 4])
  const startTime = new Date().toISOString().replace('Z', '000Z')
  const buckets = ['unknown-1', 'unknown-2'].map((podUID) => ({ startTime, podUID }))
  const cells = counted.cells.map((cell: { cellID: string }) => {
    return cell.cellID === 'worker-2' ? { ...cell, admissionHistory: { buckets } } : cell
  })
  const written = await world.core.request(`${CORE_PPR_PATH}/namespaces/${namespace}/podprotectors/protector/status`, {
    method: 'PATCH',
    headers: { 'content-type': 'application/merge-patch+json' },
    body: { status: { cells, summary: { ...counted.summary, estimatedAvailableReplicas: 2 } } },
  })
  assert.equal(written.status, 200, written.text)
  await world.untilSummary(namespace, 'protector', [7, 4, 4])
  await waitFor('the buckets to go', async () => {
    const { status } = await world.protector(namespace, 'protector')
    return !JSON.stringify(status).includes('unknown-') && status.summary.estimatedAvailableReplicas === 4
  })
})

describe('through the gateway', { concurrency: false }, () => specsThrough('gateway'))

describe('through the webhook', { concurrency: false }, () => {
  before(() => installWebhooks(world))
  specsThrough('webhook')
})

// The webhook stays installed: each deletion is evaluated twice, and charged once.
describe('through the gateway, with the webhook behind it', { concurrency: false }, () => specsThrough('gateway'))
