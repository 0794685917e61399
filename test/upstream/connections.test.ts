// The HTTP/2 connections to one endpoint: when they are opened, what they carry, and every way in which they end.

import assert from 'node:assert/strict'
import { afterEach, describe, test } from 'node:test'
import { CLIENT_SIDE_LIMITS } from '../../src/http2/limits.ts'
import { tickAll } from '../../src/kit/io/world/coarse-ticker.ts'
import { frame, SETTINGS } from '../harness/frames/h2-frames.ts'
import { reply, type SeenRequest } from '../harness/upstreams/stub-upstream.ts'
import {
  ask,
  endpointAt,
  startRawUpstream,
  startUpstream,
  type TestEndpoint,
  type TestUpstream,
} from '../harness/upstreams/upstream-exchange.ts'
import { waitFor } from '../harness/wait.ts'

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

async function setUp(settings: Parameters<typeof startUpstream>[0] = {}): Promise<TestUpstream & TestEndpoint> {
  const upstream = await startUpstream(settings)
  const endpoint = endpointAt(upstream.port)
  cleanups.push(upstream.stop, () => endpoint.pool.destroy())
  return Object.assign(upstream, endpoint)
}

function times<T>(count: number, make: (i: number) => T): T[] {
  return Array.from({ length: count }, (_, i) => make(i))
}

/** Requests that upstream holds until it is told to answer. */
function hold(upstream: TestUpstream): SeenRequest[] {
  const held: SeenRequest[] = []
  upstream.answer = (request) => held.push(request)
  return held
}

