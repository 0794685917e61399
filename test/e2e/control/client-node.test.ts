// @kubernetes/client-node as controllers use it: typed calls and informers against the gateway's own API server.

import assert from 'node:assert/strict'
import { after, before, describe, type TestContext, test } from 'node:test'
import {
  ApiException,
  CoordinationV1Api,
  CoreV1Api,
  CustomObjectsApi,
  type Informer,
  KubeConfig,
  type KubernetesListObject,
  type KubernetesObject,
  KubernetesObjectApi,
  makeInformer,
  type ObjectCache,
  PatchStrategy,
  setHeaderOptions,
  VersionApi,
} from '@kubernetes/client-node'
import type {
  UpstreamCluster,
  UpstreamClusterSpec,
} from '../../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { cluster } from '../../harness/clients/control-client.ts'
import { startControl } from '../../harness/gateways/control.ts'
import { type EmbeddedGateway, startEmbedded, UC_PATH } from '../../harness/gateways/embedded.ts'
import { base64 } from '../../harness/objects/objects.ts'
import { startSeverableProxy } from '../../harness/upstreams/severable-proxy.ts'
import { waitFor } from '../../harness/wait.ts'

const UC = { group: 'proxy.kubegateway.io', version: 'v1alpha1', plural: 'upstreamclusters' }
const MERGE = setHeaderOptions('Content-Type', PatchStrategy.MergePatch)
const STRATEGIC = setHeaderOptions('Content-Type', PatchStrategy.StrategicMergePatch)

/** An UpstreamCluster as client-node's types have objects. */
interface ServedCluster extends KubernetesObject {
  readonly spec: UpstreamClusterSpec
}

let embedded: EmbeddedGateway
let kubeconfig: KubeConfig

before(async () => {
  embedded = await startEmbedded()
  kubeconfig = load(embedded.kubeconfig)
})
after(async () => {
  await embedded?.stop()
})

function load(file: string, server?: string): KubeConfig {
  const config = new KubeConfig()
  config.loadFromFile(file)
  if (server !== undefined) config.clusters = config.clusters.map((each) => ({ ...each, server }))
  return config
}

/** A valid one, whose server does not listen. */
function manifest(name: string, spec: Partial<UpstreamClusterSpec> = {}): UpstreamCluster {
  return cluster(name, { servers: [{ endpoint: 'https://127.0.0.1:1' }], ...spec })
}

async function refused(call: Promise<unknown>, code: number): Promise<string> {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  assert.ok(error instanceof ApiException, String(error))
  assert.equal(error.code, code, error.message)
  return String(error.body)
}

