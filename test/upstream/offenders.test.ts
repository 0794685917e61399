// Requests that end the connection on which they are sent: their sender gets connections of its own, and those of others do not end again.

import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'
import { OWN_LANES } from '../../src/gateway/core/upstream/offenders.ts'
import { ENHANCE_YOUR_CALM, NO_ERROR, PROTOCOL_ERROR } from '../../src/http2/frames.ts'
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

type SetUp = TestUpstream & TestEndpoint

/** An endpoint that ends the connection of a request for `/poison`. */
async function setUp(poison: (request: SeenRequest) => void): Promise<SetUp> {
  const upstream = await startUpstream({ maxConcurrentStreams: 250 })
  const endpoint = endpointAt(upstream.port)
  cleanups.push(upstream.stop, () => endpoint.pool.destroy())
  upstream.answer = (request) => {
    if (request.path === '/poison') poison(request)
    else if (request.path === '/watch') {
      request.stream.respond([':status', '200'])
      request.stream.write('{}')
    } else reply(request, 200, 'ok')
  }
  return Object.assign(upstream, endpoint)
}

/** GOAWAY with this code, and the end. */
function goaway(code: number): (request: SeenRequest) => void {
  return ({ stream }) => {
    const { session } = stream
    session?.goaway(code, stream.id)
    setImmediate(() => session?.destroy())
  }
}

function closeSilently({ stream }: SeenRequest): void {
  stream.session?.socket.destroy()
}

async function watches({ pool }: SetUp, source: string): Promise<Exchange[]> {
  const all = Array.from({ length: WATCHES }, () => ask(pool, { kind: 'watch', path: '/watch', source }))
  await waitFor('all watches', () => all.every(({ received }) => received.status === '200'))
  return all
}

/** Sends one after the other, until each has been reset. */
async function poison({ pool }: SetUp, source: string, times: number): Promise<void> {
  for (let i = 0; i < times; i++) {
    const { reset } = await ask(pool, { kind: 'watch', path: '/poison', source }).outcome
    assert.ok(reset !== undefined && reset !== 'overloaded', reset)
  }
}

async function assertUnharmed(up: SetUp, victims: readonly Exchange[]): Promise<void> {
  const ended = await Promise.race([Promise.all(victims.map(({ outcome }) => outcome)), ask(up.pool).outcome])
  assert.ok(!Array.isArray(ended), 'watches have ended')
  const first = await Promise.race([...victims.map(({ outcome }) => outcome), Promise.resolve(undefined)])
  assert.equal(first, undefined, 'a watch has ended')
}

for (const [name, end, needed] of [
  ['GOAWAY with an error', goaway(PROTOCOL_ERROR), 1],
  ['GOAWAY that says that it is too much', goaway(ENHANCE_YOUR_CALM), 1],
  ['the end of the connection without a word', closeSilently, 3],
] as const) {
  test(`${name}: after ${needed} of them 40 watches of another user go on, whatever is sent`, async () => {
    const up = await setUp(end)
    for (let i = 0; i < needed; i++) {
      await watches(up, 'mallory')
      await poison(up, 'mallory', 1)
      // What was closed without a word counts once the endpoint has shown that it is there.
      assert.equal((await ask(up.pool, { kind: 'watch', source: 'alice' }).outcome).status, '200')
    }
    const victims = await watches(up, 'alice')
    await poison(up, 'mallory', 20)
    await assertUnharmed(up, victims)
    assert.equal(up.pool.describe().classes.watch.streams, WATCHES)
    // It is served, on its own connections.
    assert.equal((await ask(up.pool, { source: 'mallory' }).outcome).text, 'ok')
    assert.equal(up.pool.describe().lanes, 1)
  })
}

test('many who do it end each other at most, behind the first few', async () => {
  const up = await setUp(goaway(PROTOCOL_ERROR))
  const all = Array.from({ length: OWN_LANES + 4 }, (_, i) => `mallory-${i}`)
  for (const source of all) await poison(up, source, 1)
  const victims = await watches(up, 'alice')
  for (const source of all) await poison(up, source, 2)
  await assertUnharmed(up, victims)
  assert.ok(up.pool.describe().lanes <= OWN_LANES + 1)
})

test('a server that shuts down, or dies with all its connections, charges no user', async () => {
  const up = await setUp(goaway(NO_ERROR))
  await watches(up, 'alice')
  await poison(up, 'alice', 1)
  await Promise.all([ask(up.pool, { source: 'alice' }).outcome, watches(up, 'alice')])
  up.breakConnections()
  await waitFor('the loss', () => up.pool.describe().connections === 0)
  assert.equal((await ask(up.pool, { source: 'alice' }).outcome).status, '200')
  await watches(up, 'alice')
  assert.equal(up.shared.offenders.none, true)
  assert.equal(up.pool.describe().counters.endedByRequests, 0)
})
