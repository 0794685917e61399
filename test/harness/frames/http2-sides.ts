// A connection of the engine without a socket, and the peer that a test plays: frames written by hand go in, what it sends is
// read frame by frame.

import assert from 'node:assert/strict'
import { ClientConnection } from '../../../src/http2/client.ts'
import type { Connection } from '../../../src/http2/connection.ts'
import { createHttp2Counters, type Http2Counters } from '../../../src/http2/counters.ts'
import * as frame from '../../../src/http2/frames.ts'
import type { HeadMemory } from '../../../src/http2/header-frames.ts'
import { HpackDecoder } from '../../../src/http2/hpack/decoder.ts'
import { HpackEncoder } from '../../../src/http2/hpack/encoder.ts'
import type { LateBodyShare } from '../../../src/http2/late-bodies.ts'
import { CLIENT_SIDE_LIMITS, type Http2Limits, SERVER_LIMITS, type ServerLimits } from '../../../src/http2/limits.ts'
import { ServerConnection } from '../../../src/http2/server.ts'
import type { HeaderList, Peer, ResetReason, Stream, StreamEvents } from '../../../src/kit/api/stream.ts'

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
export function errorName(code: number): string {
  return ERROR_NAMES[code] ?? String(code)
}

export interface Frame {
  readonly type: number
  readonly flags: number
  readonly id: number
  readonly payload: Buffer
}

const PEER = { id: 1, charge: { source: 'user:a', weight: 1, known: true } } as unknown as Peer
export const GET: HeaderList = [':method', 'GET', ':scheme', 'https', ':authority', 'a', ':path', '/']
export const POST: HeaderList = [':method', 'POST', ':scheme', 'https', ':authority', 'a', ':path', '/']
export const OK: HeaderList = [':status', '200']
export const END: number = frame.FLAG_END_STREAM

export function frameOf(type: number, flags: number, id: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const bytes = Buffer.alloc(frame.FRAME_HEADER_BYTES + payload.length)
  frame.writeFrameHeader(bytes, 0, payload.length, type, flags, id)
  payload.copy(bytes, frame.FRAME_HEADER_BYTES)
  return bytes
}

export function uint32(...values: number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4)
  for (const [i, value] of values.entries()) bytes.writeUInt32BE(value, i * 4)
  return bytes
}

export function settings(...pairs: number[]): Buffer {
  const payload = Buffer.alloc(pairs.length * 3)
  for (let i = 0; i < pairs.length; i += 2) {
    payload.writeUInt16BE(pairs[i] ?? 0, i * 3)
    payload.writeUInt32BE(pairs[i + 1] ?? 0, i * 3 + 2)
  }
  return frameOf(frame.SETTINGS, 0, 0, payload)
}

/** The events of one stream, and the stream. */
export class Received implements StreamEvents {
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
  take(budget: number = 1 << 20): Frame[] {
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

export class ServerSide extends Side<ServerConnection> {
  readonly connection: ServerConnection
  readonly requests: Received[] = []

  constructor(limits: Partial<ServerLimits> = {}, start = true, head?: HeadMemory, lateBodies?: LateBodyShare) {
    super()
    this.connection = new ServerConnection(
      { ...SERVER_LIMITS, ...limits },
      this.counters,
      this.driver,
      PEER,
      (_peer, stream, head, end) => {
        const received = new Received()
        received.stream = stream
        received.head = head
        received.end = end
        this.requests.push(received)
        return received
      },
      0,
      head,
      lateBodies,
    )
    if (!start) return
    this.send(Buffer.from(frame.PREFACE), settings(), frameOf(frame.SETTINGS, frame.FLAG_ACK, 0))
    this.take()
  }

  request(at: number): Received & { stream: Stream } {
    const received = this.requests[at]
    assert.ok(received?.stream !== undefined, `request ${at} did not come`)
    return received as Received & { stream: Stream }
  }
}

export class ClientSide extends Side<ClientConnection> {
  readonly connection: ClientConnection
  readonly events: string[] = []

  constructor(limits: Partial<Http2Limits> = {}, start = true) {
    super()
    this.connection = new ClientConnection(
      { ...CLIENT_SIDE_LIMITS, ...limits },
      this.counters,
      this.driver,
      {
        onReady: () => this.events.push('ready'),
        onStreamGone: () => undefined,
        onEnding: () => undefined,
        onSuspects: () => undefined,
        onSlotFree: () => this.events.push('slot'),
        onGoaway: (code) => this.events.push(`goaway ${code}`),
      },
      0,
    )
    if (!start) return
    this.send(settings(), frameOf(frame.SETTINGS, frame.FLAG_ACK, 0))
    this.take()
  }

  open(head: HeaderList = GET, end = true): Received & { stream: Stream } {
    const received = new Received()
    received.stream = this.connection.open(head, undefined, end, received)
    return received as Received & { stream: Stream }
  }
}
