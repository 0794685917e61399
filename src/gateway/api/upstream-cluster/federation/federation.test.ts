// spec.members and spec.federation: valid values, and every error with its path and fix.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FieldError } from '../../../../kit/api/json/field-error.ts'
import type { JsonObject } from '../../../../kit/api/json/json-object.ts'
import { nodePemChecks } from '../../../../pki/io/pem-checks.ts'
import { UPSTREAM_CLUSTERS } from '../../upstream-cluster-kind.ts'
import { type ClusterCheckOptions, checkUpstreamCluster, normalizeUpstreamCluster } from '../checks.ts'

const PODS = { version: 'v1', resource: 'pods' }
const FEDERATION = { resources: [PODS] }
const EAST = { name: 'east', trustUsers: true }
const WEST = { name: 'west', cluster: 'west-1.example.com' }

function objectOf(spec: object): object {
  return {
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: { name: 'all' },
    spec: { dispatchPolicies: [{ rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }] }], ...spec },
  }
}

function check(spec: object, options: ClusterCheckOptions = {}): readonly FieldError[] {
  const found = checkUpstreamCluster(objectOf({ federation: FEDERATION, ...spec }), nodePemChecks, options)
  return found.filter(({ path }) => !path.endsWith('.trustUsers'))
}

test('valid values', () => {
  const valid: readonly object[] = [
    { members: [EAST] },
    { members: [EAST, WEST, { name: 'w', cluster: 'west' }] },
    { members: [EAST], federation: { ...FEDERATION, mode: 'prefixed', partial: 'Omit', denied: 'Omit' } },
    {
      members: [EAST],
      federation: {
        mode: 'merged',
        resources: [
          { ...PODS, uniqueNames: true },
          { ...PODS, group: 'a.b' },
        ],
      },
    },
    { members: Array.from({ length: 64 }, (_, at) => ({ name: `m${at}` })) },
    { members: [{ name: 'm'.repeat(32), cluster: `${'c'.repeat(63)}.example.com` }] },
    { members: [], federation: null, servers: [{ endpoint: 'http://10.0.0.1:8080' }] },
  ]
  for (const spec of valid) assert.deepEqual(check(spec), [], JSON.stringify(spec))
})

test('errors say where and what to write', () => {
  const members = (...all: readonly object[]): object => ({ members: all })
  const resources = (...all: readonly object[]): object => ({ members: [EAST], federation: { resources: all } })
  const wrong: readonly (readonly [object, string, RegExp])[] = [
    [
      members({ name: 'east--1' }),
      'members[0].name',
      /-- separates it from the namespaces.*without two hyphens.*as cluster/,
    ],
    [members({ name: 'east--1', cluster: 'east--1' }), 'members[0].name', /-- separates.*in a row$/],
    [members(EAST, { name: 'East' }), 'members[1].name', /not a valid name of a member.*lower-case/],
    [members({ name: 'eu.east' }), 'members[0].name', /part of namespaces.*as cluster/],
    [members({ name: '-east' }), 'members[0].name', /not a valid name/],
    [members({ name: 'm'.repeat(33) }), 'members[0].name', /32/],
    [members({ name: '' }), 'members[0].name', /"" is not a valid name/],
    [members({ cluster: 'east' }), 'members[0].name', /required/],
    [members({ name: 'e', cluster: 'not a name' }), 'members[0].cluster', /metadata.name/],
    [members(EAST, { ...EAST, cluster: 'west' }), 'members[1].name', /name of spec.members\[0\] too.*another name/],
    [
      members(EAST, { name: 'e', cluster: 'east' }),
      'members[1].cluster',
      /same cluster as spec.members\[0\].*there twice/,
    ],
    [members(WEST, { name: 'w', cluster: 'west-1.example.com' }), 'members[1].cluster', /same cluster/],
    [members({ name: 'all' }), 'members[0].name', /is this cluster itself.*has servers/],
    [members({ name: 'e', cluster: 'all' }), 'members[0].cluster', /is this cluster itself/],
    [members(...Array.from({ length: 65 }, (_, at) => ({ name: `m${at}` }))), 'members', /64/],
    [
      { members: [EAST], servers: [{ endpoint: 'http://10.0.0.1:8080' }] },
      'servers',
      /may not be specified with members.*name it in spec.members/,
    ],
    [
      { federation: FEDERATION, servers: [{ endpoint: 'http://10.0.0.1:8080' }] },
      'members',
      /required when federation is set/,
    ],
    [{ federation: undefined }, 'servers', /required.*kube-apiservers, or members/],
    [{ federation: undefined, members: [] }, 'servers', /required/],
    [resources({ ...PODS, resource: 'pods/log' }), 'federation.resources[0].resource', /subresource/],
    [resources(PODS, { ...PODS, version: 'apps/v1' }), 'federation.resources[1].version', /write v1/],
    [resources({ ...PODS, group: 'apps/v1' }), 'federation.resources[0].group', /without the version/],
    [
      resources(PODS, { ...PODS, group: '' }),
      'federation.resources[1]',
      /same resource as spec.federation.resources\[0\]/,
    ],
    [{ members: [EAST], federation: { ...FEDERATION, mode: 'both' } }, 'federation.mode', /prefixed/],
    [{ members: [EAST], federation: { ...FEDERATION, partial: 'omit' } }, 'federation.partial', /Omit/],
  ]
  for (const [spec, path, text] of wrong) {
    const found = check(spec)
    const [problem, ...more] = found
    assert.deepEqual([problem?.severity, problem?.path, more], ['error', `spec.${path}`, []], JSON.stringify(spec))
    assert.match(`${problem?.message}; ${problem?.fix}`, text)
  }
})

