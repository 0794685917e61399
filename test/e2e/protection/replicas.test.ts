// Two replicas of the gateway before one cell: one quota between them, whatever happens to either; and what people see and say
// with kubectl and with portcullis itself.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { PodProtector } from '../../../src/protection/api/pod-protector.ts'
import { availablePods, watchAvailability } from '../../harness/clusters/availability.ts'
import type { KubeResponse } from '../../harness/clusters/kube-request.ts'
import {
  CORE_PPR_PATH,
  createPod,
  type ProtectedClusters,
  putIntoEtcd,
  startProtectedClusters,
} from '../../harness/clusters/protected-clusters.ts'
import { kubeconfigThrough } from '../../harness/clusters/upstream-cluster.ts'
import { runCli } from '../../harness/gateways/embedded.ts'
import type { TestGateway } from '../../harness/gateways/gateway.ts'
import { type KubectlResult, kubectl, startKubectl } from '../../harness/kubectl/kubectl.ts'
import { waitFor } from '../../harness/wait.ts'

const CELL = 'worker-1'
const LEASE = `/apis/coordination.k8s.io/v1/namespaces/default/leases/portcullis-aggregator-${CELL}`
const TOO_FEW = /reports too few available replicas to admit pod deletion/
const REFUSED = /reports too few|has full admission buffer/
/** A Lease lasts 15 s; a reservation 10 s, and what clocks may differ. */
const SLOW = { timeoutMs: 90_000 }

let world: ProtectedClusters
before(async () => {
  world = await startProtectedClusters({
    workers: 1,
    replicas: 2,
    leastRights: true,
    flags: ['--protection-reservation-timeout=10s'],
    podProtection: { aggregation: { updateTrigger: { namespace: 'portcullis-update-trigger' } } },
  })
})
after(() => world?.stop())

/** Pods of that name, and in a namespace of it. */
interface Service {
  readonly name: string
  readonly pods: number
  readonly minAvailable: number
}

async function start({ name, pods, minAvailable }: Service): Promise<void> {
  await world.createNamespace(name)
  await world.createProtector(name, name, spec(name, minAvailable))
  for (let i = 0; i < pods; i += 10) {
    const some = Array.from({ length: Math.min(10, pods - i) }, (_, k) => `pod-${i + k}`)
    await Promise.all(some.map((pod) => createPod(world.worker(0), name, pod, { labels: { app: name } })))
  }
  await world.untilSummary(name, name, [pods, pods, pods])
}

function spec(app: string, minAvailable: number): object {
  return { minAvailable, minReadySeconds: 0, selector: { matchLabels: { app } } }
}

/** What the deletion came to; undefined = no answer, as of a replica that was killed. */
type Answer = 'gone' | 'refused' | undefined

async function remove(namespace: string, pod: string, replica: number): Promise<Answer> {
  let answer: KubeResponse
  try {
    answer = await world.deletePod(0, namespace, pod, undefined, replica)
  } catch {
    return undefined
  }
  if (answer.status < 300) return 'gone'
  assert.equal(answer.status, 429, answer.text)
  assert.match(answer.json().message, REFUSED)
  return 'refused'
}

async function alive(namespace: string): Promise<number> {
  return (await availablePods(world.worker(0), namespace, `app=${namespace}`)).length
}

async function protectorOf(namespace: string, name = namespace): Promise<PodProtector> {
  return world.protector(namespace, name)
}

async function patchProtector(namespace: string, name: string, body: object, subresource = ''): Promise<void> {
  const headers = { 'content-type': 'application/merge-patch+json' }
  const path = `${CORE_PPR_PATH}/namespaces/${namespace}/podprotectors/${name}${subresource}`
  const { status, text } = await world.core.request(path, { method: 'PATCH', headers, body })
  assert.equal(status, 200, text)
}

/** What a replica leaves behind that dies between the reservation of a deletion and the deletion. */
async function diesReserving(namespace: string, pod: string): Promise<void> {
  const { metadata } = (await world.worker(0).request(`/api/v1/namespaces/${namespace}/pods/${pod}`)).json()
  const { uid: podUID, resourceVersion } = metadata
  const startTime = new Date().toISOString().replace('Z', '000Z')
  const [cell] = (await protectorOf(namespace)).status?.cells ?? []
  const cells = [{ ...cell, admissionHistory: { buckets: [{ startTime, podUID, resourceVersion, podName: pod }] } }]
  await patchProtector(namespace, namespace, { status: { cells } }, '/status')
  await waitFor('it to count', async () => {
    const { status } = await protectorOf(namespace)
    const { aggregatedAvailableReplicas = 0, estimatedAvailableReplicas = 0 } = status?.summary ?? {}
    return estimatedAvailableReplicas === aggregatedAvailableReplicas - 1
  })
}

