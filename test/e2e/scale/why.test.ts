// `portcullis scale why` on a real cluster: what it says beforehand is what the controllers then do, for every kind, with the rights of an
// ordinary user, and with PodProtectors.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { stringify } from 'yaml'
import { type ScaleWhyOptions, scaleWhy } from '../../../src/scaling/cli/why.ts'
import { startCluster, type TestCluster } from '../../harness/clusters/cluster.ts'
import { ALLOW_ALL } from '../../harness/objects/objects.ts'
import { waitFor } from '../../harness/wait.ts'

// biome-ignore lint/suspicious/noExplicitAny: objects of every kind, as the server gave them
type Json = any

const NAMESPACE = 'default'
const CRDS = join(import.meta.dirname, '../../../deploy/crds')
const CONTROLLERS = ['deployment', 'replicaset', 'replicationcontroller', 'statefulset', 'serviceaccount']
const TOKEN = 'token-of-eve'

let cluster: TestCluster
before(async () => {
  const flags = [`--controllers=${CONTROLLERS.map((name) => `${name}-controller`).join()}`]
  cluster = await startCluster({ controllerManager: { flags }, tokens: [{ token: TOKEN, user: 'eve', uid: 'eve' }] })
})
after(() => cluster?.stop())

async function request(method: string, path: string, body?: unknown, type = 'application/json'): Promise<Json> {
  const headers = { 'content-type': type }
  const answer = await cluster.request(path, { method, headers, ...(body !== undefined && { body }) })
  assert.ok(answer.status < 300, `${method} ${path}: ${answer.text}`)
  return answer.json()
}

function patch(path: string, body: unknown): Promise<Json> {
  return request('PATCH', path, body, 'application/merge-patch+json')
}

function apps(plural: string, name = ''): string {
  return `/apis/apps/v1/namespaces/${NAMESPACE}/${plural}${name === '' ? '' : `/${name}`}`
}

function core(plural: string, name = ''): string {
  return `/api/v1/namespaces/${NAMESPACE}/${plural}${name === '' ? '' : `/${name}`}`
}

function template(name: string, image = 'one'): object {
  return { metadata: { labels: { app: name } }, spec: { containers: [{ name: 'main', image }] } }
}

async function podsOf(name: string): Promise<Json[]> {
  const { items } = await request('GET', core('pods', `?labelSelector=app=${name}`).replace('/?', '?'))
  return items.filter(({ metadata }: Json) => metadata.deletionTimestamp === undefined)
}

/** Waits until there are so many, without those that are terminating. */
function waitForPods(name: string, count: number): Promise<Json[]> {
  return waitFor(`${name} to have ${count} pods`, async () => {
    const pods = await podsOf(name)
    return pods.length === count && pods
  })
}

/** One moment for all pods: times of different seconds would decide where pods are to be equal. */
const STARTED_MS = Date.now()

/** As scheduler and kubelet would: on a node, running, and ready for so many seconds before `STARTED_MS`; -1 = not ready. */
async function run(pod: Json, node: string, readySeconds: number): Promise<void> {
  const { name } = pod.metadata
  if (pod.spec.nodeName === undefined) {
    const body = { apiVersion: 'v1', kind: 'Binding', metadata: { name }, target: { kind: 'Node', name: node } }
    await request('POST', core('pods', `${name}/binding`), body)
  }
  const time = new Date(STARTED_MS - Math.max(0, readySeconds) * 1000).toISOString().replace(/\.\d+Z/, 'Z')
  const ready = { type: 'Ready', status: readySeconds < 0 ? 'False' : 'True', lastTransitionTime: time }
  await patch(core('pods', `${name}/status`), { status: { phase: 'Running', conditions: [ready] } })
}

interface Ran {
  readonly code: number
  readonly out: string
  readonly err: string
}

async function why(options: Pick<ScaleWhyOptions, 'target' | 'replicas'> & Partial<ScaleWhyOptions>): Promise<Ran> {
  let out = ''
  let err = ''
  const code = await scaleWhy({
    kubeconfig: cluster.adminKubeconfig,
    now: Date.now,
    out: (text) => {
      out += text
    },
    err: (text) => {
      err += text
    },
    ...options,
  })
  return { code, out, err }
}

async function planned(target: string, replicas: number): Promise<Json> {
  const { code, out, err } = await why({ target, replicas, output: 'json' })
  assert.deepEqual([code, err], [0, ''])
  return JSON.parse(out)
}

const nameOf = ({ name }: Json): string => name

/** Pods that went were certain or possible; those that were certain went. */
function assertForetold(sets: Json[], before: Json[], left: Json[]): void {
  const remaining = new Set(left.map(({ metadata }) => metadata.name))
  const gone = before.map(({ metadata }) => metadata.name).filter((name) => !remaining.has(name))
  const certain: string[] = sets.flatMap((set) => set.certain.map(nameOf))
  const possible: string[] = sets.flatMap((set) => set.possible.pods.map(nameOf))
  for (const name of certain) assert.ok(gone.includes(name), `${name} was certain to go`)
  for (const name of gone) assert.ok(certain.includes(name) || possible.includes(name), `${name} was to stay`)
  const open = sets.reduce((all, set) => all + set.possible.count, 0)
  assert.equal(gone.length, certain.length + open)
}

