// Common to both sides, against frames written by hand: flow control, the end of a connection, and excesses.

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
import type { Http2Counters } from './counters.ts'
import * as frame from './frames.ts'
import { SERVER_LIMITS } from './limits.ts'

describe('flow control', () => {
  it('sends what the windows allow, whatever order they open in', () => {
    const side = new ServerSide()
    side.send(settings(frame.INITIAL_WINDOW_SIZE, 10), side.head(1, GET, END))
    const { stream } = side.request(0)
    stream.headers(OK, false)
    stream.body(Buffer.from('0123456789abcdef'), true)
    const sent = (): string =>
      side
        .take()
        .filter(({ type }) => type === frame.DATA)
        .map(({ payload, flags }) => `${payload}${(flags & END) === 0 ? '' : '.'}`)
        .join('|')
    assert.equal(sent(), '0123456789')
    side.send(settings(frame.INITIAL_WINDOW_SIZE, 4))
    side.send(frameOf(frame.WINDOW_UPDATE, 0, 1, uint32(6)))
    assert.equal(sent(), '', 'the window was below zero')
    side.send(frameOf(frame.WINDOW_UPDATE, 0, 1, uint32(2)))
    assert.equal(sent(), 'ab')
    side.send(settings(frame.INITIAL_WINDOW_SIZE, 100))
    assert.equal(sent(), 'cdef.')
  })

  it('a large body fills the connection window, and continues frame by frame in turn with others', () => {
    const side = new ServerSide()
    side.send(settings(frame.INITIAL_WINDOW_SIZE, 1 << 20), side.head(1, GET, END), side.head(3, GET, END))
    for (const at of [0, 1]) {
      side.request(at).stream.headers(OK, false)
      side.request(at).stream.body(Buffer.alloc(200_000), true)
    }
    const first = side.take().filter(({ type }) => type === frame.DATA)
    assert.equal(
      first.reduce((sum, { payload }) => sum + payload.length, 0),
      65_535,
    )
    assert.deepEqual(
      first.slice(0, 4).map(({ id }) => id),
      [1, 3, 1, 3],
    )
    side.send(frameOf(frame.WINDOW_UPDATE, 0, 0, uint32(1 << 20)))
    const ends = side.take().filter(({ flags, type }) => type === frame.DATA && (flags & END) !== 0)
    assert.deepEqual(new Set(ends.map(({ id }) => id)), new Set([1, 3]))
    assert.equal(side.connection.openStreams, 0)
  })

  it('reports when a full stream has room again', () => {
    const side = new ServerSide()
    side.send(side.head(1, GET, END))
    const received = side.request(0)
    received.stream.headers(OK, false)
    for (let i = 0; i < 30; i++) received.stream.body(Buffer.alloc(16_384), false)
    assert.ok(received.stream.queued > 400_000)
    for (let i = 0; i < 8; i++) {
      side.take()
      side.send(frameOf(frame.WINDOW_UPDATE, 0, 0, uint32(65_535)), frameOf(frame.WINDOW_UPDATE, 0, 1, uint32(65_535)))
    }
    assert.ok(received.drained > 1, 'and goes on to say so until nothing waits')
    assert.equal(received.stream.queued, 0)
  })

  it('returns a window when the bytes were consumed, on both levels', () => {
    const windowBytes = 131_072
    const limits = { connectionWindowBytes: windowBytes, initialConnectionWindowBytes: windowBytes }
    const side = new ServerSide({ streamWindowBytes: 65_536, ...limits })
    side.send(side.head(1, POST))
    const data = frameOf(frame.DATA, 0, 1, Buffer.alloc(16_384))
    side.send(data, data, data, data)
    assert.deepEqual(side.take(), [])
    side.request(0).stream.credit(65_536)
    const updates = side.take().map(({ type, id, payload }) => [type, id, payload.readUInt32BE(0)])
    assert.deepEqual(updates, [
      [frame.WINDOW_UPDATE, 0, 65_536],
      [frame.WINDOW_UPDATE, 1, 65_536],
    ])
    side.send(data, data, data, data, data)
    assert.deepEqual(side.errors(), ['1 FLOW_CONTROL_ERROR'])
  })

  it('a client has the window of the protocol until it is known, whatever it opens', () => {
    const side = new ServerSide()
    for (const id of [1, 3, 5]) side.send(side.head(id, POST), frameOf(frame.DATA, 0, id, Buffer.alloc(16_384)))
    side.send(side.head(7, POST), frameOf(frame.DATA, 0, 7, Buffer.alloc(16_383)))
    assert.deepEqual(side.take(), [])
    // It continues as bytes are consumed, in halves of the window.
    side.request(0).stream.credit(16_384)
    side.request(1).stream.credit(16_384)
    const updates = side.take().map(({ type, id, payload }) => [type, id, payload.readUInt32BE(0)])
    assert.deepEqual(updates, [[frame.WINDOW_UPDATE, 0, 32_768]])
    side.send(...[1, 1, 3].map((id) => frameOf(frame.DATA, 0, id, Buffer.alloc(16_384))))
    assert.deepEqual(side.errors(), ['0 FLOW_CONTROL_ERROR'])
  })

  it('a client that is known gets the rest of its window, once, and what it has not been given back stays owed', () => {
    const side = new ServerSide()
    side.send(side.head(1, POST), frameOf(frame.DATA, 0, 1, Buffer.alloc(16_384)))
    side.request(0).stream.credit(16_384)
    side.connection.widenWindow()
    side.connection.widenWindow()
    const updates = side.take().map(({ type, id, payload }) => [type, id, payload.readUInt32BE(0)])
    const { connectionWindowBytes } = SERVER_LIMITS
    assert.deepEqual(updates, [[frame.WINDOW_UPDATE, 0, connectionWindowBytes - 65_535]])
    // Less than half of the window was consumed, so no update yet. The first frame is one of them.
    const frames = Math.floor(connectionWindowBytes / 16_384)
    const streams = Math.floor(frames / 2)
    for (let id = 3; id < 3 + 2 * streams; id += 2) {
      const data = frameOf(frame.DATA, 0, id, Buffer.alloc(16_384))
      side.send(side.head(id, POST), data, ...(id === 3 ? [] : [data]))
    }
    assert.equal(side.closed, undefined)
    side.send(frameOf(frame.DATA, 0, 1, Buffer.alloc(16_384)))
    assert.deepEqual(side.errors(), ['0 FLOW_CONTROL_ERROR'])
  })

  it('nothing is given to one that has ended', () => {
    const side = new ServerSide()
    side.connection.destroy(frame.NO_ERROR)
    side.connection.widenWindow()
    assert.equal(side.take().filter(({ type }) => type === frame.WINDOW_UPDATE).length, 0)
  })

  it('a stream that ends unread returns its part of the connection window', () => {
    const side = new ServerSide({ streamWindowBytes: 65_536, connectionWindowBytes: 65_536 })
    for (let i = 0; i < 50; i++) {
      const id = 1 + 2 * i
      side.send(side.head(id, POST), frameOf(frame.DATA, frame.FLAG_PADDED, id, Buffer.alloc(16_000)))
      side.send(frameOf(frame.RST_STREAM, 0, id, uint32(8)), frameOf(frame.DATA, 0, id, Buffer.alloc(500)))
      side.take()
    }
    assert.equal(side.closed, undefined)
    assert.equal(side.counters.protocolErrors, 0)
  })
})