function replica(index: number): TestGateway {
  const gateway = world.gateways[index]
  assert.ok(gateway, `there is no replica ${index}`)
  return gateway
}

/** The replica that counts the pods of the cell. */
async function leading(): Promise<number> {
  const { spec } = (await world.core.request(LEASE)).json()
  return Number(/^r(\d)_/.exec(spec.holderIdentity)?.[1]) - 1
}

function untilLeading(index: number): Promise<boolean> {
  return waitFor(`replica ${index} to count`, async () => (await leading()) === index, SLOW)
}

async function through(args: readonly string[]): Promise<KubectlResult> {
  const kubeconfig = await kubeconfigThrough(world.gateway, world.worker(0), world.worker(0).admin)
  return kubectl(args, { kubeconfig })
}

async function cli(...args: readonly string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  return runCli([...args, `--kubeconfig=${world.core.adminKubeconfig}`])
}

describe('two replicas, one quota', { concurrency: false }, () => {
  test('50 deletions through both at once, room for 10: exactly 10 go', async () => {
    await start({ name: 'both', pods: 50, minAvailable: 40 })
    const answers = await Promise.all(Array.from({ length: 50 }, (_, i) => remove('both', `pod-${i}`, i % 2)))
    assert.equal(answers.filter((answer) => answer === 'gone').length, 10)
    assert.equal(answers.filter((answer) => answer === 'refused').length, 40)
    await world.untilSummary('both', 'both', [40, 40, 40])
    assert.equal(await alive('both'), 40)
  })
})

describe('protectors and pods as they come', { concurrency: false }, () => {
  test('a PodProtector that cannot be read affects no other', async () => {
    await start({ name: 'sound', pods: 3, minAvailable: 2 })
    const unreadable = {
      minAvailable: 5,
      minReadySeconds: 0,
      selector: { matchExpressions: [{ key: 'app', operator: 'In' }] },
    }
    await world.createProtector('sound', 'unreadable', unreadable)
    // As an older release, or no schema at all, may have left it.
    await putIntoEtcd(world.core, '/registry/podseidon.kubewharf.io/podprotectors/sound/odd', {
      apiVersion: 'podseidon.kubewharf.io/v1alpha1',
      kind: 'PodProtector',
      metadata: { name: 'odd', namespace: 'sound', uid: '7c1e5f9a-0c0f-4c55-9b53-5a1f0b6a2d11', labels: 7 },
      spec: { minAvailable: 'many', selector: ['app'], aggregationSelector: null },
      status: { cells: 'none', summary: 0 },
    })
    await waitFor('a word about it', async () => {
      const { stdout, stderr } = await cli('protect', 'status', '-n', 'sound')
      return /sound\/unreadable/.test(stderr) && /sound +sound/.test(stdout)
    })
    assert.equal(await remove('sound', 'pod-0', 0), 'gone')
    assert.equal(await remove('sound', 'pod-1', 1), 'refused')
    await world.untilSummary('sound', 'sound', [2, 2, 2])
    assert.equal((await world.gateway.admin('/readyz')).status, 200)
  })

  test('several PodProtectors of one pod: all of them, or none', async () => {
    await start({ name: 'several', pods: 3, minAvailable: 2 })
    await world.createProtector('several', 'stricter', spec('several', 3))
    await world.untilSummary('several', 'stricter', [3, 3, 3])
    assert.equal(await remove('several', 'pod-0', 0), 'refused')
    assert.equal((await protectorOf('several')).status?.summary.estimatedAvailableReplicas, 3)
    await patchProtector('several', 'stricter', { spec: { minAvailable: 2 } })
    await waitFor('the change', async () => (await remove('several', 'pod-0', 0)) === 'gone')
    for (const name of ['several', 'stricter']) await world.untilSummary('several', name, [2, 2, 2])
  })

  test('force-delete: what has to go, goes, and counts', async () => {
    await start({ name: 'forced', pods: 2, minAvailable: 2 })
    assert.equal(await remove('forced', 'pod-0', 0), 'refused')
    const annotate = ['annotate', 'pod', 'pod-0', '-n', 'forced', 'podseidon.kubewharf.io/force-delete=']
    const annotated = await through(annotate)
    assert.equal(annotated.code, 0, annotated.stderr)
    assert.equal(await remove('forced', 'pod-0', 1), 'gone')
    await world.untilSummary('forced', 'forced', [1, 1, 1])
    assert.equal(await remove('forced', 'pod-1', 1), 'refused')
  })
})

