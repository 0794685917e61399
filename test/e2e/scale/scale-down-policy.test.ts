// ScaleDownPolicies on a real cluster: kube-controller-manager deletes the pods that a policy prefers, whatever client scales, and however; costs of others
// stay, and none of ours is left. The gateway has the rights of deploy/rbac and no others.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { startCluster, type TestCluster } from '../../harness/clusters/cluster.ts'
import type { KubeResponse } from '../../harness/clusters/kube-request.ts'
import { kubeconfigThrough, upstreamClusterFor } from '../../harness/clusters/upstream-cluster.ts'
import { type EmbeddedGateway, startEmbedded } from '../../harness/gateways/embedded.ts'
import { kubectl } from '../../harness/kubectl/kubectl.ts'
import { gatewayCA } from '../../harness/pki.ts'
import { waitFor } from '../../harness/wait.ts'

// biome-ignore lint/suspicious/noExplicitAny: objects of every kind, as the server gave them
type Json = any

const RBAC = join(import.meta.dirname, '../../../deploy/rbac/scale-down-policy.yaml')
const COST = 'controller.kubernetes.io/pod-deletion-cost'
const OURS = 'scale.portcullis.io/deletion-cost'
const PODS = '/api/v1/namespaces/default/pods'
const POLICIES = 'scaledownpolicies'
const CONTROLLERS = ['deployment', 'replicaset', 'replicationcontroller', 'serviceaccount']
/** A busy machine may take its time. */
const SLOW = { timeoutMs: 90_000 }

let cluster: TestCluster
let embedded: EmbeddedGateway
before(async () => {
  const flags = [`--controllers=${CONTROLLERS.map((name) => `${name}-controller`).join()}`]
  cluster = await startCluster({ name: 'prod', controllerManager: { flags } })
  await cluster.apply(readFileSync(RBAC, 'utf8'))
  embedded = await startEmbedded()
  await embedded.apply(upstreamClusterFor(cluster))
  for (const name of ['n1', 'n2', 'n3']) {
    const zone = name === 'n3' ? 'b' : 'a'
    const body = { apiVersion: 'v1', kind: 'Node', metadata: { name, labels: { zone } } }
    await direct('POST', '/api/v1/nodes', body)
    // Until a kubelet says that they are ready, nodes are tainted.
    await direct('PATCH', `/api/v1/nodes/${name}`, { spec: { taints: null } }, 'application/merge-patch+json')
  }
  await waitFor('the cluster behind the gateway', async () => (await through('GET', PODS)).status === 200)
})
after(async () => {
  await embedded?.stop()
  await cluster?.stop()
})

async function direct(method: string, path: string, body?: unknown, type = 'application/json'): Promise<Json> {
  const headers = { 'content-type': type }
  const answer = await cluster.request(path, { method, headers, ...(body !== undefined && { body }) })
  assert.ok(answer.status < 300, `${method} ${path}: ${answer.text}`)
  return answer.json()
}

function through(method: string, path: string, body?: unknown, type?: string): Promise<KubeResponse> {
  const server = `https://127.0.0.1:${embedded.gateway.port}/clusters/prod`
  const headers = type === undefined ? {} : { 'content-type': type }
  return cluster.request(path, {
    server,
    ca: gatewayCA().certPem,
    method,
    headers,
    ...(body !== undefined && { body }),
  })
}

function deployment(name: string): string {
  return `/apis/apps/v1/namespaces/default/deployments/${name}`
}

async function podsOf(app: string): Promise<Json[]> {
  const { items } = await direct('GET', `${PODS}?labelSelector=app%3D${app}`)
  return items.filter(({ metadata }: Json) => metadata.deletionTimestamp === undefined)
}

interface Placed {
  readonly node: string
  readonly annotations?: Readonly<Record<string, string>>
}

