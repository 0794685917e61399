// How `protect why` and `scale why` read a member of a federated cluster: by which contexts of a kubeconfig, under which names, and what they do not ask
// for. The gateway is a stub, which sees each path.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, test } from 'node:test'
import { stringify } from 'yaml'
import { UPSTREAM_CLUSTERS } from '../../src/gateway/api/upstream-cluster-kind.ts'
import type { JsonObject } from '../../src/kit/api/json/json-object.ts'
import { POD_PROTECTORS } from '../../src/protection/api/pod-protector-kind.ts'
import { protectWhy } from '../../src/protection/cli/why.ts'
import { SCALE_DOWN_POLICIES } from '../../src/scaling/api/scale-down-policy-kind.ts'
import { scaleWhy } from '../../src/scaling/cli/why.ts'
import { base64 } from '../harness/clusters/kubeconfig.ts'
import { MemoryObjects } from '../harness/objects/memory-objects.ts'
import { type StubUpstream, startStub, stubServing } from '../harness/upstreams/stub-upstream.ts'

const LABELS = { app: 'web' }
const HOUR_AGO = '2030-01-31T11:00:00Z'
const NOW = Date.parse('2030-01-31T12:00:00Z')
let gateway: StubUpstream
let home: string
let core: MemoryObjects
/** What the gateway was asked for. */
const asked: string[] = []
/** Its answers by path, of objects and lists. */
let answers: ReadonlyMap<string, JsonObject>
const { KUBECONFIG } = process.env

before(async () => {
  home = mkdtempSync(join(tmpdir(), 'federated-contexts-'))
  process.env['KUBECONFIG'] = join(home, 'none')
  gateway = await startStub(0, {}, '127.0.0.1', ({ url = '' }, response) => {
    const [path = ''] = url.split('?')
    asked.push(path)
    const answer = answers.get(path)
    response.statusCode = answer === undefined ? 403 : 200
    response.setHeader('content-type', 'application/json')
    const refused = { kind: 'Status', status: 'Failure', reason: 'Forbidden', code: 403, message: 'you may not' }
    response.end(JSON.stringify(answer ?? refused))
  })
})
after(async () => {
  if (KUBECONFIG === undefined) delete process.env['KUBECONFIG']
  else process.env['KUBECONFIG'] = KUBECONFIG
  await gateway.stop()
  rmSync(home, { recursive: true, force: true })
})
beforeEach(() => {
  asked.length = 0
  answers = new Map()
  core = new MemoryObjects()
  upstream('east-1', { servers: [{ endpoint: 'https://192.0.2.1' }], podProtection: {} })
  upstream('all', { members: [{ name: 'east', cluster: 'east-1', trustUsers: true }] })
  upstream('merged', { members: [{ name: 'east', cluster: 'east-1' }], federation: { mode: 'merged' } })
  const counts = { totalReplicas: 4, availableReplicas: 4, readyReplicas: 4, runningReplicas: 4, scheduledReplicas: 4 }
  core.put(POD_PROTECTORS, {
    metadata: { name: 'web', namespace: 'shop' },
    spec: { minAvailable: 4, minReadySeconds: 0, selector: { matchLabels: LABELS } },
    status: {
      cells: [{ cellID: 'east-1', aggregation: { ...counts, lastEventTime: '2030-01-31T11:59:59.000000Z' } }],
      summary: { totalReplicas: 4, aggregatedAvailableReplicas: 4, estimatedAvailableReplicas: 4 },
    },
  })
})

function upstream(name: string, spec: JsonObject): void {
  core.put(UPSTREAM_CLUSTERS, { metadata: { name }, spec: { dispatchPolicies: [], ...spec } })
}

