// How much work it is to find the clusters that accept a credential, counted in steps: no test here measures time.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodePart, type Jwt, readJwt } from '../../pki/io/jwt.ts'
import { compileCluster } from '../core/cluster/compile-cluster.ts'
import { LiveTrustIndex } from '../core/cluster/trust-index.ts'
import type { SignatureFault } from '../io/reviews/issuer-tokens.ts'
import { acceptingClusters, checkSignatures } from './accepting-clusters.ts'
import type { Exchange } from './exchange/exchange.ts'

const ISSUER = 'https://login.example.com'

/** @param discovery where the issuer of a cluster says that its keys are; '' = at its URL */
function exchangeWith(count: number, discovery: (n: number) => string, fault?: SignatureFault): [Exchange, string[]] {
  const trust = new LiveTrustIndex()
  for (let n = 0; n < count; n++) {
    const discoveryURL = discovery(n)
    const issuer = { url: ISSUER, audiences: ['kubernetes'], ...(discoveryURL !== '' && { discoveryURL }) }
    const jwt = [{ issuer, claimMappings: { username: { claim: 'sub', prefix: `${n % 3}:` } } }]
    const spec = { servers: [{ endpoint: 'https://10.0.0.1:6443' }], dispatchPolicies: [], authentication: { jwt } }
    const object = { apiVersion: 'proxy.kubegateway.io/v1alpha1', kind: 'UpstreamCluster' }
    trust.replace(
      undefined,
      compileCluster({ object: { ...object, metadata: { name: `c${n}` }, spec }, revision: '1' }),
    )
  }
  const verified: string[] = []
  const faultOf = ({ keys }: { readonly keys: string }): SignatureFault | undefined => {
    verified.push(keys)
    return fault
  }
  const gw = { clusters: { trust }, issuers: { faultOf } }
  const exchange = { gw, record: { userAgent: '' }, peer: { remoteAddress: '10.0.0.9' }, nowMs: 0 }
  return [exchange as unknown as Exchange, verified]
}

function tokenOf(claims: object): Jwt {
  return readJwt(`${encodePart({ alg: 'RS256' })}.${encodePart(claims)}.AAAA`) ?? assert.fail()
}

const TOKEN = tokenOf({ iss: ISSUER, aud: 'kubernetes', sub: 'alice' })

for (const count of [10, 3_000]) {
  test(`among ${count} clusters of one issuer, a signature is verified once, and a stranger causes no other step`, () => {
    const [exchange, verified] = exchangeWith(count, () => '', 'unknown-key')
    const checked: Parameters<typeof checkSignatures>[2] = []
    const steps = [...checkSignatures(exchange, TOKEN, checked)]
    assert.equal(steps.length, 1)
    assert.equal(verified.length, 1)
    // Without a key that has signed it, no cluster is looked at.
    assert.deepEqual([...acceptingClusters(exchange, undefined, { jwt: TOKEN, hashes: [], keys: new Set() })], [])
  })

  test(`among ${count} clusters, a token of another issuer, or for another audience, causes no step`, () => {
    const [exchange, verified] = exchangeWith(count, () => '')
    const others = [
      { iss: 'https://else' },
      { iss: ISSUER, aud: 'else' },
      { iss: 1, aud: [{}] },
      {},
      { iss: '__proto__' },
    ]
    for (const claims of others) assert.equal([...checkSignatures(exchange, tokenOf(claims), [])].length, 0)
    assert.equal(verified.length, 0)
  })

  test(`among ${count} clusters, the claims are read once for each mapping, and each cluster comes once`, () => {
    const [exchange] = exchangeWith(count, () => '')
    const checked: Parameters<typeof checkSignatures>[2] = []
    const all = [...checkSignatures(exchange, TOKEN, checked)]
    assert.equal(all.length, 1)
    const keys = new Set(checked.map(([source]) => source))
    const twice = tokenOf({ iss: ISSUER, aud: ['kubernetes', 'kubernetes', 'else'], sub: 'alice' })
    const steps = [...acceptingClusters(exchange, undefined, { jwt: twice, hashes: [], keys })]
    const found = steps.filter((step) => step !== undefined)
    assert.equal(found.length, count)
    assert.equal(new Set(found.map(({ cluster }) => cluster.name)).size, count)
    assert.equal(steps.length - found.length, 3)
    assert.deepEqual(
      new Set(found.map(({ requester }) => requester.user.name)),
      new Set(['0:alice', '1:alice', '2:alice']),
    )
  })
}

test('each source of keys is asked once, one step each', () => {
  const [exchange, verified] = exchangeWith(100, (n) => `https://keys-${n % 5}.example.com/`)
  assert.equal([...checkSignatures(exchange, TOKEN, [])].length, 5)
  assert.equal(new Set(verified).size, 5)
})
