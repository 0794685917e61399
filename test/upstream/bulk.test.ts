// Requests of a user with many in flight while others are there: on connections on which no other user waits.

import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'
import { threadScheduler } from '../../src/gateway/io/scheduling/thread-scheduler.ts'
import type { Charge } from '../../src/kit/api/stream.ts'
import { reply } from '../harness/upstreams/stub-upstream.ts'
import { ask, endpointAt, startUpstream } from '../harness/upstreams/upstream-exchange.ts'
import { waitFor } from '../harness/wait.ts'

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

test('who has many requests in flight does not share connections with others, and does so again behind that', async (t) => {
  const begun = t.mock.method(threadScheduler, 'beginShared')
  const upstream = await startUpstream({ maxConcurrentStreams: 100 })
  const { pool } = endpointAt(upstream.port)
  cleanups.push(upstream.stop, () => pool.destroy())
  let inFlight = 1_000
  cleanups.push(() => threadScheduler.setInFlight(() => 0))
  threadScheduler.setInFlight(({ source }: Charge) => (source === 'hog' ? inFlight : 1))
  useTime('hog')
  useTime('alice')
  upstream.answer = (request) => {
    if (request.path !== '/hold') reply(request, 200, 'served')
  }
  const bulk = (): number => pool.describe().classes.bulk.streams
  const unary = (): number => pool.describe().classes.unary.streams
  for (let i = 0; i < 10; i++) ask(pool, { source: 'hog', path: '/hold' })
  await waitFor('the requests', () => upstream.seen.length === 10)
  assert.deepEqual([bulk(), unary()], [10, 0])
  // Read behind the others, in a part of their time.
  assert.ok(begun.mock.calls.every(({ arguments: [, isBulk] }) => isBulk === true))
  ask(pool, { source: 'alice', path: '/hold' })
  await waitFor('the other request', () => upstream.seen.length === 11)
  assert.deepEqual([bulk(), unary()], [10, 1])
  assert.ok(begun.mock.calls.some(({ arguments: [, isBulk] }) => isBulk === false))
  inFlight = 10
  assert.equal((await ask(pool, { source: 'hog' }).outcome).text, 'served')
  ask(pool, { source: 'hog', path: '/hold' })
  await waitFor('the last request', () => upstream.seen.length === 13)
  assert.deepEqual([bulk(), unary()], [10, 2])
})

test('who is alone uses the connections of everybody', async () => {
  const upstream = await startUpstream({ maxConcurrentStreams: 100 })
  const { pool } = endpointAt(upstream.port)
  cleanups.push(upstream.stop, () => pool.destroy())
  cleanups.push(() => threadScheduler.setInFlight(() => 0))
  threadScheduler.setInFlight(() => 1_000)
  threadScheduler.tick(performance.now() + 10_000)
  ask(pool, { source: 'hog', path: '/hold' })
  upstream.answer = () => undefined
  await waitFor('the request', () => upstream.seen.length === 1)
  assert.equal(pool.describe().classes.bulk.connections, 0)
})

test('whether it would have to wait is asked of the connections that it would use', async () => {
  const upstream = await startUpstream({ maxConcurrentStreams: 1 })
  const { pool } = endpointAt(upstream.port)
  cleanups.push(upstream.stop, () => pool.destroy())
  cleanups.push(() => threadScheduler.setInFlight(() => 0))
  threadScheduler.setInFlight(({ source }: Charge) => (source === 'hog' ? 1_000 : 1))
  useTime('hog')
  useTime('alice')
  upstream.answer = () => undefined
  ask(pool, { source: 'alice' })
  await waitFor('the first request', () => upstream.seen.length === 1)
  const hog = { source: 'hog', weight: 1, known: true }
  assert.deepEqual([pool.isFull('unary', hog), pool.isFull('unary', { ...hog, source: 'alice' })], [false, true])
  ask(pool, { source: 'hog' })
  await waitFor('the second request', () => upstream.seen.length === 2)
  assert.equal(pool.isFull('unary', hog), true)
})

/** It counts among those who share the thread. */
function useTime(source: string): void {
  const nowMs = performance.now()
  threadScheduler.charge(threadScheduler.accountOf({ source, weight: 1, known: true }, nowMs), nowMs - 1, nowMs)
}
