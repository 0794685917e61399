// The gateway as a client: upstreams that do what HTTP/2 allows and few servers do, and upstreams that break it.

import assert from 'node:assert/strict'
import type { ClientHttp2Session } from 'node:http2'
import { beforeEach, describe, test } from 'node:test'
import { h2Connect, h2Open, h2Request, h2Response, type Response, valuesOf } from '../harness/clients/h2-client.ts'
import type { FrameConnection } from '../harness/frames/frame-connection.ts'
import {
  answerHead,
  answerOk,
  type FrameRequest,
  type FrameUpstream,
  startFrameUpstream,
} from '../harness/frames/frame-upstream.ts'
import * as h2 from '../harness/frames/h2-frames.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { base64, clusterObject } from '../harness/objects/objects.ts'
import { waitFor } from '../harness/wait.ts'

let upstream: FrameUpstream
let gateway: InProcessGateway
let session: ClientHttp2Session

// One of each for each test: what one test did to a connection must not reach the next.
beforeEach(async () => {
  upstream = await startFrameUpstream()
  gateway = await startInProcess([frameCluster(upstream)])
  session = h2Connect({ port: gateway.port })
})

async function stop(): Promise<void> {
  session.destroy()
  await gateway.stop()
  await upstream.stop()
}

function frameCluster(...upstreams: FrameUpstream[]): ReturnType<typeof clusterObject> {
  return clusterObject([], {
    spec: {
      default: true,
      servers: upstreams.map(({ url }) => ({ endpoint: url })),
      clientConfig: { bearerToken: base64('gateway-token'), caData: base64(upstreams[0]?.caPem ?? '') },
      healthCheck: { intervalSeconds: 3_600 },
    },
  })
}

const AUTHORITY = [':authority', '127.0.0.1']
const get = (...head: string[]): Promise<Response> => h2Request(session, [...AUTHORITY, ...head])
const post = (body: string | Buffer): Promise<Response> =>
  h2Request(session, [...AUTHORITY, ':method', 'POST'], Buffer.from(body))

function firstRequest(count = 1): Promise<FrameRequest> {
  return waitFor(
    `${count} requests at upstream`,
    () => (upstream.requests.length >= count ? upstream.requests[count - 1] : undefined),
    { intervalMs: 5 },
  )
}

/** DATA that upstream received on a stream. */
function bodyBytes({ connection, stream }: FrameRequest): number {
  return connection.dataBytes.get(stream) ?? 0
}

/** Resolves when the gateway has read everything that was sent before. */
function ping(connection: FrameConnection, opaque: number): Promise<unknown> {
  connection.send(h2.ping(opaque))
  return connection.frame(
    'the answer to PING',
    ({ type, flags, payload }) => type === h2.PING && flags === h2.ACK && payload.readUInt32BE(4) === opaque,
  )
}

