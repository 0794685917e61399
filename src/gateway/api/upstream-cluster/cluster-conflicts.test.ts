import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { claimsOf, findConflicts, heldClaims } from './cluster-conflicts.ts'
import type { UpstreamCluster } from './upstream-cluster.ts'

interface Claims {
  hosts?: string[]
  ips?: string[]
  ports?: number[]
  default?: boolean
}

function cluster(
  name: string,
  { hosts = [], ips = [], ports = [], default: isDefault = false }: Claims = {},
): UpstreamCluster {
  return {
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: { name },
    spec: {
      servers: [],
      dispatchPolicies: [],
      secureServing: { serverNames: hosts },
      addresses: { ips, ports },
      default: isDefault,
    },
  }
}

const notHeld = (): boolean => false

function conflicts(clusters: UpstreamCluster[], inForce: UpstreamCluster[] = []): string[] {
  return findConflicts(clusters, heldClaims(inForce)).map(
    ({ loser, holder, claim }) => `${loser} ${claim.path} < ${holder}: ${claim.what}`,
  )
}

test('host names, addresses, ports and the default place belong to one cluster', () => {
  const a = cluster('a', { hosts: ['X.example.com'], ips: ['fd00::1', '10.0.0.1'], ports: [8443], default: true })
  const b = cluster('b', {
    hosts: ['ok', 'x.example.com.', 'A'],
    ips: ['fd00:0::0:1', '::ffff:10.0.0.1'],
    ports: [1, 8443],
    default: true,
  })
  assert.deepEqual(conflicts([a, b]), [
    'b spec.secureServing.serverNames[1] < a: host name "x.example.com"',
    'b spec.secureServing.serverNames[2] < a: host name "a"',
    'b spec.addresses.ips[0] < a: address fd00::1',
    'b spec.addresses.ips[1] < a: address 10.0.0.1',
    'b spec.addresses.ports[1] < a: listener port 8443',
    'b spec.default < a: the place of default cluster',
  ])
})

test('a wildcard and a name under it do not exclude each other', () => {
  assert.deepEqual(conflicts([cluster('a', { hosts: ['*.x'] }), cluster('b', { hosts: ['b.x'] })]), [])
  assert.equal(conflicts([cluster('a', { hosts: ['*.x'] }), cluster('b', { hosts: ['*.X'] })]).length, 1)
})

test('a cluster may name itself twice', () => {
  assert.deepEqual(conflicts([cluster('a', { hosts: ['a', 'A.'] })]), [])
})

test('who has a claim keeps it against one that comes first', () => {
  const older = cluster('b', { hosts: ['x'] })
  const newer = cluster('a', { hosts: ['x'] })
  assert.deepEqual(conflicts([newer, older], [older]), ['a spec.secureServing.serverNames[0] < b: host name "x"'])
})

test('without the losers no conflict is left, and without a conflict there is no loser', () => {
  const claims = fc.record({
    hosts: fc.subarray(['x', 'y', 'X.']),
    ports: fc.subarray([1, 2]),
    default: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.array(claims, { maxLength: 6 }), fc.nat(), (all, held) => {
      const clusters = all.map((made, i) => cluster(`c${i}`, made))
      const inForce = clusters.slice(0, 1 + (held % 3)).filter((_, i) => i === 0)
      const found = findConflicts(clusters, heldClaims(inForce))
      const losers = new Set(found.map((conflict) => conflict.loser))
      const rest = clusters.filter(({ metadata }) => !losers.has(metadata.name))
      assert.deepEqual(findConflicts(rest, notHeld), [])
      // Brute force: do any two clusters exclude each other?
      const keys = clusters.map((one) => new Set(claimsOf(one).map((claim) => claim.key)))
      const overlap = keys.some((a, i) => keys.slice(i + 1).some((b) => [...a].some((key) => b.has(key))))
      assert.equal(losers.size > 0, overlap)
      for (const { metadata } of inForce) assert.ok(!losers.has(metadata.name))
    }),
  )
})
