// Servers with `resolve`: how their addresses become endpoints.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UPSTREAM_CLUSTER_SPEC_SCHEMA } from '../api/upstream-cluster/schema.ts'
import type { UpstreamCluster, UpstreamServer } from '../api/upstream-cluster/upstream-cluster.ts'
import { compileCluster } from '../core/cluster/compile-cluster.ts'
import { SEEDS, SLICE } from '../core/cluster/compile-settings.ts'
import type { CompiledCluster } from '../core/cluster/compiled-cluster.ts'
import { ClusterTable } from './clusters.ts'

const NAME = 'https://api.test:6443'
const OTHER = 'https://10.0.0.9:6443'

function compiled(
  servers: readonly UpstreamServer[],
  addresses: Readonly<Record<string, readonly string[]>>,
  subset: readonly string[] = [],
): CompiledCluster {
  const object: UpstreamCluster = {
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: { name: 'prod' },
    spec: {
      servers,
      clientConfig: { insecure: true },
      dispatchPolicies: [{ rules: [{ verbs: ['*'] }], upstreamSubset: subset }],
    },
  }
  const known = new Map(Object.entries(addresses))
  return compileCluster({ object, revision: '1' }, UPSTREAM_CLUSTER_SPEC_SCHEMA, known)
}

function urls({ endpoints }: CompiledCluster): string[] {
  return endpoints.map(({ url }) => url)
}

test('each address is an endpoint with all that the server has', () => {
  const server = { endpoint: NAME, resolve: true, weight: 7, disabled: true }
  const { endpoints } = compiled([server], { [NAME]: ['10.0.0.1', 'fd00::1'] })
  const same = { scheme: 'https', port: 6443, weight: 7, disabled: true, of: { url: NAME, name: 'api.test' } }
  assert.deepEqual(endpoints, [
    { ...same, url: 'https://10.0.0.1:6443', host: '10.0.0.1' },
    { ...same, url: 'https://[fd00::1]:6443', host: 'fd00::1' },
  ])
})

test('before it is known, and beside addresses that cannot serve yet, the server is as written', () => {
  const server = { endpoint: NAME, resolve: true }
  assert.deepEqual(urls(compiled([server], {})), [NAME])
  assert.deepEqual(urls(compiled([server], { [NAME]: ['10.0.0.1', 'api.test'] })), ['https://10.0.0.1:6443', NAME])
})

test('an address counts once; only servers that ask for it are resolved', () => {
  const both = { [NAME]: ['10.0.0.9', '10.0.0.1'], [OTHER]: ['10.9.9.9'] }
  const servers = [
    { endpoint: OTHER, resolve: true },
    { endpoint: NAME, resolve: true },
  ]
  assert.deepEqual(urls(compiled(servers, both)), [OTHER, 'https://10.0.0.1:6443'])
  assert.deepEqual(urls(compiled([{ endpoint: NAME }], both)), [NAME])
})

test('a policy that names the server means all its addresses', () => {
  const servers = [{ endpoint: OTHER }, { endpoint: NAME, resolve: true }]
  const addresses = { [NAME]: ['10.0.0.1', '10.0.0.2'] }
  const endpointsOf = (...subset: string[]) => compiled(servers, addresses, subset).policies[0]?.endpoints
  assert.deepEqual(endpointsOf(NAME), [1, 2])
  assert.deepEqual(endpointsOf(NAME, OTHER), [1, 2, 0])
  assert.deepEqual(endpointsOf(), [0, 1, 2])
})

test('other addresses are another version, but the same cluster: verified identities stay', () => {
  const servers = [{ endpoint: NAME, resolve: true }]
  const [one, two] = [['10.0.0.1'], ['10.0.0.2', '10.0.0.3']].map((all) => compiled(servers, { [NAME]: all }))
  assert.ok(one !== undefined && two !== undefined)
  assert.notEqual(one.revision, two.revision)
  const table = new ClusterTable()
  table.change([one], [], 0)
  const epoch = table.get('prod')?.identityEpoch
  table.change([two], [], 0)
  assert.equal(table.get('prod')?.endpoints.all.length, 2)
  assert.equal(table.get('prod')?.identityEpoch, epoch)
  table.change([{ ...compiled([{ endpoint: OTHER }], {}), revision: '2' }], [], 0)
  assert.notEqual(table.get('prod')?.identityEpoch, epoch)
})

test('addresses of the EndpointSlice serve before the servers as written, under the name of one of them', () => {
  const at = (...slice: string[]) => {
    const { endpoints } = compiled([{ endpoint: OTHER, weight: 7 }, { endpoint: NAME }], { [SLICE]: slice })
    return endpoints.map(({ url, weight, backup = false, of }) => ({ url, weight, backup, of }))
  }
  const of = { url: NAME, name: 'api.test', slice: true }
  const [other, name] = [
    { url: OTHER, weight: 7, backup: false, of: undefined },
    { url: NAME, weight: 100, backup: false, of: undefined },
  ]
  assert.deepEqual(at(), [other, name])
  const found = [
    { url: 'https://10.0.0.1:6443', weight: 100, backup: false, of },
    { url: 'https://[fd00::1]:443', weight: 100, backup: false, of },
  ]
  const slice = ['10.0.0.1:6443', '[fd00::1]:443']
  assert.deepEqual(at(...slice), [{ ...other, backup: true }, { ...name, backup: true }, ...found])
  // Until one of them can serve.
  assert.deepEqual(at(...slice, SEEDS), [other, name, ...found])
  // A server that is in the slice stays as written.
  assert.deepEqual(at('10.0.0.9:6443'), [other, { ...name, backup: true }])
})

test('a backup takes requests only while no other endpoint does', () => {
  const table = new ClusterTable()
  table.change([compiled([{ endpoint: NAME }], { [SLICE]: ['10.0.0.1:6443'] })], [], 0)
  const { endpoints, compiled: now } = table.get('prod') ?? assert.fail()
  const [seed, found] = endpoints.all
  assert.ok(seed !== undefined && found !== undefined)
  const available = () => [endpoints.available(0, 0), endpoints.available(1, 0)]
  const probe = (endpoint: typeof seed, ok: boolean): void => {
    for (let i = 0; i < 3; i++) endpoints.onProbe(endpoint, ok, '', now.healthCheck, i)
  }
  assert.deepEqual(available(), [false, false])
  probe(seed, true)
  assert.deepEqual(available(), [true, false])
  probe(found, true)
  assert.deepEqual(available(), [false, true])
  probe(found, false)
  assert.deepEqual(available(), [true, false])
})
