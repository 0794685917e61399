// The server's side against frames written by hand: every answer is the RFC's code at the RFC's level.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  END,
  errorName,
  frameOf,
  GET,
  OK,
  POST,
  ServerSide,
  settings,
  uint32,
} from '../../test/harness/frames/http2-sides.ts'
import * as frame from './frames.ts'
import { SERVER_LIMITS } from './limits.ts'

describe('server: a request', () => {
  it('is answered with head, body and trailers', () => {
    const side = new ServerSide()
    side.send(side.head(1, POST), frameOf(frame.DATA, 0, 1, Buffer.from('ab')), side.head(1, ['x-sum', '1'], END))
    const { stream, head, body, trailers } = side.request(0)
    assert.deepEqual([head, body, trailers], [POST, 'ab', ['x-sum', '1']])
    stream.headers([':status', '103', 'link', 'x'], false)
    stream.headers(OK, false)
    stream.body(Buffer.from('hello'), false)
    stream.trailers(['grpc-status', '0'])
    const frames = side.take()
    assert.deepEqual(
      frames.map(({ type, flags }) => [type, flags & END]),
      [
        [frame.HEADERS, 0],
        [frame.HEADERS, 0],
        [frame.DATA, 0],
        [frame.HEADERS, END],
      ],
    )
    assert.deepEqual(side.fields(frames[0]?.payload ?? Buffer.alloc(0)), [':status', '103', 'link', 'x'])
    assert.equal(side.connection.openStreams, 0)
  })

  it('arrives in CONTINUATION frames and padding', () => {
    const side = new ServerSide()
    const block = side.block(GET)
    const padded = Buffer.concat([Buffer.from([3]), block.subarray(0, 2), Buffer.alloc(3)])
    side.send(
      frameOf(frame.HEADERS, END | frame.FLAG_PADDED, 1, padded),
      frameOf(frame.CONTINUATION, 0, 1, block.subarray(2, 5)),
      frameOf(frame.CONTINUATION, frame.FLAG_END_HEADERS, 1, block.subarray(5)),
    )
    assert.deepEqual(side.request(0).head, GET)
  })

  it('is the same however the bytes are split', () => {
    const side = new ServerSide()
    const bytes = Buffer.concat([
      side.head(1, POST),
      frameOf(frame.DATA, frame.FLAG_PADDED, 1, Buffer.from('\x02abcde\0\0', 'latin1')),
      frameOf(frame.PING, 0, 0, Buffer.alloc(8)),
      frameOf(frame.DATA, END | frame.FLAG_PADDED, 1, Buffer.from('\x01f\0', 'latin1')),
    ])
    for (const byte of bytes) side.send(Buffer.from([byte]))
    const { body, end } = side.request(0)
    assert.deepEqual([body, end], ['abcdef', true])
  })

  it('is the same when reading stops between any two frames', () => {
    const bytes = (side: ServerSide): Buffer =>
      Buffer.concat([
        side.head(1, POST),
        frameOf(frame.DATA, frame.FLAG_PADDED, 1, Buffer.from('\x02abcde\0\0', 'latin1')),
        side.head(3, GET, END),
        frameOf(frame.PING, 0, 0, Buffer.alloc(8)),
        frameOf(frame.DATA, END | frame.FLAG_PADDED, 1, Buffer.from('\x01f\0', 'latin1')),
        side.head(5, GET, END),
      ])
    for (const inOneGo of [1, 2, 3]) {
      const side = new ServerSide()
      const whole = bytes(side)
      const pieces = [whole.subarray(0, 20), whole.subarray(20)]
      let stops = 0
      for (const piece of pieces) {
        for (let at = 0; at < piece.length; stops++) {
          let left = inOneGo
          const next = side.connection.receive(piece, side.now, at, { goOn: () => --left > 0 })
          assert.ok(next > at, 'at least a frame at a time')
          at = next
        }
      }
      assert.ok(stops > pieces.length, 'it was interrupted')
      assert.deepEqual([side.request(0).body, side.request(0).end], ['abcdef', true])
      assert.deepEqual([side.request(1).head, side.request(2).head], [GET, GET])
      assert.equal(side.take().filter(({ type }) => type === frame.PING).length, 1)
    }
  })

  it('is read no further once the connection has ended, wherever it was interrupted', () => {
    const side = new ServerSide()
    const bytes = Buffer.concat([frameOf(frame.PING, 0, 1, Buffer.alloc(8)), side.head(1, GET, END)])
    assert.equal(side.connection.receive(bytes, side.now, 0, { goOn: () => false }), bytes.length)
    assert.equal(side.requests.length, 0)
  })

  it('that is answered before its end is stopped by RST_STREAM when it takes too long (RFC 9113 section 8.1)', () => {
    const side = new ServerSide()
    side.send(side.head(1, POST))
    side.request(0).stream.headers([':status', '413'], true)
    assert.deepEqual(side.errors(), [], 'the client may not have read the answer yet')
    side.connection.tick(SERVER_LIMITS.lateBodyMs)
    assert.deepEqual(side.errors(), ['1 NO_ERROR'])
    side.send(frameOf(frame.DATA, END, 1, Buffer.alloc(100)))
    assert.deepEqual(side.errors(), [], 'frames under way are not an error')
  })

  it('with too large a head gets 431, and the connection lives', () => {
    const side = new ServerSide({ maxHeaderListBytes: 1000 })
    side.send(side.head(1, [...GET, 'x-big', 'x'.repeat(2000)], END), side.head(3, GET, END))
    assert.deepEqual(side.fields(side.take()[0]?.payload ?? Buffer.alloc(0)).slice(0, 2), [':status', '431'])
    assert.deepEqual(side.request(0).head, GET)
    assert.equal(side.counters.headerListTooLarge, 1)
  })

  it('whose response head is too large for the client: 502, and the connection stays open', () => {
    const side = new ServerSide()
    side.send(settings(frame.MAX_HEADER_LIST_SIZE, 200))
    side.send(side.head(1, GET, END), side.head(3, GET, END), side.head(5, GET, END), side.head(7, POST))
    side.take()
    const large = [...OK, 'x-large', 'y'.repeat(200)]
    const { stream } = side.request(0)
    stream.headers([':status', '103', 'link', 'y'.repeat(200)], false)
    assert.deepEqual(side.take(), [], 'an interim answer is not needed')
    stream.headers(large, false)
    stream.body(Buffer.from('lost'), true)
    const [answer, ...rest] = side.take()
    assert.deepEqual(
      [side.fields(answer?.payload ?? Buffer.alloc(0)), answer?.flags],
      [[':status', '502', 'content-length', '0'], END | frame.FLAG_END_HEADERS],
    )
    assert.deepEqual([rest, side.request(0).reset, side.counters.headsNotSent], [[], 'internal', 2])
    // Trailers that are too large are dropped.
    for (const [at, id, queued] of [
      [1, 3, ''],
      [2, 5, 'queued'],
    ] as const) {
      const { stream } = side.request(at)
      stream.headers(OK, false)
      if (queued !== '') side.send(settings(frame.INITIAL_WINDOW_SIZE, 0))
      stream.body(Buffer.from('body'), false)
      stream.trailers(['x-large', 'y'.repeat(200)])
      if (queued !== '') side.send(settings(frame.INITIAL_WINDOW_SIZE, 65_535))
      const frames = side.take().filter((sent) => sent.id === id)
      assert.deepEqual(
        frames.map(({ type, flags, payload }) => [type, flags & END, type === frame.DATA ? payload.toString() : '']),
        [
          [frame.HEADERS, 0, ''],
          [frame.DATA, 0, 'body'],
          [frame.DATA, END, ''],
        ],
      )
    }
    side.request(3).stream.headers(large, true)
    side.send(frameOf(frame.DATA, END, 7))
    assert.deepEqual([side.connection.openStreams, side.closed], [0, undefined])
  })

  it('above the limit of streams is refused', () => {
    const side = new ServerSide({ maxConcurrentStreams: 1 })
    side.send(side.head(1, GET, END), side.head(3, GET, END))
    assert.deepEqual(side.errors(), ['3 REFUSED_STREAM'])
    side.request(0).stream.headers(OK, true)
    side.send(side.head(5, GET, END))
    assert.equal(side.requests.length, 2)
  })

  for (const [what, head] of Object.entries({
    'no :method': [':scheme', 'https', ':path', '/'],
    'no :path': [':method', 'GET', ':scheme', 'https'],
    'an empty :path': [':method', 'GET', ':scheme', 'https', ':path', ''],
    'a :status': [...GET, ':status', '200'],
    'a :protocol (extended CONNECT)': [...GET, ':protocol', 'websocket'],
    'a pseudo-header field behind others': [...GET, 'a', 'b', ':method', 'GET'],
    'an upper-case name': [...GET, 'Accept', 'x'],
    'a connection-specific field': [...GET, 'connection', 'close'],
    'te other than trailers': [...GET, 'te', 'gzip'],
    'a length that contradicts the end': [...GET, 'content-length', '3'],
    'a length that is not a number': [...GET, 'content-length', '+3'],
  })) {
    it(`with ${what} is malformed`, () => {
      const side = new ServerSide()
      side.send(side.head(1, head, END))
      assert.deepEqual(side.errors(), ['1 PROTOCOL_ERROR'])
      assert.equal(side.requests.length, 0)
    })
  }

  it('that was reset long ago may still get trailers', () => {
    const side = new ServerSide()
    side.send(side.head(1, POST))
    side.request(0).stream.reset('internal')
    for (let i = 1; i < 200; i++) {
      side.send(side.head(2 * i + 1, GET, END))
      side.request(i).stream.headers(OK, true)
    }
    side.send(side.head(1, ['x-sum', '1'], END))
    assert.equal(side.closed, undefined)
  })

  it('by CONNECT is not implemented', () => {
    const side = new ServerSide()
    side.send(side.head(1, [':method', 'CONNECT', ':authority', 'a:1'], END))
    assert.deepEqual(side.fields(side.take()[0]?.payload ?? Buffer.alloc(0)).slice(0, 2), [':status', '501'])
  })

  it('whose body is longer or shorter than content-length is reset', () => {
    const side = new ServerSide()
    const head = [...POST, 'content-length', '3']
    side.send(side.head(1, head), frameOf(frame.DATA, 0, 1, Buffer.alloc(4)))
    side.send(side.head(3, head), frameOf(frame.DATA, END, 3, Buffer.alloc(2)))
    assert.deepEqual(side.errors(), ['1 PROTOCOL_ERROR', '3 PROTOCOL_ERROR'])
    assert.deepEqual(
      side.requests.map(({ reset }) => reset),
      ['protocol', 'protocol'],
    )
  })

  it('is notified when the client resets it', () => {
    const side = new ServerSide()
    side.send(side.head(1, GET, END), frameOf(frame.RST_STREAM, 0, 1, uint32(frame.CANCEL)))
    assert.equal(side.request(0).reset, 'cancel')
    side.request(0).stream.headers(OK, true)
    assert.deepEqual(side.take(), [])
  })
})