/** The current context leads nowhere; the others to clusters of the gateway. */
function kubeconfigOf(...names: readonly string[]): string {
  const file = join(home, 'kubeconfig')
  const ca = base64(stubServing().ca.certPem)
  const server = (name: string): string => (name === 'core' ? 'https://127.0.0.1:1' : `${gateway.url}/clusters/${name}`)
  const all = ['core', ...names]
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'core',
    clusters: all.map((name) => ({ name, cluster: { server: server(name), 'certificate-authority-data': ca } })),
    users: [{ name: 'me', user: { token: 'mine' } }],
    contexts: all.map((name) => ({ name, context: { cluster: name, user: 'me' } })),
  }
  writeFileSync(file, stringify(config))
  return file
}

function pod(namespace: string, name = 'web-a', nodeName = 'n1'): JsonObject {
  const conditions = ['PodScheduled', 'Ready'].map((type) => ({ type, status: 'True', lastTransitionTime: HOUR_AGO }))
  const ownerReferences = [{ uid: 'set', controller: true }]
  const metadata = { name, namespace, uid: name, labels: LABELS, creationTimestamp: HOUR_AGO, ownerReferences }
  return { apiVersion: 'v1', kind: 'Pod', metadata, spec: { nodeName }, status: { phase: 'Running', conditions } }
}

/** Deployment `web` with two pods. */
function workload(cluster: string, namespace: string): Map<string, JsonObject> {
  const [api, apps] = ['api/v1', 'apis/apps/v1'].map((group) => `/clusters/${cluster}/${group}/namespaces/${namespace}`)
  const selector = { matchLabels: LABELS }
  const spec = { replicas: 2, selector, template: { metadata: { labels: LABELS } } }
  const set = { name: 'web-1', namespace, uid: 'set', ownerReferences: [{ uid: 'web', name: 'web', controller: true }] }
  const listOf = (items: readonly JsonObject[]): JsonObject => ({ metadata: { resourceVersion: '1' }, items })
  return new Map<string, JsonObject>([
    [`${apps}/deployments/web`, { metadata: { name: 'web', namespace, uid: 'web' }, spec }],
    [`${apps}/replicasets`, listOf([{ metadata: set, spec }])],
    [`${api}/pods`, listOf([pod(namespace, 'web-a', 'n1'), pod(namespace, 'web-b', 'n2')])],
  ])
}

interface Ran {
  readonly code: number
  readonly out: string
  readonly err: string
}

type Io = { out: (text: string) => void; err: (text: string) => void; client: MemoryObjects; now: () => number }

async function run(command: (io: Io) => Promise<number>): Promise<Ran> {
  const [out, err]: [string[], string[]] = [[], []]
  const print = { out: (text: string) => void out.push(text), err: (text: string) => void err.push(text) }
  const code = await command({ ...print, client: core, now: () => NOW })
  return { code, out: out.join(''), err: err.join('') }
}

const IN_ALL = { cluster: 'all', namespace: 'east--shop' }

function why(kubeconfig: string, options: object = IN_ALL): Promise<Ran> {
  return run((io) => protectWhy({ ...io, pod: 'web-a', cluster: 'east-1', namespace: 'shop', kubeconfig, ...options }))
}

test('through the federated cluster: asked by its names, decided by those of the member', async () => {
  answers = new Map([['/clusters/all/api/v1/namespaces/east--shop/pods/web-a', pod('east--shop')]])
  const { code, out, err } = await why(kubeconfigOf('other', 'merged', 'all'))
  assert.equal(
    err,
    'note: namespace east--shop of all is shop of east-1\nnote: the pod is read through the gateway, by context all\n',
  )
  assert.match(out, /^pod east--shop\/web-a: .*\nPodProtector shop\/web: 4 required, 4 counted, .*: refuses/)
  assert.equal(code, 1)
  assert.deepEqual(asked, ['/clusters/all/api/v1/namespaces/east--shop/pods/web-a'])
  // The namespace that decides is the one of the member.
  upstream('east-1', { servers: [], podProtection: { excludedNamespaces: ['shop'] } })
  assert.match((await why(kubeconfigOf('all'))).out, /passes: spec\.podProtection excludes namespace shop\n/)
})