describe('typed calls', { concurrency: false }, () => {
  test('custom objects: create, get, list, patch, replace, status, delete', async () => {
    const api = kubeconfig.makeApiClient(CustomObjectsApi)
    const name = 'typed.example.com'
    const created: ServedCluster = await api.createClusterCustomObject({ ...UC, body: manifest(name) })
    assert.equal(created.metadata?.generation, 1)
    assert.match(await refused(api.createClusterCustomObject({ ...UC, body: manifest(name) }), 409), /AlreadyExists/)
    const merge = { spec: { degrade: { mode: 'ReadOnly', reason: 'typed' } } }
    const merged: ServedCluster = await api.patchClusterCustomObject({ ...UC, name, body: merge }, MERGE)
    assert.deepEqual(merged.spec.degrade, merge.spec.degrade)
    const operations = [{ op: 'replace', path: '/spec/degrade/mode', value: 'Freeze' }]
    const patched: ServedCluster = await api.patchClusterCustomObject({ ...UC, name, body: operations })
    assert.equal(patched.spec.degrade?.mode, 'Freeze')
    const stale = { ...manifest(name), metadata: { name, resourceVersion: '1' } }
    assert.match(await refused(api.replaceClusterCustomObject({ ...UC, name, body: stale }), 409), /has been modified/)
    const current: ServedCluster = await api.getClusterCustomObject({ ...UC, name })
    const replaced: ServedCluster = await api.replaceClusterCustomObject({
      ...UC,
      name,
      body: { ...manifest(name), metadata: { name, resourceVersion: current.metadata?.resourceVersion } },
    })
    assert.equal(replaced.spec.degrade, undefined)
    assert.equal(replaced.metadata?.generation, 4)
    const list: KubernetesListObject<ServedCluster> = await api.listClusterCustomObject({ ...UC, limit: 1 })
    assert.deepEqual(
      list.items.map(({ metadata }) => metadata?.name),
      [name],
    )
    const invalid = manifest('invalid.example.com', { servers: [] })
    assert.match(await refused(api.createClusterCustomObject({ ...UC, body: invalid }), 422), /spec\.servers/)
    await api.deleteClusterCustomObject({ ...UC, name })
    await refused(api.getClusterCustomObject({ ...UC, name }), 404)
  })

  test('Secrets, Namespaces, Leases, Events, the version', async () => {
    const core = kubeconfig.makeApiClient(CoreV1Api)
    await core.createNamespace({ body: { metadata: { name: 'team' } } })
    const in_ = { namespace: 'team' }
    const body = { metadata: { name: 'creds', labels: { app: 'x' } }, stringData: { token: 'one' } }
    const created = await core.createNamespacedSecret({ ...in_, body })
    assert.deepEqual(created.data, { token: base64('one') })
    assert.ok(created.metadata?.creationTimestamp instanceof Date)
    const patch = { stringData: { more: 'two' } }
    const patched = await core.patchNamespacedSecret({ ...in_, name: 'creds', body: patch }, STRATEGIC)
    assert.deepEqual(
      Object.keys(patched.data ?? {}).sort((a, b) => (a < b ? -1 : 1)),
      ['more', 'token'],
    )
    const found = await core.listSecretForAllNamespaces({ labelSelector: 'app=x' })
    assert.deepEqual(
      found.items.map(({ metadata }) => metadata?.name),
      ['creds'],
    )
    const deleted = await core.deleteNamespacedSecret({ ...in_, name: 'creds' })
    assert.equal(deleted.status, 'Success')
    await core.deleteNamespace({ name: 'team' })
    assert.ok(Array.isArray((await core.listEventForAllNamespaces()).items))
    const leases = await kubeconfig.makeApiClient(CoordinationV1Api).listLeaseForAllNamespaces()
    assert.ok(leases.items.some(({ spec }) => spec?.leaseDurationSeconds === 15))
    assert.equal((await kubeconfig.makeApiClient(VersionApi).getCode()).major, '1')
  })

  test('objects of any kind: server-side apply, by discovery', async () => {
    const api = KubernetesObjectApi.makeApiClient(kubeconfig)
    const object = manifest('applied.example.com')
    const apply = (mode: 'ReadOnly' | 'Freeze'): Promise<ServedCluster> => {
      const spec = { ...object.spec, degrade: { mode } }
      const body = { ...object, spec, metadata: { name: object.metadata.name } }
      return api.patch(body, undefined, undefined, 'test', true, PatchStrategy.ServerSideApply)
    }
    assert.equal((await apply('ReadOnly')).spec.degrade?.mode, 'ReadOnly')
    assert.equal((await apply('Freeze')).spec.degrade?.mode, 'Freeze')
    const { apiVersion, kind } = object
    const head = { apiVersion, kind, metadata: { name: object.metadata.name } }
    assert.equal((await api.read(head)).metadata?.generation, 2)
    await api.delete(head)
    await refused(api.read(head), 404)
  })
})

interface Watching {
  readonly informer: Informer<ServedCluster> & ObjectCache<ServedCluster>
  /** `add NAME`, `update NAME`, `delete NAME`, in order. */
  readonly seen: string[]
  readonly connects: () => number
  readonly errors: () => number
}

/** An informer that begins again after an error, as its documentation has it. */
async function follow(t: TestContext, config: KubeConfig): Promise<Watching> {
  const api = config.makeApiClient(CustomObjectsApi)
  const informer = makeInformer<ServedCluster>(config, UC_PATH, () => api.listClusterCustomObject(UC))
  const seen: string[] = []
  let connects = 0
  let errors = 0
  let stopped = false
  let again: NodeJS.Timeout | undefined
  for (const verb of ['add', 'update', 'delete'] as const) {
    informer.on(verb, ({ metadata }) => seen.push(`${verb} ${metadata?.name}`))
  }
  informer.on('connect', () => connects++)
  informer.on('error', () => {
    errors++
    again = setTimeout(() => !stopped && void informer.start().catch(() => undefined), 100)
  })
  t.after(async () => {
    stopped = true
    clearTimeout(again)
    await informer.stop()
  })
  await informer.start()
  return { informer, seen, connects: () => connects, errors: () => errors }
}

