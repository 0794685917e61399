// Both sides of a connection against frames written by hand: every answer is the RFC's code at the RFC's level.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { HeaderList, Peer, ResetReason, Stream, StreamEvents } from '../api/stream.ts'
import { ClientConnection } from './client.ts'
import type { Connection } from './connection.ts'
import { createHttp2Counters, type Http2Counters } from './counters.ts'
import * as frame from './frames.ts'
import { HpackDecoder } from './hpack-decoder.ts'
import { HpackEncoder } from './hpack-encoder.ts'
import { CLIENT_LIMITS, type Http2Limits, SERVER_LIMITS } from './limits.ts'
import { ServerConnection } from './server.ts'

const ERROR_NAMES = [
  'NO_ERROR',
  'PROTOCOL_ERROR',
  'INTERNAL_ERROR',
  'FLOW_CONTROL_ERROR',
  'SETTINGS_TIMEOUT',
  'STREAM_CLOSED',
  'FRAME_SIZE_ERROR',
  'REFUSED_STREAM',
  'CANCEL',
  'COMPRESSION_ERROR',
  'CONNECT_ERROR',
  'ENHANCE_YOUR_CALM',
  'INADEQUATE_SECURITY',
  'HTTP_1_1_REQUIRED',
]

/** RFC 9113 section 7. */
function errorName(code: number): string {
  return ERROR_NAMES[code] ?? String(code)
}

interface Frame {
  readonly type: number
  readonly flags: number
  readonly id: number
  readonly payload: Buffer
}

const PEER = { id: 1 } as Peer
const GET: HeaderList = [':method', 'GET', ':scheme', 'https', ':authority', 'a', ':path', '/']
const POST: HeaderList = [':method', 'POST', ':scheme', 'https', ':authority', 'a', ':path', '/']

function frameOf(type: number, flags: number, id: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const bytes = Buffer.alloc(frame.FRAME_HEADER_BYTES + payload.length)
  frame.writeFrameHeader(bytes, 0, payload.length, type, flags, id)
  payload.copy(bytes, frame.FRAME_HEADER_BYTES)
  return bytes
}

function uint32(...values: number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4)
  for (const [i, value] of values.entries()) bytes.writeUInt32BE(value, i * 4)
  return bytes
}

function settings(...pairs: number[]): Buffer {
  const payload = Buffer.alloc(pairs.length * 3)
  for (let i = 0; i < pairs.length; i += 2) {
    payload.writeUInt16BE(pairs[i] ?? 0, i * 3)
    payload.writeUInt32BE(pairs[i + 1] ?? 0, i * 3 + 2)
  }
  return frameOf(frame.SETTINGS, 0, 0, payload)
}

/** What one stream told, and the stream. */
class Heard implements StreamEvents {
  stream: Stream | undefined
  head: HeaderList = []
  end = false
  readonly heads: HeaderList[] = []
  body = ''
  trailers: HeaderList | undefined
  drained = 0
  reset: ResetReason | undefined

  onHeaders(list: HeaderList, end: boolean): void {
    this.heads.push(list)
    this.end ||= end
  }
  onBody(chunk: Buffer, end: boolean): void {
    this.body += chunk.toString('latin1')
    this.end ||= end
  }
  onTrailers(list: HeaderList): void {
    this.trailers = list
    this.end = true
  }
  onDrained(): void {
    this.drained++
  }
  onReset(reason: ResetReason): void {
    this.reset = reason
  }
}

/** A connection and the peer that the test plays. */
abstract class Side<C extends Connection> {
  abstract readonly connection: C
  readonly counters: Http2Counters = createHttp2Counters()
  closed: { code: number; message: string } | undefined
  now = 0
  readonly #encoder = new HpackEncoder()
  readonly #decoder = new HpackDecoder(4096)
  protected readonly driver = {
    onOutput: (): void => undefined,
    onClosed: (code: number, message: string): void => {
      this.closed = { code, message }
    },
  }

  send(...frames: Buffer[]): this {
    this.connection.receive(Buffer.concat(frames), this.now)
    return this
  }

