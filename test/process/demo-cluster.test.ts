// The demo's small clusters, asked directly: identity over HTTP/1.1 and HTTP/2, objects, watches, and kubectl.

import assert from 'node:assert/strict'
import { accessSync, constants, mkdtempSync, rmSync } from 'node:fs'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { after, before, test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { type DemoCluster, startDemoCluster } from '../../src/demo/cluster/demo-cluster.ts'
import { createCA, issueCertificate, type KeyPair } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Open, h2Response } from '../harness/clients/h2-client.ts'
import { type KubeRequest, type KubeResponse, kubeRequest } from '../harness/clusters/kube-request.ts'
import { type Credentials, writeKubeconfig } from '../harness/clusters/kubeconfig.ts'
import { kubectl } from '../harness/kubectl/kubectl.ts'
import { waitFor } from '../harness/wait.ts'

const ca = createCA({ commonName: 'demo cluster CA' })
const ADMIN_NAME = 'Ädmin / one, 100%'
let admin: Credentials
let gateway: Credentials
let cluster: DemoCluster
let dir: string

before(async () => {
  const certificate = (commonName: string, organizations: readonly string[] = []): KeyPair =>
    issueCertificate(ca, { commonName, organizations, usage: 'client', uid: `uid-${organizations.length}` })
  admin = { cert: certificate(ADMIN_NAME, ['system:masters', 'a, b']) }
  gateway = { cert: certificate('portcullis') }
  dir = mkdtempSync(join(tmpdir(), 'portcullis-demo-cluster-'))
  cluster = await startDemoCluster({
    name: 'tiny',
    replicas: 2,
    clientCA: ca.certPem,
    serverKeyPair: issueCertificate(ca, { commonName: 'kube-apiserver', usage: 'server', ipAddresses: ['127.0.0.1'] }),
    tokens: new Map([['alice-token', { name: 'alice', uid: '7', groups: ['developers'], extra: {} }]]),
    gatewayUser: 'portcullis',
    size: { nodes: 2, scale: 0.5 },
  })
})

after(async () => {
  cluster.stop()
  rmSync(dir, { recursive: true, force: true })
})

function ask(path: string, options: Partial<KubeRequest> = {}, replica = 0): Promise<KubeResponse> {
  return kubeRequest({ server: cluster.urls[replica] ?? '', ca: ca.certPem, user: admin, path, ...options })
}

function patch(path: string, type: string, body: unknown, options: Partial<KubeRequest> = {}): Promise<KubeResponse> {
  return ask(path, { method: 'PATCH', headers: { 'content-type': `application/${type}` }, body, ...options })
}

const WHOAMI = '/apis/authentication.k8s.io/v1/selfsubjectreviews'

test('a client certificate names its user, over HTTP/1.1 and over HTTP/2', async () => {
  const http1 = (await ask(WHOAMI, { method: 'POST', body: {} })).json().status.userInfo
  assert.equal(http1.username, ADMIN_NAME)
  assert.deepEqual(http1.groups, ['system:masters', 'a, b', 'system:authenticated'])
  assert.equal(http1.uid, 'uid-2')
  const port = Number(new URL(cluster.urls[0] ?? '').port)
  const session = h2Connect({ port, ...(admin.cert === undefined ? {} : { certificate: admin.cert }) })
  const head = [':method', 'POST', ':path', WHOAMI, 'content-type', 'application/json']
  const stream = h2Open(session, head, { endStream: false })
  stream.end('{}')
  const http2 = await h2Response(stream)
  session.destroy()
  assert.equal(http2.status, 201)
  assert.deepEqual(JSON.parse(http2.body.toString()).status.userInfo, http1)
})

test('tokens: known, unknown, none; a certificate of another CA is not authenticated', async () => {
  const whoami = (user: Credentials): Promise<KubeResponse> => ask(WHOAMI, { method: 'POST', body: {}, user })
  assert.equal((await whoami({ token: 'alice-token' })).json().status.userInfo.username, 'alice')
  assert.equal((await whoami({ token: 'no-token' })).status, 401)
  assert.equal((await whoami({})).status, 403)
  const stranger = issueCertificate(createCA({ commonName: 'x' }), { commonName: 'x', usage: 'client' })
  assert.equal((await whoami({ cert: stranger })).status, 401)
  const ready = await ask('/readyz', { user: {} })
  assert.equal(ready.text, 'ok')
  // Without it the gateway would take the answer for one of a proxy, and not believe its Date.
  assert.match(String(ready.headers['audit-id']), /^[0-9a-f-]{36}$/)
})