function modeOf({ informer }: Watching, name: string): string | undefined {
  return informer.get(name)?.spec.degrade?.mode
}

describe('informers', { concurrency: false }, () => {
  test('the list, then what happens', async (t) => {
    await embedded.admin.post(UC_PATH, manifest('listed.example.com'))
    const watching = await follow(t, kubeconfig)
    assert.ok(watching.informer.get('listed.example.com'))
    await embedded.admin.post(UC_PATH, manifest('later.example.com'))
    await waitFor('it to be added', () => watching.informer.get('later.example.com') !== undefined)
    await embedded.patch('later.example.com', { spec: { degrade: { mode: 'ReadOnly', reason: 'x' } } })
    await waitFor('it to be changed', () => modeOf(watching, 'later.example.com') === 'ReadOnly')
    for (const name of ['listed', 'later']) await embedded.admin.delete(`${UC_PATH}/${name}.example.com`)
    await waitFor('both to be gone', () => watching.informer.list().length === 0)
    // Statuses are written in between.
    const changes = watching.seen.filter((line) => !line.startsWith('update'))
    assert.deepEqual(changes, [
      'add listed.example.com',
      'add later.example.com',
      'delete listed.example.com',
      'delete later.example.com',
    ])
    assert.ok(watching.seen.includes('update later.example.com'))
    assert.equal(watching.errors(), 0)
  })

  test('connections that break: what happened meanwhile is caught up with', async (t) => {
    const proxy = await startSeverableProxy(embedded.gateway.controlPort)
    t.after(() => proxy.stop())
    await embedded.admin.post(UC_PATH, manifest('kept.example.com'))
    await embedded.admin.post(UC_PATH, manifest('lost.example.com'))
    const watching = await follow(t, load(embedded.kubeconfig, `https://127.0.0.1:${proxy.port}`))
    assert.equal(watching.informer.list().length, 2)
    // The watch is open when an event has come through.
    await embedded.patch('kept.example.com', { spec: { degrade: { mode: 'ReadOnly', reason: 'x' } } })
    await waitFor('the change', () => modeOf(watching, 'kept.example.com') === 'ReadOnly')
    proxy.sever()
    await waitFor('the error', () => watching.errors() > 0)
    await embedded.admin.delete(`${UC_PATH}/lost.example.com`)
    await embedded.admin.post(UC_PATH, manifest('new.example.com'))
    await embedded.patch('kept.example.com', { spec: { degrade: { mode: 'Freeze' } } })
    proxy.restore()
    await waitFor('all of it', () => {
      const names = watching.informer.list().map(({ metadata }) => metadata?.name)
      return names.sort((a = '', b = '') => (a < b ? -1 : 1)).join() === 'kept.example.com,new.example.com'
    })
    await waitFor('the other change', () => modeOf(watching, 'kept.example.com') === 'Freeze')
    assert.deepEqual(
      watching.seen.filter((line) => !line.startsWith('update')),
      ['add kept.example.com', 'add lost.example.com', 'delete lost.example.com', 'add new.example.com'],
    )
  })

  test('a server that ends all watches: they go on from where they were, without another list', async (t) => {
    const control = await startControl()
    t.after(() => control.stop())
    const config = load(control.kubeconfig)
    const api = config.makeApiClient(CustomObjectsApi)
    const watching = await follow(t, config)
    for (const [i, name] of ['one', 'two', 'three'].entries()) {
      await api.createClusterCustomObject({ ...UC, body: manifest(`${name}.example.com`) })
      await waitFor(name, () => watching.informer.get(`${name}.example.com`) !== undefined)
      const connects = watching.connects()
      control.endWatches()
      await waitFor('it to connect again', () => watching.connects() > connects)
      assert.equal(watching.informer.list().length, i + 1)
    }
    await api.deleteClusterCustomObject({ ...UC, name: 'two.example.com' })
    await waitFor('the end of one', () => watching.informer.list().length === 2)
    assert.deepEqual(watching.seen, [
      'add one.example.com',
      'add two.example.com',
      'add three.example.com',
      'delete two.example.com',
    ])
    assert.equal(watching.errors(), 0)
    assert.deepEqual(control.errors, [])
  })
})