describe('opening', () => {
  test('2,000 requests wait for the first connection: all are answered, over as few connections as can carry them', async () => {
    const up = await setUp({ maxConcurrentStreams: 250 })
    const outcomes = await Promise.all(times(2_000, (i) => ask(up.pool, { path: `/${i}` }).outcome))
    assert.ok(outcomes.every(({ status, text }) => status === '200' && text === 'ok'))
    assert.equal(new Set(up.seen.map(({ path }) => path)).size, 2_000, 'each once')
    assert.ok(up.sessions.length <= 9, `${up.sessions.length} connections`)
    assert.deepEqual(up.broken, [])
  })

  test('slow start: until the first answer, a server gets 64 requests on two connections; shared fields come along', async () => {
    const up = await setUp({ maxConcurrentStreams: 250 })
    const held = hold(up)
    const asked = times(500, () => ask(up.pool))
    await waitFor('the first of them', () => held.length === 64)
    assert.equal(up.pool.describe().classes.unary.waiting, 436)
    assert.deepEqual(held[0]?.values('x-shared'), ['yes'])
    up.answer = (request) => reply(request, 200, 'later')
    for (const request of held) reply(request, 200, 'first')
    const texts = (await Promise.all(asked.map(({ outcome }) => outcome))).map(({ text }) => text)
    assert.equal(texts.filter((text) => text === 'first').length, 64)
    assert.equal(texts.filter((text) => text === 'later').length, 436)
  })

  test('a server that does not answer for a second gets more all the same', async () => {
    const up = await setUp({ maxConcurrentStreams: 250 })
    const held = hold(up)
    const asked = times(200, () => ask(up.pool, { kind: 'anonymous' }))
    await waitFor('the first of them', () => held.length === 32)
    tickAll(performance.now() + 1_500)
    await waitFor('all of them', () => held.length === 200)
    assert.equal(up.sessions.length, 1)
    for (const request of held) reply(request, 200, '')
    await Promise.all(asked.map(({ outcome }) => outcome))
  })

  test('one stream a connection: each concurrent request has its own, later ones use them again', async () => {
    const up = await setUp({ maxConcurrentStreams: 1 })
    const first = await Promise.all(times(5, () => ask(up.pool).outcome))
    assert.ok(first.every(({ status }) => status === '200'))
    const held = hold(up)
    const asked = times(5, () => ask(up.pool))
    await waitFor('all at once', () => held.length === 5)
    assert.equal(up.sessions.length, 5)
    for (const request of held) reply(request, 200, '')
    await Promise.all(asked.map(({ outcome }) => outcome))
  })

  test('more requests than 64 connections can carry wait, and are served in their turn', async () => {
    const up = await setUp({ maxConcurrentStreams: 1 })
    const held: SeenRequest[] = []
    const proven = new Set<unknown>()
    up.answer = (request) => {
      if (proven.has(request.session)) held.push(request)
      else reply(request, 200, '')
      proven.add(request.session)
    }
    // One for each connection that is answered, one that is held, and 36.
    const asked = times(64 + 64 + 36, () => ask(up.pool))
    await waitFor('64 at once', () => held.length === 64)
    assert.equal(up.pool.describe().classes.unary.connections, 64)
    assert.equal(up.pool.describe().classes.unary.waiting, 36)
    up.answer = (request) => reply(request, 200, '')
    for (const request of held) reply(request, 200, '')
    for (const { outcome } of asked) assert.equal((await outcome).status, '200')
    assert.equal(up.sessions.length, 64)
  })

  test('classes never share a connection; under load unary requests are spread', async () => {
    const up = await setUp({ maxConcurrentStreams: 250 })
    await ask(up.pool).outcome
    const held = hold(up)
    const asked = [
      ...times(120, () => ask(up.pool)),
      ask(up.pool, { kind: 'watch' }),
      ask(up.pool, { kind: 'anonymous' }),
    ]
    await waitFor('all of them', () => held.length === asked.length)
    const { classes } = up.pool.describe()
    assert.equal(classes.watch.connections, 1)
    assert.equal(classes.anonymous.connections, 1)
    await waitFor('more of them', () => up.pool.describe().classes.unary.connections > 1)
    up.answer = (request) => reply(request, 200, '')
    for (const request of held) reply(request, 200, '')
    await Promise.all(asked.map(({ outcome }) => outcome))
  })

  test('64 small requests share one connection, and its writes', async () => {
    const up = await setUp({ maxConcurrentStreams: 250 })
    await ask(up.pool).outcome
    const held = hold(up)
    const asked = times(64, () => ask(up.pool))
    await waitFor('all of them', () => held.length === asked.length)
    up.answer = (request) => reply(request, 200, '')
    // It opens a connection of its own: another one for the 64 would be open by then.
    await ask(up.pool, { kind: 'anonymous' }).outcome
    assert.equal(up.pool.describe().classes.unary.connections, 1)
    for (const request of held) reply(request, 200, '')
    await Promise.all(asked.map(({ outcome }) => outcome))
  })

  test('beside a large answer requests go to another one', async () => {
    const up = await setUp({ maxConcurrentStreams: 250 })
    await ask(up.pool).outcome
    const piece = Buffer.alloc(1024 * 1024)
    up.answer = ({ stream, path }) => {
      stream.respond([':status', '200'])
      if (path !== '/list') {
        stream.end('ok')
        return
      }
      const more = (): void => {
        if (!stream.destroyed) stream.write(piece, more)
      }
      more()
    }
    const { stream } = ask(up.pool, { path: '/list' })
    cleanups.push(() => stream.reset('cancel'))
    await waitFor('a second connection', async () => {
      await ask(up.pool).outcome
      return up.pool.describe().classes.unary.connections > 1
    })
  })

  test('a watch connection is filled before the next is opened', async () => {
    const up = await setUp({ maxConcurrentStreams: 100 })
    up.answer = ({ stream }) => {
      stream.respond([':status', '200'])
      stream.write('{}')
    }
    const watches = times(250, () => ask(up.pool, { kind: 'watch' }))
    await waitFor('all of them', () => watches.every(({ received }) => received.status === '200'))
    assert.equal(up.sessions.length, 3)
    for (const { stream } of watches) stream.reset('cancel')
  })

  test('no server listens: everything that waits is refused, by one attempt to connect', async () => {
    const gone = await startUpstream()
    await gone.stop()
    const { pool, broken } = endpointAt(gone.port)
    cleanups.push(() => pool.destroy())
    const outcomes = await Promise.all(times(2_000, () => ask(pool).outcome))
    assert.ok(outcomes.every(({ reset }) => reset === 'refused'))
    assert.equal(broken.length, 1)
  })

  test('given up while it waits: never sent', async () => {
    const up = await setUp()
    const abandoned = ask(up.pool, { path: '/abandoned' })
    const kept = ask(up.pool, { path: '/kept' })
    abandoned.stream.reset('cancel')
    assert.equal((await kept.outcome).status, '200')
    assert.deepEqual(
      up.seen.map(({ path }) => path),
      ['/kept'],
    )
  })
})