test('only the gateway user may impersonate and review', async () => {
  const headers = { 'impersonate-user': 'bob', 'impersonate-group': 'x' }
  const as = await ask(WHOAMI, { method: 'POST', body: {}, user: gateway, headers })
  assert.deepEqual(as.json().status.userInfo, { username: 'bob', groups: ['x', 'system:authenticated'] })
  const refused = await ask(WHOAMI, { method: 'POST', body: {}, user: { token: 'alice-token' }, headers })
  assert.equal(refused.status, 403)
  const review = async (token: string, user = gateway): Promise<KubeResponse> =>
    ask('/apis/authentication.k8s.io/v1/tokenreviews', { method: 'POST', body: { spec: { token } }, user })
  const known = (await review('alice-token')).json().status
  assert.equal(known.authenticated, true)
  assert.deepEqual(known.user, { username: 'alice', uid: '7', groups: ['developers', 'system:authenticated'] })
  assert.notEqual((await review('nonsense')).json().status.authenticated, true)
  assert.equal((await review('alice-token', { token: 'alice-token' })).status, 403)
})

test('access reviews agree with what happens', async () => {
  const allowed = async (resource: string, verb: string, namespace: string): Promise<boolean> => {
    const body = { spec: { resourceAttributes: { resource, verb, namespace } } }
    const user = { token: 'alice-token' }
    const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'
    return (await ask(path, { method: 'POST', body, user })).json().status.allowed
  }
  assert.equal(await allowed('pods', 'delete', 'shop'), true)
  assert.equal(await allowed('pods', 'delete', 'kube-system'), false)
  assert.equal(await allowed('secrets', 'list', 'kube-system'), false)
  const path = '/api/v1/namespaces/kube-system/secrets'
  assert.equal((await ask(path, { user: { token: 'alice-token' } })).status, 403)
})

test('objects: create, conflict, patch, delete; both apiservers show the same', async () => {
  const path = '/api/v1/namespaces/default/configmaps'
  const created = await ask(path, { method: 'POST', body: { metadata: { name: 'a' }, data: { x: '1' } } })
  assert.equal(created.status, 201)
  assert.equal(created.headers['x-demo-apiserver'], 'tiny-1')
  const seen = await ask(`${path}/a`, {}, 1)
  assert.equal(seen.headers['x-demo-apiserver'], 'tiny-2')
  assert.deepEqual(seen.json(), created.json())
  assert.equal((await ask(path, { method: 'POST', body: { metadata: { name: 'a' } } })).json().reason, 'AlreadyExists')
  const merged = (await patch(`${path}/a`, 'merge-patch+json', { data: { y: '2', x: null } })).json()
  assert.deepEqual(merged.data, { y: '2' })
  const stale = { ...seen.json(), data: {} }
  assert.equal((await ask(`${path}/a`, { method: 'PUT', body: stale })).json().reason, 'Conflict')
  const operations = [{ op: 'add', path: '/data/z', value: '3' }]
  assert.deepEqual((await patch(`${path}/a`, 'json-patch+json', operations)).json().data, { y: '2', z: '3' })
  const unchanged = (await patch(`${path}/a`, 'merge-patch+json', { data: { z: '3' } })).json()
  assert.equal(unchanged.metadata.resourceVersion, (await ask(`${path}/a`)).json().metadata.resourceVersion)
  assert.equal((await ask(`${path}/a`, { method: 'DELETE' })).json().status, 'Success')
  assert.equal((await ask(`${path}/a`)).json().reason, 'NotFound')
})