  block(list: HeaderList): Buffer {
    const out = Buffer.alloc(64 * 1024)
    return out.subarray(0, this.#encoder.encode(list, out, 0))
  }

  head(id: number, list: HeaderList, flags = 0): Buffer {
    return frameOf(frame.HEADERS, frame.FLAG_END_HEADERS | flags, id, this.block(list))
  }

  fields(payload: Buffer): HeaderList {
    this.#decoder.decode(payload, 0, payload.length, 1 << 20)
    return this.#decoder.fields
  }

  /** The frames that the connection has to send now. */
  take(budget = 1 << 20): Frame[] {
    const parts: Buffer[] = []
    this.connection.takeOutput(budget, parts)
    const bytes = Buffer.concat(parts)
    this.connection.releaseOutput()
    const frames: Frame[] = []
    let at = bytes.subarray(0, 3).toString() === 'PRI' ? frame.PREFACE.length : 0
    while (at < bytes.length) {
      const length = bytes.readUIntBE(at, 3)
      const payload = bytes.subarray(at + 9, at + 9 + length)
      frames.push({ type: bytes[at + 3] ?? 0, flags: bytes[at + 4] ?? 0, id: bytes.readUInt32BE(at + 5), payload })
      at += 9 + length
    }
    return frames
  }

  /** Codes of what was reset: `0` is the connection. */
  errors(): string[] {
    const found: string[] = []
    for (const { type, id, payload } of this.take()) {
      if (type === frame.RST_STREAM) found.push(`${id} ${errorName(payload.readUInt32BE(0))}`)
      if (type === frame.GOAWAY) found.push(`0 ${errorName(payload.readUInt32BE(4))}`)
    }
    return found
  }
}

class Server extends Side<ServerConnection> {
  readonly connection: ServerConnection
  readonly requests: Heard[] = []

  constructor(limits: Partial<Http2Limits> = {}, start = true) {
    super()
    this.connection = new ServerConnection(
      { ...SERVER_LIMITS, ...limits },
      this.counters,
      this.driver,
      PEER,
      (_peer, stream, head, end) => {
        const heard = new Heard()
        heard.stream = stream
        heard.head = head
        heard.end = end
        this.requests.push(heard)
        return heard
      },
      0,
    )
    if (!start) return
    this.send(Buffer.from(frame.PREFACE), settings(), frameOf(frame.SETTINGS, frame.FLAG_ACK, 0))
    this.take()
  }

  request(at: number): Heard & { stream: Stream } {
    const heard = this.requests[at]
    assert.ok(heard?.stream !== undefined, `request ${at} did not come`)
    return heard as Heard & { stream: Stream }
  }
}

class Client extends Side<ClientConnection> {
  readonly connection: ClientConnection
  readonly told: string[] = []

  constructor(limits: Partial<Http2Limits> = {}, start = true) {
    super()
    this.connection = new ClientConnection(
      { ...CLIENT_LIMITS, ...limits },
      this.counters,
      this.driver,
      {
        onReady: () => this.told.push('ready'),
        onSlotFree: () => this.told.push('slot'),
        onGoaway: (code) => this.told.push(`goaway ${code}`),
      },
      0,
    )
    if (!start) return
    this.send(settings(), frameOf(frame.SETTINGS, frame.FLAG_ACK, 0))
    this.take()
  }

