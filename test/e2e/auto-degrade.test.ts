// spec.degrade.auto on a real kube-apiserver: the gateway sees nodes become unready, or upstream become overloaded, sets the mode itself,
// and lets the way back begin.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { AutoDegrade } from '../../src/gateway/api/upstream-cluster/auto-degrade.ts'
import type { Degrade } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import type { Json } from '../harness/clients/control-client.ts'
import { h2Connect, h2Request } from '../harness/clients/h2-client.ts'
import { startCluster, type TestCluster } from '../harness/clusters/cluster.ts'
import { kubeRequest } from '../harness/clusters/kube-request.ts'
import { hostOf, upstreamClusterFor } from '../harness/clusters/upstream-cluster.ts'
import { type EmbeddedGateway, startEmbedded, UC_PATH } from '../harness/gateways/embedded.ts'
import { clusterObject } from '../harness/objects/objects.ts'
import { reply, type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const NAME = 'auto'
const NODES = 20
const STUB = 'stub.example.com'
const NODES_RBAC = join(import.meta.dirname, '../../deploy/rbac/degrade-nodes.yaml')
const LEASE = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases'
/** New nodes count, and seconds have to do for minutes. */
const AUTO: AutoDegrade = {
  nodes: { maxStartupTime: '0s', enterAfter: '1s', exitAfter: '2s', staleAfter: '5s' },
  recovery: { hold: '1s', ramp: '1s' },
}

let cluster: TestCluster
let embedded: EmbeddedGateway
let nodes: string[] = []

before(async () => {
  ;[cluster, embedded] = await Promise.all([startCluster({ name: NAME }), startEmbedded()])
  nodes = await cluster.createNodes(NODES)
  await Promise.all(nodes.map(untaint))
  await setReady(nodes, true)
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default', namespace: 'default' } }
  await cluster.apply(JSON.stringify(account))
  await embedded.apply(upstreamClusterFor(cluster, { spec: { healthCheck: { intervalSeconds: 1 } } }))
  await waitFor('the gateway to serve', async () => (await through('/api/v1/namespaces/default')).status === 200)
})
after(async () => {
  await embedded?.stop()
  await cluster?.stop()
})

/** A new node is tainted as not ready, until kube-controller-manager has seen its condition; here none runs. */
async function untaint(name: string): Promise<void> {
  const headers = { 'content-type': 'application/merge-patch+json' }
  const { status } = await cluster.request(`/api/v1/nodes/${name}`, {
    method: 'PATCH',
    headers,
    body: { spec: { taints: null } },
  })
  assert.equal(status, 200)
}

async function setReady(names: readonly string[], ready: boolean): Promise<void> {
  const condition = { type: 'Ready', status: ready ? 'True' : 'Unknown', reason: 'Test', message: '' }
  await Promise.all(
    names.map(async (name) => {
      const headers = { 'content-type': 'application/strategic-merge-patch+json' }
      const body = { status: { conditions: [condition] } }
      const path = `/api/v1/nodes/${name}/status`
      const { status, text } = await cluster.request(path, { method: 'PATCH', headers, body })
      assert.equal(status, 200, text)
    }),
  )
}

/** As the administrator, through the gateway. */
function through(path: string, method = 'GET', body?: unknown) {
  const server = `https://127.0.0.1:${embedded.gateway.port}`
  const common = { server, serverName: hostOf(NAME), user: cluster.admin, path, method }
  return kubeRequest({ ...common, ...(body !== undefined && { body }) })
}

async function object(name = NAME): Promise<Json> {
  return (await embedded.admin.get(`${UC_PATH}/${name}`)).json
}

/** Replaces spec.degrade, so that nothing of the test before is left. */
async function degrade(setting: Degrade, name = NAME): Promise<void> {
  const nothing = { mode: null, reason: null, expiresAt: null, recovery: null, since: null, auto: null }
  await embedded.patch(name, { spec: { degrade: { ...nothing, ...setting } } })
}

interface Told {
  readonly phase: string
  readonly action?: string
  readonly mode?: string
  readonly reason: string
}

/** Resolves once status.degrade.auto and its condition say so. */
function untilTold(phase: string, action?: string, name = NAME): Promise<Told> {
  let last: unknown
  return waitFor(`${phase} ${action ?? ''}`, async () => {
    const { status } = await object(name)
    const told = status?.degrade?.auto
    const condition = status?.conditions?.find(({ type }: Json) => type === 'AutoDegraded')
    last = [told, condition]
    const reason = phase === 'Unknown' ? 'NodesUnknown' : phase === 'Degraded' ? action : phase
    return told?.phase === phase && told.action === action && condition?.reason === reason && told
  }).catch((error: unknown) => {
    throw new Error(`${error instanceof Error ? error.message : error}; last: ${JSON.stringify(last)}`)
  })
}

async function events(reason: string): Promise<readonly string[]> {
  const { items } = (await embedded.admin.get('/api/v1/namespaces/default/events')).json
  return items.filter((event: Json) => event.reason === reason).map((event: Json) => event.message)
}

async function createPod(name: string): Promise<void> {
  const spec = { containers: [{ name: 'a', image: 'a' }] }
  const body = { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec }
  const { status, text } = await cluster.request('/api/v1/namespaces/default/pods', { method: 'POST', body })
  assert.equal(status, 201, text)
}

describe('nodes', { concurrency: false }, () => {
  test('without the right to read nodes nothing is decided, and the condition says why', async () => {
    await setReady(nodes.slice(0, 10), false)
    await degrade({ auto: AUTO })
    const { reason } = await untilTold('Unknown')
    assert.match(reason, /nodes is forbidden: User "portcullis" cannot list .*: no decision$/)
    assert.equal((await object()).spec.degrade.mode, undefined)
    const credentials = await waitFor('the missing right', async () => {
      const { status } = await object()
      return status.conditions.find(({ type, reason: why }: Json) => type === 'CredentialsValid' && why === 'Forbidden')
    })
    assert.match(credentials.message, /nodes: apply deploy\/rbac\/degrade-nodes.yaml to the cluster/)
    assert.equal((await through('/api/v1/namespaces/default')).status, 200, 'requests pass all the same')
    await setReady(nodes, true)
    await cluster.apply(readFileSync(NODES_RBAC, 'utf8'))
    await untilTold('Normal')
  })

  test('10 of 20 unready: NoDisruption, in which no pod is deleted and leases are renewed; and back', async () => {
    await createPod('kept')
    await setReady(nodes.slice(0, 10), false)
    const { mode } = await untilTold('Degraded', 'Entered')
    assert.equal(mode, 'NoDisruption')
    const { degrade: entered } = (await object()).spec
    assert.equal(entered.mode, 'NoDisruption')
    assert.equal(entered.reason, 'automatic: 10 of 20 nodes unready (50 %)')
    await waitFor('the mode to be in force', async () => {
      const { metadata, status } = await object()
      return status.gateways?.[0]?.observedGeneration === metadata.generation
    })
    const refused = await through('/api/v1/namespaces/default/pods/kept', 'DELETE')
    assert.equal(refused.status, 403, refused.text)
    assert.match(refused.json().message, /10 of 20 nodes unready/)
    assert.equal(
      (await cluster.request('/api/v1/namespaces/default/pods/kept')).json().metadata.deletionTimestamp,
      undefined,
    )
    const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: 'node-0' }, spec: {} }
    const created = await through(LEASE, 'POST', lease)
    assert.equal(created.status, 201, created.text)
    const renewed = await through(`${LEASE}/node-0`, 'PUT', created.json())
    assert.equal(renewed.status, 200, renewed.text)
    assert.deepEqual(
      await waitFor('the Event', async () => {
        const told = await events('AutoDegradeEntered')
        return told.length > 0 && told
      }),
      ['NoDisruption was entered: 10 of 20 nodes unready (50 %)'],
    )
    const metrics = await embedded.gateway.metrics()
    assert.match(metrics, /^portcullis_degrade_auto_phase\{cluster="auto",phase="Degraded"\} 1$/m)
    assert.match(metrics, /^portcullis_degrade_auto_actions_total\{cluster="auto",action="Entered"\} 1$/m)
    assert.match(metrics, /^portcullis_cluster_nodes\{cluster="auto",state="unready"\} 10$/m)
    await setReady(nodes, true)
    const { recovery } = await waitFor('the way back to begin', async () => {
      const now = (await object()).spec.degrade
      return (now.recovery !== undefined || now.mode === 'Off') && now
    })
    if (recovery !== undefined) assert.deepEqual(recovery, AUTO.recovery)
    await untilTold('Normal')
  })

  test('a human who throws Off wins, until the nodes were good once', async () => {
    await degrade({ auto: AUTO })
    await setReady(nodes.slice(0, 12), false)
    await untilTold('Degraded', 'Entered')
    await embedded.patch(NAME, { spec: { degrade: { mode: 'Off', reason: null } } })
    await untilTold('Degraded', 'Overruled')
    assert.equal((await object()).spec.degrade.mode, 'Off')
    await setReady(nodes, true)
    await untilTold('Normal')
    assert.equal((await object()).spec.degrade.mode, 'Off')
    await setReady(nodes.slice(0, 12), false)
    await untilTold('Degraded', 'Entered')
    await setReady(nodes, true)
    await untilTold('Normal')
  })

  test('in shadow mode it is only told', async () => {
    await degrade({ auto: { ...AUTO, shadow: true } })
    await untilTold('Normal')
    const { generation } = (await object()).metadata
    await setReady(nodes.slice(0, 10), false)
    const { mode } = await untilTold('Degraded', 'Shadow')
    assert.equal(mode, 'NoDisruption')
    const told = await waitFor('the Event', async () => (await events('AutoDegradeInShadow'))[0])
    assert.equal(told, 'NoDisruption would be entered, but auto is in shadow mode: 10 of 20 nodes unready (50 %)')
    assert.match(
      await embedded.gateway.metrics(),
      /^portcullis_degrade_auto_actions_total\{cluster="auto",action="Shadow"\} 1$/m,
    )
    await setReady(nodes, true)
    await untilTold('Normal')
    assert.equal((await object()).metadata.generation, generation, 'the spec is as it was')
  })

  test('only the selected nodes count', async () => {
    const nodesOfFleet = { ...AUTO.nodes, selector: { matchLabels: { 'kubernetes.io/hostname': 'node-0' } } }
    await degrade({ auto: { ...AUTO, nodes: { ...nodesOfFleet, okUnready: 0 } } })
    await untilTold('Normal')
    await setReady(nodes.slice(1), false)
    const metrics = await waitFor('one node to be counted', async () => {
      const text = await embedded.gateway.metrics()
      return /^portcullis_cluster_nodes\{cluster="auto",state="ready"\} 1$/m.test(text) && text
    })
    assert.match(metrics, /^portcullis_cluster_nodes\{cluster="auto",state="unready"\} 0$/m)
    await untilTold('Normal')
    await setReady(nodes, true)
  })

  test('an apiserver that answers no more: old data is no decision (long)', async () => {
    // This one also runs without those before it.
    await setReady(nodes, true)
    await cluster.apply(readFileSync(NODES_RBAC, 'utf8'))
    await degrade({ auto: AUTO })
    await untilTold('Normal')
    const [apiserver] = cluster.apiservers
    assert.ok(apiserver !== undefined)
    process.kill(apiserver.pid, 'SIGSTOP')
    try {
      assert.match((await untilTold('Unknown')).reason, /no decision$/)
      assert.equal((await object()).spec.degrade.mode ?? 'Off', 'Off')
    } finally {
      process.kill(apiserver.pid, 'SIGCONT')
    }
    await untilTold('Normal')
  })
})

