// Requests that wait for a connection to an endpoint: how many connections there may be, and how long they wait.

import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'
import type { RequestClass } from '../../src/gateway/io/upstream/pool.ts'
import { tickAll } from '../../src/kit/io/world/coarse-ticker.ts'
import { reply, type SeenRequest } from '../harness/upstreams/stub-upstream.ts'
import {
  ask,
  type Exchange,
  endpointAt,
  startUpstream,
  type TestEndpoint,
  type TestUpstream,
} from '../harness/upstreams/upstream-exchange.ts'
import { waitFor } from '../harness/wait.ts'

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

/** An endpoint that takes one request on a connection. */
async function setUp(): Promise<TestUpstream & TestEndpoint> {
  const upstream = await startUpstream({ maxConcurrentStreams: 1 })
  const endpoint = endpointAt(upstream.port)
  cleanups.push(upstream.stop, () => endpoint.pool.destroy())
  return Object.assign(upstream, endpoint)
}

function askTimes({ pool }: TestEndpoint, kind: RequestClass, count: number): Exchange[] {
  return Array.from({ length: count }, () => ask(pool, { kind }))
}

/** Watches: upstream answers with a head and one event, and no end. */
function watch({ stream }: SeenRequest): void {
  stream.respond([':status', '200'])
  stream.write('{}')
}

const MORE_THAN_OTHERS = 96

test('watches get more connections than 64, since they never give one back', async () => {
  const up = await setUp()
  up.answer = watch
  const watches = askTimes(up, 'watch', MORE_THAN_OTHERS)
  await waitFor('all of them', () => watches.every(({ received }) => received.status === '200'))
  assert.equal(up.pool.describe().classes.watch.connections, MORE_THAN_OTHERS)
  for (const { stream } of watches) stream.reset('cancel')
})

for (const kind of ['unary', 'anonymous'] as const) {
  test(`${kind}: beyond 64 connections requests wait for a stream, and are refused after 10 s`, async () => {
    const up = await setUp()
    up.answer = watch
    const running = askTimes(up, kind, 64)
    await waitFor('64 at once', () => running.every(({ received }) => received.status === '200'))
    const [served, early] = askTimes(up, kind, 2)
    const before = performance.now()
    tickAll(before + 9_000)
    assert.equal(up.pool.describe().classes[kind].waiting, 2)
    // One that got a stream in time has nothing to fear.
    running[0]?.stream.reset('cancel')
    await waitFor('its place to be taken', () => served?.received.status === '200')
    tickAll(performance.now() + 10_100)
    assert.equal((await early?.outcome)?.reset, 'refused')
    assert.equal(up.pool.describe().classes[kind].waiting, 0)
    assert.equal(up.pool.describe().classes[kind].streams, 64)
    // No request waits any more: the next one that comes when a stream is free gets it.
    up.answer = (request) => reply(request, 200, 'next')
    running[1]?.stream.reset('cancel')
    const [next] = askTimes(up, kind, 1)
    assert.equal((await next?.outcome)?.text, 'next')
    assert.deepEqual(up.broken, [], 'that it is busy is no failure of the endpoint')
    served?.stream.reset('cancel')
    for (const { stream } of running) stream.reset('cancel')
  })
}

test('an endpoint without connections costs nothing: it leaves the ticker, and comes back with the next request', async (context) => {
  const gone = await startUpstream()
  await gone.stop()
  const { pool } = endpointAt(gone.port)
  cleanups.push(() => pool.destroy())
  const stopped = context.mock.method(globalThis, 'clearInterval')
  for (const times of [1, 2]) {
    assert.equal((await ask(pool).outcome).reset, 'refused')
    assert.equal(stopped.mock.callCount(), times - 1)
    tickAll(performance.now())
    // The last one in the ticker stops its timer.
    assert.equal(stopped.mock.callCount(), times)
  }
})