test('a Deployment: costs, nodes and readiness', async () => {
  const selector = { matchLabels: { app: 'web' } }
  const spec = { replicas: 7, selector, template: template('web') }
  await request('POST', apps('deployments'), { metadata: { name: 'web' }, spec })
  const pods = await waitForPods('web', 7)
  for (const [at, pod] of pods.entries()) await run(pod, `n${Math.min(at, 4)}`, at === 2 ? -1 : 100)
  const cost = { metadata: { annotations: { 'controller.kubernetes.io/pod-deletion-cost': '-7' } } }
  await patch(core('pods', pods[3].metadata.name), cost)
  const { sets, replicas } = await planned('deployment/web', 3)
  assert.deepEqual(replicas, { from: 7, to: 3 })
  const rules = sets[0].certain.map(({ rule }: Json) => rule)
  // Three share a node: which of them goes is open.
  assert.deepEqual([rules, sets[0].possible.count, sets[0].possible.pods.length], [['NotReady', 'DeletionCost'], 2, 3])
  await patch(apps('deployments', 'web/scale'), { spec: { replicas: 3 } })
  assertForetold(sets, pods, await waitForPods('web', 3))
})

test('a Deployment in a rollout: each ReplicaSet gets the share that was said', async () => {
  const rollingUpdate = { maxSurge: 3, maxUnavailable: 2 }
  const spec = {
    replicas: 10,
    selector: { matchLabels: { app: 'roll' } },
    strategy: { type: 'RollingUpdate', rollingUpdate },
    template: template('roll'),
  }
  await request('POST', apps('deployments'), { metadata: { name: 'roll' }, spec })
  for (const pod of await waitForPods('roll', 10)) await run(pod, 'n1', 100)
  await waitFor('the Deployment to be available', async () => {
    return (await request('GET', apps('deployments', 'roll'))).status.availableReplicas === 10
  })
  await patch(apps('deployments', 'roll'), { spec: { template: template('roll', 'two') } })
  // 8 old pods stay available, and 5 new ones, which stay unready, fill it up to 13. There are 13 once before, too: 10 and 3.
  const pods = await waitFor('8 old pods and 5 new ones', async () => {
    const all = await podsOf('roll')
    const fresh = all.filter(({ spec }) => spec.containers[0].image === 'two')
    return all.length === 13 && fresh.length === 5 && all
  })
  // Without more of the rollout: only what scaling does.
  await patch(apps('deployments', 'roll'), { spec: { paused: true } })
  const { sets, notes } = await planned('deploy/roll', 4)
  assert.match(notes[0], /^a rollout is in progress/)
  assert.equal(sets.length, 2)
  await patch(apps('deployments', 'roll/scale'), { spec: { replicas: 4 } })
  const wanted = Object.fromEntries(sets.map(({ name, to }: Json) => [name, to]))
  const total = sets.reduce((all: number, { to }: Json) => all + to, 0)
  assert.equal(total, 7, '4 and the surge of 3')
  const left = await waitForPods('roll', total)
  const found = await request('GET', apps('replicasets', '?labelSelector=app=roll').replace('/?', '?'))
  for (const { metadata, spec } of found.items) assert.equal(spec.replicas, wanted[metadata.name], metadata.name)
  assertForetold(sets, pods, left)
})

test('a ReplicationController: nodes do not count, as nothing is related', async () => {
  const spec = { replicas: 4, selector: { app: 'old' }, template: template('old') }
  await request('POST', core('replicationcontrollers'), { metadata: { name: 'old' }, spec })
  const pods = await waitForPods('old', 4)
  for (const [at, pod] of pods.entries()) await run(pod, at < 2 ? 'n1' : `n${at}`, [9000, 10, 30_000, 300][at] ?? 0)
  const { sets } = await planned('rc/old', 2)
  assert.deepEqual(
    sets[0].certain.map(({ rule }: Json) => rule),
    ['ReadyTime', 'ReadyTime'],
  )
  await patch(core('replicationcontrollers', 'old/scale'), { spec: { replicas: 2 } })
  assertForetold(sets, pods, await waitForPods('old', 2))
})

