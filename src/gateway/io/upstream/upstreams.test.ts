// Which connections there are for clusters that come, change and go; none is opened here.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { localGuard } from '../../../../test/harness/upstreams/local-guard.ts'
import { compileCluster } from '../../core/cluster/compile-cluster.ts'
import type { CompiledCluster } from '../../core/cluster/compiled-cluster.ts'
import { Upstreams } from './upstreams.ts'

const SERVER = 'https://192.0.2.1:6443'
const OTHER = 'https://192.0.2.2:6443'

function cluster(name: string, servers: readonly string[], token: string): CompiledCluster {
  const object = {
    apiVersion: '',
    kind: '',
    metadata: { name },
    spec: {
      servers: servers.map((endpoint) => ({ endpoint })),
      clientConfig: { bearerToken: Buffer.from(token).toString('base64') },
      dispatchPolicies: [{ rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }] }],
    },
  }
  return compileCluster({ object, revision: token })
}

test('connections of an endpoint are made when it is first asked for, and stay the same until its credential changes', () => {
  const upstreams = new Upstreams(() => undefined, localGuard())
  const described = (): string[] => [...upstreams.describe()].map((one) => `${one.cluster} ${one.endpoint}`)
  upstreams.update(cluster('a', [SERVER, OTHER], 'one'))
  upstreams.update(cluster('b', [SERVER], 'one'))
  assert.deepEqual(described(), [])
  const first = upstreams.get('a', OTHER)
  assert.ok(first !== undefined)
  assert.deepEqual(described(), [`a ${OTHER}`])
  upstreams.update(cluster('a', [OTHER], 'one'))
  assert.equal(upstreams.get('a', OTHER), first)
  assert.equal(upstreams.get('a', SERVER), undefined)
  upstreams.update(cluster('a', [OTHER], 'two'))
  assert.deepEqual(described(), [])
  assert.notEqual(upstreams.get('a', OTHER), first)
  upstreams.remove('a')
  assert.equal(upstreams.get('a', OTHER), undefined)
  assert.equal(upstreams.get('unknown', OTHER), undefined)
  upstreams.destroy()
  assert.deepEqual(described(), [])
})