test('a strategic merge patch merges containers by name', async () => {
  const path = '/apis/apps/v1/namespaces/default/deployments'
  const containers = [
    { name: 'a', image: 'a:1' },
    { name: 'b', image: 'b:1' },
  ]
  const template = { metadata: { labels: { app: 'two' } }, spec: { containers } }
  const spec = { replicas: 0, selector: { matchLabels: { app: 'two' } }, template }
  assert.equal((await ask(path, { method: 'POST', body: { metadata: { name: 'two' }, spec } })).status, 201)
  const body = { spec: { template: { spec: { containers: [{ name: 'b', image: 'b:2' }] } } } }
  const patched = (await patch(`${path}/two`, 'strategic-merge-patch+json', body)).json()
  assert.deepEqual(patched.spec.template.spec.containers, [containers[0], { name: 'b', image: 'b:2' }])
  assert.equal(patched.metadata.generation, 2)
  // Wherever `$patch: replace` stands in the list, the list is the items beside it.
  for (const list of [
    [{ $patch: 'replace' }, { name: 'c', image: 'c:1' }],
    [{ name: 'c', image: 'c:2' }, { $patch: 'replace' }],
  ]) {
    const replaced = { spec: { template: { spec: { containers: list } } } }
    const { template } = (await patch(`${path}/two`, 'strategic-merge-patch+json', replaced)).json().spec
    assert.deepEqual(
      template.spec.containers,
      list.filter((item) => 'name' in item),
    )
  }
  assert.equal((await ask(`${path}/two`, { method: 'DELETE' })).status, 200)
})

test('each template has its ReplicaSet; one that is taken back to is the newest revision again', async () => {
  const path = '/apis/apps/v1/namespaces/default'
  const image = (tag: string): object => ({ spec: { containers: [{ name: 'rolled', image: `rolled:${tag}` }] } })
  const template = { metadata: { labels: { app: 'rolled' } }, ...image('1') }
  const spec = { selector: { matchLabels: { app: 'rolled' } }, template }
  assert.equal(
    (await ask(`${path}/deployments`, { method: 'POST', body: { metadata: { name: 'rolled' }, spec } })).status,
    201,
  )
  const sets = async (): Promise<Record<string, string>> => {
    const { items } = (await ask(`${path}/replicasets?labelSelector=app%3Drolled`)).json()
    return Object.fromEntries(
      items.map((set: ReplicaSet) => [
        set.metadata.annotations['deployment.kubernetes.io/revision'],
        `${set.spec.template.spec.containers[0]?.image} ${set.status?.readyReplicas ?? 0}/${set.spec.replicas}`,
      ]),
    )
  }
  const become = async (wanted: Record<string, string>): Promise<void> => {
    await waitFor(JSON.stringify(wanted), async () => isDeepStrictEqual(await sets(), wanted))
  }
  await become({ 1: 'rolled:1 1/1' })
  const scale = `${path}/deployments/rolled/scale`
  const { status, metadata } = (await ask(scale)).json()
  assert.equal(status.selector, 'app=rolled')
  assert.equal((await ask(scale, { method: 'PUT', body: { metadata, spec: { replicas: 2 } } })).json().spec.replicas, 2)
  await become({ 1: 'rolled:1 2/2' })
  const roll = (tag: string): Promise<KubeResponse> =>
    patch(`${path}/deployments/rolled`, 'strategic-merge-patch+json', { spec: { template: image(tag) } })
  await roll('2')
  await become({ 1: 'rolled:1 0/0', 2: 'rolled:2 2/2' })
  // As kubectl rollout undo writes it: with what is empty, and in an order of its own.
  const whole = { containers: [{ resources: {}, image: 'rolled:1', name: 'rolled' }], restartPolicy: 'Always' }
  const undo = { spec: whole, metadata: { creationTimestamp: null, labels: { app: 'rolled' } } }
  const operations = [{ op: 'replace', path: '/spec/template', value: undo }]
  assert.equal((await patch(`${path}/deployments/rolled`, 'json-patch+json', operations)).status, 200)
  await become({ 2: 'rolled:2 0/0', 3: 'rolled:1 2/2' })
  await ask(`${path}/deployments/rolled`, { method: 'DELETE' })
  await become({})
})

