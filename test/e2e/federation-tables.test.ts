// What `kubectl get` shows of several clusters: in each cell what the kube-apiserver of the member writes there, in lists, watches and for single objects.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { at } from '../../src/federation/core/tables/printer.ts'
import type { UpstreamCluster } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { parseRequestInfo } from '../../src/gateway/core/request/request-info.ts'
import { startCluster, type TestCluster } from '../harness/clusters/cluster.ts'
import { cacheStates, grantCacheUser } from '../harness/clusters/read-cache.ts'
import { kubeconfigThrough } from '../harness/clusters/upstream-cluster.ts'
import {
  alice,
  createPod,
  federatedClusters,
  federatedUsersCA,
  prepareMember,
  readThrough,
} from '../harness/federation/federated-clusters.ts'
import { TABLE_OBJECTS, type TableObject } from '../harness/federation/table-objects.ts'
import { startGateway, type TestGateway } from '../harness/gateways/gateway.ts'
import { startKubectl } from '../harness/kubectl/kubectl.ts'
import { PATIENT } from '../harness/patience.ts'
import { waitFor } from '../harness/wait.ts'

const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io'
const MERGE = { 'content-type': 'application/merge-patch+json' }
/** Ages of two answers may be of two seconds. */
const ATTEMPTS = 10
const DEFINITION = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.example.com' },
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: { plural: 'widgets', singular: 'widget', kind: 'Widget' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
        additionalPrinterColumns: [
          { name: 'Color', type: 'string', jsonPath: '.spec.color' },
          { name: 'Size', type: 'integer', jsonPath: '.spec.size' },
          { name: 'Ratio', type: 'number', jsonPath: '.spec.ratio', priority: 1 },
          { name: 'On', type: 'boolean', jsonPath: '.spec.on' },
          { name: 'Parts', type: 'string', jsonPath: '.spec.parts' },
          { name: 'First', type: 'string', jsonPath: '.spec.parts[0].name', description: 'the first part' },
          { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
          { name: 'Since', type: 'date', jsonPath: '.spec.since' },
          { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
        ],
      },
    ],
  },
}
const PARTS = [{ name: 'a', size: 1 }, { name: 'b' }]
const WIDGET_SPECS: readonly object[] = [
  { spec: { color: 'red', size: 3, ratio: 0.25, on: true, parts: PARTS, since: '2026-01-01T00:00:00Z' } },
  { spec: { color: 7, size: 2.5, ratio: 3, on: 'yes', parts: [], since: 'long ago' }, status: { conditions: [] } },
  {
    status: {
      conditions: [
        { type: 'Other', status: 'False' },
        { type: 'Ready', status: 'True' },
      ],
    },
  },
]

interface Row {
  readonly cells: unknown[]
  readonly conditions?: unknown
  readonly object: { readonly metadata: { readonly name: string; readonly namespace?: string } }
}
interface Table {
  readonly columnDefinitions: readonly {
    readonly name: string
    readonly type: string
    readonly format: string
    readonly priority: number
  }[]
  readonly rows: readonly Row[]
}

let east: TestCluster
let west: TestCluster
let gateway: TestGateway
let kubeconfig = ''

/** Paths of the collections in all namespaces. */
const PATHS: readonly string[] = [
  ...new Set(TABLE_OBJECTS.map(({ path }) => path.replace('/namespaces/default', ''))),
  '/apis/example.com/v1/widgets',
  '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
]
const RESOURCES = PATHS.map((path) => {
  const info = parseRequestInfo('GET', path)
  if ('failure' in info) throw new Error(path)
  return { group: info.apiGroup, version: info.apiVersion, resource: info.resource }
})

