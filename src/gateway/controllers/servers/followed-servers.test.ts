import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import fc from 'fast-check'
import type { Logger } from '../../../kit/api/ports.ts'
import { UPSTREAM_CLUSTER_SPEC_SCHEMA } from '../../api/upstream-cluster/schema.ts'
import type { UpstreamServer } from '../../api/upstream-cluster/upstream-cluster.ts'
import { compileCluster } from '../../core/cluster/compile-cluster.ts'
import type { CompiledCluster } from '../../core/cluster/compiled-cluster.ts'
import { type LookedUp, MIN_TTL_MS, nextLookUpMs } from '../../core/endpoints/resolution.ts'
import { ClusterTable } from '../../state/clusters.ts'
import { FollowedServers } from './followed-servers.ts'

const QUIET: Logger = { debug() {}, info() {}, warn() {}, error() {} }
const A = 'https://a.test:6443'
const B = 'https://b.test:6443'

interface World {
  readonly servers: FollowedServers
  readonly answers: Map<string, readonly string[]>
  /** Maximum of concurrent look-ups. */
  readonly most: () => number
  /** URLs of endpoints. */
  endpoints(cluster?: string): readonly string[]
  cluster(name?: string): CompiledCluster
  apply(name: string, servers: readonly UpstreamServer[], subset?: readonly string[]): void
  setHealthy(url: string): void
  pass(ms: number): Promise<void>
}

/** No endpoint is healthy until a test says so; a name without an answer is never answered. */
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
        await yieldToEventLoop()
      }
    },
  }
}

test('a name that resolves to other dead addresses at every look-up does not accumulate endpoints', async (t) => {
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

// === when names are looked up ===

const STEP_MS = 50

/** A resolver's nth answer for a name, and how long it takes. */
interface Said {
  readonly afterMs: number
  readonly ttlSeconds: number
  readonly fails: boolean
}

/** Servers come and go; times are multiples of STEP_MS. */
type Change = { readonly name: string; readonly comes: boolean } | { readonly waitMs: number }

type LookUp = (name: string) => Promise<LookedUp>

/** Servers whose names are looked up. */
interface Followers {
  set(names: ReadonlySet<string>): void
  stop(): void
}

/** Reference: each server has its own loop and timer, as before there was a queue. */
function loops(lookUp: LookUp): Followers {
  const ends = new Map<string, () => void>()
  const loop = (name: string): (() => void) => {
    let [timer, failures, ended]: [NodeJS.Timeout | undefined, number, boolean] = [undefined, 0, false]
    const turn = async (): Promise<void> => {
      const found = await lookUp(name)
      if (ended) return
      failures = found.message === '' ? 0 : failures + 1
      timer = setTimeout(() => void turn(), nextLookUpMs(found, failures))
    }
    void turn()
    return () => {
      ended = true
      clearTimeout(timer)
    }
  }
  const set = (names: ReadonlySet<string>): void => {
    for (const name of names) if (!ends.has(name)) ends.set(name, loop(name))
    for (const [name, end] of ends) {
      if (names.has(name)) continue
      ends.delete(name)
      end()
    }
  }
  return { set, stop: () => set(new Set()) }
}

function followed(lookUp: LookUp, clock: { monotonic(): number }): Followers {
  const servers = new FollowedServers({
    client: () => assert.fail('no EndpointSlice is followed'),
    lookUp,
    clusters: new ClusterTable(),
    clock,
    log: QUIET,
    onChange: () => undefined,
  })
  return {
    set: (names) => {
      const written = [...names].map((name) => ({ endpoint: `https://${name}`, resolve: true }))
      const spec = {
        servers: [...written, { endpoint: 'https://10.9.9.9' }],
        clientConfig: { insecure: true },
        dispatchPolicies: [{ rules: [{ verbs: ['*'] }] }],
      }
      const metadata = { name: 'prod' }
      const object = { apiVersion: 'proxy.kubegateway.io/v1alpha1', kind: 'UpstreamCluster', metadata, spec } as const
      servers.change([compileCluster({ object, revision: '1' }, UPSTREAM_CLUSTER_SPEC_SCHEMA)], [])
    },
    stop: () => servers.stop(),
  }
}

/** When each name was looked up. */
async function asked(
  t: TestContext,
  changes: readonly Change[],
  said: readonly Said[],
  make: (lookUp: LookUp, clock: { monotonic(): number }) => Followers,
): Promise<Map<string, number[]>> {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let nowMs = 0
  const times = new Map<string, number[]>()
  const lookUp: LookUp = async (name) => {
    const before = times.get(name) ?? []
    times.set(name, [...before, nowMs])
    const { afterMs, ttlSeconds, fails } = said[(before.length + name.charCodeAt(0)) % said.length] ?? assert.fail()
    if (afterMs > 0) await new Promise<void>((resolve) => setTimeout(resolve, afterMs))
    return fails
      ? { v4: undefined, v6: undefined, ttlSeconds: 0, message: 'SERVFAIL' }
      : { v4: ['10.0.0.1'], v6: [], ttlSeconds, message: '' }
  }
  const followers = make(lookUp, { monotonic: () => nowMs })
  const names = new Set<string>()
  for (const change of changes) {
    if ('name' in change) {
      names[change.comes ? 'add' : 'delete'](change.name)
      followers.set(names)
      continue
    }
    for (let left = change.waitMs; left > 0; left -= STEP_MS) {
      nowMs += STEP_MS
      t.mock.timers.tick(STEP_MS)
      await yieldToEventLoop()
    }
  }
  followers.stop()
  t.mock.timers.reset()
  return times
}

test('names are looked up when a loop for each of them would, whatever comes, goes and fails', async (t) => {
  const multiple = (max: number): fc.Arbitrary<number> => fc.nat({ max }).map((n) => n * STEP_MS)
  const said = fc.record({ afterMs: multiple(60), ttlSeconds: fc.constantFrom(0, 1, 7, 20), fails: fc.boolean() })
  const change = fc.oneof(
    fc.record({ name: fc.constantFrom('a.test', 'b.test', 'c.test'), comes: fc.boolean() }),
    multiple(400).map((waitMs) => ({ waitMs })),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(change), fc.array(said, { minLength: 1 }), async (changes, answers) => {
      // An added server must be looked up before the next change.
      const spaced = changes.flatMap((one): Change[] => [one, { waitMs: STEP_MS }])
      const [now, before] = [await asked(t, spaced, answers, followed), await asked(t, spaced, answers, loops)]
      assert.deepEqual([...now.keys()].sort(byText), [...before.keys()].sort(byText))
      for (const [name, times] of before) {
        const found = now.get(name) ?? []
        // The queue begins with a timer; the last look-up may come a step too late to be seen.
        assert.ok(times.length - found.length <= 1 && found.length <= times.length, `${name}: ${times} ${found}`)
        for (const [i, atMs] of found.entries()) {
          const lateMs = atMs - (times[i] ?? Number.NaN)
          assert.ok(lateMs >= 0 && lateMs <= STEP_MS, `${name}: ${times} ${found}`)
        }
      }
    }),
    { numRuns: 40 },
  )
})

function byText(a: string, b: string): number {
  return a < b ? -1 : 1
}