test('a scale takes an int32 and its own object only', async () => {
  const scale = '/apis/apps/v1/namespaces/shop/deployments/cart/scale'
  const { metadata } = (await ask(scale)).json()
  const put = (replicas: number, uid: string): Promise<KubeResponse> =>
    ask(`${scale}?dryRun=All`, { method: 'PUT', body: { metadata: { ...metadata, uid }, spec: { replicas } } })
  assert.equal((await put(2 ** 31 - 1, metadata.uid)).status, 200)
  assert.equal((await put(2 ** 31, metadata.uid)).status, 422)
  assert.equal((await put(-1, metadata.uid)).status, 422)
  const foreign = await put(1, 'of-another-one')
  assert.equal(foreign.status, 409)
  assert.match(foreign.text, /Precondition failed: UID in precondition: of-another-one, UID in object meta: /)
})

test('a scale-down takes the pods that kube-controller-manager would take: the cheapest first', async () => {
  const path = '/api/v1/namespaces/shop/pods'
  const pods = (await ask(`${path}?labelSelector=app%3Dcatalog`)).json().items as Pod[]
  // Neither the youngest nor the oldest by name.
  const cheap = pods.toSorted((a, b) => (a.metadata.uid < b.metadata.uid ? -1 : 1)).slice(3, 6)
  for (const { metadata } of cheap) {
    const annotations = { 'controller.kubernetes.io/pod-deletion-cost': '-5' }
    await patch(`${path}/${metadata.name}`, 'merge-patch+json', { metadata: { annotations } })
  }
  const deployment = '/apis/apps/v1/namespaces/shop/deployments/catalog'
  await patch(`${deployment}/scale`, 'merge-patch+json', { spec: { replicas: pods.length - cheap.length } })
  const ending = await waitFor('three pods to go', async () => {
    const now = (await ask(`${path}?labelSelector=app%3Dcatalog`)).json().items as Pod[]
    const living = now.filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    return living.length === pods.length - cheap.length ? living.map(({ metadata }) => metadata.name) : undefined
  })
  for (const { metadata } of cheap) assert.ok(!ending.includes(metadata.name), `${metadata.name} stays`)
  await patch(`${deployment}/scale`, 'merge-patch+json', { spec: { replicas: pods.length } })
})

test('a log is as long as is asked for', async () => {
  const [pod] = await cartPods()
  const lines = async (query: string): Promise<number> =>
    (await ask(`/api/v1/namespaces/shop/pods/${pod?.metadata.name}/log${query}`)).text.split('\n').length - 1
  assert.equal(await lines(''), 5)
  assert.equal(await lines('?tailLines=2'), 2)
  assert.equal(await lines('?tailLines=0'), 0)
  assert.equal(await lines('?tailLines=1000'), 5)
  assert.equal((await ask(`/api/v1/namespaces/shop/pods/${pod?.metadata.name}/log?tailLines=x`)).status, 400)
})

interface ReplicaSet {
  metadata: { annotations: Record<string, string> }
  spec: { replicas: number; template: { spec: { containers: { image: string }[] } } }
  status?: { readyReplicas: number }
}

const CART_PODS = '/api/v1/namespaces/shop/pods?labelSelector=app%3Dcart'

interface Pod {
  metadata: { name: string; uid: string; resourceVersion: string; deletionTimestamp?: string }
  status: { conditions: { type: string; status: string; lastTransitionTime: string }[] }
}

async function cartPods(): Promise<Pod[]> {
  return (await ask(CART_PODS)).json().items
}

test('a deleted pod takes its time to end, and its deployment gets another one that is ready after a while', async () => {
  const before = await cartPods()
  const [first] = before
  assert.ok(first !== undefined && before.length > 1)
  const path = `/api/v1/namespaces/shop/pods/${first.metadata.name}`
  assert.equal(typeof (await ask(path, { method: 'DELETE' })).json().metadata.deletionTimestamp, 'string')
  assert.equal(typeof (await ask(path)).json().metadata.deletionTimestamp, 'string')
  await waitFor('the pod to be gone', async () => (await ask(path)).status === 404)
  const known = new Set(before.map(({ metadata }) => metadata.uid))
  const added = await waitFor('a new pod that is ready', async () => {
    const pods = await cartPods()
    const ready = pods.filter(({ status }) => isReady(status.conditions)).length
    return ready === before.length ? pods.find(({ metadata }) => !known.has(metadata.uid)) : undefined
  })
  const readySince = (pod: Pod): number =>
    Date.parse(pod.status.conditions.find(({ type }) => type === 'Ready')?.lastTransitionTime ?? '')
  assert.ok(readySince(added) > readySince(first))
})

