// When a cluster is asked for the rights of the gateway, and what is believed: with a cluster that answers as a test tells it,
// and a clock of its own.

import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import type { Stream, StreamEvents } from '../../api/ports/stream.ts'
import { compileCluster } from '../../core/cluster/compile-cluster.ts'
import { gatewayRights } from '../../core/identity/gateway-rights.ts'
import type { UpstreamEndpoint } from '../../io/upstream/pool.ts'
import { ClusterTable } from '../../state/clusters.ts'
import { type RightsState, startUpstreamRights } from './upstream-rights.ts'

const URL = 'https://127.0.0.1:6443'
const QUESTIONS = gatewayRights({ protection: undefined }).length
/** A refused question for the group of rights leads to one for each of its parts, and one for the name. */
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

class Scene {
  outcome: 'granted' | 'denied' | 'broken' = 'granted'
  questions = 0
  readonly changes: RightsState['kind'][] = []
  readonly #clusters = new ClusterTable()
  readonly #compiled = compileCluster({
    object: {
      apiVersion: 'proxy.kubegateway.io/v1alpha1',
      kind: 'UpstreamCluster',
      metadata: { name: 'prod' },
      spec: { servers: [{ endpoint: URL }], dispatchPolicies: [] },
    },
    revision: '1',
  })
  readonly rights = startUpstreamRights({
    clusters: this.#clusters,
    upstreams: { get: () => this.#upstream() },
    clock: { now: () => Date.now(), monotonic: () => Date.now() },
    random: () => 0.5,
    log: { debug: nothing, info: nothing, warn: nothing, error: nothing },
    onChange: (_cluster, { kind }) => void this.changes.push(kind),
  })

  start(): void {
    this.#clusters.change([this.#compiled], [], 0)
    this.rights.change([this.#compiled], [])
  }

  /** As the prober says it. */
  healthy(): void {
    const endpoints = this.#clusters.get('prod')?.endpoints
    const endpoint = endpoints?.byUrl(URL)
    assert.ok(endpoints !== undefined && endpoint !== undefined)
    endpoints.onProbe(endpoint, true, '', this.#compiled.healthCheck, 0)
    this.rights.hurry('prod')
  }

  #upstream(): UpstreamEndpoint {
    const open = (events: StreamEvents): Stream => {
      this.questions++
      queueMicrotask(() => {
        if (this.outcome === 'broken') {
          events.onReset('connection')
          return
        }
        events.onHeaders([':status', '201'], false)
        events.onBody(Buffer.from(JSON.stringify({ status: { allowed: this.outcome === 'granted' } })), true)
      })
      return STREAM
    }
    return {
      open: (_kind, _head, _shared, _end, events) => open(events),
      connectHttp1: () => Promise.reject(new Error('not asked for')),
      maxListBytes: () => Number.POSITIVE_INFINITY,
      drain: nothing,
      destroy: nothing,
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

test('requests that are refused hurry the question, but a storm of them no storm', async (context) => {
  const scene = setUp(context)
  scene.healthy()
  await pass(200)
  scene.outcome = 'denied'
  for (let ms = 0; ms < 60_000; ms += 100) {
    scene.rights.hurry('prod')
    await pass(100)
  }
  assert.deepEqual(scene.changes, ['granted', 'missing'])
  assert.ok(scene.questions < QUESTIONS + 7 * QUESTIONS_REFUSED, `${scene.questions} questions`)
})
