// Streams of one endpoint among several sources: each source that waits gets a share, however much others wait with. Of class `reserved`, for which
// there are no spare streams (spare.test.ts), so that those with less than their share wait, too.

import assert from 'node:assert/strict'
import { afterEach, describe, test } from 'node:test'
import { MAX_HTTP1_RESERVED } from '../../src/gateway/io/upstream/http1.ts'
import { MAX_WAITING_BYTES, MAX_WAITING_REQUESTS } from '../../src/gateway/io/upstream/stream-queue.ts'
import { waitRefusal } from '../../src/gateway/io/upstream/waiting.ts'
import { HIGH_WATER_BYTES } from '../../src/kit/api/stream.ts'
import { tickAll } from '../../src/kit/io/world/coarse-ticker.ts'
import { startHttp1Stub } from '../harness/upstreams/stub-http1.ts'
import { reply, type SeenRequest } from '../harness/upstreams/stub-upstream.ts'
import {
  ask,
  chargeOf,
  type Exchange,
  endpointAt,
  startUpstream,
  type TestEndpoint,
  type TestUpstream,
} from '../harness/upstreams/upstream-exchange.ts'
import { waitFor } from '../harness/wait.ts'

/** Connections of the class, here with one stream each. */
const STREAMS = 64

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

type SetUp = TestUpstream & TestEndpoint & { readonly held: SeenRequest[] }

/** All streams of the endpoint are taken by `hog`; upstream answers what it is told to. */
async function full(source = 'hog'): Promise<SetUp> {
  const upstream = await startUpstream({ maxConcurrentStreams: 1 })
  const endpoint = endpointAt(upstream.port)
  cleanups.push(upstream.stop, () => endpoint.pool.destroy())
  const held: SeenRequest[] = []
  // With the head a connection has answered; the rest keeps its stream.
  upstream.answer = (request) => {
    request.stream.respond([':status', '200'])
    held.push(request)
  }
  const up = Object.assign(upstream, endpoint, { held })
  for (let i = 0; i < STREAMS; i++) ask(up.pool, { kind: 'reserved', source })
  await waitFor('all streams', () => held.length === STREAMS)
  return up
}

function times(pool: SetUp['pool'], source: string, count: number): Exchange[] {
  return Array.from({ length: count }, () => ask(pool, { kind: 'reserved', source, path: `/${source}` }))
}

/** Answers one request after the other, and says whose came instead, until none waits. */
async function order(up: SetUp): Promise<string[]> {
  const paths: string[] = []
  for (let at = 0; up.pool.describe().classes.reserved.waiting > 0; at++) {
    const [request, before] = [up.held[at], up.held.length]
    assert.ok(request)
    request.stream.end()
    await waitFor('the next one', () => up.held.length > before)
    paths.push(up.held.at(-1)?.path ?? '')
  }
  return paths
}

describe('a stream that becomes free', () => {
  test('goes to who has less, not to who was first', async () => {
    const up = await full()
    times(up.pool, 'hog', 100)
    times(up.pool, 'alice', 3)
    const paths = await order(up)
    assert.deepEqual(paths.slice(0, 3), ['/alice', '/alice', '/alice'])
    assert.equal(paths.length, 103)
  })

  test('sources with as much take turns', async () => {
    const up = await full()
    times(up.pool, 'alice', 4)
    times(up.pool, 'bob', 4)
    const paths = await order(up)
    assert.equal(paths.slice(0, 4).filter((path) => path === '/bob').length, 2, paths.join())
  })
})

describe('more wait than may', () => {
  test('the one who waits most loses its last, and is told why; the others wait on', async () => {
    const up = await full()
    const before = times(up.pool, 'alice', 2)
    const hog = times(up.pool, 'hog', MAX_WAITING_REQUESTS)
    assert.equal((await hog.at(-1)?.outcome)?.reset, 'overloaded')
    const refusal = waitRefusal(hog.at(-1)?.stream)
    assert.equal(refusal?.limit, 'upstream-requests')
    assert.equal(refusal.held, STREAMS)
    // Another user comes to a full queue.
    const after = times(up.pool, 'bob', 2)
    assert.equal((await hog.at(-4)?.outcome)?.reset, 'overloaded')
    const { waiting } = up.pool.describe().classes.reserved
    assert.equal(waiting, MAX_WAITING_REQUESTS)
    up.answer = (request) => reply(request, 200, 'served')
    for (const { stream } of up.held) stream.end()
    for (const { outcome } of [...before, ...after]) assert.equal((await outcome).text, 'served')
  })

  test('bodies that wait are bounded together, and the user with the largest share loses one', async () => {
    const up = await full()
    const send = (source: string): Exchange => {
      const exchange = ask(up.pool, { kind: 'reserved', source, method: 'POST', end: false })
      exchange.stream.body(Buffer.alloc(HIGH_WATER_BYTES), false)
      return exchange
    }
    const alice = send('alice')
    const hog = Array.from({ length: MAX_WAITING_BYTES / HIGH_WATER_BYTES }, () => send('hog'))
    assert.equal((await hog.at(-1)?.outcome)?.reset, 'overloaded')
    assert.equal(waitRefusal(hog.at(-1)?.stream)?.limit, 'upstream-bytes')
    assert.equal(alice.received.status, '')
    assert.equal(up.pool.describe().classes.reserved.waiting, hog.length)
  })

  test('who waits for 10 s is told that streams are missing', async () => {
    const up = await full()
    const [late] = times(up.pool, 'alice', 1)
    tickAll(performance.now() + 10_100)
    assert.equal((await late?.outcome)?.reset, 'refused')
    assert.equal(waitRefusal(late?.stream)?.limit, 'upstream-wait')
  })
})

test('a server without HTTP/2 gets a bounded number of connections, and those who wait a share', async () => {
  const stub = await startHttp1Stub()
  const { pool } = endpointAt(Number(new URL(stub.url).port))
  cleanups.push(
    () => stub.stop(),
    () => pool.destroy(),
  )
  assert.equal((await ask(pool, { source: 'first' }).outcome).status, '200')
  const held: (() => void)[] = []
  const paths: string[] = []
  const { answer } = stub
  stub.answer = (request) => {
    paths.push(request.path)
    held.push(() => answer(request))
  }
  const hog = times(pool, 'hog', MAX_HTTP1_RESERVED + 50)
  await waitFor('as many as may', () => held.length === MAX_HTTP1_RESERVED)
  const alice = times(pool, 'alice', 1)
  assert.equal(pool.isFull('reserved', chargeOf('somebody')), true)
  assert.equal(pool.isFull('unary', chargeOf('somebody')), false)
  held[0]?.()
  await waitFor('one more', () => held.length === MAX_HTTP1_RESERVED + 1)
  assert.equal(paths.at(-1), '/alice')
  stub.answer = answer
  for (const answerNow of held) answerNow()
  for (const { outcome } of [...hog, ...alice]) assert.equal((await outcome).status, '200')
})