before(async () => {
  const start = (name: string): Promise<TestCluster> => startCluster({ name, clientCA: federatedUsersCA })
  ;[east, west] = await Promise.all([start('east'), start('west')])
  await Promise.all([prepare(east), prepare(west)])
  const clusters = federatedClusters([east, west], { resources: RESOURCES }).map((cluster) => {
    return cluster.spec.members === undefined
      ? ({ ...cluster, spec: { ...cluster.spec, cache: RESOURCES } } as UpstreamCluster)
      : cluster
  })
  gateway = await startGateway({ clusters })
  await waitFor('what is kept', async () => {
    const states = await cacheStates(gateway)
    return states.length === 2 * RESOURCES.length && states.every(({ resourceVersion }) => resourceVersion !== '')
  })
  kubeconfig = await kubeconfigThrough(gateway, east, alice, { name: 'all' })
}, PATIENT)
after(async () => {
  await gateway?.stop()
  await east?.stop()
  await west?.stop()
})

async function prepare(cluster: TestCluster): Promise<void> {
  await prepareMember(cluster, ['alice'])
  await grantCacheUser(cluster, RESOURCES)
  const path = '/apis/rbac.authorization.k8s.io/v1/clusterroles/pod-reader'
  const rules = [{ apiGroups: ['*'], resources: ['*'], verbs: ['get', 'list', 'watch'] }]
  await written(cluster, path, 'PATCH', { rules })
  await written(cluster, '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', 'POST', DEFINITION)
  for (const one of TABLE_OBJECTS) if (one.isRefused !== true) await create(cluster, one)
  const widgets = '/apis/example.com/v1/namespaces/default/widgets'
  await waitFor('widgets', async () => (await cluster.request(widgets)).status === 200)
  for (const [at, fields] of WIDGET_SPECS.entries()) {
    const object = { apiVersion: 'example.com/v1', kind: 'Widget', metadata: { name: `w${at}` }, ...fields }
    await written(cluster, widgets, 'POST', object)
  }
}

async function create(cluster: TestCluster, { path, object, status }: TableObject): Promise<void> {
  const { metadata } = await written(cluster, path, 'POST', object)
  if (status !== undefined) await written(cluster, `${path}/${metadata.name}/status`, 'PATCH', { status })
  // A pod that is bound to a node stays for as long as that takes.
  if (at(object, 'metadata.deletionTimestamp') !== undefined)
    await cluster.request(`${path}/${metadata.name}`, { method: 'DELETE' })
}

async function written(cluster: TestCluster, path: string, method: string, body: object) {
  const headers = method === 'PATCH' ? MERGE : {}
  const { status, text, json } = await cluster.request(path, { method, body, headers })
  assert.ok(status < 300, `${method} ${path}: ${text}`)
  return json()
}

async function tableThrough(path: string): Promise<Table> {
  const { status, text, json } = await readThrough(gateway, path, { headers: { accept: TABLE } })
  assert.equal(status, 200, text)
  return json()
}

async function tableOf(cluster: TestCluster, path: string): Promise<Table> {
  return (await cluster.request(path, { headers: { accept: TABLE } })).json()
}

type Shown = readonly (readonly [key: string, ...unknown[]])[]

/** What is compared of the rows of a Table, by the names of objects; kube-apiserver sorts some kinds in an order of their own. */
function byName(rows: Shown): Shown {
  return [...rows].sort(([a], [b]) => (a < b ? -1 : 1))
}

/** As a member has them, with the names that they have among those of all. */
function expectedRows({ columnDefinitions, rows }: Table, { name: member }: TestCluster): Shown {
  const nameAt = columnDefinitions.findIndex(({ name }) => name === 'Name')
  return rows.map(({ cells, conditions, object: { metadata } }) => {
    const isGlobal = metadata.namespace === undefined
    const shown = cells.slice(0, columnDefinitions.length)
    if (isGlobal) shown[nameAt] = `${member}--${shown[nameAt]}`
    const key = isGlobal ? `${member}--${metadata.name}` : `${member}--${metadata.namespace}/${metadata.name}`
    return [key, ...shown, member, conditions]
  })
}

function shownRows({ rows }: Table): Shown {
  return rows.map(({ cells, conditions, object: { metadata } }) => {
    const key = metadata.namespace === undefined ? metadata.name : `${metadata.namespace}/${metadata.name}`
    return [key, ...cells, conditions]
  })
}