function isReady(conditions: Pod['status']['conditions'] = []): boolean {
  return conditions.some(({ type, status }) => type === 'Ready' && status === 'True')
}

test('a grace period that no date can hold, or a negative one, ends as any other', async () => {
  const pods = '/api/v1/namespaces/default/pods'
  const endingOf = async (terminationGracePeriodSeconds: number, gracePeriodSeconds?: number): Promise<object> => {
    const name = `grace-${terminationGracePeriodSeconds}-${gracePeriodSeconds ?? 0}`.replaceAll('--', '-minus-')
    const spec = { nodeName: 'tiny-node-1', containers: [{ name: 'a', image: 'a' }], terminationGracePeriodSeconds }
    assert.equal((await ask(pods, { method: 'POST', body: { metadata: { name }, spec } })).status, 201)
    const deleted = await ask(`${pods}/${name}`, { method: 'DELETE', body: { gracePeriodSeconds } })
    assert.equal(deleted.status, 200, deleted.text)
    await waitFor('the pod to be gone', async () => (await ask(`${pods}/${name}`)).status === 404)
    return deleted.json().metadata.deletionGracePeriodSeconds
  }
  const longest = 2 ** 31 - 1
  assert.equal(await endingOf(9e15), longest)
  assert.equal(await endingOf(9e15, 1e18), longest)
  // Only the controller that removes what has lost its owner asks for these.
  const metadata = { name: 'orphan', ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'x', uid: 'gone' }] }
  const spec = { nodeName: 'tiny-node-1', containers: [], terminationGracePeriodSeconds: 9e15 }
  assert.equal((await ask(pods, { method: 'POST', body: { metadata, spec } })).status, 201)
  await waitFor('the orphan to be gone', async () => (await ask(`${pods}/orphan`)).status === 404)
  // Negative ones are one second (registry/rest/delete.go, BeforeDelete).
  assert.equal(await endingOf(-5), 1)
  assert.equal(await endingOf(30, -1), 1)
})

test('deletions with preconditions, as dry runs, and of collections', async () => {
  const [one, two] = await cartPods()
  assert.ok(one !== undefined && two !== undefined)
  const { name, uid, resourceVersion } = one.metadata
  const path = `/api/v1/namespaces/shop/pods/${name}`
  const remove = (body: object, of = path): Promise<KubeResponse> => ask(of, { method: 'DELETE', body })
  const wrong = await remove({ preconditions: { uid: two.metadata.uid } })
  assert.equal(wrong.status, 409)
  assert.match(wrong.json().message, /the UID in the precondition .* deleted and then recreated/)
  assert.equal((await remove({ preconditions: { uid, resourceVersion: '1' } })).status, 409)
  assert.equal((await remove({ dryRun: ['All'] })).status, 200)
  assert.equal((await ask(path)).json().metadata.deletionTimestamp, undefined)
  const collection = `/api/v1/namespaces/shop/pods?fieldSelector=metadata.name%3D${name}`
  assert.equal((await remove({ preconditions: { uid: two.metadata.uid } }, collection)).status, 409)
  const removed = await remove({ preconditions: { uid, resourceVersion }, gracePeriodSeconds: 0 }, collection)
  assert.deepEqual(
    removed.json().items.map((pod: Pod) => pod.metadata.name),
    [name],
  )
  assert.equal((await ask(path)).status, 404)
})