describe('what a server does', () => {
  test('GOAWAY in the middle: what runs finishes, what it has not seen is refused, the next goes elsewhere', async () => {
    const up = await setUp()
    const held = hold(up)
    const seen = ask(up.pool)
    await waitFor('the request', () => held.length === 1)
    const [session] = up.sessions
    // Stream 1 is the last that it will look at; 3 is on its way when it says so.
    const lastStream = held[0]?.stream.id ?? 0
    const unseen = ask(up.pool)
    session?.goaway(0, lastStream)
    assert.equal((await unseen.outcome).reset, 'refused')
    up.answer = (request) => reply(request, 200, 'new')
    assert.equal((await ask(up.pool).outcome).text, 'new')
    assert.equal(up.sessions.length, 2)
    for (const request of held) reply(request, 200, 'old')
    assert.deepEqual(await seen.outcome, { status: '200', text: 'old', reset: undefined })
    await waitFor('the old one to close', () => up.pool.describe().counters.closedByGoaway === 1)
    assert.deepEqual(up.broken, [], 'no reason to doubt the endpoint')
  })

  test('REFUSED_STREAM: refused, and the connection stays', async () => {
    const up = await setUp()
    up.answer = ({ stream }) => stream.close(7)
    assert.equal((await ask(up.pool).outcome).reset, 'refused')
    up.answer = (request) => reply(request, 200, 'ok')
    assert.equal((await ask(up.pool).outcome).status, '200')
    assert.equal(up.sessions.length, 1)
  })

  test('the connection breaks in the middle of an answer: a reset, and a reason to doubt the endpoint', async () => {
    const up = await setUp()
    up.answer = ({ stream }) => {
      stream.respond([':status', '200'])
      stream.write('half')
    }
    const half = ask(up.pool)
    await waitFor('half of it', () => half.received.bytes === 4)
    up.breakConnections()
    assert.equal((await half.outcome).reset, 'connection')
    assert.equal(up.broken.length, 1)
    assert.equal(up.pool.describe().counters.closedByLoss, 1)
    assert.equal(up.pool.describe().connections, 0)
  })

  test('connections that break together are one accident', async () => {
    const up = await setUp()
    const held = hold(up)
    const kinds = ['unary', 'watch', 'anonymous'] as const
    const asked = kinds.map((kind) => ask(up.pool, { kind }))
    await waitFor('all of them', () => held.length === kinds.length)
    up.breakConnections()
    for (const { outcome } of asked) assert.equal((await outcome).reset, 'connection')
    await waitFor('all to be gone', () => up.pool.describe().counters.closedByLoss === kinds.length)
    assert.equal(up.broken.length, 1)
  })

  test('a server that accepts and closes: what waits is refused, no loop', async () => {
    const raw = await startRawUpstream((socket) => void socket.end())
    const { pool, broken } = endpointAt(raw.port)
    cleanups.push(raw.stop, () => pool.destroy())
    const outcomes = await Promise.all(times(10, () => ask(pool).outcome))
    assert.ok(outcomes.every(({ reset }) => reset === 'refused'))
    assert.equal(raw.sockets.length, 1)
    assert.equal(broken.length, 1)
  })

  test('SETTINGS come late: nothing is sent before; when they never come, what waits is refused', async () => {
    const raw = await startRawUpstream((socket) => void socket.resume())
    const { pool, broken } = endpointAt(raw.port)
    cleanups.push(raw.stop, () => pool.destroy())
    const waiting = ask(pool)
    await waitFor('the connection', () => pool.describe().connections === 1 && raw.sockets.length === 1)
    assert.deepEqual(pool.describe().classes.unary, { connections: 1, streams: 0, waiting: 1 })
    raw.sockets[0]?.write(frame(SETTINGS, 0, 0))
    await waitFor('the request to be sent', () => pool.describe().classes.unary.streams === 1)
    waiting.stream.reset('cancel')
    const never = ask(pool, { kind: 'watch' })
    await waitFor('the other connection', () => pool.describe().classes.watch.connections === 1)
    tickAll(performance.now() + 6_000)
    assert.equal((await never.outcome).reset, 'refused')
    assert.equal(pool.describe().counters.connectFailed, 1)
    assert.equal(broken.length, 1)
  })

  test('a server that has gone silent: a PING asks after 30 s, the connection is lost 15 s later', async () => {
    const acknowledgement = frame(SETTINGS, 1, 0)
    let received = Buffer.alloc(0)
    const raw = await startRawUpstream((socket) => {
      // The acknowledgement of our SETTINGS, and nothing more.
      socket.write(Buffer.concat([frame(SETTINGS, 0, 0), acknowledgement]))
      socket.on('data', (chunk: Buffer) => (received = Buffer.concat([received, chunk])))
    })
    const { pool, broken } = endpointAt(raw.port)
    cleanups.push(raw.stop, () => pool.destroy())
    const watch = ask(pool, { kind: 'watch' })
    await waitFor('the request to be sent', () => pool.describe().classes.watch.streams === 1)
    await waitFor('what the server has sent to be read', () => received.includes(acknowledgement))
    const now = performance.now()
    tickAll(now + 31_000)
    tickAll(now + 45_000)
    assert.equal(pool.describe().classes.watch.streams, 1)
    tickAll(now + 47_000)
    assert.equal((await watch.outcome).reset, 'connection')
    assert.equal(pool.describe().counters.closedByPingTimeout, 1)
    assert.equal(broken.length, 1)
  })

  test('a server that breaks the protocol', async () => {
    const raw = await startRawUpstream((socket) => void socket.write('HTTP/1.1 400 Bad Request\r\n\r\n'))
    const { pool, broken } = endpointAt(raw.port)
    cleanups.push(raw.stop, () => pool.destroy())
    assert.equal((await ask(pool).outcome).reset, 'refused')
    assert.equal(pool.describe().counters.connectFailed, 1)
    assert.equal(broken.length, 1)
  })
})