describe('server: an idle connection', () => {
  const { firstRequestMs, idleTimeoutMs } = SERVER_LIMITS
  const goaway = (side: ServerSide): boolean => side.take().some(({ type }) => type === frame.GOAWAY)

  it('without a first request is drained sooner than after one', () => {
    const side = new ServerSide()
    side.connection.tick(firstRequestMs - 1)
    assert.equal(goaway(side), false)
    side.connection.tick(firstRequestMs)
    assert.equal(goaway(side), true)
    assert.equal(side.counters.idleTimeouts, 1)
    side.connection.tick(firstRequestMs + 1_001)
    assert.deepEqual(side.closed, { code: frame.NO_ERROR, message: '' })
  })

  it('is drained a fixed time after its last stream, PING or not', () => {
    const side = new ServerSide()
    side.now = firstRequestMs - 1
    side.send(side.head(1, GET, END), side.head(3, GET, END))
    for (side.now = 60_000; side.now <= 3 * idleTimeoutMs; side.now += 60_000) {
      side.connection.tick(side.now)
      assert.equal(goaway(side), false, 'a stream is open')
      side.send(frameOf(frame.PING, frame.FLAG_ACK, 0, Buffer.alloc(8)))
    }
    const endedMs = side.now
    side.connection.tick(endedMs)
    side.request(0).stream.headers(OK, true)
    side.request(1).stream.headers(OK, true)
    side.now = endedMs + idleTimeoutMs - 1
    side.send(frameOf(frame.PING, 0, 0, Buffer.alloc(8)))
    side.connection.tick(side.now)
    assert.equal(goaway(side), false)
    side.connection.tick(endedMs + idleTimeoutMs)
    assert.equal(goaway(side), true)
  })
})