for (const path of PATHS)
  test(`${path}: each cell is that of the member`, async () => {
    for (let attempt = 1; ; attempt++) {
      // It may take two seconds to know that what is kept is current.
      const all = await tableThrough(path)
      const [ofEast, ofWest] = await Promise.all([tableOf(east, path), tableOf(west, path)])
      try {
        const expected = [...expectedRows(ofEast, east), ...expectedRows(ofWest, west)]
        assert.ok(expected.length > 0)
        assert.deepEqual(byName(shownRows(all)), byName(expected))
        const columns = (table: Table): unknown[] =>
          table.columnDefinitions.map(({ name, type, format, priority }) => [name, type, format, priority])
        assert.deepEqual(columns(all), [...columns(ofEast), ['Cluster', 'string', '', 0]])
        return
      } catch (error) {
        if (attempt === ATTEMPTS) throw error
        await wait(100)
      }
    }
  })

async function run(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await east.kubectl(args, { kubeconfig })
  assert.equal(code, 0, stderr)
  return stdout
}

/** The cells of each line. */
function linesOf(text: string): string[][] {
  return text
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/ {2,}/))
}

/** The lines are those of the members, and behind each is the name of its member. */
async function comparesWithMembers(...args: readonly string[]): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const all = linesOf(await run(...args))
    const [ofEast, ofWest] = await Promise.all(
      [east, west].map(async (cluster) => {
        const { code, stdout, stderr } = await cluster.kubectl(args)
        assert.equal(code, 0, stderr)
        return linesOf(stdout).map(([first = '', ...rest], at) =>
          at === 0 ? [first, ...rest, 'CLUSTER'] : [`${cluster.name}--${first}`, ...rest, cluster.name],
        )
      }),
    )
    try {
      assert.ok(all.length > 2)
      assert.deepEqual(all, [...(ofEast ?? []), ...(ofWest ?? []).slice(1)])
      return
    } catch (error) {
      if (attempt === ATTEMPTS) throw error
    }
  }
}

test('kubectl get shows what it shows with each member', async () => {
  await comparesWithMembers('get', 'pods', '-A')
  await comparesWithMembers('get', 'pods', '-A', '-o', 'wide')
  await comparesWithMembers('get', 'deployments', '-A', '-o', 'wide')
  await comparesWithMembers('get', 'widgets', '-A')
  await comparesWithMembers('get', 'nodes', '-o', 'wide')
})

test('kubectl pages, sorts, selects, and shows labels and single objects', async () => {
  const whole = linesOf(await run('get', 'pods', '-A'))
  const paged = linesOf(await run('get', 'pods', '-A', '--chunk-size=5'))
  assert.deepEqual(
    paged.map(([namespace, name]) => [namespace, name]),
    whole.map(([namespace, name]) => [namespace, name]),
  )
  const sorted = linesOf(await run('get', 'pods', '-A', '--sort-by=.metadata.name', '--no-headers'))
  const names = sorted.map(([, name = '']) => name)
  assert.deepEqual(names, [...names].sort())
  assert.equal(names.length, whole.length - 1)
  const labelled = linesOf(await run('get', 'pods', '-A', '-l', 'of=west', '-L', 'of', '--no-headers'))
  assert.deepEqual(
    labelled.map((cells) => [cells[0], cells[1], ...cells.slice(-2)]),
    [
      ['west--default', 'only-west', 'west', 'west'],
      ['west--default', 'web', 'west', 'west'],
    ],
  )
  const [head, line] = linesOf(await run('get', 'pod', 'running', '-n', 'west--default'))
  assert.deepEqual(head, ['NAME', 'READY', 'STATUS', 'RESTARTS', 'AGE', 'CLUSTER'])
  assert.deepEqual([line?.slice(0, 3), line?.at(-1)], [['running', '2/2', 'Running'], 'west'])
})

