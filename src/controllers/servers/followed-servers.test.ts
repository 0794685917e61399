import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Logger } from '../../api/ports/ports.ts'
import { UPSTREAM_CLUSTER_SPEC_SCHEMA } from '../../api/upstream-cluster/schema.ts'
import type { UpstreamServer } from '../../api/upstream-cluster/upstream-cluster.ts'
import { compileCluster } from '../../core/cluster/compile-cluster.ts'
import type { CompiledCluster } from '../../core/cluster/compiled-cluster.ts'
import { type LookedUp, MIN_TTL_MS } from '../../core/endpoints/resolution.ts'
import { ClusterTable } from '../../state/clusters.ts'
import { FollowedServers } from './followed-servers.ts'

const QUIET: Logger = { debug() {}, info() {}, warn() {}, error() {} }
const A = 'https://a.test:6443'
const B = 'https://b.test:6443'

interface World {
  readonly servers: FollowedServers
  readonly answers: Map<string, readonly string[]>
  /** Look-ups that are under way at the same time, at most. */
  readonly most: () => number
  /** URLs of endpoints. */
  endpoints(cluster?: string): readonly string[]
  cluster(name?: string): CompiledCluster
  apply(name: string, servers: readonly UpstreamServer[], subset?: readonly string[]): void
  setHealthy(url: string): void
  pass(ms: number): Promise<void>
}

/** Nobody is healthy until a test says so; a name without an answer is never answered. */
function world(t: TestContext): World {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let nowMs = 0
  let running = 0
  let most = 0
  const answers = new Map<string, readonly string[]>()
  const specs = new Map<string, { servers: readonly UpstreamServer[]; subset: readonly string[] }>()
  const clusters = new ClusterTable()
  const compile = (name: string): void => {
    const { servers: written, subset } = specs.get(name) ?? { servers: [], subset: [] }
    const spec = {
      servers: written,
      clientConfig: { insecure: true },
      dispatchPolicies: [{ rules: [{ verbs: ['*'] }], upstreamSubset: subset }],
    }
    const object = {
      apiVersion: 'proxy.kubegateway.io/v1alpha1',
      kind: 'UpstreamCluster',
      metadata: { name },
      spec,
    } as const
    const compiled = compileCluster({ object, revision: '1' }, UPSTREAM_CLUSTER_SPEC_SCHEMA, servers.addresses(name))
    clusters.change([compiled], [], nowMs)
    servers.change([compiled], [])
  }
  const servers = new FollowedServers({
    client: () => assert.fail('no EndpointSlice is followed'),
    lookUp: async (name): Promise<LookedUp> => {
      most = Math.max(most, ++running)
      await Promise.resolve()
      const v4 = answers.get(name)
      if (v4 === undefined) return new Promise(() => undefined)
      running--
      return { v4, v6: [], ttlSeconds: 1, message: '' }
    },
    clusters,
    clock: { monotonic: () => nowMs },
    log: QUIET,
    onChange: compile,
  })
  t.after(() => servers.stop())
  const compiledOf = (name: string): CompiledCluster => {
    const live = clusters.get(name)
    assert.ok(live !== undefined)
    return live.compiled
  }
  return {
    servers,
    answers,
    most: () => most,
    endpoints: (name = 'prod') => compiledOf(name).endpoints.map(({ url }) => url),
    cluster: (name = 'prod') => compiledOf(name),
    apply: (name, written, subset = []) => {
      specs.set(name, { servers: written, subset })
      compile(name)
    },
    setHealthy: (url) => {
      const live = clusters.get('prod')
      const endpoint = live?.endpoints.byUrl(url)
      assert.ok(live !== undefined && endpoint !== undefined)
      live.endpoints.onProbe(endpoint, true, '', live.compiled.healthCheck, nowMs)
    },
    pass: async (ms) => {
      for (let left = ms; left > 0; left -= 250) {
        nowMs += 250
        t.mock.timers.tick(250)
        await nextTurn()
      }
    },
  }
}

test('a name that changes at every look-up, to addresses that serve nobody, does not pile up endpoints', async (t) => {
  const { answers, apply, endpoints, pass } = world(t)
  answers.set('a.test', ['10.0.0.1'])
  apply('prod', [{ endpoint: A, resolve: true }])
  await pass(MIN_TTL_MS)
  for (let i = 0; i < 20; i++) {
    answers.set('a.test', [`10.1.${i}.1`, `10.1.${i}.2`])
    await pass(MIN_TTL_MS)
    assert.ok(endpoints().length <= 4, endpoints().join(' '))
  }
})

test('an address that has left serves no longer than 30 s, however often the name is looked up', async (t) => {
  const { answers, apply, endpoints, pass, setHealthy } = world(t)
  answers.set('a.test', ['10.0.0.1'])
  apply('prod', [{ endpoint: A, resolve: true }])
  await pass(1_000)
  setHealthy('https://10.0.0.1:6443')
  await pass(MIN_TTL_MS)
  assert.deepEqual(endpoints(), ['https://10.0.0.1:6443'])
  answers.set('a.test', ['10.0.0.2'])
  await pass(MIN_TTL_MS)
  assert.deepEqual(endpoints(), ['https://10.0.0.2:6443', 'https://10.0.0.1:6443'])
  await pass(30_000)
  assert.deepEqual(endpoints(), ['https://10.0.0.2:6443'])
})

test('a server whose addresses another one has, too, is followed on, and a policy that names it has them', async (t) => {
  const { answers, apply, cluster, endpoints, pass, servers, setHealthy } = world(t)
  answers.set('a.test', ['10.0.0.1']).set('b.test', ['10.0.0.1'])
  apply(
    'prod',
    [
      { endpoint: A, resolve: true },
      { endpoint: B, resolve: true },
    ],
    [B],
  )
  await pass(1_000)
  setHealthy('https://10.0.0.1:6443')
  await pass(MIN_TTL_MS)
  assert.deepEqual(endpoints(), ['https://10.0.0.1:6443'])
  assert.deepEqual(cluster().policies[0]?.endpoints, [0])
  assert.deepEqual(
    servers.ofCluster('prod')?.map(({ server }) => server),
    [A, B],
  )
  answers.set('b.test', ['10.0.0.1', '10.0.0.2'])
  await pass(MIN_TTL_MS)
  assert.deepEqual(endpoints(), ['https://10.0.0.1:6443', 'https://10.0.0.2:6443'])
  assert.deepEqual(cluster().policies[0]?.endpoints, [0, 1])
})

test('many names are looked up some at a time', async (t) => {
  const { answers, apply, endpoints, most, pass } = world(t)
  for (let i = 0; i < 1_000; i++) {
    answers.set(`a${i}.test`, [`10.0.0.${i % 250}`])
    apply(`c${i}`, [{ endpoint: `https://a${i}.test`, resolve: true }])
  }
  await pass(MIN_TTL_MS)
  assert.ok(most() <= 64, String(most()))
  for (let i = 0; i < 1_000; i++) assert.match(endpoints(`c${i}`)[0] ?? '', /10\.0\.0\./)
})
