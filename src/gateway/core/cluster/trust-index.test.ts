import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { UpstreamClusterSpec } from '../../api/upstream-cluster/upstream-cluster.ts'
import { compileCluster } from './compile-cluster.ts'
import type { CompiledCluster } from './compiled-cluster.ts'
import { LiveTrustIndex, type TrustIndex } from './trust-index.ts'

interface IssuerOf {
  readonly url: string
  readonly audiences: string[]
  readonly prefix: string
  readonly discovery: string
}

interface ClusterOf {
  readonly name: string
  readonly ca: string
  readonly issuers: readonly IssuerOf[]
}

function compiled({ name, ca, issuers }: ClusterOf): CompiledCluster {
  const jwt = issuers.map(({ url, audiences, prefix, discovery }) => ({
    issuer: { url: `https://${url}`, audiences, ...(discovery !== '' && { discoveryURL: discovery }) },
    claimMappings: { username: { claim: 'sub', prefix } },
  }))
  const spec: UpstreamClusterSpec = {
    servers: [{ endpoint: 'https://10.0.0.1:6443' }],
    dispatchPolicies: [],
    authentication: { jwt },
    ...(ca !== '' && { secureServing: { clientCAData: Buffer.from(ca).toString('base64') } }),
  }
  const object = { apiVersion: 'proxy.kubegateway.io/v1alpha1', kind: 'UpstreamCluster', metadata: { name }, spec }
  return compileCluster({ object, revision: '1' })
}

/** Names of the clusters by where the keys come from and the prefix of users. */
function named(index: TrustIndex, url: string, audiences: readonly string[]): Set<string> {
  const found = new Set<string>()
  for (const byKeys of index.issuersOf(`https://${url}`, audiences)) {
    for (const [keys, issuers] of byKeys) {
      for (const { issuer, clusters } of issuers) {
        for (const name of clusters.keys()) found.add(`${keys} ${issuer.rules.username.prefix} ${name}`)
      }
    }
  }
  return found
}

/** The same, by looking at all clusters. */
function looked(clusters: Iterable<CompiledCluster>, url: string, audiences: readonly string[]): Set<string> {
  const found = new Set<string>()
  for (const { name, authentication } of clusters) {
    const issuer = authentication.issuers.find(({ rules }) => rules.issuer === `https://${url}`)
    if (issuer === undefined || !issuer.rules.audiences.some((one) => audiences.includes(one))) continue
    found.add(`${issuer.keys} ${issuer.rules.username.prefix} ${name}`)
  }
  return found
}

const ISSUER: IssuerOf = { url: 'login', audiences: ['kubernetes'], prefix: 'oidc:', discovery: '' }

test('clusters with the same entry share it; another audience, prefix or source of keys is another', () => {
  const index = new LiveTrustIndex()
  for (const name of ['a', 'b']) index.replace(undefined, compiled({ name, ca: 'CA', issuers: [ISSUER] }))
  index.replace(undefined, compiled({ name: 'c', ca: '', issuers: [{ ...ISSUER, prefix: 'other:' }] }))
  index.replace(undefined, compiled({ name: 'd', ca: 'CA', issuers: [{ ...ISSUER, discovery: 'https://else' }] }))
  index.replace(undefined, compiled({ name: 'e', ca: 'CB', issuers: [{ ...ISSUER, audiences: ['else'] }] }))
  const [byKeys, ...others] = index.issuersOf('https://login', ['kubernetes', 'nothing', 'kubernetes'])
  assert.equal(others.length, 0)
  const shared = [...(byKeys?.values() ?? [])].map((issuers) =>
    [...issuers].map(({ clusters }) => [...clusters.keys()].join()),
  )
  assert.deepEqual(shared, [['a,b', 'c'], ['d']])
  assert.deepEqual(
    [...index.byClientCA].map(([ca, clusters]) => [ca, [...clusters.keys()]]),
    [
      ['CA', ['a', 'b', 'd']],
      ['CB', ['e']],
    ],
  )
  assert.deepEqual(index.issuersOf('https://else', ['kubernetes']), [])
})

test('a cluster that changes while the index is read is seen once, as it is now', () => {
  const index = new LiveTrustIndex()
  const all = ['a', 'b', 'c'].map((name) => compiled({ name, ca: 'CA', issuers: [ISSUER] }))
  for (const cluster of all) index.replace(undefined, cluster)
  const seen: string[] = []
  for (const [name, cluster] of index.byClientCA.get('CA') ?? []) {
    seen.push(name)
    const changed = compiled({ name, ca: 'CA', issuers: [] })
    if (name === 'a') index.replace(cluster, changed)
    if (name === 'b') index.replace(all[2], undefined)
  }
  assert.deepEqual(seen, ['a', 'b'])
})

const NAMES = ['a', 'b', 'c', 'd']
const issuers = fc.array(
  fc.record({
    url: fc.constantFrom('login', 'other'),
    audiences: fc.uniqueArray(fc.constantFrom('x', 'y', 'z'), { minLength: 1 }),
    prefix: fc.constantFrom('p:', 'q:'),
    discovery: fc.constantFrom('', 'https://d'),
  }),
  { maxLength: 3 },
)
const clusters = fc.record({ name: fc.constantFrom(...NAMES), ca: fc.constantFrom('', 'CA', 'CB'), issuers })
const changes = fc.array(fc.oneof(clusters, fc.record({ remove: fc.constantFrom(...NAMES) })), { maxLength: 20 })

test('after any changes it names what a look at all clusters does', () => {
  fc.assert(
    fc.property(changes, (all) => {
      const index = new LiveTrustIndex()
      const live = new Map<string, CompiledCluster>()
      for (const change of all) {
        const name = 'remove' in change ? change.remove : change.name
        const after = 'remove' in change ? undefined : compiled(change)
        index.replace(live.get(name), after)
        if (after === undefined) live.delete(name)
        else live.set(name, after)
      }
      for (const url of ['login', 'other']) {
        for (const audiences of [['x'], ['y', 'z'], ['x', 'y', 'z']]) {
          assert.deepEqual(named(index, url, audiences), looked(live.values(), url, audiences))
        }
      }
      for (const ca of ['CA', 'CB']) {
        const members = [...live.values()].filter(({ serving }) => serving.clientCA === ca).map(({ name }) => name)
        assert.deepEqual(new Set(index.byClientCA.get(ca)?.keys()), new Set(members))
      }
      assert.ok([...index.byClientCA.values()].every(({ size }) => size > 0))
    }),
  )
})
