// The watch of one cell stalls while deletions arrive: what the gateway let through still counts, so that no more go than may,
// however long they are not seen. Afterwards everything is counted right again.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { UpstreamClusterSpec } from '../../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { watchAvailability } from '../../harness/clusters/availability.ts'
import { createPod, type ProtectedClusters, startProtectedClusters } from '../../harness/clusters/protected-clusters.ts'
import { upstreamClusterFor } from '../../harness/clusters/upstream-cluster.ts'
import { type SeverableProxy, startSeverableProxy } from '../../harness/upstreams/severable-proxy.ts'
import { waitFor } from '../../harness/wait.ts'

const EACH = 55
const MIN_AVAILABLE = 60
const MAY_GO = 2 * EACH - MIN_AVAILABLE
const STALL_MS = 60_000
const REFUSED = /reports too few|has full admission buffer/

let world: ProtectedClusters
let proxy: SeverableProxy

before(async () => {
  world = await startProtectedClusters({ leastRights: true })
  await splitFirstCell()
})
after(async () => {
  await world?.stop()
  await proxy?.stop()
})

/** Requests reach worker-1 directly; its pods are counted through the proxy. Both are one cell. */
async function splitFirstCell(): Promise<void> {
  const worker = world.worker(0)
  proxy = await startSeverableProxy(worker.apiservers[0]?.port ?? 0)
  const spec = (aggregation: object): Partial<UpstreamClusterSpec> => ({
    podProtection: { cell: worker.name, aggregation },
  })
  await world.core.apply(JSON.stringify(upstreamClusterFor(worker, { spec: spec({ disabled: true }) })))
  await untilCounted(worker.name, false)
  const servers = [{ endpoint: `https://127.0.0.1:${proxy.port}` }]
  const name = `${worker.name}-watch`
  await world.core.apply(JSON.stringify(upstreamClusterFor(worker, { name, spec: { ...spec({}), servers } })))
  await untilCounted(worker.name, true)
}

async function untilCounted(cell: string, counted: boolean): Promise<void> {
  await waitFor(`the pods of ${cell} ${counted ? '' : 'not '}to be counted`, async () => {
    const { protection } = JSON.parse((await world.gateway.admin('/debug/config')).text)
    const found = protection.cells.find((state: { cell: string }) => state.cell === cell)
    return found !== undefined && found.active === counted && found.current === counted
  })
}

function podName(worker: number, i: number): string {
  return `${world.worker(worker).name}-pod-${i}`
}

async function service(namespace: string): Promise<void> {
  await world.createNamespace(namespace)
  await world.createProtector(namespace, 'web', {
    minAvailable: MIN_AVAILABLE,
    minReadySeconds: 0,
    selector: { matchLabels: { app: 'web' } },
  })
  for (const worker of world.workers.keys()) {
    for (let i = 0; i < EACH; i += 11) {
      const names = Array.from({ length: 11 }, (_, k) => podName(worker, i + k))
      await Promise.all(names.map((name) => createPod(world.worker(worker), namespace, name, LABELS)))
    }
  }
  await world.untilSummary(namespace, 'web', [2 * EACH, 2 * EACH, 2 * EACH])
}

const LABELS = { labels: { app: 'web' } }

// biome-ignore lint/suspicious/noExplicitAny: statuses as the server gave them
type Json = any

/** A deletion that was answered. */
type Gone = 'gone' | 'refused'

async function remove(worker: number, namespace: string, name: string): Promise<Gone> {
  const { status, text } = await world.deletePod(worker, namespace, name)
  if (status < 300) return 'gone'
  assert.equal(status, 429, text)
  assert.match(text, REFUSED)
  return 'refused'
}

/** Pods of both workers in turn, 50 each. */
const VICTIMS = Array.from({ length: 100 }, (_, i) => [i % 2, Math.floor(i / 2)] as const)

function tally(answers: readonly Gone[]): Record<Gone, number> {
  return { gone: answers.filter((a) => a === 'gone').length, refused: answers.filter((a) => a === 'refused').length }
}