test('a StatefulSet waits for who stays, and then deletes the highest ordinals', async () => {
  const spec = {
    replicas: 4,
    serviceName: 'db',
    selector: { matchLabels: { app: 'db' } },
    ordinals: { start: 3 },
    template: template('db'),
  }
  await request('POST', apps('statefulsets'), { metadata: { name: 'db' }, spec })
  for (let count = 1; count <= 4; count++) {
    const pods = await waitForPods('db', count)
    await run(
      pods.find(({ metadata }) => metadata.name === `db-${2 + count}`),
      'n1',
      100,
    )
  }
  const pods = await podsOf('db')
  const first = pods.find(({ metadata }) => metadata.name === 'db-3')
  await run(first, 'n1', -1)
  const { sets, notes } = await planned('sts/db', 2)
  assert.match(notes[0], /^db-3, which stays, is not available/)
  assert.deepEqual(sets[0].certain.map(nameOf), ['db-6', 'db-5'])
  await patch(apps('statefulsets', 'db/scale'), { spec: { replicas: 2 } })
  await waitFor('the controller to have seen it', async () => {
    const { metadata, status } = await request('GET', apps('statefulsets', 'db'))
    return status.observedGeneration === metadata.generation
  })
  assert.equal((await podsOf('db')).length, 4, 'nothing is deleted before it is available')
  await run(first, 'n1', 100)
  assert.deepEqual((await waitForPods('db', 3)).map(({ metadata }) => metadata.name).sort(), ['db-3', 'db-4', 'db-5'])
  // There is no kubelet that ends it.
  await request('DELETE', core('pods', 'db-6'), { gracePeriodSeconds: 0 })
  assertForetold(sets, pods, await waitForPods('db', 2))
})

test('with the rights of an ordinary user, and what is missing when they are', async () => {
  const kubeconfig = cluster.kubeconfigFor({ token: TOKEN })
  const refused = await why({ target: 'deployment/web', replicas: 1, kubeconfig })
  assert.match(
    refused.err,
    /^error: the API server refuses: .*"eve" cannot get .*; .* needs get of the workload, list of pods/,
  )
  assert.deepEqual([refused.code, refused.out], [1, ''])
  const rules = [
    { apiGroups: ['apps'], resources: ['deployments'], verbs: ['get'] },
    { apiGroups: ['apps'], resources: ['replicasets'], verbs: ['list'] },
    { apiGroups: [''], resources: ['pods'], verbs: ['list'] },
  ]
  const group = 'rbac.authorization.k8s.io'
  const metadata = { name: 'reader', namespace: NAMESPACE }
  const subjects = [{ kind: 'User', name: 'eve', apiGroup: group }]
  const roleRef = { apiGroup: group, kind: 'Role', name: 'reader' }
  const objects = [
    { apiVersion: `${group}/v1`, kind: 'Role', metadata, rules },
    { apiVersion: `${group}/v1`, kind: 'RoleBinding', metadata, subjects, roleRef },
  ]
  await cluster.apply(objects.map((object) => `---\n${stringify(object)}`).join(''))
  const { out } = await waitFor('the rights to be in force', async () => {
    const ran = await why({ target: 'deployment/web', replicas: 1, kubeconfig })
    return ran.code === 0 && ran
  })
  assert.match(out, /^deployment default\/web: 3 replicas now, 1 asked for; 2 /)
})

test('PodProtectors decide the exit code', async () => {
  const applied = await cluster.kubectl(['apply', '-f', CRDS])
  assert.equal(applied.code, 0, applied.stderr)
  const upstream = {
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: { name: 'prod' },
    spec: {
      servers: [{ endpoint: 'https://192.0.2.1:6443' }],
      clientConfig: { bearerToken: Buffer.from('none').toString('base64'), insecure: true },
      dispatchPolicies: [ALLOW_ALL],
      podProtection: {},
    },
  }
  const protector = {
    apiVersion: 'podseidon.kubewharf.io/v1alpha1',
    kind: 'PodProtector',
    metadata: { name: 'web', namespace: NAMESPACE },
    spec: { minAvailable: 2, minReadySeconds: 0, selector: { matchLabels: { app: 'web' } } },
  }
  await waitFor('the kinds to be served', async () => {
    await cluster.apply(`---\n${stringify(upstream)}---\n${stringify(protector)}`)
    return true
  })
  const counts = { totalReplicas: 3, availableReplicas: 3, readyReplicas: 3, runningReplicas: 3, scheduledReplicas: 3 }
  const status = {
    cells: [
      { cellID: 'prod', aggregation: { ...counts, lastEventTime: new Date().toISOString().replace('Z', '000Z') } },
    ],
    summary: { totalReplicas: 3, aggregatedAvailableReplicas: 3, estimatedAvailableReplicas: 3, maxLatencyMillis: 0 },
  }
  const path = `/apis/podseidon.kubewharf.io/v1alpha1/namespaces/${NAMESPACE}/podprotectors/web/status`
  await patch(path, { status })
  const ask = (replicas: number): Promise<Ran> => {
    return why({ target: 'deployment/web', replicas, cluster: 'prod', podKubeconfig: cluster.adminKubeconfig })
  }
  const two = await ask(2)
  assert.match(two.out, /\nPodProtector default\/web: 2 required, 3 counted, 0 being deleted: allows the deletion\n$/)
  assert.equal(two.code, 0, two.err)
  const one = await ask(1)
  assert.match(one.out, /: refuses 1 of 2 deletions: too few would be left\n$/)
  assert.equal(one.code, 1)
})