test('the context of the member itself comes first, by its own names', async () => {
  answers = new Map([
    ['/clusters/all/api/v1/namespaces/east--shop/pods/web-a', pod('east--shop')],
    ['/clusters/east-1/api/v1/namespaces/shop/pods/web-a', pod('shop')],
  ])
  const { err } = await why(kubeconfigOf('all', 'east-1'))
  assert.match(err, /by context east-1\n$/)
  assert.deepEqual(asked, ['/clusters/east-1/api/v1/namespaces/shop/pods/web-a'])
})

test('the member by its own name is read through the federated cluster, too, and never through merged names', async () => {
  answers = new Map([
    ['/clusters/merged/api/v1/namespaces/shop/pods/web-a', pod('shop')],
    ['/clusters/all/api/v1/namespaces/east--shop/pods/web-a', pod('east--shop')],
  ])
  const { out } = await why(kubeconfigOf('merged', 'all'), {})
  assert.match(out, /^pod shop\/web-a: /)
  const none = await why(kubeconfigOf('merged'), {})
  assert.match(none.err, /^error: pod shop\/web-a cannot be read /)
  assert.ok(!asked.some((path) => path.startsWith('/clusters/merged')))
})

test('a context that is given is asked by the names that it has, and only that one', async () => {
  answers = new Map([
    ['/clusters/all/api/v1/namespaces/east--shop/pods/web-a', pod('east--shop')],
    ['/clusters/east-1/api/v1/namespaces/shop/pods/web-a', pod('shop')],
  ])
  const podKubeconfig = kubeconfigOf('all', 'east-1')
  for (const podContext of ['all', 'east-1']) {
    const { code, out, err } = await why(podKubeconfig, { ...IN_ALL, podKubeconfig, podContext })
    assert.match(out, /^pod east--shop\/web-a: /, err)
    assert.equal(code, 1)
  }
  answers = new Map()
  const { code, out, err } = await why(podKubeconfig, { ...IN_ALL, podKubeconfig, podContext: 'all' })
  assert.match(err, /\nerror: the API server refuses: you may not; the user of the kubeconfig needs get of pods/)
  assert.deepEqual([code, out], [1, ''])
  assert.deepEqual(asked, [
    '/clusters/all/api/v1/namespaces/east--shop/pods/web-a',
    '/clusters/east-1/api/v1/namespaces/shop/pods/web-a',
    '/clusters/all/api/v1/namespaces/east--shop/pods/web-a',
  ])
})

test('a scale-down is the same through both, except what a policy wants to know of nodes, which are those of all members', async () => {
  const prefer = [{ by: 'UnschedulableNode' }, { by: 'EmptiestNode' }]
  core.put(SCALE_DOWN_POLICIES, {
    metadata: { name: 'nodes', namespace: 'shop' },
    spec: { cluster: 'east-1', selector: { matchLabels: LABELS }, prefer },
  })
  const scale = (kubeconfig: string, options: object): Promise<Ran> =>
    run((io) => scaleWhy({ ...io, target: 'deployment/web', replicas: 1, kubeconfig, ...options }))
  answers = workload('all', 'east--shop')
  const all = await scale(kubeconfigOf('all'), IN_ALL)
  assert.match(all.out, /^deployment east--shop\/web: 2 replicas now, 1 asked for; /)
  assert.match(all.out, /\nPodProtector shop\/web: 4 required, 4 counted, .*: refuses 1 of 1 deletions/)
  assert.match(
    all.err,
    /note: ScaleDownPolicy shop\/nodes chooses, and what its choice depends on cannot be read here: through a federated cluster/,
  )
  assert.equal(all.code, 1)
  assert.deepEqual(new Set(asked), new Set(answers.keys()))
  core.remove(SCALE_DOWN_POLICIES, 'nodes', 'shop')
  answers = new Map([...answers, ...workload('east-1', 'shop')])
  const [federated, direct] = [
    await scale(kubeconfigOf('all'), IN_ALL),
    await scale(kubeconfigOf('east-1'), { cluster: 'east-1', namespace: 'shop' }),
  ]
  assert.equal(federated.out.replaceAll('east--shop', 'shop'), direct.out)
})