describe('kubectl and portcullis', { concurrency: false }, () => {
  before(() => start({ name: 'cli', pods: 3, minAvailable: 2 }))

  test('--dry-run=server says what would be, and writes nothing', async () => {
    const version = async (): Promise<unknown> => (await protectorOf('cli')).metadata.resourceVersion
    const before = await version()
    const passes = await through(['delete', 'pod', 'pod-0', '-n', 'cli', '--dry-run=server'])
    assert.equal(passes.code, 0, passes.stderr)
    assert.equal(await version(), before)
    await patchProtector('cli', 'cli', { spec: { minAvailable: 3 } })
    await waitFor('the refusal', async () => {
      const refused = await through(['delete', 'pod', 'pod-0', '-n', 'cli', '--dry-run=server'])
      return refused.code === 1 && TOO_FEW.test(refused.stderr)
    })
    assert.equal(await alive('cli'), 3)
    assert.equal((await protectorOf('cli')).status?.summary.estimatedAvailableReplicas, 3)
  })

  test('portcullis protect status, why and dry-run', async () => {
    const status = await cli('protect', 'status', '-n', 'cli')
    assert.equal(status.code, 0, status.stderr)
    assert.match(status.stdout, /^cli +cli +3 +3 +3 +0 .*at its limit +worker-1: 3 available of 3/m)
    const pods = `--pod-kubeconfig=${world.worker(0).adminKubeconfig}`
    const why = await cli('protect', 'why', 'pod-0', '-n', 'cli', `--cluster=${CELL}`, pods)
    assert.equal(why.code, 1, why.stderr)
    assert.match(why.stdout, TOO_FEW)
    const on = await cli('protect', 'dry-run', 'on', CELL)
    assert.equal(on.code, 0, on.stderr)
    assert.equal(await remove('cli', 'pod-2', 1), 'gone')
    const off = await cli('protect', 'dry-run', 'off', CELL)
    assert.equal(off.code, 0, off.stderr)
    assert.equal(await remove('cli', 'pod-1', 1), 'refused')
    await world.untilSummary('cli', 'cli', [2, 2, 2])
    const below = await cli('protect', 'status', '-n', 'cli')
    assert.equal(below.code, 1)
    assert.match(below.stderr, /PodProtector cli\/cli is below its minimum: 3 required, 2 estimated/)
  })

  test('a refusal is told in Events of the pod and of the PodProtector; kubectl get ppr has its columns', async () => {
    await waitFor('the Event of the pod', async () => {
      const { stdout } = await through(['get', 'events', '-n', 'cli', '--field-selector=involvedObject.kind=Pod'])
      return /Warning .*pod\/pod-1 .*reports too few/.test(stdout)
    })
    await waitFor('the Event of the PodProtector', async () => {
      const { stdout } = await world.core.kubectl(['get', 'events', '-n', 'cli'])
      return /Warning .*podprotector\/cli .*pod-1/.test(stdout)
    })
    const { stdout } = await world.core.kubectl(['get', 'ppr', '-n', 'cli'])
    assert.match(stdout, /^NAME +REQUIRED +AGGREGATED +ESTIMATED +AGE\ncli +3 +2 +2 +\S+\n$/)
  })

  test('kubectl delete pods -l: what may go, goes; of the rest it says why', async () => {
    await start({ name: 'select', pods: 5, minAvailable: 3 })
    const { code, stdout, stderr } = await through(['delete', 'pods', '-l', 'app=select', '-n', 'select'])
    assert.equal(code, 1)
    assert.equal(stdout.match(/deleted/g)?.length, 2, stdout)
    assert.equal(stderr.match(/reports too few|has full admission buffer/g)?.length, 3, stderr)
    assert.equal(await alive('select'), 3)
  })

  test('kubectl drain waits until there is room', async () => {
    await start({ name: 'drain', pods: 3, minAvailable: 2 })
    const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'nowhere' } }
    const created = await world.worker(0).request('/api/v1/nodes', { method: 'POST', body: node })
    assert.equal(created.status, 201, created.text)
    const kubeconfig = await kubeconfigThrough(world.gateway, world.worker(0), world.worker(0).admin)
    const args = ['drain', 'nowhere', '--force', '--pod-selector=app=drain', '--timeout=50s']
    const draining = await startKubectl(args, { kubeconfig })
    await draining.output(/will retry after 5s.*reports too few/)
    assert.equal(await alive('drain'), 2)
    await patchProtector('drain', 'drain', { spec: { minAvailable: 0 } })
    const { code, stdout, stderr } = await draining.done
    assert.equal(code, 0, stdout + stderr)
    assert.equal(await alive('drain'), 0)
  })
})

