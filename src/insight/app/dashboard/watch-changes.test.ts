// Changes of modes and endpoints between two looks.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UPSTREAM_CLUSTER_SPEC_SCHEMA } from '../../../gateway/api/upstream-cluster/schema.ts'
import { compileCluster } from '../../../gateway/core/cluster/compile-cluster.ts'
import type { CompiledCluster } from '../../../gateway/core/cluster/compiled-cluster.ts'
import { ClusterTable } from '../../../gateway/state/clusters.ts'
import { ChangeLog } from '../../core/dashboard/change-log.ts'
import { ChangeWatch } from './watch-changes.ts'

const [ONE, TWO] = ['https://10.0.0.1:6443', 'https://10.0.0.2:6443']
const EXPIRES = '2030-01-01T00:00:00Z'

let revision = 0

function prod(part: object = {}): CompiledCluster {
  const spec = {
    servers: [{ endpoint: ONE }, { endpoint: TWO }],
    clientConfig: { insecure: true },
    dispatchPolicies: [{ rules: [{ verbs: ['*'] }] }],
    ...part,
  }
  const object = {
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: { name: 'prod' },
    spec,
  }
  return compileCluster({ object, revision: String(revision++) }, UPSTREAM_CLUSTER_SPEC_SCHEMA)
}

function setUp() {
  const clusters = new ClusterTable()
  const time = { now: Date.parse(EXPIRES) - 1000, monotonic: 0 }
  const clock = { now: () => time.now, monotonic: () => time.monotonic }
  const log = new ChangeLog()
  const watch = new ChangeWatch({ clusters, clock, log, switchedHere: () => undefined, object: () => undefined })
  let told = 0
  return {
    time,
    apply: (compiled: CompiledCluster): void => {
      clusters.change([compiled], [], 0)
      watch.applied(new Set(['prod']))
    },
    /** State of an endpoint's health; it is changed as checks and requests change it. */
    health: (url: string) => {
      const endpoint = clusters.get('prod')?.endpoints.byUrl(url)
      assert.ok(endpoint)
      return endpoint.health
    },
    /** What a look finds that is new. */
    look: (): string[] => {
      watch.look()
      const all = log.recent(time.now).map(({ text }) => text)
      const news = all.slice(0, all.length - told)
      told = all.length
      return news
    },
  }
}

test('an endpoint is down when its checks say so, when it is ejected, and up again', () => {
  const { apply, health, look, time } = setUp()
  apply(prod())
  assert.deepEqual(look(), [])
  // The first check changes nothing.
  for (const url of [ONE, TWO]) health(url).state = 'healthy'
  assert.deepEqual(look(), [])
  assert.deepEqual(look(), [])
  health(TWO).state = 'unhealthy'
  assert.deepEqual(look(), [`${TWO} is down`])
  assert.deepEqual(look(), [])
  health(TWO).state = 'healthy'
  assert.deepEqual(look(), [`${TWO} is up`])
  health(ONE).ejectedUntilMs = 1000
  assert.deepEqual(look(), [`${ONE} is down`])
  time.monotonic = 1000
  assert.deepEqual(look(), [`${ONE} is up`])
})

test('the last endpoint is never ejected, so it is not down', () => {
  const { apply, health, look } = setUp()
  apply(prod({ servers: [{ endpoint: ONE }] }))
  health(ONE).state = 'healthy'
  assert.deepEqual(look(), [])
  health(ONE).ejectedUntilMs = 1000
  assert.deepEqual(look(), [])
})

test('a disabled endpoint is not watched; one that is enabled again is', () => {
  const { apply, health, look } = setUp()
  apply(prod())
  for (const url of [ONE, TWO]) health(url).state = 'healthy'
  look()
  apply(prod({ servers: [{ endpoint: ONE }, { endpoint: TWO, disabled: true }] }))
  look()
  health(TWO).state = 'unhealthy'
  assert.deepEqual(look(), [])
  apply(prod())
  look()
  health(TWO).state = 'healthy'
  assert.deepEqual(look(), [`${TWO} is up`])
})

test('a mode ends without a change of the object', () => {
  const { apply, look, time } = setUp()
  apply(prod())
  look()
  apply(prod({ degrade: { mode: 'Freeze', reason: 'incident', expiresAt: EXPIRES } }))
  assert.ok(look().includes('degrade mode Off → Freeze: incident'))
  assert.deepEqual(look(), [])
  time.now += 1000
  assert.deepEqual(look(), ['degrade mode Freeze → Off'])
})
