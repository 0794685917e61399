// Two UpstreamClusters of one cell, on real clusters: the pods of both are counted together, and a deletion in either is evaluated by
// the sum. And a third UpstreamCluster that leads to one of the two by another address: its pods are not counted twice.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { createPod, type ProtectedClusters, startProtectedClusters } from '../../harness/clusters/protected-clusters.ts'
import { upstreamClusterFor } from '../../harness/clusters/upstream-cluster.ts'
import { waitFor } from '../../harness/wait.ts'

const NAMESPACE = 'shop'
const CELL = 'everywhere'
const SLOW = { timeoutMs: 60_000 }

let world: ProtectedClusters
before(async () => {
  world = await startProtectedClusters({ podProtection: { cell: CELL } })
  await world.createNamespace(NAMESPACE)
  await world.createProtector(NAMESPACE, 'web', {
    minAvailable: 4,
    minReadySeconds: 0,
    selector: { matchLabels: { app: 'web' } },
  })
  for (const [index, count] of [2, 4].entries()) {
    // Names are of a cluster: both have a web-0.
    for (let i = 0; i < count; i++) {
      await createPod(world.worker(index), NAMESPACE, `web-${i}`, { labels: { app: 'web' } })
    }
  }
})
after(() => world?.stop())

async function cells(): Promise<readonly { readonly cellID: string; readonly aggregation: Record<string, unknown> }[]> {
  return (await world.protector(NAMESPACE, 'web')).status.cells
}

test('the pods of both clusters are one sum, and what may go is decided by it', async () => {
  await world.untilSummary(NAMESPACE, 'web', [6, 6, 6])
  const [cell, ...others] = await cells()
  assert.deepEqual([cell?.cellID, others], [CELL, []])
  const names = world.workers.map(({ name }) => name)
  for (const name of names) assert.match(String(cell?.aggregation['resourceVersion']), new RegExp(`${name}=[0-9]+`))
  for (const index of [0, 1]) {
    const { status, text } = await world.deletePod(index, NAMESPACE, 'web-0')
    assert.equal(status, 200, text)
  }
  await world.untilSummary(NAMESPACE, 'web', [4, 4, 4])
  for (const index of [0, 1]) assert.equal((await world.deletePod(index, NAMESPACE, 'web-1')).status, 429)
})

test('what the clocks of the cell say is measured from the answers of its API servers', async () => {
  const bound = (text: string, name: string): number => {
    const line = `^portcullis_cell_clock_skew_seconds\\{cell="${CELL}",bound="${name}"\\} (.*)$`
    return Number(new RegExp(line, 'm').exec(text)?.[1] ?? Number.NaN)
  }
  // One machine, one clock: how far the bounds are apart depends on how busy it is.
  const text = await waitFor('the clocks to be measured', async () => {
    const metrics = await world.gateway.metrics()
    return Number.isNaN(bound(metrics, 'least')) ? undefined : metrics
  })
  assert.ok(
    bound(text, 'least') <= 0.1 && bound(text, 'most') >= -0.1,
    `${bound(text, 'least')} to ${bound(text, 'most')}`,
  )
  const object = await world.core.request(
    `/apis/proxy.kubegateway.io/v1alpha1/upstreamclusters/${world.worker(0).name}`,
  )
  const conditions: { type: string; status: string }[] = object.json().status.conditions
  assert.equal(conditions.find(({ type }) => type === 'ClocksAgree')?.status, 'True')
})

test('one of the clusters once more, by another address: nothing is counted twice', async () => {
  const worker = world.worker(1)
  // The same API server by another name of its address.
  const servers = worker.apiservers.map(({ url }) => ({ endpoint: url.replace('127.0.0.1', 'localhost') }))
  const spec = { servers, podProtection: { cell: CELL } }
  await world.core.apply(JSON.stringify(upstreamClusterFor(worker, { name: 'again', spec })))
  const path = '/apis/proxy.kubegateway.io/v1alpha1/upstreamclusters/again'
  await waitFor(
    'it to be counted',
    async () => {
      const gateways: { podProtection?: { state: string } }[] = (await world.core.request(path)).json().status?.gateways
      return gateways?.some(({ podProtection }) => podProtection?.state === 'Counting')
    },
    SLOW,
  )
  await world.untilSummary(NAMESPACE, 'web', [4, 4, 4])
  await createPod(worker, NAMESPACE, 'web-9', { labels: { app: 'web' } })
  await world.untilSummary(NAMESPACE, 'web', [5, 5, 5])
  assert.match(String((await cells())[0]?.aggregation['resourceVersion']), /again=[0-9]+/)
  assert.equal((await world.deletePod(1, NAMESPACE, 'web-9')).status, 200)
  await world.untilSummary(NAMESPACE, 'web', [4, 4, 4])
})
