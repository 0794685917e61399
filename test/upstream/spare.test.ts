// Spare streams: the request of a user who holds less than a share is sent at once, however much others hold of what never becomes free.

import assert from 'node:assert/strict'
import { afterEach, describe, test } from 'node:test'
import { MAX_HTTP1_CONNECTIONS, MAX_HTTP1_SPARE } from '../../src/gateway/io/upstream/http1.ts'
import type { RequestKind } from '../../src/gateway/io/upstream/pool.ts'
import { MAX_WAITING_REQUESTS } from '../../src/gateway/io/upstream/stream-queue.ts'
import { startHttp1Stub } from '../harness/upstreams/stub-http1.ts'
import { reply } from '../harness/upstreams/stub-upstream.ts'
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

const MAX_CONNECTIONS = 64
const STREAMS = 8
const HALF_OPEN = 5_000

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

type SetUp = TestUpstream & TestEndpoint

/** All streams are held by `hog`, and never answered; those of other users are. */
async function held(kind: RequestKind): Promise<SetUp> {
  const upstream = await startUpstream({ maxConcurrentStreams: STREAMS })
  const endpoint = endpointAt(upstream.port)
  cleanups.push(upstream.stop, () => endpoint.pool.destroy())
  upstream.answer = (request) => {
    // With the head a connection has answered; the rest keeps its stream.
    if (request.path.startsWith('/hog')) request.stream.respond([':status', '200'])
    else reply(request, 200, 'served')
  }
  for (let i = 0; i < HALF_OPEN; i++) halfOpen(endpoint, kind, 'hog')
  await waitFor('all streams', () => upstream.seen.length === MAX_CONNECTIONS * STREAMS)
  return Object.assign(upstream, endpoint)
}

/** Its body never comes. */
function halfOpen({ pool }: TestEndpoint, kind: RequestKind, source: string): Exchange {
  return ask(pool, { kind, source, path: `/hog/${source}`, method: 'POST', end: false })
}

describe('5,000 requests whose bodies never come', () => {
  for (const kind of ['unary', 'anonymous'] as const) {
    test(`${kind}: another user is served`, async () => {
      const up = await held(kind)
      for (let i = 0; i < 100; i++) {
        assert.equal((await ask(up.pool, { kind, source: 'alice' }).outcome).text, 'served')
      }
      assert.equal(up.pool.describe().classes[kind].waiting, MAX_WAITING_REQUESTS - MAX_CONNECTIONS * STREAMS)
    })
  }

  test('who sends much at once gets all of it served, some at a time', async () => {
    const up = await held('unary')
    const all = Array.from({ length: 200 }, () => ask(up.pool, { source: 'alice' }))
    for (const { outcome } of all) assert.equal((await outcome).text, 'served')
  })

  test('twenty others who do the same leave streams for who comes next', async () => {
    const up = await held('unary')
    for (let i = 0; i < 100; i++) for (let hog = 0; hog < 20; hog++) halfOpen(up, 'unary', `hog-${hog}`)
    for (let i = 0; i < 20; i++) {
      assert.equal((await ask(up.pool, { source: `user-${i}` }).outcome).text, 'served')
    }
  })

  test('heartbeats keep streams of their own', async () => {
    const up = await held('unary')
    for (let user = 0; user < 200; user++) halfOpen(up, 'unary', `user-${user}`)
    assert.equal(up.pool.isFull('unary', chargeOf('somebody')), true)
    assert.equal((await ask(up.pool, { kind: 'reserved', source: 'node' }).outcome).text, 'served')
  })
})

test('connections that have not answered yet, all held: a request of another user is sent at once', async () => {
  const upstream = await startUpstream({ maxConcurrentStreams: 100 })
  const endpoint = endpointAt(upstream.port)
  cleanups.push(upstream.stop, () => endpoint.pool.destroy())
  upstream.answer = (request) => {
    if (request.path === '/') reply(request, 200, 'served')
  }
  for (let i = 0; i < 250; i++) halfOpen(endpoint, 'unary', 'hog')
  await waitFor('slow start', () => upstream.seen.length === 64)
  assert.equal((await ask(endpoint.pool, { source: 'alice' }).outcome).text, 'served')
})

test('HTTP/1.1: connections that others hold are not waited for', async () => {
  const stub = await startHttp1Stub()
  const { pool } = endpointAt(Number(new URL(stub.url).port))
  cleanups.push(
    () => stub.stop(),
    () => pool.destroy(),
  )
  assert.equal((await ask(pool, { source: 'first' }).outcome).status, '200')
  const { answer } = stub
  const paths: string[] = []
  stub.answer = (request) => {
    paths.push(request.path)
    if (request.path !== '/hog') answer(request)
  }
  for (let i = 0; i < MAX_HTTP1_CONNECTIONS + 50; i++) ask(pool, { source: 'hog', path: '/hog' })
  await waitFor('as many as may', () => paths.length === MAX_HTTP1_CONNECTIONS)
  const many = Array.from({ length: 3 * MAX_HTTP1_SPARE }, () => ask(pool, { source: 'alice' }))
  for (const { outcome } of many) assert.equal((await outcome).status, '200')
  assert.equal(paths.filter((path) => path === '/hog').length, MAX_HTTP1_CONNECTIONS)
})