test('kubectl get -w shows changes of all members in the same columns', PATIENT, async () => {
  // It refuses pods, as nothing counts what is used of it.
  for (const cluster of [east, west])
    await cluster.request('/api/v1/namespaces/default/resourcequotas/quota', { method: 'DELETE' })
  const watch = await startKubectl(['get', 'pods', '-A', '-w'], { kubeconfig, timeoutMs: 120_000 })
  try {
    await watch.output(/west--default +web /)
    await Promise.all([createPod(east, 'late'), createPod(west, 'late')])
    await watch.output(/^east--default +late +0\/1 +Pending +0 +\d+s +east$/m)
    await watch.output(/^west--default +late +0\/1 +Pending +0 +\d+s +west$/m)
    const status = { phase: 'Failed', reason: 'Evicted' }
    await written(west, '/api/v1/namespaces/default/pods/late/status', 'PATCH', { status })
    await watch.output(/^west--default +late +0\/1 +Evicted +0 +\d+s +west$/m)
  } finally {
    await watch.stop()
  }
})

test('kubectl get -w of one pod', PATIENT, async () => {
  const watch = await startKubectl(['get', 'pod', 'late', '-n', 'east--default', '-w'], {
    kubeconfig,
    timeoutMs: 120_000,
  })
  try {
    await watch.output(/^late +0\/1 +Pending/m)
    const status = { phase: 'Failed', reason: 'Evicted' }
    await written(east, '/api/v1/namespaces/default/pods/late/status', 'PATCH', { status })
    await watch.output(/^late +0\/1 +Evicted +0 +\d+s +east$/m)
  } finally {
    await watch.stop()
  }
})

test('a watch of Tables is as that of a kube-apiserver: columns once, and rows in bookmarks', async () => {
  const query =
    'watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1&timeoutSeconds=3'
  const path = '/api/v1/namespaces/NAMESPACE/pods'
  const shapeOf = (lines: readonly { type: string; object: unknown }[]): unknown => {
    const shapes = lines.map(({ type, object }) => {
      const { kind, columnDefinitions, rows } = object as Table & { kind: string }
      return [type, kind, columnDefinitions === null, rows.map(({ cells }) => typeof cells[0])]
    })
    return shapes.slice(0, shapes.findIndex(([type]) => type === 'BOOKMARK') + 1)
  }
  const direct = await east.request(`${path.replace('NAMESPACE', 'default')}?${query}`, { headers: { accept: TABLE } })
  const ours = await readThrough(gateway, `${path.replace('NAMESPACE', 'east--default')}?${query}`, {
    headers: { accept: TABLE },
  })
  const parsed = (text: string): { type: string; object: unknown }[] =>
    text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
  assert.deepEqual(shapeOf(parsed(ours.text)), shapeOf(parsed(direct.text)))
})

test('columns of a definition that is changed are shown at once', async () => {
  const columns = async (): Promise<readonly string[]> =>
    (await tableThrough('/apis/example.com/v1/widgets')).columnDefinitions.map(({ name }) => name)
  const [version] = DEFINITION.spec.versions
  const versions = [
    { ...version, additionalPrinterColumns: [{ name: 'Hue', type: 'string', jsonPath: '.spec.color' }] },
  ]
  const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com'
  await written(east, path, 'PATCH', { spec: { versions } })
  await waitFor('the new column', async () => (await columns()).includes('Hue'))
  assert.deepEqual(await columns(), ['Name', 'Hue', 'Cluster'])
})

test('rows of a member that is away stay as they were, with a Warning', PATIENT, async () => {
  const whole = linesOf(await run('get', 'pods', '-A', '--no-headers'))
  for (const apiserver of west.apiservers) await apiserver.kill()
  const known = (lines: string[][]): unknown => lines.map(([namespace, name, , status]) => [namespace, name, status])
  await waitFor('the loss to be known', async () => {
    const { code, stderr, stdout } = await east.kubectl(['get', 'pods', '-A', '--no-headers'], { kubeconfig })
    if (code !== 0 || !/Warning: west as of \d\d:\d\d:\d\d/.test(stderr)) return false
    assert.deepEqual(known(linesOf(stdout)), known(whole))
    return true
  })
})