describe('upstream', { concurrency: false }, () => {
  let stub: StubUpstream
  before(async () => {
    stub = await startStub()
    await embedded.apply(clusterObject([stub], { name: STUB }))
  })
  after(() => stub?.stop())

  /** Anonymous reads, until it holds. */
  async function ask(what: string, holds: () => Promise<boolean>): Promise<void> {
    const session = h2Connect({ port: embedded.gateway.port, serverName: STUB })
    try {
      await waitFor(what, async () => {
        await Promise.all(
          Array.from({ length: 20 }, () => h2Request(session, [':path', '/api/v1/pods', ':authority', STUB])),
        )
        return holds()
      })
    } finally {
      session.destroy()
    }
  }
  const mode = async (): Promise<string> => (await object(STUB)).spec.degrade.mode ?? 'Off'

  test('5xx by upstream enters Limited, and the way back begins when they end; 429 does not', async () => {
    const upstream = { minRequests: 20, window: '5s', enterAfter: '1s', exitAfter: '1s' }
    await degrade({ auto: { upstream, recovery: { hold: '1s', ramp: '1s' } } }, STUB)
    await untilTold('Normal', undefined, STUB)
    stub.answer = (request) => reply(request, 429, '{}')
    const before = stub.seen.length
    await ask('many refusals', async () => stub.seen.length > before + 100)
    assert.equal(await mode(), 'Off')
    stub.answer = (request) => reply(request, 503, '{}')
    await ask('Limited', async () => (await mode()) === 'Limited')
    await untilTold('Degraded', 'Entered', STUB)
    assert.match((await object(STUB)).spec.degrade.reason, /^automatic: \d+ of \d+ requests failed upstream \(\d+ %\)/)
    stub.answer = (request) => reply(request, 200, '{}')
    await ask(
      'the way back',
      async () => (await object(STUB)).spec.degrade.recovery !== undefined || (await mode()) === 'Off',
    )
  })

  test('answers that take too long enter Limited', async () => {
    const upstream = { maxLatency: '50ms', minRequests: 20, window: '5s', enterAfter: '1s', exitAfter: '1s' }
    await degrade({ auto: { upstream } }, STUB)
    stub.answer = (request) => void setTimeout(() => reply(request, 200, '{}'), 200)
    await ask('Limited', async () => (await mode()) === 'Limited')
    await untilTold('Degraded', 'Entered', STUB)
  })
})