test('what has no effect is warned of', () => {
  const warned = (spec: object, options: ClusterCheckOptions = {}): readonly string[] =>
    check(spec, options).map(({ severity, path }) => `${severity} ${path}`)
  assert.deepEqual(
    warned({
      members: [EAST],
      cache: [PODS],
      healthCheck: {},
      clientConfig: { insecure: true },
      podProtection: {},
      followEndpointSlice: false,
    }),
    ['clientConfig', 'healthCheck', 'podProtection', 'cache'].map((field) => `warning spec.${field}`),
  )
  assert.deepEqual(warned({ members: [EAST], federation: {} }), ['warning spec.federation.resources'])
  assert.deepEqual(warned({ members: [EAST], federation: undefined }), ['warning spec.federation.resources'])
  assert.deepEqual(warned({ members: [EAST], federation: { resources: [{ ...PODS, uniqueNames: true }] } }), [
    'warning spec.federation.resources[0].uniqueNames',
  ])
  assert.deepEqual(warned({ members: [EAST] }, { withoutSubject: (field) => field === 'members' }), [
    'warning spec.members',
  ])
})

test('a member that trusts no user is warned of', () => {
  const found = checkUpstreamCluster(objectOf({ federation: FEDERATION, members: [EAST, WEST] }), nodePemChecks)
  assert.deepEqual(
    found.map(({ severity, path, message }) => [severity, path, message]),
    [['warning', 'spec.members[1].trustUsers', 'is not set: no user may read there']],
  )
})

test('a member that has members itself is refused, whichever of the two is written last', () => {
  const all = objectOf({ members: [EAST, { name: 'w', cluster: 'west' }] }) as JsonObject
  const other = (name: string, spec: object): JsonObject => ({ ...objectOf(spec), metadata: { name } })
  const told = (others: readonly JsonObject[]): readonly string[] =>
    (UPSTREAM_CLUSTERS.conflicts?.(all, others) ?? []).map(({ path, message }) => `${path}: ${message}`)
  const east = other('east', { servers: [] })
  assert.deepEqual(told([east, other('others', { members: [EAST] })]), [])
  assert.deepEqual(told([east, other('west', { members: [{ name: 'x' }] })]), [
    'spec.members[1]: UpstreamCluster "west" has members itself',
  ])
  assert.deepEqual(told([other('more', { members: [{ name: 'a', cluster: 'all' }] })]), [
    'spec.members: UpstreamCluster "more" has this cluster as a member',
  ])
  // Each names the other.
  assert.equal(told([other('east', { members: [{ name: 'all' }] })]).length, 2)
  for (const members of [null, 'a', [null], [1], [{}], [{ name: 1, cluster: [] }]])
    assert.deepEqual(told([other('odd', { members })]), [])
})

test('a cluster with members has no servers in force', () => {
  assert.deepEqual(normalizeUpstreamCluster(objectOf({ members: [EAST] })).spec.servers, [])
})
