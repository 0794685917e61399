// When a cluster is asked for the gateway's rights, and which answers are believed: with a cluster that answers on command,
// and a fake clock.

import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import type { Stream, StreamEvents } from '../../../kit/api/stream.ts'
import type { Degrade } from '../../api/upstream-cluster/upstream-cluster.ts'
import { compileCluster } from '../../core/cluster/compile-cluster.ts'
import type { CompiledCluster } from '../../core/cluster/compiled-cluster.ts'
import { gatewayRights } from '../../core/identity/gateway-rights.ts'
import type { UpstreamEndpoint } from '../../io/upstream/pool.ts'
import { ClusterTable } from '../../state/clusters.ts'
import { type RightsState, startUpstreamRights } from './upstream-rights.ts'

const URLS = ['https://127.0.0.1:6443', 'https://127.0.0.1:6444', 'https://127.0.0.1:6445']
const QUESTIONS = gatewayRights({ protection: undefined }).length
/** A denied group of rights leads to one review per part, and one for the name. */
const QUESTIONS_REFUSED = 13
const EVERY_MS = 300_000

function nothing(): void {}

const STREAM: Stream = {
  queued: 0,
  headers: nothing,
  body: nothing,
  trailers: nothing,
  credit: nothing,
  reset: nothing,
}

/** `unauthorized` and `forbidden` are not even allowed to ask: 401 and 403. */
type Outcome = 'granted' | 'denied' | 'broken' | 'unauthorized' | 'forbidden'
const STATUS: Readonly<Partial<Record<Outcome, string>>> = { unauthorized: '401', forbidden: '403' }

function compiled(degrade: Degrade): CompiledCluster {
  const spec = { servers: URLS.map((endpoint) => ({ endpoint })), dispatchPolicies: [], degrade }
  const object = {
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: { name: 'prod' },
    spec,
  } as const
  return compileCluster({ object, revision: '1' })
}