describe('the end of a connection', () => {
  it('drains in two steps and serves requests under way', () => {
    const side = new ServerSide()
    side.send(side.head(1, GET, END))
    side.connection.drain(0)
    const [goaway, ping] = side.take()
    assert.equal(goaway?.payload.readUInt32BE(0), frame.LARGEST_STREAM_ID)
    side.send(side.head(3, GET, END), frameOf(frame.PING, frame.FLAG_ACK, 0, ping?.payload))
    const last = side.take()
    assert.deepEqual(
      last.map(({ type, payload }) => [type, payload.readUInt32BE(0)]),
      [[frame.GOAWAY, 3]],
    )
    side.send(side.head(5, GET, END))
    assert.equal(side.requests.length, 2)
    side.request(0).stream.headers(OK, true)
    assert.equal(side.connection.closed, false)
    side.request(1).stream.headers(OK, true)
    assert.equal(side.closed?.code, frame.NO_ERROR)
  })

  it('ends when its last stream is reset after the last GOAWAY', () => {
    const side = new ServerSide()
    side.send(side.head(1, GET, END))
    side.connection.drain(0)
    side.connection.tick(1500)
    assert.equal(side.connection.closed, false)
    side.send(frameOf(frame.RST_STREAM, 0, 1, uint32(frame.CANCEL)))
    assert.equal(side.connection.closed, true)
  })

  it('drains without an answer to PING', () => {
    const side = new ServerSide()
    side.connection.drain(0)
    side.connection.tick(1500)
    assert.equal(side.closed?.code, frame.NO_ERROR)
  })

  it('has deadlines: SETTINGS, their acknowledgement, a header block, PING', () => {
    const slow = new ServerSide({}, false)
    slow.connection.tick(11_000)
    assert.equal(slow.counters.slowPreface, 1)

    const half = new ServerSide()
    half.send(frameOf(frame.HEADERS, 0, 1, half.block(GET)))
    half.connection.tick(11_000)
    assert.deepEqual(half.errors(), ['0 ENHANCE_YOUR_CALM'])

    const silent = new ServerSide()
    silent.send(silent.head(1, GET, END))
    silent.connection.tick(61_000)
    assert.equal(silent.take()[0]?.type, frame.PING)
    silent.connection.tick(92_000)
    assert.equal(silent.request(0).reset, 'connection')
    assert.equal(silent.counters.pingTimeouts, 1)
  })

  it('is reported to every open stream', () => {
    const side = new ServerSide()
    side.send(side.head(1, GET, END), side.head(3, POST))
    side.connection.onSocketClosed()
    assert.deepEqual(
      side.requests.map(({ reset }) => reset),
      ['connection', 'connection'],
    )
    assert.equal(side.connection.openStreams, 0)
  })
})

