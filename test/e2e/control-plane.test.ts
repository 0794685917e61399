// kube-controller-manager, kube-scheduler and kwok run through the gateway, and lose one apiserver in the middle.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { startCluster, type TestCluster } from '../harness/clusters/cluster.ts'
import { kubeconfigThrough, upstreamClusterFor } from '../harness/clusters/upstream-cluster.ts'
import { startGateway, type TestGateway } from '../harness/gateways/gateway.ts'
import { waitFor } from '../harness/wait.ts'

/** How long both Leases last, if they are not renewed (--leader-elect-lease-duration). */
const LEASE_MS = 15_000
const LEADERS = ['kube-controller-manager', 'kube-scheduler']
const PATIENT = { timeoutMs: 120_000 }

let cluster: TestCluster
let gateway: TestGateway

before(async () => {
  cluster = await startCluster({ apiservers: 2, kubelet: true })
  const spec = { healthCheck: { intervalSeconds: 1 } }
  gateway = await startGateway({ clusters: [upstreamClusterFor(cluster, { spec })] })
  const through = (component: Parameters<TestCluster['componentUser']>[0]): Promise<string> =>
    kubeconfigThrough(gateway, cluster, cluster.componentUser(component), { path: true })
  const flags = ['--leader-elect=true']
  await Promise.all([
    cluster.startControllerManager({ kubeconfig: await through('kube-controller-manager'), flags }),
    cluster.startScheduler({ kubeconfig: await through('kube-scheduler'), flags }),
    cluster.startKwok({ kubeconfig: await through('kwok') }),
  ])
  await cluster.createNodes(2)
})
after(async () => {
  await cluster?.stop()
  await gateway?.stop()
})

async function succeed(...args: string[]): Promise<string> {
  const result = await cluster.kubectl(args)
  assert.equal(result.code, 0, `kubectl ${args.join(' ')}: ${result.stderr}`)
  return result.stdout
}

async function readyReplicas(name: string): Promise<number> {
  return Number(await succeed('get', 'deployment', name, '-o', 'jsonpath={.status.readyReplicas}')) || 0
}

async function podCount(selector: string): Promise<number> {
  const names = await succeed('get', 'pods', '-l', selector, '-o', 'name')
  return names.split('\n').filter((name) => name !== '').length
}

interface Leadership {
  readonly holder: string
  readonly transitions: number
  readonly renewed: string
}

async function leadership(name: string): Promise<Leadership | undefined> {
  const answer = await cluster.request(`/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/${name}`)
  if (answer.status !== 200) return undefined
  const { holderIdentity, leaseTransitions, renewTime } = answer.json().spec
  return holderIdentity ? { holder: holderIdentity, transitions: leaseTransitions, renewed: renewTime } : undefined
}

describe('controllers through the gateway', () => {
  test('a Deployment scales, rolls and is garbage-collected', async () => {
    await succeed('create', 'deployment', 'web', '--image=web:1', '--replicas=5')
    await waitFor('five pods to be ready', async () => (await readyReplicas('web')) === 5, PATIENT)
    await succeed('scale', 'deployment', 'web', '--replicas=8')
    await waitFor('eight pods to be ready', async () => (await readyReplicas('web')) === 8, PATIENT)
    await succeed('set', 'image', 'deployment/web', 'web=web:2')
    await succeed('rollout', 'status', 'deployment/web', '--timeout=50s')
    await waitFor('only new pods', async () => (await podCount('app=web')) === 8, PATIENT)
    await succeed('delete', 'deployment', 'web', '--wait=false')
    await waitFor('the pods to be collected', async () => (await podCount('app=web')) === 0, PATIENT)
    const users = new Set(gateway.accessLog().map((line) => String(line['user'])))
    for (const user of ['system:kube-controller-manager', 'system:kube-scheduler']) assert.ok(users.has(user), user)
    assert.ok(
      [...users].some((user) => user.startsWith('system:serviceaccount:kube-system:')),
      'controllers by token',
    )
  })

  test('leader leases hold over the loss of an apiserver', () => leasesHold(LEASE_MS))

  test('leader leases hold for five minutes, over the loss of an apiserver (long)', () => leasesHold((5 * 60_000) / 3))
})

/** Over three spans of so many milliseconds: with both apiservers, with one, and with both again. */
async function leasesHold(spanMs: number): Promise<void> {
  const first = await waitFor('both leaders', async () => {
    const leaders = await Promise.all(LEADERS.map(leadership))
    return leaders.every((leader) => leader !== undefined) && leaders
  })
  await renewedFor(spanMs)
  const victim = cluster.apiservers[1]
  assert.ok(victim)
  await victim.kill('SIGKILL')
  // Work has to go on while one apiserver is away.
  await succeed('create', 'deployment', 'away', '--image=web:1', '--replicas=3')
  await waitFor('pods while one apiserver is away', async () => (await readyReplicas('away')) === 3, PATIENT)
  await renewedFor(spanMs)
  await victim.restart()
  await succeed('scale', 'deployment', 'away', '--replicas=5')
  await waitFor('pods when it is back', async () => (await readyReplicas('away')) === 5, PATIENT)
  await renewedFor(spanMs)
  const last = await Promise.all(LEADERS.map(leadership))
  for (const [i, name] of LEADERS.entries()) {
    assert.equal(last[i]?.holder, first[i]?.holder, `${name} kept its lease`)
    assert.equal(last[i]?.transitions, first[i]?.transitions)
  }
  const nodes = await succeed('get', 'nodes', '--no-headers')
  assert.ok(!nodes.includes('NotReady'), nodes)
  await succeed('delete', 'deployment', 'away')
}

/** Until both leaders have renewed their leases so much later than they last had. */
async function renewedFor(spanMs: number): Promise<void> {
  const renewed = async (): Promise<number> => {
    const leases = await Promise.all(LEADERS.map(leadership))
    return Math.min(...leases.map((lease) => Date.parse(lease?.renewed ?? '')))
  }
  const since = await waitFor('both leases', async () => (await renewed()) || undefined)
  await waitFor('both leases to be renewed', async () => (await renewed()) >= since + spanMs, {
    timeoutMs: spanMs + 120_000,
    intervalMs: 500,
  })
}
