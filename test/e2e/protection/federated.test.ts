// PodProtectors and scale-downs, asked about by the names of a federated cluster: two real clusters with one service, read as one, and a core with the
// PodProtector. What a user is told is what the user may read in the member.

import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import { parse, stringify } from 'yaml'
import { type ProtectStatusOptions, protectStatus } from '../../../src/protection/cli/status.ts'
import { type ProtectWhyOptions, protectWhy } from '../../../src/protection/cli/why.ts'
import { type ScaleWhyOptions, scaleWhy } from '../../../src/scaling/cli/why.ts'
import type { Credentials } from '../../harness/clusters/kubeconfig.ts'
import {
  CORE_PPR_PATH,
  createPod,
  type ProtectedClusters,
  setPodStatus,
  startProtectedClusters,
} from '../../harness/clusters/protected-clusters.ts'
import { grantCacheUser } from '../../harness/clusters/read-cache.ts'
import { kubeconfigThrough, upstreamClusterFor } from '../../harness/clusters/upstream-cluster.ts'
import {
  alice,
  federatedClusters,
  federatedUsersCA,
  readThrough,
  userNamed,
} from '../../harness/federation/federated-clusters.ts'
import { PATIENT } from '../../harness/patience.ts'
import { waitFor } from '../../harness/wait.ts'

const SHOP = 'shop'
const IN_EAST = 'east--shop'
const LABELS = { app: 'web' }
const MERGE = { 'content-type': 'application/merge-patch+json' }
const RESOURCES = [
  { version: 'v1', resource: 'pods' },
  { group: 'apps', version: 'v1', resource: 'deployments' },
  { group: 'apps', version: 'v1', resource: 'replicasets' },
]
const PROTECTORS = [{ group: 'podseidon.kubewharf.io', version: 'v1alpha1', resource: 'podprotectors' }]
/** May read pods in east, and nothing else. */
const bob = userNamed('bob')

let world: ProtectedClusters
/** The core is the current context, and `all` another one. */
let aliceConfig = ''
let pods: readonly string[] = []

before(async () => {
  world = await startProtectedClusters({ controllers: 'direct' })
  await world.createNamespace(SHOP)
  await world.createProtector(SHOP, 'web', { minAvailable: 5, minReadySeconds: 0, selector: { matchLabels: LABELS } })
  await federate()
  await createDeployment()
  await createPod(world.worker(1), SHOP, 'web-west', { labels: LABELS })
  await world.untilSummary(SHOP, 'web', [5, 5, 5])
  aliceConfig = await configOf(alice)
  for (const path of ['/api/v1/namespaces/east--shop/pods', '/apis/apps/v1/namespaces/east--shop/replicasets']) {
    await waitFor(`${path} to be as in east`, async () => {
      const { status, json } = await readThrough(world.gateway, path)
      return status === 200 && json().items.length === (path.endsWith('pods') ? 4 : 1)
    })
  }
}, PATIENT)
after(() => world?.stop())

/** `all` is east and west, which are worker-1 and worker-2; `cores` is the core alone. */
async function federate(): Promise<void> {
  const { core, workers } = world
  for (const worker of workers) {
    await grantCacheUser(worker, RESOURCES)
    await grantReader(world.workers.indexOf(worker), 'alice', ['pods', 'deployments', 'replicasets'])
    const path = `/apis/proxy.kubegateway.io/v1alpha1/upstreamclusters/${worker.name}`
    const { status, text } = await core.request(path, {
      method: 'PATCH',
      headers: MERGE,
      body: { spec: { cache: RESOURCES } },
    })
    assert.equal(status, 200, text)
  }
  await grantReader(0, 'bob', ['pods'])
  await grantCacheUser(core, PROTECTORS)
  await grantReader('core', 'alice', ['podprotectors'])
  const members = workers.map(({ name: cluster }, at) => ({
    name: at === 0 ? 'east' : 'west',
    cluster,
    trustUsers: true,
  }))
  const all = federatedClusters(workers, { resources: RESOURCES }).at(-1)
  assert.ok(all !== undefined)
  const cores = {
    ...all,
    metadata: { name: 'cores' },
    spec: {
      ...all.spec,
      secureServing: { ...upstreamClusterFor(core, { name: 'cores' }).spec.secureServing, clientCAData: base64CA() },
      members: [{ name: 'core', trustUsers: true }],
      federation: { resources: PROTECTORS },
    },
  }
  for (const object of [
    { ...all, spec: { ...all.spec, members } },
    upstreamClusterFor(core, { spec: { cache: PROTECTORS } }),
    cores,
  ]) {
    await core.apply(JSON.stringify(object))
  }
}

function base64CA(): string {
  return Buffer.from(federatedUsersCA.certPem).toString('base64')
}