class Scene {
  outcome: Outcome = 'granted'
  /** Outcomes of single endpoints that answer differently. */
  readonly outcomes = new Map<string, Outcome>()
  questions = 0
  readonly changes: RightsState['kind'][] = []
  readonly #clusters = new ClusterTable()
  readonly #compiled = compiled({})
  readonly rights = startUpstreamRights({
    clusters: this.#clusters,
    upstreams: { get: (_cluster, url) => this.#upstream(url) },
    clock: { now: () => Date.now(), monotonic: () => Date.now() },
    random: () => 0.5,
    log: { debug: nothing, info: nothing, warn: nothing, error: nothing },
    onChange: (_cluster, { kind }) => void this.changes.push(kind),
  })

  start(): void {
    this.#clusters.change([this.#compiled], [], 0)
    this.rights.change([this.#compiled], [])
  }

  /** As reported by the prober. */
  healthy(): void {
    const endpoints = this.#clusters.get('prod')?.endpoints
    for (const url of URLS) {
      const endpoint = endpoints?.byUrl(url)
      assert.ok(endpoints !== undefined && endpoint !== undefined)
      endpoints.onProbe(endpoint, true, '', this.#compiled.healthCheck, 0)
    }
    this.rights.checkNow('prod')
  }

  #upstream(url: string): UpstreamEndpoint {
    const open = (events: StreamEvents): Stream => {
      this.questions++
      queueMicrotask(() => {
        const outcome = this.outcomes.get(url) ?? this.outcome
        if (outcome === 'broken') {
          events.onReset('connection')
          return
        }
        events.onHeaders([':status', STATUS[outcome] ?? '201'], false)
        events.onBody(Buffer.from(JSON.stringify({ status: { allowed: outcome === 'granted' } })), true)
      })
      return STREAM
    }
    return {
      open: (_kind, _head, _shared, _end, events) => open(events),
      connectHttp1: () => Promise.reject(new Error('not asked for')),
      isFull: () => false,
      relisting: false,
      dialRefusal: '',
      maxListBytes: () => Number.POSITIVE_INFINITY,
      drain: nothing,
      destroy: nothing,
      connections: 0,
      describe: () => assert.fail('not asked for'),
    }
  }
}

const realImmediate = setImmediate

async function pass(ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 100) {
    mock.timers.tick(Math.min(100, ms - passed))
    await new Promise((resolve) => void realImmediate(resolve))
  }
}

function setUp(context: { after(end: () => void): void }): Scene {
  mock.timers.enable({ apis: ['setTimeout', 'Date'] })
  const scene = new Scene()
  context.after(() => {
    scene.rights.stop()
    mock.timers.reset()
  })
  scene.start()
  return scene
}

test('asked as soon as an endpoint is healthy, and then every five minutes', async (context) => {
  const scene = setUp(context)
  await pass(1_000)
  assert.equal(scene.questions, 0)
  assert.equal(scene.rights.get('prod').kind, 'unasked')
  scene.healthy()
  await pass(200)
  assert.deepEqual(scene.changes, ['granted'])
  assert.equal(scene.questions, QUESTIONS)
  await pass(EVERY_MS)
  assert.equal(scene.questions, 2 * QUESTIONS)
})

test('rights that are needed no more leave what is known; new ones are asked for', async (context) => {
  const scene = setUp(context)
  scene.healthy()
  await pass(200)
  scene.rights.change([compiled({ mode: 'ReadOnly', recovery: {} })], [])
  assert.equal(scene.rights.get('prod').kind, 'unasked')
  await pass(200)
  assert.deepEqual(scene.changes, ['granted', 'unasked', 'granted'])
  const asked = scene.questions
  scene.rights.change([compiled({})], [])
  assert.equal(scene.rights.get('prod').kind, 'granted', 'the recovery is over')
  await pass(200)
  assert.deepEqual([scene.changes.length, scene.questions], [3, asked])
})

test('a right that is gone is believed when it is refused again: an apiserver that has just started knows no RBAC', async (context) => {
  const scene = setUp(context)
  scene.healthy()
  await pass(200)
  scene.outcome = 'denied'
  await pass(EVERY_MS)
  assert.deepEqual(scene.changes, ['granted'], 'refused once')
  scene.outcome = 'granted'
  await pass(5_000)
  assert.deepEqual(scene.changes, ['granted'])
  scene.outcome = 'denied'
  await pass(EVERY_MS + 5_000)
  assert.deepEqual(scene.changes, ['granted', 'missing'])
  scene.outcome = 'granted'
  await pass(20_000)
  assert.deepEqual(scene.changes, ['granted', 'missing', 'granted'], 'within seconds of the file being applied')
})

test('a cluster that does not answer: what was known counts for some questions, and no longer', async (context) => {
  const scene = setUp(context)
  scene.healthy()
  await pass(200)
  scene.outcome = 'broken'
  await pass(EVERY_MS)
  assert.deepEqual(scene.changes, ['granted'])
  await pass(10_000)
  assert.deepEqual(scene.changes, ['granted', 'unanswered'])
  scene.outcome = 'granted'
  scene.healthy()
  await pass(200)
  assert.deepEqual(scene.changes, ['granted', 'unanswered', 'granted'])
})

for (const outcome of ['unauthorized', 'forbidden'] as const) {
  test(`one endpoint of several answers ${outcome}: another one is asked, and what that says counts`, async (context) => {
    const scene = setUp(context)
    for (const url of URLS.slice(1)) scene.outcomes.set(url, outcome)
    scene.healthy()
    await pass(200)
    assert.deepEqual(scene.changes, ['granted'])
    await pass(4 * EVERY_MS)
    assert.deepEqual(scene.changes, ['granted'])
  })
}

test('a credential that was accepted is rejected when 401 comes again, by all endpoints or by the one that answers', async (context) => {
  const scene = setUp(context)
  scene.healthy()
  await pass(200)
  for (const others of ['unauthorized', 'broken'] as const) {
    for (const url of URLS.slice(1)) scene.outcomes.set(url, others)
    scene.outcome = 'unauthorized'
    scene.changes.length = 0
    const before = scene.questions
    while (scene.questions === before) await pass(100)
    await pass(100)
    assert.deepEqual(scene.changes, [], 'once')
    await pass(5_000)
    assert.deepEqual(scene.changes, ['rejected'])
    scene.outcomes.clear()
    scene.outcome = 'granted'
    await pass(20_000)
    assert.deepEqual(scene.changes, ['rejected', 'granted'])
  }
})

test('a credential that was never accepted is rejected at once', async (context) => {
  const scene = setUp(context)
  scene.outcome = 'unauthorized'
  scene.healthy()
  await pass(200)
  assert.deepEqual(scene.changes, ['rejected'])
})

for (const cold of ['denied', 'forbidden', 'unauthorized'] as const) {
  test(`a cluster that was away and comes back ${cold}: believed when it says so again`, async (context) => {
    const scene = setUp(context)
    scene.healthy()
    await pass(200)
    scene.outcome = 'broken'
    await pass(EVERY_MS + 10_000)
    assert.deepEqual(scene.changes, ['granted', 'unanswered'])
    scene.outcome = cold
    scene.healthy()
    await pass(200)
    assert.deepEqual(scene.changes, ['granted', 'unanswered'])
    scene.outcome = 'granted'
    await pass(10_000)
    assert.deepEqual(scene.changes, ['granted', 'unanswered', 'granted'])
  })
}

test('refusals count as consecutive when there is no answer in between', async (context) => {
  const scene = setUp(context)
  scene.healthy()
  await pass(200)
  scene.outcome = 'denied'
  await pass(EVERY_MS)
  scene.outcome = 'broken'
  await pass(3_000)
  assert.deepEqual(scene.changes, ['granted'])
  scene.outcome = 'denied'
  await pass(20_000)
  assert.deepEqual(scene.changes, ['granted', 'missing'])
})

test('refused requests cause an early review, but many of them do not cause many', async (context) => {
  const scene = setUp(context)
  scene.healthy()
  await pass(200)
  scene.outcome = 'denied'
  for (let ms = 0; ms < 60_000; ms += 100) {
    scene.rights.checkNow('prod')
    await pass(100)
  }
  assert.deepEqual(scene.changes, ['granted', 'missing'])
  assert.ok(scene.questions < QUESTIONS + 7 * QUESTIONS_REFUSED, `${scene.questions} questions`)
})