describe('server: connection errors', () => {
  const cases: Record<string, [(side: ServerSide) => Buffer[], string]> = {
    'HEADERS on stream 0': [(side) => [side.head(0, GET)], 'PROTOCOL_ERROR'],
    'an even stream': [(side) => [side.head(2, GET)], 'PROTOCOL_ERROR'],
    'a stream number passed over': [(side) => [side.head(5, GET, END), side.head(3, GET, END)], 'PROTOCOL_ERROR'],
    'DATA on stream 0': [() => [frameOf(frame.DATA, 0, 0, Buffer.alloc(1))], 'PROTOCOL_ERROR'],
    'DATA on an idle stream': [() => [frameOf(frame.DATA, 0, 1, Buffer.alloc(1))], 'PROTOCOL_ERROR'],
    'RST_STREAM on an idle stream': [() => [frameOf(frame.RST_STREAM, 0, 1, uint32(8))], 'PROTOCOL_ERROR'],
    'WINDOW_UPDATE on an idle stream': [() => [frameOf(frame.WINDOW_UPDATE, 0, 1, uint32(8))], 'PROTOCOL_ERROR'],
    'WINDOW_UPDATE of 0': [() => [frameOf(frame.WINDOW_UPDATE, 0, 0, uint32(0))], 'PROTOCOL_ERROR'],
    'a window that overflows': [
      () => [frameOf(frame.WINDOW_UPDATE, 0, 0, uint32(frame.LARGEST_WINDOW_BYTES))],
      'FLOW_CONTROL_ERROR',
    ],
    'a frame that is too long': [() => [frameOf(frame.DATA, 0, 1, Buffer.alloc(16_385))], 'FRAME_SIZE_ERROR'],
    'padding as long as the frame': [
      (side) => [side.head(1, POST), frameOf(frame.DATA, frame.FLAG_PADDED, 1, Buffer.from([3, 0, 0]))],
      'PROTOCOL_ERROR',
    ],
    'a header block that is not continued': [
      (side) => [frameOf(frame.HEADERS, 0, 1, side.block(GET)), frameOf(frame.PING, 0, 0, Buffer.alloc(8))],
      'PROTOCOL_ERROR',
    ],
    'CONTINUATION of nothing': [() => [frameOf(frame.CONTINUATION, 4, 1)], 'PROTOCOL_ERROR'],
    'a broken header block': [() => [frameOf(frame.HEADERS, 4, 1, Buffer.from([0x80]))], 'COMPRESSION_ERROR'],
    'SETTINGS of odd length': [() => [frameOf(frame.SETTINGS, 0, 0, Buffer.alloc(5))], 'FRAME_SIZE_ERROR'],
    'SETTINGS on a stream': [() => [frameOf(frame.SETTINGS, 0, 1)], 'PROTOCOL_ERROR'],
    'an acknowledgement with a payload': [() => [frameOf(frame.SETTINGS, 1, 0, Buffer.alloc(6))], 'FRAME_SIZE_ERROR'],
    'INITIAL_WINDOW_SIZE above 2^31-1': [() => [settings(frame.INITIAL_WINDOW_SIZE, 2 ** 31)], 'FLOW_CONTROL_ERROR'],
    'MAX_FRAME_SIZE below 16384': [() => [settings(frame.MAX_FRAME_SIZE, 16_383)], 'PROTOCOL_ERROR'],
    'ENABLE_PUSH of 2': [() => [settings(frame.ENABLE_PUSH, 2)], 'PROTOCOL_ERROR'],
    'PING of another length': [() => [frameOf(frame.PING, 0, 0, Buffer.alloc(7))], 'FRAME_SIZE_ERROR'],
    'PING on a stream': [() => [frameOf(frame.PING, 0, 1, Buffer.alloc(8))], 'PROTOCOL_ERROR'],
    PUSH_PROMISE: [() => [frameOf(frame.PUSH_PROMISE, 4, 1, Buffer.alloc(8))], 'PROTOCOL_ERROR'],
    'GOAWAY on a stream': [() => [frameOf(frame.GOAWAY, 0, 1, Buffer.alloc(8))], 'PROTOCOL_ERROR'],
  }
  for (const [what, [frames, code]] of Object.entries(cases)) {
    it(`${what}: ${code}`, () => {
      const side = new ServerSide()
      side.send(...frames(side))
      assert.deepEqual(side.errors(), [`0 ${code}`])
      assert.equal(errorName(side.closed?.code ?? -1), code)
    })
  }

  it('a wrong preface: PROTOCOL_ERROR', () => {
    const side = new ServerSide({}, false)
    side.send(Buffer.from('GET / HTTP/1.1\r\n\r\n'))
    assert.deepEqual(side.errors(), ['0 PROTOCOL_ERROR'])
  })

  it('another first frame than SETTINGS: PROTOCOL_ERROR', () => {
    const side = new ServerSide({}, false)
    side.send(Buffer.from(frame.PREFACE), frameOf(frame.PING, 0, 0, Buffer.alloc(8)))
    assert.deepEqual(side.errors(), ['0 PROTOCOL_ERROR'])
  })
})