test('an eviction deletes, by the options that it carries', async () => {
  const [one] = (await cartPods()).filter(({ metadata }) => metadata.deletionTimestamp === undefined)
  const { name = '', uid } = one?.metadata ?? {}
  const path = `/api/v1/namespaces/shop/pods/${name}`
  const evict = (deleteOptions: object, of = name): Promise<KubeResponse> => {
    const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: of, namespace: 'shop' }, deleteOptions }
    return ask(`${path}/eviction`, { method: 'POST', body, user: { token: 'alice-token' } })
  }
  assert.equal((await evict({}, 'other')).status, 400)
  assert.equal((await evict({ preconditions: { uid: 'other' } })).status, 409)
  assert.equal((await evict({ dryRun: ['All'] })).status, 201)
  assert.equal((await ask(path)).json().metadata.deletionTimestamp, undefined)
  // A dry run in the query counts, whatever the body carries beside it (eviction.go, propagateDryRun).
  for (const deleteOptions of [{}, null, { gracePeriodSeconds: 0 }]) {
    const body = { metadata: { name }, deleteOptions }
    assert.equal((await ask(`${path}/eviction?dryRun=All`, { method: 'POST', body })).status, 201)
    assert.equal((await ask(path)).json().metadata.deletionTimestamp, undefined)
  }
  const evicted = await evict({ preconditions: { uid }, gracePeriodSeconds: 0 })
  assert.deepEqual([evicted.status, evicted.json().status], [201, 'Success'])
  assert.equal((await ask(path)).status, 404)
  const { resources } = (await ask('/api/v1')).json()
  assert.deepEqual(
    resources.filter((one: { name: string }) => one.name === 'pods/eviction').map((one: object) => ({ ...one })),
    [
      {
        name: 'pods/eviction',
        singularName: '',
        namespaced: true,
        group: 'policy',
        version: 'v1',
        kind: 'Eviction',
        verbs: ['create'],
      },
    ],
  )
})

test('what pod protection needs of the gateway’s user, and nothing more', async () => {
  const pods = '/api/v1/pods'
  assert.match((await ask(`${pods}?limit=1`, { user: gateway })).json().metadata.resourceVersion, /^[0-9]+$/)
  const event = (user: Credentials): Promise<KubeResponse> => {
    const involvedObject = { kind: 'Pod', name: 'x', namespace: 'kube-system' }
    const body = { metadata: { generateName: 'x-' }, involvedObject, reason: 'PodDeletionRefused', message: 'x' }
    return ask('/api/v1/namespaces/kube-system/events', { method: 'POST', body, user })
  }
  assert.equal((await event(gateway)).status, 201)
  assert.equal((await event({ token: 'alice-token' })).status, 403)
  const pod = '/api/v1/namespaces/shop/pods/any'
  assert.equal((await ask(pod, { method: 'DELETE', user: gateway })).status, 403)
})

test('a watch shows what exists, then what changes, relative to its selector', async () => {
  const path = '/api/v1/namespaces/default/configmaps'
  const body = (labels: object): object => ({ metadata: { name: 'w', labels } })
  await ask(path, { method: 'POST', body: body({ on: 'yes' }) })
  const events = watch(`${path}?watch=true&labelSelector=on%3Dyes`)
  await waitFor('the first event', () => events.seen.length === 1)
  await patch(`${path}/w`, 'merge-patch+json', { metadata: { labels: { on: 'no' } } })
  await waitFor('the label to be gone', () => events.seen.length === 2)
  await patch(`${path}/w`, 'merge-patch+json', { metadata: { labels: { on: 'yes' } } })
  await ask(`${path}/w`, { method: 'DELETE' })
  await waitFor('the object to be gone', () => events.seen.length === 4)
  events.stop()
  assert.deepEqual(
    events.seen.map(({ type }) => type),
    ['ADDED', 'DELETED', 'ADDED', 'DELETED'],
  )
})

test('a watch from a resourceVersion misses nothing and repeats nothing; WatchList ends its beginning with a bookmark', async () => {
  const path = '/api/v1/namespaces/default/configmaps'
  const { resourceVersion } = (await ask(path)).json().metadata
  for (const name of ['r1', 'r2']) await ask(path, { method: 'POST', body: { metadata: { name } } })
  const resumed = watch(`${path}?watch=true&resourceVersion=${resourceVersion}`, 1)
  await waitFor('both changes', () => resumed.seen.length === 2)
  resumed.stop()
  assert.deepEqual(
    resumed.seen.map(({ object }) => object.metadata.name),
    ['r1', 'r2'],
  )
  const query = 'watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'
  const list = watch(`${path}?${query}`)
  await waitFor('the bookmark', () => list.seen.some(({ type }) => type === 'BOOKMARK'))
  list.stop()
  assert.equal(list.seen.at(-1)?.object.metadata.annotations?.['k8s.io/initial-events-end'], 'true')
  assert.equal((await ask(`${path}?watch=true&sendInitialEvents=true`)).status, 422)
  for (const name of ['r1', 'r2']) await ask(`${path}/${name}`, { method: 'DELETE' })
})