describe('abuse', () => {
  const floods: Record<string, [keyof Http2Counters, (side: ServerSide, i: number) => Buffer[]]> = {
    'rapid reset': [
      'rapidReset',
      (side, i) => [side.head(2 * i + 1, GET, END), frameOf(frame.RST_STREAM, 0, 2 * i + 1, uint32(8))],
    ],
    'streams that we are made to reset': [
      'madeYouReset',
      (side, i) => [side.head(2 * i + 1, GET, END), frameOf(frame.WINDOW_UPDATE, 0, 2 * i + 1, uint32(0))],
    ],
    SETTINGS: ['settingsFlood', () => [settings()]],
    PING: ['pingFlood', () => [frameOf(frame.PING, 0, 0, Buffer.alloc(8))]],
    'empty DATA': ['emptyFrames', (side, i) => [...(i === 0 ? [side.head(1, POST)] : []), frameOf(frame.DATA, 0, 1)]],
    'WINDOW_UPDATE of 1': ['windowUpdateFlood', () => [frameOf(frame.WINDOW_UPDATE, 0, 0, uint32(1))]],
    PRIORITY: ['priorityFlood', () => [frameOf(frame.PRIORITY, 0, 1, Buffer.alloc(5))]],
    'unknown frames': ['unknownFrames', () => [frameOf(0xfe, 0, 0)]],
    CONTINUATION: [
      'continuationFlood',
      (side, i) => [
        ...(i === 0 ? [frameOf(frame.HEADERS, 0, 1, side.block(GET))] : []),
        frameOf(frame.CONTINUATION, 0, 1, Buffer.from([0x82])),
      ],
    ],
  }
  for (const [what, [counter, frames]] of Object.entries(floods)) {
    it(`${what} ends in ENHANCE_YOUR_CALM`, () => {
      const side = new ServerSide()
      for (let i = 0; i < 20_000 && side.closed === undefined; i++) {
        side.send(...frames(side, i))
        if (i % 50 === 0) side.take()
      }
      assert.equal(errorName(side.closed?.code ?? -1), 'ENHANCE_YOUR_CALM')
      assert.equal(side.counters[counter], 1)
    })
  }

  it('unread responses end the connection', () => {
    const side = new ServerSide({ maxBacklogBytes: 100_000 })
    for (let i = 0; i < 2000 && side.closed === undefined; i++) {
      side.send(side.head(2 * i + 1, GET, END))
      side.request(i).stream.headers([...OK, 'x-large', 'x'.repeat(2000)], true)
    }
    assert.equal(side.counters.slowRead, 1)
  })
})