/** Everything that happened is seen, nothing is remembered of it, and there is room again as soon as there are more pods. */
async function healed(namespace: string, victims: readonly (readonly [number, number])[]): Promise<void> {
  await world.untilSummary(namespace, 'web', [MIN_AVAILABLE, MIN_AVAILABLE, MIN_AVAILABLE])
  const status = await waitFor('the histories to be empty', async () => {
    const { status } = await world.protector(namespace, 'web')
    return /"startTime"/.test(JSON.stringify(status)) ? undefined : status
  })
  assert.deepEqual(
    byName(status.cells).map(({ cellID }: Json) => cellID),
    ['worker-1', 'worker-2'],
  )
  const [left] = victims
  assert.ok(left)
  const [worker, i] = left
  assert.equal(await remove(worker, namespace, podName(worker, i)), 'refused')
  await createPod(world.worker(1), namespace, 'one-more', LABELS)
  await waitFor('room', async () => (await remove(worker, namespace, podName(worker, i))) === 'gone')
  await world.untilSummary(namespace, 'web', [MIN_AVAILABLE, MIN_AVAILABLE, MIN_AVAILABLE])
}

/** The one cell is seen as it is, the other as it was before, and what went there is remembered. */
async function blind(namespace: string, answers: readonly Gone[]): Promise<void> {
  const gone = (worker: number): number => VICTIMS.filter(([w], i) => w === worker && answers[i] === 'gone').length
  assert.ok(gone(0) > 0 && gone(1) > 0, `${gone(0)} and ${gone(1)} are gone`)
  await waitFor('the other cell to be counted', async () => {
    const { cells, summary } = (await world.protector(namespace, 'web')).status
    const seen = byName(cells).map((cell: Json) => [cell.aggregation.availableReplicas, remembered(cell)])
    if (
      JSON.stringify(seen) !==
      JSON.stringify([
        [EACH, gone(0)],
        [EACH - gone(1), 0],
      ])
    )
      throw new Error(`${seen}`)
    return summary.estimatedAvailableReplicas === MIN_AVAILABLE
  })
}

/** In the object they stand as they came. */
function byName(cells: readonly Json[]): Json[] {
  return [...cells].sort((a, b) => (a.cellID < b.cellID ? -1 : 1))
}

function remembered({ admissionHistory }: Json): number {
  const buckets: Json[] = admissionHistory?.buckets ?? []
  return buckets.reduce((sum, { counter = 1 }) => sum + counter, 0)
}

/** @param lost connections break in the end, so that what they had to say has to be asked for again; else they go on */
async function stalled(namespace: string, lost: boolean, act: () => Promise<readonly Gone[]>): Promise<void> {
  await service(namespace)
  const sampled = watchAvailability(world.workers, {
    namespace,
    labelSelector: 'app=web',
    minAvailable: MIN_AVAILABLE,
  })
  proxy.hang()
  try {
    const answers = await act()
    assert.deepEqual(tally(answers), { gone: MAY_GO, refused: VICTIMS.length - MAY_GO })
    await blind(namespace, answers)
    if (lost) proxy.sever()
    proxy.restore()
    await healed(
      namespace,
      VICTIMS.filter((_, i) => answers[i] === 'refused'),
    )
  } finally {
    proxy.restore()
    await sampled.stop()
  }
  assert.deepEqual(sampled.shortfalls, [])
  assert.equal(sampled.lowest, MIN_AVAILABLE)
}

describe('the watch of one cell stalls', { concurrency: false }, () => {
  test('100 deletions at once: as many go as may', async () => {
    await stalled('burst', true, () =>
      Promise.all(VICTIMS.map(([worker, i]) => remove(worker, 'burst', podName(worker, i)))),
    )
  })

  test('100 deletions in the minute that it lasts: as many go as may (long)', async () => {
    await stalled('minute', false, async () => {
      const since = performance.now()
      const answers: Gone[] = []
      const groups = 10
      for (let group = 0; group < groups; group++) {
        const size = VICTIMS.length / groups
        const some = VICTIMS.slice(group * size, (group + 1) * size)
        answers.push(...(await Promise.all(some.map(([worker, i]) => remove(worker, 'minute', podName(worker, i))))))
        const share = (STALL_MS * (group + 1)) / groups
        await waitFor('the stall to go on', () => performance.now() - since >= share)
      }
      return answers
    })
  })
})