interface WatchEvent {
  type: string
  object: { metadata: { name: string; annotations?: Record<string, string> } }
}

function watch(path: string, replica = 0): { seen: WatchEvent[]; stop(): void } {
  const seen: WatchEvent[] = []
  const { hostname, port } = new URL(cluster.urls[replica] ?? '')
  const { cert } = admin
  const tls = {
    ca: ca.certPem,
    ...(cert === undefined ? {} : { cert: cert.certPem, key: cert.keyPem }),
    agent: false as const,
  }
  let rest = ''
  const outgoing = request({ hostname, port, path, ...tls }, (response) => {
    response.setEncoding('utf8')
    response.on('error', () => undefined)
    response.on('data', (text: string) => {
      const lines = (rest + text).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) seen.push(JSON.parse(line))
    })
  })
  outgoing.on('error', () => undefined)
  outgoing.end()
  return { seen, stop: () => void outgoing.destroy() }
}

function hasKubectl(): boolean {
  return (process.env['PATH'] ?? '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, 'kubectl'), constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

test('the kubectl of this machine is content', { skip: hasKubectl() ? false : 'no kubectl' }, async () => {
  const kubeconfig = writeKubeconfig(join(dir, 'kubeconfig'), {
    server: cluster.urls[0] ?? '',
    ca: ca.certPem,
    user: admin,
  })
  const run = async (line: string, stdin?: string): Promise<string> => {
    const options = { kubeconfig, program: 'kubectl', home: dir, ...(stdin === undefined ? {} : { stdin }) }
    const result = await kubectl(line.split(' '), options)
    assert.equal(result.code, 0, `kubectl ${line}: ${result.stderr}`)
    return result.stdout
  }
  assert.match(await run('version'), /Server Version: v1\.36/)
  assert.match(await run('auth whoami'), /Ädmin \/ one, 100%/)
  // No heartbeats are sent here: on a busy machine it may be past its time.
  assert.match(await run('get nodes'), /tiny-node-1 +(Not)?Ready +worker/)
  assert.match(await run('get pods -n shop'), /web-\w+-\w+ +1\/1 +Running/)
  assert.match(await run('api-resources'), /deployments +deploy +apps\/v1/)
  assert.match(await run('create deployment five --image=a:1 --replicas=1'), /created/)
  assert.match(await run('scale deployment five --replicas=5'), /scaled/)
  assert.match(await run('rollout status deployment five'), /successfully rolled out/)
  const manifest = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'applied' }, data: { a: '1' } }
  const yaml = (data: object): string => `---\n${JSON.stringify({ ...manifest, data })}`
  assert.match(await run('apply -f -', yaml({ a: '1' })), /created/)
  assert.match(await run('apply -f -', yaml({ a: '2' })), /configured/)
  assert.match(await run('apply --server-side --force-conflicts -f -', yaml({ a: '3' })), /serverside-applied/)
  assert.equal(await run('get configmap applied -o jsonpath={.data.a}'), '3')
  assert.match(await run('delete deployment/five configmap/applied'), /deleted/)
  assert.match(await run('logs -n shop deployment/web'), /served requests/)
})

test('without heartbeats a node is NotReady, and a heartbeat brings it back', async () => {
  const node = 'tiny-node-2'
  const lease = `/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${node}`
  const ready = async (): Promise<string> => {
    const { status } = (await ask(`/api/v1/nodes/${node}`)).json()
    return status.conditions.find((condition: { type: string }) => condition.type === 'Ready').status
  }
  await patch(lease, 'merge-patch+json', { spec: { renewTime: '2020-01-01T00:00:00Z' } })
  await waitFor('the node to be NotReady', async () => (await ready()) === 'Unknown')
  await patch(lease, 'merge-patch+json', { spec: { renewTime: new Date().toISOString() } })
  await waitFor('the node to be Ready', async () => (await ready()) === 'True')
})

test('a killed apiserver answers no more, the other one does', async () => {
  cluster.kill(0)
  await assert.rejects(ask('/readyz'))
  assert.equal((await ask('/readyz', {}, 1)).status, 200)
})