describe('a replica fails', { concurrency: false }, () => {
  test('the counting replica is halted, and resumes when another counts: it neither writes nor admits by what it knew', async () => {
    await start({ name: 'halted', pods: 12, minAvailable: 6 })
    const leader = await leading()
    const victim = replica(leader)
    const survivor = 1 - leader
    victim.signal('SIGSTOP')
    try {
      for (const i of [0, 1, 2, 3]) assert.equal(await remove('halted', `pod-${i}`, survivor), 'gone')
      await untilLeading(survivor)
      await world.untilSummary('halted', 'halted', [8, 8, 8])
      for (const i of [4, 5]) assert.equal(await remove('halted', `pod-${i}`, survivor), 'gone')
      await world.untilSummary('halted', 'halted', [6, 6, 6])
    } finally {
      victim.signal('SIGCONT')
    }
    const late = await Promise.all([6, 7, 8, 9, 10, 11].map((i) => remove('halted', `pod-${i}`, leader)))
    assert.deepEqual(new Set(late), new Set(['refused']))
    await createPod(world.worker(0), 'halted', 'one-more', { labels: { app: 'halted' } })
    await world.untilSummary('halted', 'halted', [7, 7, 7])
    assert.equal(await alive('halted'), 7)
  })

  test('the counting replica is killed in a burst: not too many pods go, and what died with it is freed (long)', async (t) => {
    await start({ name: 'burst', pods: 50, minAvailable: 30 })
    await diesReserving('burst', 'pod-49')
    const leader = await leading()
    const victim = replica(leader)
    const survivor = 1 - leader
    const sampled = watchAvailability(world.workers, {
      namespace: 'burst',
      labelSelector: 'app=burst',
      minAvailable: 30,
    })
    t.after(() => sampled.stop())
    const burst = Array.from({ length: 49 }, (_, i) =>
      remove('burst', `pod-${i}`, i % 2).then((answer) => {
        if (answer === 'gone') victim.signal('SIGKILL')
        return answer
      }),
    )
    const answers = await Promise.all(burst)
    await victim.exited
    assert.ok(answers.includes('gone'), `${answers}`)
    // As a rule there are some. All may have been answered, though, before the first answer was read here.
    t.diagnostic(`${answers.filter((answer) => answer === undefined).length} deletions died with it`)
    // The other one counts as soon as the Lease of the dead one is over; reservations of deletions that never happened end.
    await untilLeading(survivor)
    await waitFor(
      'everything to be counted, and nothing remembered',
      async () => {
        const { status } = await protectorOf('burst')
        const left = await alive('burst')
        const { aggregatedAvailableReplicas, estimatedAvailableReplicas } = status?.summary ?? {}
        if (aggregatedAvailableReplicas === left && estimatedAvailableReplicas === left) return true
        throw new Error(`${left} are left: ${JSON.stringify(status)}`)
      },
      SLOW,
    )
    for (let i = 0; i < 50 && (await alive('burst')) > 30; i++) {
      const path = `/api/v1/namespaces/burst/pods/pod-${i}`
      if ((await world.worker(0).request(path)).status === 404) continue
      assert.equal(await remove('burst', `pod-${i}`, survivor), 'gone')
    }
    const [last] = await availablePods(world.worker(0), 'burst', 'app=burst')
    assert.ok(last)
    assert.equal(await remove('burst', last.metadata.name, survivor), 'refused')
    await waitFor('the sampler to see the minimum', () => sampled.lowest === 30)
    await sampled.stop()
    assert.deepEqual(sampled.shortfalls, [])
    await world.untilSummary('burst', 'burst', [30, 30, 30])
  })
})