describe('what HTTP/2 allows', () => {
  test('a window that shrinks below zero while a body is under way, and grows again', async (t) => {
    t.after(stop)
    upstream.onRequest = () => undefined
    const answer = post(Buffer.alloc(150_000, 'x'))
    const request = await firstRequest()
    const { connection, stream } = request
    await waitFor('a full window', () => bodyBytes(request) === 65_535)
    connection.send(h2.settings([h2.INITIAL_WINDOW_SIZE, 10]))
    await ping(connection, 1)
    // 65,525 below zero now: this opens it by nothing.
    connection.send(h2.windowUpdate(0, 1_000_000), h2.windowUpdate(stream, 65_525))
    await ping(connection, 2)
    assert.equal(bodyBytes(request), 65_535)
    connection.send(h2.windowUpdate(stream, 1))
    await waitFor('one byte more', () => bodyBytes(request) === 65_536)
    connection.send(h2.settings([h2.INITIAL_WINDOW_SIZE, 1_000_000]))
    await connection.end(stream)
    assert.equal(bodyBytes(request), 150_000)
    answerOk(request)
    assert.equal((await answer).status, 200)
  })

  test('MAX_CONCURRENT_STREAMS drops to 1 with streams open: no more than that at a time, all are served', async (t) => {
    t.after(stop)
    const held: FrameRequest[] = []
    upstream.onRequest = (request) => held.push(request)
    const early = Promise.all(Array.from({ length: 5 }, () => get()))
    await waitFor('five requests', () => held.length === 5)
    const connection = held[0]?.connection
    assert.ok(connection)
    connection.send(h2.settings([h2.MAX_CONCURRENT_STREAMS, 1]))
    await ping(connection, 1)
    let running = 5
    let most = 0
    upstream.onRequest = (request) => {
      if (request.connection !== connection) return answerOk(request)
      most = Math.max(most, ++running)
      setImmediate(() => {
        running--
        answerOk(request)
      })
    }
    const late = Promise.all(Array.from({ length: 20 }, () => get()))
    await ping(connection, 2)
    running = 0
    for (const request of held) answerOk(request)
    for (const { status, resetCode } of [...(await early), ...(await late)])
      assert.deepEqual([status, resetCode], [200, 0])
    assert.ok(most <= 1, `${most} streams at a time`)
    return undefined
  })

  test('MAX_CONCURRENT_STREAMS of 0 for a while: requests are served elsewhere, or when it is lifted', async (t) => {
    t.after(stop)
    assert.equal((await get()).status, 200)
    const connection = upstream.requests[0]?.connection
    assert.ok(connection)
    connection.send(h2.settings([h2.MAX_CONCURRENT_STREAMS, 0]))
    await ping(connection, 1)
    const before = upstream.requests.length
    const answers = Promise.all(Array.from({ length: 5 }, () => get()))
    await ping(connection, 2)
    assert.ok(!upstream.requests.slice(before).some((request) => request.connection === connection))
    connection.send(h2.settings([h2.MAX_CONCURRENT_STREAMS, 100]))
    assert.ok((await answers).every(({ status }) => status === 200))
  })

  test('HEADER_TABLE_SIZE of 0, and back: heads stay readable', async (t) => {
    t.after(stop)
    const head = ['user-agent', 'kubectl/v1.36', 'accept', 'application/json', 'x-same', 'value']
    const ask = async (): Promise<void> => {
      const { status } = await get(...head)
      assert.equal(status, 200)
      const seen = upstream.requests.at(-1)
      assert.deepEqual(valuesOf(seen?.head ?? [], 'user-agent'), ['kubectl/v1.36'])
      assert.deepEqual(valuesOf(seen?.head ?? [], 'x-same'), ['value'])
    }
    for (let i = 0; i < 3; i++) await ask()
    const connection = upstream.requests[0]?.connection
    assert.ok(connection)
    let opaque = 0
    for (const sizes of [[0], [4096], [0, 4096], [100], [65_536]]) {
      connection.send(h2.settings(...sizes.map((size) => [h2.HEADER_TABLE_SIZE, size] as const)))
      await ping(connection, ++opaque)
      for (let i = 0; i < 3; i++) await ask()
    }
    assert.ok(
      upstream.requests.every((request) => request.connection === connection),
      'one connection all along',
    )
  })

  test('MAX_FRAME_SIZE goes up: the body arrives whole, in frames within it', async (t) => {
    t.after(stop)
    upstream.greeting = Buffer.concat([
      h2.settings([h2.MAX_FRAME_SIZE, 100_000], [h2.INITIAL_WINDOW_SIZE, 10_000_000]),
      h2.windowUpdate(0, 10_000_000),
    ])
    upstream.onRequest = () => undefined
    const answer = post(Buffer.alloc(500_000, 'x'))
    const request = await firstRequest()
    await request.connection.end(request.stream)
    assert.equal(bodyBytes(request), 500_000)
    assert.ok(request.connection.frames.every(({ payload }) => payload.length <= 100_000))
    answerOk(request)
    assert.equal((await answer).status, 200)
  })

  test('interim responses, padding, split heads, trailers, frames to ignore', async (t) => {
    t.after(stop)
    upstream.onRequest = ({ connection, stream }) => {
      const block = h2.headerBlock([':status', '200', 'x-long', 'y'.repeat(500)])
      const padded = (flags: number, bytes: string): Buffer =>
        h2.frame(
          h2.DATA,
          flags | h2.PADDED,
          stream,
          Buffer.concat([Buffer.from([7]), Buffer.from(bytes), Buffer.alloc(7)]),
        )
      connection.send(
        answerHead(stream, 103, ['link', '</a>']),
        answerHead(stream, 103, ['link', '</b>']),
        h2.priority(stream),
        h2.frame(h2.HEADERS, 0, stream, block.subarray(0, 5)),
        h2.frame(h2.CONTINUATION, 0, stream),
        h2.frame(h2.CONTINUATION, 0, stream, block.subarray(5, 300)),
        h2.frame(h2.CONTINUATION, h2.END_HEADERS, stream, block.subarray(300)),
        h2.frame(0xbe, 0xff, stream, Buffer.from('unknown')),
        h2.ping(77),
        padded(0, 'first '),
        h2.data(stream, ''),
        h2.frame(h2.DATA, h2.PADDED, stream, Buffer.from([0])),
        h2.settings([0x99, 5]),
        padded(0, 'second'),
        h2.headersFrames(stream, h2.headerBlock(['x-sum', '7']), h2.END_STREAM),
      )
    }
    const answer = await get()
    assert.equal(answer.status, 200)
    assert.deepEqual(
      answer.interim.map((head) => valuesOf(head, 'link')[0]),
      ['</a>', '</b>'],
    )
    assert.equal(valuesOf(answer.head, 'x-long')[0]?.length, 500)
    assert.equal(answer.body.toString(), 'first second')
    assert.deepEqual(answer.trailers, ['x-sum', '7'])
    assert.equal(answer.resetCode, 0)
    const { connection } = await firstRequest()
    await connection.frame(
      'the answer to PING',
      ({ type, payload }) => type === h2.PING && payload.readUInt32BE(4) === 77,
    )
  })

  test('answers without a body: HEAD, 204, 304, and END_STREAM on the head', async (t) => {
    t.after(stop)
    for (const [method, status, length] of [
      ['HEAD', 200, '42'],
      ['GET', 204, ''],
      ['GET', 304, '42'],
      ['GET', 200, '0'],
    ] as const) {
      upstream.onRequest = ({ connection, stream }) =>
        connection.send(answerHead(stream, status, length === '' ? [] : ['content-length', length], h2.END_STREAM))
      const answer = await get(':method', method)
      assert.deepEqual([answer.status, answer.body.length, answer.resetCode], [status, 0, 0], `${method} ${status}`)
    }
  })

  test('RST_STREAM with NO_ERROR behind a whole answer, while the request is still being sent', async (t) => {
    t.after(stop)
    upstream.onRequest = (request) => {
      answerOk(request, 'early')
      request.connection.send(h2.rstStream(request.stream, h2.NO_ERROR))
    }
    const stream = h2Open(session, [...AUTHORITY, ':method', 'POST'], { endStream: false })
    stream.write('beginning')
    const answer = await h2Response(stream)
    assert.deepEqual([answer.status, answer.body.toString(), answer.resetCode], [200, 'early', 0])
  })

  test('REFUSED_STREAM: sent again, body and all', async (t) => {
    t.after(stop)
    upstream.onRequest = ({ connection, stream }) => {
      if (upstream.requests.length === 1) connection.send(h2.rstStream(stream, h2.REFUSED_STREAM))
    }
    const answer = post('{"kind":"Pod"}')
    const again = await firstRequest(2)
    await again.connection.end(again.stream)
    assert.equal(bodyBytes(again), 14)
    answerOk(again)
    assert.equal((await answer).status, 200)
  })

  test('GOAWAY in two steps: running requests finish, new ones go elsewhere', async (t) => {
    t.after(stop)
    upstream.onRequest = () => undefined
    const running = get()
    const first = await firstRequest()
    first.connection.send(h2.goaway(2 ** 31 - 1, h2.NO_ERROR))
    await ping(first.connection, 1)
    upstream.onRequest = (request) => answerOk(request, 'new')
    assert.equal((await get()).body.toString(), 'new')
    assert.notEqual(upstream.requests[1]?.connection, first.connection)
    first.connection.send(h2.goaway(first.stream, h2.NO_ERROR))
    answerOk(first, 'old')
    assert.equal((await running).body.toString(), 'old')
    await first.connection.closed
  })

  test('GOAWAY below running streams: those above are sent again, writes too', async (t) => {
    t.after(stop)
    const held: FrameRequest[] = []
    upstream.onRequest = (request) => held.push(request)
    const read = get()
    await waitFor('the read', () => held.length === 1)
    const write = post('{}')
    await waitFor('the write', () => held.length === 2)
    const [first, second] = held
    assert.ok(first && second)
    assert.equal(first.connection, second.connection)
    upstream.onRequest = (request) => answerOk(request, 'again')
    first.connection.send(h2.goaway(first.stream, h2.NO_ERROR))
    assert.equal((await write).body.toString(), 'again')
    answerOk(first, 'old')
    assert.equal((await read).body.toString(), 'old')
  })

  test('a body above the window of the stream comes as fast as the client takes it', async (t) => {
    t.after(stop)
    const size = 5_000_000
    upstream.onRequest = ({ connection, stream }) => {
      connection.send(answerHead(stream, 200))
      let connectionWindow = 65_535
      let streamWindow = 65_535
      for (const { type, stream: on, payload } of connection.frames) {
        if (type === h2.WINDOW_UPDATE && on === 0) connectionWindow += payload.readUInt32BE()
        if (type === h2.SETTINGS)
          for (let at = 0; at + 6 <= payload.length; at += 6)
            if (payload.readUInt16BE(at) === h2.INITIAL_WINDOW_SIZE) streamWindow = payload.readUInt32BE(at + 2)
      }
      let left = size
      const pump = (): void => {
        while (left > 0) {
          const bytes = Math.min(16_384, left, connectionWindow, streamWindow)
          if (bytes <= 0) return
          left -= bytes
          connectionWindow -= bytes
          streamWindow -= bytes
          connection.send(h2.data(stream, Buffer.alloc(bytes), left === 0 ? h2.END_STREAM : 0))
        }
      }
      const { onFrame } = connection
      connection.onFrame = (received) => {
        if (received.type === h2.WINDOW_UPDATE) {
          if (received.stream === 0) connectionWindow += received.payload.readUInt32BE()
          else if (received.stream === stream) streamWindow += received.payload.readUInt32BE()
          pump()
        } else onFrame(received)
      }
      pump()
    }
    const answer = await get()
    assert.equal(answer.body.length, size)
    assert.equal(answer.resetCode, 0)
  })
})

