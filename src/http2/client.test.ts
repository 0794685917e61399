// The client's side against frames written by hand.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  ClientSide,
  END,
  frameOf,
  GET,
  OK,
  POST,
  Received,
  settings,
  uint32,
} from '../../test/harness/frames/http2-sides.ts'
import { MAX_INTERIM_ANSWERS } from './client.ts'
import { PING_UNANSWERED } from './deadlines.ts'
import * as frame from './frames.ts'
import { CLIENT_SIDE_LIMITS } from './limits.ts'

describe('client', () => {
  it('opens a stream and receives the response', () => {
    const side = new ClientSide()
    const received = side.open([...GET, 'accept', 'x'])
    const [request] = side.take()
    assert.deepEqual([request?.type, request?.flags], [frame.HEADERS, END | frame.FLAG_END_HEADERS])
    assert.deepEqual(side.fields(request?.payload ?? Buffer.alloc(0)), [...GET, 'accept', 'x'])
    side.send(side.head(1, [':status', '100']), side.head(1, OK), frameOf(frame.DATA, 0, 1, Buffer.from('ab')))
    side.send(side.head(1, ['x-sum', '1'], END))
    assert.deepEqual(received.heads, [[':status', '100'], OK])
    assert.deepEqual([received.body, received.trailers, side.connection.openStreams], ['ab', ['x-sum', '1'], 0])
    assert.deepEqual(side.events, ['ready', 'slot'])
  })

  it('encodes shared fields once, behind the others', () => {
    const side = new ClientSide()
    const shared = { list: ['impersonate-user', 'ann'], encoded: undefined }
    side.connection.open(GET, shared, true, new Received())
    const bytes = shared.encoded
    side.connection.open(GET, shared, true, new Received())
    assert.equal(shared.encoded, bytes)
    for (const { payload } of side.take()) assert.deepEqual(side.fields(payload), [...GET, ...shared.list])
  })

  it('splits a head that is larger than a frame', () => {
    const side = new ClientSide()
    const head = [...GET, 'x-large', 'y'.repeat(40_000)]
    side.open(head)
    const frames = side.take()
    assert.deepEqual(
      frames.map(({ type, flags }) => [type, flags]),
      [
        [frame.HEADERS, END],
        [frame.CONTINUATION, 0],
        [frame.CONTINUATION, frame.FLAG_END_HEADERS],
      ],
    )
    assert.deepEqual(side.fields(Buffer.concat(frames.map(({ payload }) => payload))), head)
  })

  it('sends no head larger than the peer accepts, and opens no stream for it', () => {
    const side = new ClientSide()
    // GET: 4 fields, 31 octets. x-a and y: 2 fields of 4 octets.
    const bytes = 4 * 32 + GET.join('').length + 2 * 36
    const shared = { list: ['y', 'abc'], encoded: undefined }
    side.send(settings(frame.MAX_HEADER_LIST_SIZE, bytes - 1))
    side.take()
    const received = new Received()
    assert.equal(side.connection.open([...GET, 'x-a', '1'], shared, true, received), undefined)
    assert.deepEqual([side.take(), side.connection.openStreams, side.counters.headsNotSent], [[], 0, 1])
    side.send(settings(frame.MAX_HEADER_LIST_SIZE, bytes))
    side.take()
    assert.ok(side.connection.open([...GET, 'x-a', '1'], shared, true, received) !== undefined)
    const [request] = side.take()
    assert.deepEqual(
      [request?.id, side.fields(request?.payload ?? Buffer.alloc(0))],
      [1, [...GET, 'x-a', '1', 'y', 'abc']],
    )
    assert.deepEqual(side.connection.open([...GET, 'x-ab', '1'], shared, true, received), undefined)
    assert.equal(side.closed, undefined)
  })

  it('reads on behind an answer whose head is far too large', () => {
    const side = new ClientSide()
    const [first, second] = [side.open(), side.open()]
    // 10 MiB of fields, as relayed from a pod by a kube-apiserver: the table must stay in sync.
    side.send(frameOf(frame.HEADERS, 0, 1, side.block(OK)))
    const piece = side.block(['x-a', 'y'.repeat(16_000)])
    for (let i = 0; i < 650; i++) side.send(frameOf(frame.CONTINUATION, 0, 1, piece))
    side.send(frameOf(frame.CONTINUATION, frame.FLAG_END_HEADERS, 1))
    assert.deepEqual([first.reset, side.counters.headerListTooLarge], ['protocol', 1])
    side.send(side.head(3, [...OK, 'x-b', 'c'], END))
    assert.deepEqual(second.heads, [[...OK, 'x-b', 'c']])
    assert.equal(side.closed, undefined)
  })

  it('ends on a header block without end', () => {
    const side = new ClientSide()
    side.open()
    side.send(frameOf(frame.HEADERS, 0, 1, side.block(OK)))
    const piece = side.block(['x-a', 'y'.repeat(16_000)])
    for (let i = 0; i < 1_100 && side.closed === undefined; i++) side.send(frameOf(frame.CONTINUATION, 0, 1, piece))
    assert.equal(side.counters.continuationFlood, 1)
  })

  it('counts a stream that it has reset until the peer has answered a PING behind RST_STREAM', () => {
    const side = new ClientSide()
    const { connection } = side
    const streams = [side.open(), side.open(), side.open(POST, false)].map(({ stream }) => stream)
    side.take()
    const [first, second, third] = streams
    first?.reset('cancel')
    // The peer had ended its half: it is no longer working on it.
    side.send(side.head(5, OK, END))
    third?.reset('cancel')
    assert.deepEqual(
      side.take().map(({ type, id }) => [type, id]),
      [
        [frame.RST_STREAM, 1],
        [frame.RST_STREAM, 5],
      ],
    )
    assert.deepEqual([connection.openStreams, connection.takenStreams], [1, 2])
    connection.tick(1)
    const [ping] = side.take()
    assert.equal(ping?.type, frame.PING)
    second?.reset('cancel')
    side.take()
    // The answers to another PING, or to one sent before a stream was reset, confirm nothing.
    side.send(frameOf(frame.PING, frame.FLAG_ACK, 0, Buffer.alloc(8)))
    assert.deepEqual([connection.openStreams, connection.takenStreams], [0, 2])
    connection.tick(2)
    assert.deepEqual(side.take(), [], 'one PING is under way')
    side.events.length = 0
    side.send(frameOf(frame.PING, frame.FLAG_ACK, 0, ping?.payload ?? Buffer.alloc(8)))
    assert.deepEqual([connection.takenStreams, side.events], [1, ['slot']])
    connection.tick(3)
    const [again] = side.take()
    side.send(frameOf(frame.PING, frame.FLAG_ACK, 0, again?.payload ?? Buffer.alloc(8)))
    assert.equal(connection.takenStreams, 0)
    connection.tick(4)
    assert.deepEqual(side.take(), [])
  })

  it('asks for that answer at once, a few times a second, when nothing but resets keeps it full', () => {
    const side = new ClientSide()
    const { connection } = side
    side.send(settings(frame.MAX_CONCURRENT_STREAMS, 4))
    side.take()
    const resetAll = (streams: readonly Received[]): void => {
      for (const { stream } of streams) stream?.reset('cancel')
    }
    const pings = (): Buffer[] =>
      side
        .take()
        .filter(({ type }) => type === frame.PING)
        .map(({ payload }) => payload)
    const answer = (payload: Buffer | undefined): void => {
      side.send(frameOf(frame.PING, frame.FLAG_ACK, 0, payload ?? Buffer.alloc(8)))
    }
    // There is room next to them.
    resetAll([side.open(), side.open(), side.open()])
    assert.deepEqual([connection.takenStreams, pings()], [3, []])
    const fourth = side.open()
    const [first, ...more] = pings()
    assert.deepEqual([first?.length, more], [8, []], 'full, and three of four are resets')
    fourth.stream?.reset('cancel')
    assert.deepEqual([connection.takenStreams, pings()], [4, []], 'one PING is under way')
    answer(first)
    assert.deepEqual([connection.takenStreams, pings()], [1, []])
    resetAll([side.open(), side.open(), side.open()])
    const [second, ...rest] = pings()
    assert.deepEqual([second?.length, rest], [8, []])
    answer(second)
    // A server that doesn't stop reset streams must not get ever more of them.
    resetAll(Array.from({ length: 4 - connection.takenStreams }, () => side.open()))
    assert.deepEqual([connection.takenStreams, pings()], [4, []], 'as often as that, and no more')
    connection.tick(1)
    answer(pings()[0])
    assert.equal(connection.takenStreams, 0)
    resetAll(Array.from({ length: 4 }, () => side.open()))
    assert.equal(pings().length, 1, 'in the next second again')
  })

  it('sends PING to a peer that leaves resets unconfirmed', () => {
    const side = new ClientSide()
    side.open().stream.reset('cancel')
    side.connection.tick(CLIENT_SIDE_LIMITS.pingIntervalMs)
    side.connection.tick(CLIENT_SIDE_LIMITS.pingIntervalMs + CLIENT_SIDE_LIMITS.pingTimeoutMs + 1)
    assert.equal(side.closed?.message, PING_UNANSWERED)
  })

  it('an answer to HEAD has a length and no body', () => {
    const side = new ClientSide()
    const received = side.open([':method', 'HEAD', ...GET.slice(2)])
    side.send(side.head(1, [...OK, 'content-length', '5'], END))
    assert.deepEqual([received.end, received.reset, received.heads.length], [true, undefined, 1])
  })

  for (const [what, head] of Object.entries({
    'no status': ['a', 'b'],
    'status 101': [':status', '101'],
    'a status of two digits': [':status', '20'],
    'a status that is another form of a number': [':status', '2e2'],
    'a request field': [...OK, ':path', '/'],
  })) {
    it(`an answer with ${what} is malformed`, () => {
      const side = new ClientSide()
      const received = side.open()
      side.take()
      side.send(side.head(1, head))
      assert.deepEqual([received.reset, side.errors()], ['protocol', ['1 PROTOCOL_ERROR']])
    })
  }

  it('more heads of 1xx than anybody needs end their own stream only', () => {
    const side = new ClientSide()
    const [flooded, other] = [side.open(), side.open()]
    side.take()
    for (let i = 0; i <= MAX_INTERIM_ANSWERS; i++) side.send(side.head(1, [':status', '103']))
    assert.deepEqual([flooded.reset, side.errors()], ['protocol', ['1 ENHANCE_YOUR_CALM']])
    side.send(side.head(3, OK, END))
    assert.deepEqual([other.end, other.reset], [true, undefined])
  })

  it('reports unprocessed requests: REFUSED_STREAM and above GOAWAY', () => {
    const side = new ClientSide()
    const received = [side.open(), side.open(), side.open()]
    side.send(frameOf(frame.RST_STREAM, 0, 1, uint32(frame.REFUSED_STREAM)))
    side.send(frameOf(frame.GOAWAY, 0, 0, uint32(frame.LARGEST_STREAM_ID, 0)))
    assert.equal(side.connection.usable, false)
    side.send(frameOf(frame.GOAWAY, 0, 0, uint32(3, 0)))
    assert.deepEqual(
      received.map(({ reset }) => reset),
      ['refused', undefined, 'refused'],
    )
    side.send(side.head(3, OK, END))
    assert.equal(received[1]?.end, true)
    assert.equal(side.closed?.code, frame.NO_ERROR)
  })

  it('resets a request that was answered before its end', () => {
    const side = new ClientSide()
    const received = side.open(POST, false)
    side.take()
    side.send(side.head(1, OK, END))
    assert.deepEqual([received.end, side.errors()], [true, ['1 CANCEL']])
  })

  it('bears an upstream that refuses very many streams', () => {
    const side = new ClientSide()
    for (let i = 0; i < 3000; i++) {
      const received = side.open()
      side.send(frameOf(frame.RST_STREAM, 0, 2 * i + 1, uint32(frame.REFUSED_STREAM)))
      assert.equal(received.reset, 'refused')
    }
    assert.equal(side.connection.usable, true)
  })

  it('ends the connection over a pushed stream', () => {
    const side = new ClientSide()
    side.open()
    side.send(frameOf(frame.PUSH_PROMISE, 4, 1, Buffer.alloc(8)))
    assert.deepEqual(side.errors(), ['0 PROTOCOL_ERROR'])
  })

  it('drains by ending its streams', () => {
    const side = new ClientSide()
    side.open()
    side.connection.drain(0)
    assert.equal(side.connection.usable, false)
    side.send(side.head(1, OK, END))
    assert.equal(side.closed?.code, frame.NO_ERROR)
  })

  it('the window of a stream is small until what came is consumed, and grows with it', () => {
    const side = new ClientSide()
    const { stream } = side.open()
    side.send(side.head(1, OK))
    const { streamWindowBytes: first, streamWindowGrowthBytes: growth } = CLIENT_SIDE_LIMITS
    let window = first
    let sent = 0
    while (sent < 4 * (first + growth)) {
      const bytes = Math.min(window, 16_384)
      side.send(frameOf(frame.DATA, 0, 1, Buffer.alloc(bytes)))
      window -= bytes
      sent += bytes
      stream.credit(bytes)
      for (const { type, id, payload } of side.take()) {
        if (type === frame.WINDOW_UPDATE && id === 1) window += payload.readUInt32BE(0)
      }
      assert.ok(window <= first + sent, 'no more than was consumed is added')
    }
    assert.deepEqual(side.errors(), [])
    // Now all of it may arrive at once, and not a byte more.
    assert.ok(window > (first + growth) / 2 && window <= first + growth, `${window}`)
    for (let left = window; left > 0; left -= 16_384) {
      side.send(frameOf(frame.DATA, 0, 1, Buffer.alloc(Math.min(left, 16_384))))
    }
    assert.deepEqual(side.errors(), [])
    side.send(frameOf(frame.DATA, 0, 1, Buffer.alloc(1)))
    assert.deepEqual(side.errors(), ['1 FLOW_CONTROL_ERROR'])
  })

  it('an unread stream does not stop the others', () => {
    const side = new ClientSide({ connectionWindowBytes: 131_072, streamWindowBytes: 131_072 })
    side.open()
    side.open()
    side.send(side.head(1, OK))
    for (let i = 0; i < 8; i++) side.send(frameOf(frame.DATA, 0, 1, Buffer.alloc(16_000)))
    const updates = side.take().filter(({ type }) => type === frame.WINDOW_UPDATE)
    assert.deepEqual([...new Set(updates.map(({ id }) => id))], [0])
  })
})