async function grantReader(at: number | 'core', name: string, resources: readonly string[]): Promise<void> {
  const group = 'rbac.authorization.k8s.io'
  const metadata = { name: `reader-${name}` }
  const rules = [{ apiGroups: ['', 'apps', 'podseidon.kubewharf.io'], resources, verbs: ['get', 'list', 'watch'] }]
  const subjects = [{ kind: 'User', name, apiGroup: group }]
  const roleRef = { apiGroup: group, kind: 'ClusterRole', name: metadata.name }
  const objects = [
    { apiVersion: `${group}/v1`, kind: 'ClusterRole', metadata, rules },
    { apiVersion: `${group}/v1`, kind: 'ClusterRoleBinding', metadata, subjects, roleRef },
  ]
  const cluster = at === 'core' ? world.core : world.worker(at)
  await cluster.apply(objects.map((object) => `---\n${stringify(object)}`).join(''))
}

/** Four pods in east, which are ready. */
async function createDeployment(): Promise<void> {
  const spec = { containers: [{ name: 'main', image: 'one' }] }
  const template = { metadata: { labels: LABELS }, spec: { ...spec, automountServiceAccountToken: false } }
  const body = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', namespace: SHOP },
    spec: { replicas: 4, selector: { matchLabels: LABELS }, template },
  }
  const east = world.worker(0)
  const created = await east.request(`/apis/apps/v1/namespaces/${SHOP}/deployments`, { method: 'POST', body })
  assert.equal(created.status, 201, created.text)
  pods = await waitFor('its pods', async () => {
    const { items } = (await east.request(`/api/v1/namespaces/${SHOP}/pods`)).json()
    return items.length === 4 && items.map(({ metadata }: { metadata: { name: string } }) => metadata.name)
  })
  for (const pod of pods) await setPodStatus(east, SHOP, pod)
}

async function configOf(user: Credentials): Promise<string> {
  const file = await kubeconfigThrough(world.gateway, world.core, user, { path: true, name: 'all' })
  const all = parse(readFileSync(file, 'utf8'))
  const core = parse(readFileSync(world.core.adminKubeconfig, 'utf8'))
  const renamed = (config: typeof all, name: string): typeof all => ({
    clusters: [{ ...config.clusters[0], name }],
    users: [{ ...config.users[0], name }],
    contexts: [{ name, context: { cluster: name, user: name } }],
  })
  const parts = [renamed(core, 'core'), renamed(all, 'all')]
  const whole = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'core',
    clusters: parts.flatMap(({ clusters }) => clusters),
    users: parts.flatMap(({ users }) => users),
    contexts: parts.flatMap(({ contexts }) => contexts),
  }
  writeFileSync(file, stringify(whole))
  return file
}

interface Ran {
  readonly code: number
  readonly out: string
  readonly err: string
}

type Io = { out: (text: string) => void; err: (text: string) => void; now: () => number }

async function run(command: (io: Io) => Promise<number>): Promise<Ran> {
  const [out, err]: [string[], string[]] = [[], []]
  const io = { out: (text: string) => void out.push(text), err: (text: string) => void err.push(text), now: Date.now }
  const code = await command(io)
  return { code, out: out.join(''), err: err.join('') }
}

function why(options: Partial<ProtectWhyOptions> = {}): Promise<Ran> {
  const [pod = ''] = pods
  return run((io) =>
    protectWhy({ ...io, kubeconfig: aliceConfig, pod, namespace: IN_EAST, cluster: 'all', ...options }),
  )
}

function scale(options: Partial<ScaleWhyOptions> = {}): Promise<Ran> {
  const asked = { kubeconfig: aliceConfig, target: 'deployment/web', replicas: 2, namespace: IN_EAST }
  return run((io) => scaleWhy({ ...io, ...asked, ...options }))
}

function status(options: Partial<ProtectStatusOptions> = {}): Promise<Ran> {
  return run((io) =>
    protectStatus({ ...io, kubeconfig: aliceConfig, allNamespaces: false, cluster: 'all', ...options }),
  )
}