describe('broken streams: 502 or a reset, and the connection lives', () => {
  const answers: [string, (stream: number) => Buffer[]][] = [
    ['no :status', (s) => [h2.headersFrames(s, h2.headerBlock(['x-a', 'b']), h2.END_STREAM)]],
    ['a :status of two digits', (s) => [h2.headersFrames(s, h2.headerBlock([':status', '20']), h2.END_STREAM)]],
    ['101', (s) => [h2.headersFrames(s, h2.headerBlock([':status', '101']), h2.END_STREAM)]],
    ['an upper-case name', (s) => [answerHead(s, 200, ['X-A', 'b'], h2.END_STREAM)]],
    ['connection', (s) => [answerHead(s, 200, ['connection', 'close'], h2.END_STREAM)]],
    ['CR LF in a value', (s) => [answerHead(s, 200, ['x-a', 'b\r\nx-c: d'], h2.END_STREAM)]],
    ['a :path', (s) => [answerHead(s, 200, [':path', '/'], h2.END_STREAM)]],
    ['DATA before the head', (s) => [h2.data(s, 'x', h2.END_STREAM)]],
    ['the end on an interim head', (s) => [answerHead(s, 103, [], h2.END_STREAM)]],
    ['content-length 5 and END_STREAM', (s) => [answerHead(s, 200, ['content-length', '5'], h2.END_STREAM)]],
    ['RST_STREAM INTERNAL_ERROR', (s) => [h2.rstStream(s, h2.INTERNAL_ERROR)]],
    ['WINDOW_UPDATE of 0 on the stream', (s) => [h2.windowUpdate(s, 0)]],
    ['a stream window above 2^31-1', (s) => [h2.windowUpdate(s, 2 ** 31 - 1)]],
  ]
  for (const [name, frames] of answers) {
    test(`${name}: 502`, async (t) => {
      t.after(stop)
      // A write: it is not sent again.
      upstream.onRequest = ({ connection, stream, end }) => {
        if (!end) connection.send(...frames(stream))
      }
      const answer = await post('{}')
      assert.equal(answer.status, 502)
      assert.equal(upstream.requests.length, 1)
      await assertServes()
      assert.equal(upstream.requests[1]?.connection, upstream.requests[0]?.connection, 'the connection lives')
    })
  }

  // One that says that it is short is held until it is whole: the client sees nothing of it.
  const held: [string, (stream: number) => Buffer[]][] = [
    [
      'less DATA than content-length',
      (s) => [answerHead(s, 200, ['content-length', '5']), h2.data(s, 'abc', h2.END_STREAM)],
    ],
    [
      'more DATA than content-length',
      (s) => [answerHead(s, 200, ['content-length', '2']), h2.data(s, 'abc', h2.END_STREAM)],
    ],
  ]
  for (const [name, frames] of held) {
    test(`${name}: 502, and nothing of the answer`, async (t) => {
      t.after(stop)
      upstream.onRequest = ({ connection, stream }) => connection.send(...frames(stream))
      const answer = await get()
      assert.deepEqual([answer.status, answer.resetCode], [502, 0])
      assert.ok(!answer.body.includes('abc'))
      await assertServes()
      assert.equal(upstream.requests[1]?.connection, upstream.requests[0]?.connection, 'the connection lives')
    })
  }

  const bodies: [string, (stream: number) => Buffer[]][] = [
    [
      'less DATA than content-length',
      (s) => [answerHead(s, 200, ['content-length', '500000']), h2.data(s, 'abc', h2.END_STREAM)],
    ],
    ['trailers without END_STREAM', (s) => [answerHead(s, 200), h2.headersFrames(s, h2.headerBlock(['x-a', 'b']), 0)]],
    ['RST_STREAM in the middle', (s) => [answerHead(s, 200), h2.data(s, 'abc'), h2.rstStream(s, h2.INTERNAL_ERROR)]],
    ['RST_STREAM NO_ERROR in the middle', (s) => [answerHead(s, 200), h2.data(s, 'abc'), h2.rstStream(s, h2.NO_ERROR)]],
  ]
  for (const [name, frames] of bodies) {
    test(`${name}: reset, never a clean end`, async (t) => {
      t.after(stop)
      upstream.onRequest = ({ connection, stream }) => connection.send(...frames(stream))
      const answer = await get()
      assert.equal(answer.status, 200)
      assert.notEqual(answer.resetCode, 0)
      await assertServes()
      assert.equal(upstream.requests[1]?.connection, upstream.requests[0]?.connection, 'the connection lives')
    })
  }
})