/** A workload whose pods run, all ready since the same time. @returns their names, in this order */
async function run(
  kind: 'Deployment' | 'ReplicaSet' | 'ReplicationController',
  app: string,
  placed: readonly Placed[],
): Promise<string[]> {
  const core = kind === 'ReplicationController'
  const template = { metadata: { labels: { app } }, spec: { containers: [{ name: 'main', image: 'none' }] } }
  const selector = core ? { app } : { matchLabels: { app } }
  const spec = { replicas: placed.length, selector, template }
  const base = core ? '/api/v1' : '/apis/apps/v1'
  const apiVersion = core ? 'v1' : 'apps/v1'
  const object = { apiVersion, kind, metadata: { name: app }, spec }
  await direct('POST', `${base}/namespaces/default/${kind.toLowerCase()}s`, object)
  const pods = await waitFor(`${placed.length} pods`, async () => {
    const found = await podsOf(app)
    return found.length === placed.length && found
  })
  const names: string[] = pods.map(({ metadata }: Json) => metadata.name)
  const ready = { type: 'Ready', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' }
  for (const [index, { node, annotations = {} }] of placed.entries()) {
    const name = names[index] ?? assert.fail()
    const target = { apiVersion: 'v1', kind: 'Node', name: node }
    await direct('POST', `${PODS}/${name}/binding`, { apiVersion: 'v1', kind: 'Binding', metadata: { name }, target })
    const merge = 'application/merge-patch+json'
    await direct('PATCH', `${PODS}/${name}/status`, { status: { phase: 'Running', conditions: [ready] } }, merge)
    if (Object.keys(annotations).length > 0)
      await direct('PATCH', `${PODS}/${name}`, { metadata: { annotations } }, merge)
  }
  return names
}

/** Once so many are left. */
async function left(app: string, count: number): Promise<Json[]> {
  return await waitFor(
    `${count} pods of ${app}`,
    async () => {
      const pods = await podsOf(app)
      return pods.length === count && pods
    },
    SLOW,
  )
}

function policy(name: string, spec: object): object {
  const metadata = { name, namespace: 'default' }
  const selector = { matchLabels: { app: name } }
  return { apiVersion: 'scale.portcullis.io/v1alpha1', kind: 'ScaleDownPolicy', metadata, spec: { selector, ...spec } }
}

/** Once it is in force. */
async function applyPolicy(name: string, spec: object): Promise<void> {
  await embedded.apply(policy(name, spec))
  await waitFor(`${name} to be in force`, async () => {
    const { conditions = [] } = (await statusOf(name)) ?? {}
    return conditions.some(({ type, status }: Json) => type === 'Ready' && status === 'True')
  })
}

async function statusOf(name: string): Promise<Json> {
  return JSON.parse(await embedded.succeed(['get', POLICIES, name, '-n', 'default', '-o', 'json'])).status
}

function lastOf(name: string, outcome: string): Promise<Json> {
  return waitFor(`the last scale-down of ${name} to be ${outcome}`, async () => {
    const { lastScaleDown } = (await statusOf(name)) ?? {}
    return lastScaleDown?.outcome === outcome && lastScaleDown
  })
}

/** As HPA writes it: the Scale as it was read. */
async function scaleByHpa(app: string, replicas: number): Promise<KubeResponse> {
  const path = `${deployment(app)}/scale`
  // A conflict is with the controller, which has just written the status: HPA comes back, too.
  return await waitFor(`${app} to be scaled`, async () => {
    const scale = await direct('GET', path)
    const answer = await through('PUT', path, { ...scale, spec: { replicas } })
    return answer.status !== 409 && answer
  })
}

const SPREAD: readonly Placed[] = ['n1', 'n2', 'n3', 'n3', 'n3', 'n3'].map((node) => ({ node }))

test('without a policy the controller takes pods that share a node, and no node becomes empty', async () => {
  await run('Deployment', 'plain', SPREAD)
  assert.equal((await scaleByHpa('plain', 4)).status, 200)
  const nodes = (await left('plain', 4)).map(({ spec }) => spec.nodeName)
  assert.deepEqual(nodes.toSorted(), ['n1', 'n2', 'n3', 'n3'])
  await direct('PATCH', deployment('plain'), { spec: { replicas: 0 } }, 'application/merge-patch+json')
  await left('plain', 0)
})

test('the emptiest node, scaled as HPA does it: the two nodes with one pod each become empty (k/k #138718)', async () => {
  const names = await run('Deployment', 'spread', SPREAD)
  await applyPolicy('spread', { prefer: [{ by: 'EmptiestNode' }] })
  assert.equal((await scaleByHpa('spread', 4)).status, 200)
  const pods = await left('spread', 4)
  assert.deepEqual(new Set(pods.map(({ spec }) => spec.nodeName)), new Set(['n3']))
  assert.ok(pods.every(({ metadata }) => metadata.annotations?.[COST] === undefined))
  const last = await lastOf('spread', 'Steered')
  assert.deepEqual([last.workload, last.from, last.to], ['deployments/spread', 6, 4])
  assert.deepEqual(new Set(last.victims), new Set(names.slice(0, 2)))
  const metrics = await embedded.gateway.metrics()
  assert.match(metrics, /^portcullis_scale_downs_total\{cluster="prod",outcome="Steered"\} [1-9]/m)
})

test('kubectl scale of a ReplicaSet, by an annotation; a cost set by another client is left alone and reported', async () => {
  const sessions = (number: string, more = {}): Placed => ({ node: 'n3', annotations: { sessions: number, ...more } })
  const names = await run('ReplicaSet', 'busy', [
    sessions('9'),
    sessions('2'),
    sessions('0', { [COST]: '50' }),
    sessions('1'),
  ])
  await applyPolicy('busy', { prefer: [{ by: 'Annotation', annotation: 'sessions' }] })
  const kubeconfig = await kubeconfigThrough(embedded.gateway, cluster, cluster.admin, { path: true })
  const scaled = await kubectl(['scale', 'rs/busy', '--replicas=2'], { kubeconfig })
  assert.equal(scaled.code, 0, scaled.stderr)
  assert.match(scaled.stderr, /ScaleDownPolicy default\/busy: deletion costs that other clients set are left unchanged/)
  const pods = await left('busy', 2)
  assert.deepEqual(new Set(pods.map(({ metadata }) => metadata.name)), new Set([names[0], names[2]]))
  assert.equal(pods.find(({ metadata }) => metadata.name === names[2])?.metadata.annotations[COST], '50')
  assert.deepEqual((await lastOf('busy', 'Steered')).conflicts, [names[2]])
})

test('a cordoned node, and the zone with most, of a ReplicationController', async () => {
  await direct('PATCH', '/api/v1/nodes/n2', { spec: { unschedulable: true } }, 'application/merge-patch+json')
  const placed = ['n1', 'n1', 'n2', 'n3'].map((node) => ({ node }))
  await run('ReplicationController', 'zones', placed)
  await applyPolicy('zones', { prefer: [{ by: 'UnschedulableNode' }, { by: 'TopologyExcess', topologyKey: 'zone' }] })
  const path = '/api/v1/namespaces/default/replicationcontrollers/zones'
  const patched = await through('PATCH', path, { spec: { replicas: 2 } }, 'application/merge-patch+json')
  assert.equal(patched.status, 200, patched.text)
  await lastOf('zones', 'Steered')
  const nodes = (await left('zones', 2)).map(({ spec }) => spec.nodeName)
  assert.deepEqual(nodes.toSorted(), ['n1', 'n3'])
})

test('a scale-down that upstream refuses leaves no cost, and deletes nothing', async () => {
  await run('Deployment', 'refused', SPREAD)
  await applyPolicy('refused', { prefer: [{ by: 'EmptiestNode' }] })
  const scale = await direct('GET', `${deployment('refused')}/scale`)
  const stale = { ...scale, metadata: { ...scale.metadata, resourceVersion: '1' }, spec: { replicas: 4 } }
  assert.equal((await through('PUT', `${deployment('refused')}/scale`, stale)).status, 409)
  await lastOf('refused', 'Reverted')
  const pods = await podsOf('refused')
  assert.equal(pods.length, 6)
  for (const { metadata } of pods) {
    assert.deepEqual([metadata.annotations?.[COST], metadata.annotations?.[OURS]], [undefined, undefined])
  }
})

test('in shadow mode it says what it would choose, and changes nothing', async () => {
  await run('Deployment', 'shadow', SPREAD)
  await applyPolicy('shadow', { shadow: true, prefer: [{ by: 'EmptiestNode' }] })
  const answer = await scaleByHpa('shadow', 4)
  assert.match(
    String(answer.headers['warning']),
    /ScaleDownPolicy default\/shadow: in shadow mode it would choose shadow-/,
  )
  const nodes = (await left('shadow', 4)).map(({ spec }) => spec.nodeName)
  assert.deepEqual(nodes.toSorted(), ['n1', 'n2', 'n3', 'n3'])
})

test('costs that a gateway has left behind when it was killed are taken back by the next one', async () => {
  const names = await run('Deployment', 'left', SPREAD.slice(0, 2))
  await applyPolicy('left', { prefer: [{ by: 'EmptiestNode' }] })
  const own = { id: 'of one that is no more', workload: 'deployments/left', to: 1, at: '2026-01-01T00:00:00Z' }
  await embedded.restart('SIGKILL', async () => {
    for (const [index, cost] of ['-1', '7'].entries()) {
      const annotations = { [COST]: cost, [OURS]: JSON.stringify(own) }
      await direct('PATCH', `${PODS}/${names[index]}`, { metadata: { annotations } }, 'application/merge-patch+json')
    }
  })
  const pods = await waitFor(
    'the costs to be taken back',
    async () => {
      const found = await podsOf('left')
      return found.every(({ metadata }) => metadata.annotations?.[OURS] === undefined) && found
    },
    SLOW,
  )
  const costs = names.map((name) => pods.find(({ metadata }) => metadata.name === name)?.metadata.annotations?.[COST])
  assert.deepEqual(costs, [undefined, '7'], 'what another client has written since stays')
})
