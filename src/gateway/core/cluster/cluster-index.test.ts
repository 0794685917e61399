import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { buildClusterIndex, type ClusterIndex, LiveClusterIndex } from './cluster-index.ts'
import { compileCluster } from './compile-cluster.ts'
import type { CompiledCluster } from './compiled-cluster.ts'

const HOSTS = ['a', 'b', '*.a', '*.b', '10.0.0.1']

function cluster(
  name: string,
  hosts: readonly string[],
  ports: readonly number[],
  isDefault: boolean,
): CompiledCluster {
  const spec = {
    servers: [{ endpoint: 'https://10.1.0.1:6443' }],
    dispatchPolicies: [],
    secureServing: { serverNames: hosts },
    addresses: { ips: ports.map((port) => `10.0.0.${port}`), ports },
    default: isDefault,
  }
  const object = { apiVersion: 'proxy.kubegateway.io/v1alpha1', kind: 'UpstreamCluster', metadata: { name }, spec }
  return compileCluster({ object, revision: '1' })
}

function plain({ byName, byHost, byWildcard, byIp, byPort, fallback }: ClusterIndex): unknown {
  const maps = [byName, byHost, byWildcard, byIp, byPort]
  return [maps.map((map) => [...map].sort(([a], [b]) => (String(a) < String(b) ? -1 : 1))), fallback]
}

test('changes one by one have the same result as reading all clusters again', () => {
  const change = fc.record({
    name: fc.constantFrom('one', 'two', 'three'),
    hosts: fc.uniqueArray(fc.constantFrom(...HOSTS), { maxLength: 2 }),
    ports: fc.uniqueArray(fc.constantFrom(1, 2, 3), { maxLength: 1 }),
    isDefault: fc.boolean(),
    gone: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.array(change, { maxLength: 12 }), (changes) => {
      const index = new LiveClusterIndex()
      const all = new Map<string, CompiledCluster>()
      for (const { name, hosts, ports, isDefault, gone } of changes) {
        const before = all.get(name)
        const after = gone ? undefined : cluster(name, hosts, ports, isDefault)
        if (after === undefined) all.delete(name)
        else all.set(name, after)
        if (!index.replace(before, after)) index.rebuild(all.values())
        assert.deepEqual(plain(index), plain(buildClusterIndex(all.values())))
      }
    }),
  )
})