  open(head: HeaderList = GET, end = true): Heard & { stream: Stream } {
    const heard = new Heard()
    heard.stream = this.connection.open(head, undefined, end, heard)
    return heard as Heard & { stream: Stream }
  }
}

const END = frame.FLAG_END_STREAM
const OK: HeaderList = [':status', '200']

describe('server: a request', () => {
  it('is answered with head, body and trailers', () => {
    const side = new Server()
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

  it('comes in CONTINUATION frames and padding', () => {
    const side = new Server()
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
    const side = new Server()
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

  it('that is answered before its end is told to stop (RFC 9113 section 8.1)', () => {
    const side = new Server()
    side.send(side.head(1, POST))
    side.request(0).stream.headers([':status', '413'], true)
    assert.deepEqual(side.errors(), ['1 NO_ERROR'])
    side.send(frameOf(frame.DATA, END, 1, Buffer.alloc(100)))
    assert.deepEqual(side.errors(), [], 'what was on its way is no offence')
  })

  it('with too large a head gets 431, and the connection lives', () => {
    const side = new Server({ maxHeaderListBytes: 1000 })
    side.send(side.head(1, [...GET, 'x-big', 'x'.repeat(2000)], END), side.head(3, GET, END))
    assert.deepEqual(side.fields(side.take()[0]?.payload ?? Buffer.alloc(0)).slice(0, 2), [':status', '431'])
    assert.deepEqual(side.request(0).head, GET)
    assert.equal(side.counters.headerListTooLarge, 1)
  })

  it('above the limit of streams is refused', () => {
    const side = new Server({ maxConcurrentStreams: 1 })
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
    'a length that is no number': [...GET, 'content-length', '+3'],
  })) {
    it(`with ${what} is malformed`, () => {
      const side = new Server()
      side.send(side.head(1, head, END))
      assert.deepEqual(side.errors(), ['1 PROTOCOL_ERROR'])
      assert.equal(side.requests.length, 0)
    })
  }

  it('that was reset long ago may still get trailers', () => {
    const side = new Server()
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
    const side = new Server()
    side.send(side.head(1, [':method', 'CONNECT', ':authority', 'a:1'], END))
    assert.deepEqual(side.fields(side.take()[0]?.payload ?? Buffer.alloc(0)).slice(0, 2), [':status', '501'])
  })

  it('whose body is longer or shorter than content-length is reset', () => {
    const side = new Server()
    const head = [...POST, 'content-length', '3']
    side.send(side.head(1, head), frameOf(frame.DATA, 0, 1, Buffer.alloc(4)))
    side.send(side.head(3, head), frameOf(frame.DATA, END, 3, Buffer.alloc(2)))
    assert.deepEqual(side.errors(), ['1 PROTOCOL_ERROR', '3 PROTOCOL_ERROR'])
    assert.deepEqual(
      side.requests.map(({ reset }) => reset),
      ['protocol', 'protocol'],
    )
  })

  it('is told when the client resets it', () => {
    const side = new Server()
    side.send(side.head(1, GET, END), frameOf(frame.RST_STREAM, 0, 1, uint32(frame.CANCEL)))
    assert.equal(side.request(0).reset, 'cancel')
    side.request(0).stream.headers(OK, true)
    assert.deepEqual(side.take(), [])
  })
})

describe('server: connection errors', () => {
  const cases: Record<string, [(side: Server) => Buffer[], string]> = {
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
      const side = new Server()
      side.send(...frames(side))
      assert.deepEqual(side.errors(), [`0 ${code}`])
      assert.equal(errorName(side.closed?.code ?? -1), code)
    })
  }

  it('a wrong preface: PROTOCOL_ERROR', () => {
    const side = new Server({}, false)
    side.send(Buffer.from('GET / HTTP/1.1\r\n\r\n'))
    assert.deepEqual(side.errors(), ['0 PROTOCOL_ERROR'])
  })

  it('another first frame than SETTINGS: PROTOCOL_ERROR', () => {
    const side = new Server({}, false)
    side.send(Buffer.from(frame.PREFACE), frameOf(frame.PING, 0, 0, Buffer.alloc(8)))
    assert.deepEqual(side.errors(), ['0 PROTOCOL_ERROR'])
  })
})

describe('flow control', () => {
  it('sends what the windows allow, whatever order they open in', () => {
    const side = new Server()
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

  it('a large body fills the window of the connection, and goes on frame by frame in turn with others', () => {
    const side = new Server()
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

  it('tells when a full stream has room again', () => {
    const side = new Server()
    side.send(side.head(1, GET, END))
    const heard = side.request(0)
    heard.stream.headers(OK, false)
    for (let i = 0; i < 30; i++) heard.stream.body(Buffer.alloc(16_384), false)
    assert.ok(heard.stream.queued > 400_000)
    for (let i = 0; i < 8; i++) {
      side.take()
      side.send(frameOf(frame.WINDOW_UPDATE, 0, 0, uint32(65_535)), frameOf(frame.WINDOW_UPDATE, 0, 1, uint32(65_535)))
    }
    assert.ok(heard.drained > 1, 'and goes on to say so until nothing waits')
    assert.equal(heard.stream.queued, 0)
  })

  it('gives a window back when the bytes were taken, on both levels', () => {
    const side = new Server({ streamWindowBytes: 65_536, connectionWindowBytes: 131_072 })
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

  it('a stream that ends unread takes nothing of the window of the connection with it', () => {
    const side = new Server({ streamWindowBytes: 65_536, connectionWindowBytes: 65_536 })
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
  it('drains in two steps and serves what was on its way', () => {
    const side = new Server()
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
    const side = new Server()
    side.send(side.head(1, GET, END))
    side.connection.drain(0)
    side.connection.tick(1500)
    assert.equal(side.connection.closed, false)
    side.send(frameOf(frame.RST_STREAM, 0, 1, uint32(frame.CANCEL)))
    assert.equal(side.connection.closed, true)
  })

  it('drains without an answer to PING', () => {
    const side = new Server()
    side.connection.drain(0)
    side.connection.tick(1500)
    assert.equal(side.closed?.code, frame.NO_ERROR)
  })

  it('lets nobody wait: SETTINGS, their acknowledgement, a header block, PING', () => {
    const slow = new Server({}, false)
    slow.connection.tick(11_000)
    assert.equal(slow.counters.slowPreface, 1)

    const half = new Server()
    half.send(frameOf(frame.HEADERS, 0, 1, half.block(GET)))
    half.connection.tick(11_000)
    assert.deepEqual(half.errors(), ['0 ENHANCE_YOUR_CALM'])

    const silent = new Server()
    silent.send(silent.head(1, GET, END))
    silent.connection.tick(61_000)
    assert.equal(silent.take()[0]?.type, frame.PING)
    silent.connection.tick(92_000)
    assert.equal(silent.request(0).reset, 'connection')
    assert.equal(silent.counters.pingTimeouts, 1)
  })

  it('is told to every open stream', () => {
    const side = new Server()
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
  const floods: Record<string, [keyof Http2Counters, (side: Server, i: number) => Buffer[]]> = {
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
      const side = new Server()
      for (let i = 0; i < 20_000 && side.closed === undefined; i++) {
        side.send(...frames(side, i))
        if (i % 50 === 0) side.take()
      }
      assert.equal(errorName(side.closed?.code ?? -1), 'ENHANCE_YOUR_CALM')
      assert.equal(side.counters[counter], 1)
    })
  }

  it('answers that nobody reads end the connection', () => {
    const side = new Server({ maxBacklogBytes: 100_000 })
    for (let i = 0; i < 2000 && side.closed === undefined; i++) {
      side.send(side.head(2 * i + 1, GET, END))
      side.request(i).stream.headers([...OK, 'x-large', 'x'.repeat(2000)], true)
    }
    assert.equal(side.counters.slowRead, 1)
  })
})

describe('client', () => {
  it('opens a stream and hears the answer', () => {
    const side = new Client()
    const heard = side.open([...GET, 'accept', 'x'])
    const [request] = side.take()
    assert.deepEqual([request?.type, request?.flags], [frame.HEADERS, END | frame.FLAG_END_HEADERS])
    assert.deepEqual(side.fields(request?.payload ?? Buffer.alloc(0)), [...GET, 'accept', 'x'])
    side.send(side.head(1, [':status', '100']), side.head(1, OK), frameOf(frame.DATA, 0, 1, Buffer.from('ab')))
    side.send(side.head(1, ['x-sum', '1'], END))
    assert.deepEqual(heard.heads, [[':status', '100'], OK])
    assert.deepEqual([heard.body, heard.trailers, side.connection.openStreams], ['ab', ['x-sum', '1'], 0])
    assert.deepEqual(side.told, ['ready', 'slot'])
  })

  it('encodes shared fields once, behind the others', () => {
    const side = new Client()
    const shared = { list: ['impersonate-user', 'ann'], encoded: undefined }
    side.connection.open(GET, shared, true, new Heard())
    const bytes = shared.encoded
    side.connection.open(GET, shared, true, new Heard())
    assert.equal(shared.encoded, bytes)
    for (const { payload } of side.take()) assert.deepEqual(side.fields(payload), [...GET, ...shared.list])
  })

  it('splits a head that is larger than a frame', () => {
    const side = new Client()
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

  it('an answer to HEAD has a length and no body', () => {
    const side = new Client()
    const heard = side.open([':method', 'HEAD', ...GET.slice(2)])
    side.send(side.head(1, [...OK, 'content-length', '5'], END))
    assert.deepEqual([heard.end, heard.reset, heard.heads.length], [true, undefined, 1])
  })

  for (const [what, head] of Object.entries({
    'no status': ['a', 'b'],
    'status 101': [':status', '101'],
    'a status of two digits': [':status', '20'],
    'a request field': [...OK, ':path', '/'],
  })) {
    it(`an answer with ${what} is malformed`, () => {
      const side = new Client()
      const heard = side.open()
      side.take()
      side.send(side.head(1, head))
      assert.deepEqual([heard.reset, side.errors()], ['protocol', ['1 PROTOCOL_ERROR']])
    })
  }

  it('says what was not processed: REFUSED_STREAM and above GOAWAY', () => {
    const side = new Client()
    const heard = [side.open(), side.open(), side.open()]
    side.send(frameOf(frame.RST_STREAM, 0, 1, uint32(frame.REFUSED_STREAM)))
    side.send(frameOf(frame.GOAWAY, 0, 0, uint32(frame.LARGEST_STREAM_ID, 0)))
    assert.equal(side.connection.usable, false)
    side.send(frameOf(frame.GOAWAY, 0, 0, uint32(3, 0)))
    assert.deepEqual(
      heard.map(({ reset }) => reset),
      ['refused', undefined, 'refused'],
    )
    side.send(side.head(3, OK, END))
    assert.equal(heard[1]?.end, true)
    assert.equal(side.closed?.code, frame.NO_ERROR)
  })

  it('resets a request that was answered before its end', () => {
    const side = new Client()
    const heard = side.open(POST, false)
    side.take()
    side.send(side.head(1, OK, END))
    assert.deepEqual([heard.end, side.errors()], [true, ['1 CANCEL']])
  })

  it('bears an upstream that refuses very many streams', () => {
    const side = new Client()
    for (let i = 0; i < 3000; i++) {
      const heard = side.open()
      side.send(frameOf(frame.RST_STREAM, 0, 2 * i + 1, uint32(frame.REFUSED_STREAM)))
      assert.equal(heard.reset, 'refused')
    }
    assert.equal(side.connection.usable, true)
  })

  it('ends the connection over a pushed stream', () => {
    const side = new Client()
    side.open()
    side.send(frameOf(frame.PUSH_PROMISE, 4, 1, Buffer.alloc(8)))
    assert.deepEqual(side.errors(), ['0 PROTOCOL_ERROR'])
  })

  it('drains by ending its streams', () => {
    const side = new Client()
    side.open()
    side.connection.drain(0)
    assert.equal(side.connection.usable, false)
    side.send(side.head(1, OK, END))
    assert.equal(side.closed?.code, frame.NO_ERROR)
  })

  it('one stream that nobody reads does not stop the others', () => {
    const side = new Client({ connectionWindowBytes: 131_072, streamWindowBytes: 131_072 })
    side.open()
    side.open()
    side.send(side.head(1, OK))
    for (let i = 0; i < 8; i++) side.send(frameOf(frame.DATA, 0, 1, Buffer.alloc(16_000)))
    const updates = side.take().filter(({ type }) => type === frame.WINDOW_UPDATE)
    assert.deepEqual([...new Set(updates.map(({ id }) => id))], [0])
  })
})
