import assert from 'node:assert/strict'
import { test } from 'node:test'
import { discoveryAt, joinedResources } from './discovery.ts'
import { writtenVerbs } from './writes/written-request.ts'

const RESOURCES = [
  { group: '', version: 'v1', resource: 'pods' },
  { group: 'apps', version: 'v1', resource: 'deployments' },
  { group: 'apps', version: 'v1beta1', resource: 'deployments' },
]

test('the versions of the core group, and other groups with theirs', () => {
  assert.deepEqual(discoveryAt('/api', RESOURCES), {
    kind: 'answer',
    body: { kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs: [] },
  })
  const versions = ['v1', 'v1beta1'].map((version) => ({ groupVersion: `apps/${version}`, version }))
  const apps = { name: 'apps', versions, preferredVersion: versions[0] }
  assert.deepEqual(discoveryAt('/apis/', RESOURCES), {
    kind: 'answer',
    body: { kind: 'APIGroupList', apiVersion: 'v1', groups: [apps] },
  })
  assert.deepEqual(discoveryAt('/apis/apps', RESOURCES), {
    kind: 'answer',
    body: { kind: 'APIGroup', apiVersion: 'v1', ...apps },
  })
})

test('resources of a version are asked of the members', () => {
  assert.deepEqual(discoveryAt('/api/v1', RESOURCES), { kind: 'resources', groupVersion: 'v1', names: ['pods'] })
  assert.deepEqual(discoveryAt('/apis/apps/v1beta1', RESOURCES), {
    kind: 'resources',
    groupVersion: 'apps/v1beta1',
    names: ['deployments'],
  })
})

for (const path of [
  '/',
  '/version',
  '/api/v2',
  '/apis/batch',
  '/apis/batch/v1',
  '/apis/apps/v2',
  '/api/v1/x',
  '/apis//v1',
]) {
  test(`nothing is at ${path}`, () => {
    assert.equal(discoveryAt(path, RESOURCES), undefined)
  })
}

test('of what members have, what is federated is shown once, with the verbs that are answered', () => {
  const pods = {
    name: 'pods',
    singularName: 'pod',
    kind: 'Pod',
    namespaced: true,
    shortNames: ['po'],
    verbs: ['create', 'list'],
  }
  const log = { ...pods, name: 'pods/log', verbs: ['get', 'more'] }
  const east = { resources: [log, pods, { name: 'secrets' }, { name: 'pods/proxy' }, { name: 'secrets/log' }] }
  const west = { resources: [{ ...pods, shortNames: ['other'] }] }
  assert.deepEqual(
    joinedResources([undefined, 'x', { resources: 1 }, east, west], 'v1', ['pods'], () => []),
    {
      kind: 'APIResourceList',
      apiVersion: 'v1',
      groupVersion: 'v1',
      resources: [
        { ...log, verbs: ['get'] },
        { ...pods, verbs: ['get', 'list', 'watch'] },
      ],
    },
  )
  assert.deepEqual(
    joinedResources([{ resources: [log] }], 'v1', ['secrets'], () => []),
    {
      kind: 'APIResourceList',
      apiVersion: 'v1',
      groupVersion: 'v1',
      resources: [],
    },
  )
})

test('with prefixed names, there are the verbs of writes that the member has, too', () => {
  const names = ['pods', 'nodes', 'deployments']
  const all = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch']
  const verbsOf = (groupVersion: string, resources: readonly object[]): object => {
    const joined = joinedResources([{ resources }], groupVersion, names, writtenVerbs) as {
      resources: readonly { name: string; verbs: readonly string[] }[]
    }
    return Object.fromEntries(joined.resources.map(({ name, verbs }) => [name, [...verbs].sort()]))
  }
  const writes = ['get', 'patch', 'update']
  assert.deepEqual(
    verbsOf('v1', [
      { name: 'pods', namespaced: true, verbs: all },
      { name: 'nodes', namespaced: false, verbs: all },
      { name: 'pods/status', namespaced: true, verbs: writes },
      { name: 'pods/eviction', namespaced: true, verbs: ['create'] },
      { name: 'pods/ephemeralcontainers', namespaced: true, verbs: ['patch'] },
      { name: 'pods/binding', namespaced: true, verbs: ['create'] },
      { name: 'pods/proxy', namespaced: true, verbs: all },
      { name: 'nodes/eviction', namespaced: false, verbs: ['create'] },
      { name: 'services', namespaced: true, verbs: all },
    ]),
    {
      pods: all,
      nodes: all.filter((verb) => verb !== 'deletecollection'),
      'pods/status': writes,
      'pods/eviction': ['create'],
      'pods/ephemeralcontainers': ['patch'],
    },
  )
  assert.deepEqual(
    verbsOf('apps/v1', [
      { name: 'deployments', namespaced: true, verbs: ['get', 'list', 'watch'] },
      { name: 'deployments/scale', namespaced: true, verbs: writes },
      { name: 'deployments/eviction', namespaced: true, verbs: ['create'] },
    ]),
    { deployments: ['get', 'list', 'watch'], 'deployments/scale': writes },
  )
})
