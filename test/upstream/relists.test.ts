// Lists and watches after the connections to a cluster broke: let in at the pace of its answers, while everything else passes.

import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'
import { FIRST_RELISTS } from '../../src/gateway/core/upstream/relist-window.ts'
import { waitRefusal } from '../../src/gateway/io/upstream/waiting.ts'
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

const WATCHES = 40

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

type SetUp = TestUpstream & TestEndpoint & { readonly held: SeenRequest[] }

/** An endpoint that has just lost all its connections, and with them the watches. Lists are held from here on. */
async function afterAnAccident(): Promise<SetUp> {
  const upstream = await startUpstream({ maxConcurrentStreams: 250 })
  const endpoint = endpointAt(upstream.port)
  cleanups.push(upstream.stop, () => endpoint.pool.destroy())
  upstream.answer = ({ stream }) => {
    stream.respond([':status', '200'])
    stream.write('{}')
  }
  const watches = Array.from({ length: WATCHES }, () => ask(endpoint.pool, { kind: 'watch-opening' }))
  await waitFor('all watches', () => watches.every(({ received }) => received.status === '200'))
  assert.equal(endpoint.pool.relisting, false)
  upstream.breakConnections()
  for (const { outcome } of watches) assert.equal((await outcome).reset, 'connection')
  assert.equal(endpoint.pool.relisting, true)
  const held: SeenRequest[] = []
  upstream.answer = (request) => (request.path === '/list' ? held.push(request) : reply(request, 200, 'ok'))
  return Object.assign(upstream, endpoint, { held })
}

function lists({ pool }: SetUp, count: number, source?: string): Exchange[] {
  return Array.from({ length: count }, (_, i) => ask(pool, { kind: 'list', path: '/list', source: source ?? `${i}` }))
}

/** Answers all that are held, and waits for the next ones; how many these are. */
async function nextRound(up: SetUp, status = 200): Promise<number> {
  for (const request of up.held.splice(0)) reply(request, status, '')
  // What was let in has been sent when this is answered.
  await waitFor('some', () => up.held.length > 0)
  assert.equal((await ask(up.pool).outcome).status, '200')
  return up.held.length
}

test('each round of answers lets in twice as many lists, and other requests pass', async () => {
  const up = await afterAnAccident()
  const asked = lists(up, 200)
  assert.equal((await ask(up.pool).outcome).status, '200', 'a small read')
  await waitFor('the first lists', () => up.held.length > 0)
  const rounds = [up.held.length, await nextRound(up), await nextRound(up)]
  assert.deepEqual(rounds, [FIRST_RELISTS, 2 * FIRST_RELISTS, 4 * FIRST_RELISTS])
  up.answer = (request) => reply(request, 200, 'listed')
  for (const request of up.held) reply(request, 200, '')
  for (const { outcome } of asked) assert.equal((await outcome).status, '200')
})

test('a server that says that it is too much gets half as many', async () => {
  const up = await afterAnAccident()
  lists(up, 200)
  await waitFor('the first lists', () => up.held.length > 0)
  await nextRound(up)
  const before = await nextRound(up)
  assert.equal(await nextRound(up, 429), before / 2)
})

test('one source that lists much waits behind those who list once', async () => {
  const up = await afterAnAccident()
  const hog = lists(up, 100, 'hog')
  const alice = lists(up, 1, 'alice')
  await waitFor('the first lists', () => up.held.length === FIRST_RELISTS)
  up.answer = (request) => reply(request, 200, 'listed')
  const [first] = up.held
  assert.ok(first)
  reply(first, 200, '')
  const { text } = (await alice[0]?.outcome) ?? {}
  assert.equal(text, 'listed')
  for (const request of up.held.slice(1)) reply(request, 200, '')
  for (const { outcome } of hog) await outcome
})

test('who is cancelled or not answered keeps no place', async () => {
  const up = await afterAnAccident()
  const asked = lists(up, 3 * FIRST_RELISTS)
  await waitFor('the first lists', () => up.held.length === FIRST_RELISTS)
  for (const { stream } of asked.slice(0, FIRST_RELISTS)) stream.reset('cancel')
  await waitFor('the next', () => up.held.length === 2 * FIRST_RELISTS)
  tickAll(performance.now() + 5_100)
  await waitFor('the last', () => up.held.length === 3 * FIRST_RELISTS)
})

test('who would wait too long is told when to come back', async () => {
  const up = await afterAnAccident()
  const asked = lists(up, 100)
  await waitFor('the first lists', () => up.held.length === FIRST_RELISTS)
  tickAll(performance.now() + 1_000)
  const [late] = lists(up, 1, 'late')
  assert.equal((await late?.outcome)?.reset, 'overloaded')
  const refusal = waitRefusal(late?.stream)
  assert.equal(refusal?.limit, 'relists')
  assert.ok(refusal.likelySeconds > 10, `${refusal.likelySeconds}`)
  tickAll(performance.now() + 10_100)
  const last = asked.at(-1)
  assert.equal((await last?.outcome)?.reset, 'overloaded')
  assert.equal(waitRefusal(last?.stream)?.limit, 'relists')
})

test('it is over when no list has waited for a while', async () => {
  const up = await afterAnAccident()
  up.answer = (request) => reply(request, 200, 'listed')
  for (const { outcome } of lists(up, 20)) assert.equal((await outcome).text, 'listed')
  tickAll(performance.now() + 1_000)
  tickAll(performance.now() + 7_000)
  assert.equal(up.pool.relisting, false)
})

test('a few watches that are lost, or cancelled by their clients, are no accident', async () => {
  const upstream = await startUpstream({ maxConcurrentStreams: 250 })
  const { pool } = endpointAt(upstream.port)
  cleanups.push(upstream.stop, () => pool.destroy())
  upstream.answer = ({ stream }) => {
    stream.respond([':status', '200'])
    stream.write('{}')
  }
  const watches = Array.from({ length: WATCHES }, () => ask(pool, { kind: 'watch-opening' }))
  await waitFor('all watches', () => watches.every(({ received }) => received.status === '200'))
  for (const { stream } of watches.slice(0, 30)) stream.reset('cancel')
  upstream.breakConnections()
  await watches.at(-1)?.outcome
  assert.equal(pool.relisting, false)
})