describe('protect why', () => {
  test('a pod of the federated cluster: read there, decided by the PodProtectors of the core for the cell of the member', async () => {
    const { code, out, err } = await why()
    assert.match(
      err,
      /^note: namespace east--shop of all is shop of worker-1\nnote: the pod is read through the gateway, by context all\n$/,
    )
    assert.match(out, /^pod east--shop\/web-\S+: ready for /)
    assert.match(
      out,
      /\nPodProtector shop\/web: 5 required, 5 counted, 0 being deleted: refuses: too few would be left\n/,
    )
    assert.equal(code, 1)
    const [pod = ''] = pods
    const deleted = await world.deletePod(0, SHOP, pod, { dryRun: ['All'] })
    assert.equal(deleted.status, 429, deleted.text)
  })

  test('by the names of the member through the same context, and no other way', async () => {
    const member = await why({ cluster: 'worker-1', namespace: SHOP })
    assert.match(member.err, /^note: the pod is read through the gateway, by context all\n$/)
    assert.match(member.out, /^pod shop\/web-/)
    assert.equal(member.code, 1)
    const gone = await why({ pod: 'web-west' })
    assert.match(gone.err, /\nerror: there is no pod east--shop\/web-west in worker-1; /)
    assert.equal((await why({ pod: 'web-west', namespace: 'west--shop' })).code, 1)
  })

  test('a context that is given is asked by its own names, with its own rights', async () => {
    const given = { podKubeconfig: await configOf(bob), podContext: 'all' }
    const east = await why(given)
    assert.match(east.out, /^pod east--shop\/web-/, east.err)
    const west = await why({ ...given, pod: 'web-west', namespace: 'west--shop' })
    assert.match(west.err, /error: the API server refuses: user "bob" cannot get pods in cluster "west"/)
    assert.deepEqual([west.code, west.out], [1, ''])
    const direct = await why({ podKubeconfig: world.worker(0).adminKubeconfig })
    assert.match(direct.out, /^pod east--shop\/web-/, direct.err)
  })
})

describe('scale why', () => {
  test('says of the federated cluster what it says of the member', async () => {
    const federated = await scale({ cluster: 'all' })
    assert.match(federated.err, /note: the workload is read through the gateway, by context all\n/)
    assert.match(federated.out, /^deployment east--shop\/web: 4 replicas now, 2 asked for; 2 of its pods go/)
    assert.match(federated.out, /\nPodProtector shop\/web: .*: refuses 2 of 2 deletions/)
    assert.equal(federated.code, 1)
    // With the ages of pods changes which of them go, and in how many seconds.
    await waitFor('the same of both', async () => {
      const one = { cluster: 'worker-1', namespace: SHOP, podKubeconfig: world.worker(0).adminKubeconfig }
      const [all, direct] = await Promise.all([scale({ cluster: 'all' }), scale(one)])
      const rest = (text: string): string => text.slice(text.indexOf(';'))
      assert.equal(rest(all.out), rest(direct.out))
      return true
    })
  })

  test('with the context of the federated cluster alone', async () => {
    const { code, out, err } = await scale({ context: 'all' })
    assert.match(out, /^deployment east--shop\/web: 4 replicas now, 2 asked for; 2 of its pods go/, err)
    assert.equal(code, 0)
    const missing = await scale({ context: 'all', target: 'statefulset/web' })
    assert.match(
      missing.err,
      /^error: .*spec\.federation\.resources does not name \/apis\/apps\/v1\/.*statefulsets\/web/,
    )
    assert.equal(missing.code, 1)
  })

  test('who may read no Deployment in the member is told nothing of it', async () => {
    const { code, out, err } = await scale({ cluster: 'all', podKubeconfig: await configOf(bob), podContext: 'all' })
    assert.match(err, /error: the API server refuses: user "bob" cannot get deployments\.apps in cluster "east"/)
    assert.deepEqual([code, out], [1, ''])
  })
})

test('protect status shows the PodProtectors of all members, by the names of their namespaces', async () => {
  const all = await status({ allNamespaces: true })
  const rows = all.out.split('\n').map((row) => row.split(/ {2,}/))
  const shown = rows.map(([namespace, name, , , , , , , cell]) => `${namespace} ${name} ${cell?.split(',')[0]}`)
  assert.deepEqual(shown.slice(1, 3), [
    'east--shop web worker-1: 4 available of 4',
    'west--shop web worker-2: 1 available of 1',
  ])
  const east = await status({ namespace: IN_EAST })
  assert.match(east.out, /\neast--shop +web +5 +5 +5 .*worker-1: 4 available of 4/)
  assert.ok(!east.out.includes('worker-2'))
  const none = await status({ namespace: 'north--shop' })
  assert.match(none.err, /^error: all has no member "north"; its members are east, west\n$/)
})

test('a core that is a member shows its PodProtectors as other objects', async () => {
  const kubeconfig = await kubeconfigThrough(world.gateway, world.core, alice, { path: true, name: 'cores' })
  const { metadata } = await waitFor('the list', async () => {
    const { code, stdout } = await world.core.kubectl(['get', 'podprotectors', '-A', '-o', 'json'], { kubeconfig })
    return code === 0 && JSON.parse(stdout).items[0]
  })
  assert.deepEqual([metadata.namespace, metadata.name], ['core--shop', 'web'])
  const own = (await world.core.request(`${CORE_PPR_PATH}/namespaces/${SHOP}/podprotectors/web`)).json()
  assert.equal(metadata.uid, own.metadata.uid)
  const { out } = await run((io) => protectStatus({ ...io, kubeconfig, allNamespaces: true }))
  assert.match(out, /\ncore--shop +web +5 +5 +5 /)
})