describe('broken connections: GOAWAY with the code, 502, and a new connection', () => {
  const { PROTOCOL_ERROR, FRAME_SIZE_ERROR, FLOW_CONTROL_ERROR, COMPRESSION_ERROR } = h2
  const noise = Buffer.alloc(5)
  const breaks: [string, number, (stream: number) => Buffer][] = [
    [
      'PUSH_PROMISE',
      PROTOCOL_ERROR,
      (s) => h2.frame(h2.PUSH_PROMISE, h2.END_HEADERS, s, Buffer.from([0, 0, 0, 2, 0x82])),
    ],
    ['DATA on stream 0', PROTOCOL_ERROR, () => h2.data(0, 'x')],
    ['DATA on a stream that was not opened', PROTOCOL_ERROR, (s) => h2.data(s + 100, 'x')],
    ['HEADERS on stream 0', PROTOCOL_ERROR, () => h2.headersFrames(0, Buffer.from([0x88]))],
    ['HEADERS on a stream of the server', PROTOCOL_ERROR, () => h2.headersFrames(2, Buffer.from([0x88]))],
    ['CONTINUATION of nothing', PROTOCOL_ERROR, (s) => h2.frame(h2.CONTINUATION, h2.END_HEADERS, s, noise)],
    [
      'a head that is not continued',
      PROTOCOL_ERROR,
      (s) => Buffer.concat([h2.frame(h2.HEADERS, 0, s, Buffer.from([0x88])), h2.ping(1)]),
    ],
    ['RST_STREAM on an idle stream', PROTOCOL_ERROR, (s) => h2.rstStream(s + 100, 0)],
    ['RST_STREAM of 3 bytes', FRAME_SIZE_ERROR, (s) => h2.frame(h2.RST_STREAM, 0, s, Buffer.alloc(3))],
    ['SETTINGS of 5 bytes', FRAME_SIZE_ERROR, () => h2.frame(h2.SETTINGS, 0, 0, noise)],
    ['SETTINGS on a stream', PROTOCOL_ERROR, (s) => h2.frame(h2.SETTINGS, 0, s)],
    ['SETTINGS acknowledged with a payload', FRAME_SIZE_ERROR, () => h2.frame(h2.SETTINGS, h2.ACK, 0, Buffer.alloc(6))],
    ['ENABLE_PUSH of 1', PROTOCOL_ERROR, () => h2.settings([2, 1])],
    ['INITIAL_WINDOW_SIZE of 2^31', FLOW_CONTROL_ERROR, () => h2.settings([h2.INITIAL_WINDOW_SIZE, 2 ** 31])],
    ['MAX_FRAME_SIZE of 100', PROTOCOL_ERROR, () => h2.settings([h2.MAX_FRAME_SIZE, 100])],
    ['PING of 5 bytes', FRAME_SIZE_ERROR, () => h2.frame(h2.PING, 0, 0, noise)],
    ['PING on a stream', PROTOCOL_ERROR, (s) => h2.frame(h2.PING, 0, s, Buffer.alloc(8))],
    ['GOAWAY of 5 bytes', FRAME_SIZE_ERROR, () => h2.frame(h2.GOAWAY, 0, 0, noise)],
    ['WINDOW_UPDATE of 0', PROTOCOL_ERROR, () => h2.windowUpdate(0, 0)],
    ['WINDOW_UPDATE of 5 bytes', FRAME_SIZE_ERROR, () => h2.frame(h2.WINDOW_UPDATE, 0, 0, noise)],
    ['a connection window above 2^31-1', FLOW_CONTROL_ERROR, () => h2.windowUpdate(0, 2 ** 31 - 1)],
    ['a frame above MAX_FRAME_SIZE', FRAME_SIZE_ERROR, (s) => h2.frame(h2.DATA, 0, s, Buffer.alloc(20_000))],
    ['a head that HPACK cannot read', COMPRESSION_ERROR, (s) => h2.headersFrames(s, Buffer.from([0x80]))],
    ['padding longer than the frame', PROTOCOL_ERROR, (s) => h2.frame(h2.DATA, h2.PADDED, s, Buffer.from([9, 1, 2]))],
  ]
  for (const [name, code, frames] of breaks) {
    test(name, async (t) => {
      t.after(stop)
      upstream.onRequest = ({ connection, stream, end }) => {
        if (!end) connection.send(answerHead(stream, 103), frames(stream))
      }
      const answer = await post('{}')
      assert.equal(answer.status, 502)
      const broken = await firstRequest()
      await broken.connection.closed
      assert.equal(broken.connection.goawayCode, code)
      await assertServes()
      assert.equal(upstream.requests.length, 2, 'the write was not sent again')
    })
  }

  test('a connection that does not begin with SETTINGS', async (t) => {
    t.after(stop)
    assert.equal((await get()).status, 200)
    const { connection: first } = await firstRequest()
    const known = upstream.connections.length
    upstream.greeting = h2.ping(1)
    first.send(h2.goaway(2 ** 31 - 1, h2.NO_ERROR))
    await first.closed
    assert.ok([502, 503].includes((await post('{}')).status))
    const broken = upstream.connections[known]
    assert.ok(broken)
    await broken.closed
    assert.equal(broken.goawayCode, PROTOCOL_ERROR)
    upstream.greeting = h2.settings()
    await waitFor('the gateway to try again', async () => (await get()).status === 200)
  })

  test('a read is sent again, to the other endpoint; a write is not', async (t) => {
    const other = await startFrameUpstream()
    t.after(async () => {
      await stop()
      await other.stop()
    })
    gateway.apply([frameCluster(upstream, other)])
    await waitFor('the second endpoint to be in use', async () => {
      await get()
      return other.requests.length > 0
    })
    const onlyBroken = async (): Promise<number> => {
      const before = upstream.requests.length
      const { status } = await post('{}')
      return upstream.requests.length > before ? status : 0
    }
    upstream.onRequest = ({ connection }) => connection.send(h2.data(0, 'x'))
    const status = await waitFor(
      'a write that meets the broken endpoint',
      async () => (await onlyBroken()) || undefined,
    )
    assert.equal(status, 502)
    upstream.requests.length = 0
    await waitFor('a read that meets it', async () => {
      assert.equal((await get()).status, 200)
      return upstream.requests.length > 0
    })
  })
})

async function assertServes(): Promise<void> {
  upstream.onRequest = (request) => answerOk(request)
  const answer = await get()
  assert.equal(answer.status, 200)
}