describe('how long a connection lives', () => {
  test('10 minutes, a fifth more or less: its successor is there before it goes, what runs on it stays', async () => {
    const up = await setUp()
    const held = hold(up)
    const watch = ask(up.pool, { kind: 'watch' })
    await waitFor('the watch', () => held.length === 1)
    held[0]?.stream.respond([':status', '200'])
    await waitFor('its head', () => watch.received.status === '200')
    tickAll(performance.now() + 12.1 * 60_000)
    up.answer = (request) => reply(request, 200, 'next')
    await waitFor('a request on the successor', async () => {
      assert.equal((await ask(up.pool, { kind: 'watch' }).outcome).text, 'next')
      return up.seen.at(-1)?.session !== held[0]?.session
    })
    held[0]?.stream.end('{}\n')
    assert.deepEqual(await watch.outcome, { status: '200', text: '{}\n', reset: undefined })
    await waitFor('the old one to close', () => up.pool.describe().counters.closedByAge === 1)
    assert.equal(up.pool.describe().connections, 1)
    assert.deepEqual(up.broken, [])
  })

  test('not before 8 minutes', async () => {
    const up = await setUp()
    const held = hold(up)
    const running = ask(up.pool)
    await waitFor('the request', () => held.length === 1)
    tickAll(performance.now() + 7.9 * 60_000)
    for (const request of held) reply(request, 200, '')
    await running.outcome
    assert.deepEqual([up.pool.describe().counters.opened, up.pool.describe().counters.closedByAge], [1, 0])
  })

  test('a minute without a request', async () => {
    const up = await setUp()
    await ask(up.pool).outcome
    const now = performance.now()
    tickAll(now + 1_000)
    tickAll(now + 60_000)
    assert.equal(up.pool.describe().connections, 1)
    tickAll(now + 62_000)
    await waitFor('it to close', () => up.pool.describe().counters.closedByIdle === 1)
    assert.equal((await ask(up.pool).outcome).status, '200')
    assert.equal(up.sessions.length, 2)
    assert.deepEqual(up.broken, [])
  })

  test('sooner, where the next request is known to come too late for it', async () => {
    const upstream = await startUpstream()
    const { pool, broken } = endpointAt(upstream.port, 500)
    cleanups.push(upstream.stop, () => pool.destroy())
    await ask(pool).outcome
    const now = performance.now()
    tickAll(now + 1_000)
    assert.equal(pool.describe().connections, 1)
    tickAll(now + 2_000)
    await waitFor('it to close', () => pool.describe().counters.closedByIdle === 1)
    assert.deepEqual(broken, [])
  })

  test('the endpoint leaves the object: what was taken is finished, then the connections close', async () => {
    const up = await setUp()
    const held = hold(up)
    const running = ask(up.pool)
    await waitFor('the request', () => held.length === 1)
    const waiting = ask(up.pool, { kind: 'anonymous' })
    up.pool.drain()
    await waitFor('the one that waited', () => held.length === 2)
    for (const request of held) reply(request, 200, 'done')
    assert.equal((await running.outcome).text, 'done')
    assert.equal((await waiting.outcome).text, 'done')
    tickAll(performance.now())
    await waitFor('both to close', () => up.pool.describe().counters.closedByDrain === 2)
    await waitFor('the server to see it', () => up.sessions.every((session) => session.destroyed))
    assert.deepEqual(up.broken, [])
  })
})

describe('an unread answer', () => {
  test('stops at the window of its stream, and others on the connection go on', async () => {
    const up = await setUp()
    await ask(up.pool).outcome
    const { streamWindowBytes, connectionWindowBytes } = CLIENT_SIDE_LIMITS
    const large = Buffer.alloc(2 * streamWindowBytes)
    up.answer = ({ stream, path }) => {
      stream.respond([':status', '200'])
      stream.end(path === '/large' ? large : Buffer.alloc(1024))
    }
    // More than the window of the connection would let through.
    const count = Math.ceil(connectionWindowBytes / streamWindowBytes) + 1
    const stuck = times(count, () => ask(up.pool, { path: '/large', read: false, kind: 'watch' }))
    await waitFor('their windows to be full', () => stuck.every(({ received }) => received.bytes >= streamWindowBytes))
    assert.equal((await ask(up.pool, { kind: 'watch' }).outcome).text.length, 1024)
    assert.ok(stuck.every(({ received }) => received.bytes === streamWindowBytes))
    assert.equal(up.pool.describe().classes.watch.connections, 1)
    for (const { stream } of stuck) stream.reset('cancel')
  })
})
