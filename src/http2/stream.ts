// One stream: a Stream on an HTTP/2 connection, with the connection's state for it. Server and client sides use
// the same class: they differ in when a head may arrive, which is in server.ts and client.ts.

import {
  type Charge,
  type HeaderList,
  LEAST_WATER_BYTES,
  type QueueMeter,
  type ResetReason,
  type Stream,
  type StreamEvents,
} from '../kit/api/stream.ts'
import { type ByteSink, ChunkQueue } from './chunk-queue.ts'
import {
  CANCEL,
  FLOW_CONTROL_ERROR,
  FRAME_SIZE_ERROR,
  INTERNAL_ERROR,
  NO_ERROR,
  PROTOCOL_ERROR,
  REFUSED_STREAM,
  STREAM_CLOSED,
} from './frames.ts'

/** RST_STREAM code of the peer -> reason (RFC 9113 section 7). */
export function resetReason(code: number): ResetReason {
  switch (code) {
    case REFUSED_STREAM:
      return 'refused'
    case CANCEL:
    case NO_ERROR:
      return 'cancel'
    case PROTOCOL_ERROR:
    case FRAME_SIZE_ERROR:
    case FLOW_CONTROL_ERROR:
    case STREAM_CLOSED:
      return 'protocol'
    default:
      return 'internal'
  }
}

function resetCode(reason: ResetReason): number {
  switch (reason) {
    case 'cancel':
      return CANCEL
    case 'refused':
      return REFUSED_STREAM
    case 'protocol':
      return PROTOCOL_ERROR
    case 'internal':
    case 'connection':
    case 'head-too-large':
    case 'overloaded':
      return INTERNAL_ERROR
  }
}

/** The interface of a connection for its streams. */
export interface StreamCarrier {
  /** Minimum window update of a stream: while the window grows, and after. */
  readonly firstUpdateBytes: number
  readonly streamUpdateBytes: number
  /** Queued bytes above which the producer is paused. */
  readonly highWaterBytes: number
  sendHead(stream: Http2Stream, list: HeaderList, end: boolean): void
  /** False: it has to be queued, and `schedule` called. */
  sendNow(stream: Http2Stream, chunk: Buffer, end: boolean): boolean
  schedule(stream: Http2Stream): void
  sendTrailers(stream: Http2Stream, list: HeaderList): void
  sendWindowUpdate(id: number, bytes: number): void
  /** This many received bytes were consumed. */
  onTaken(bytes: number): void
  resetStream(stream: Http2Stream, code: number): void
}

/** No-op listener of a stream before the request path sets one, and after it is done. */
export const NO_LISTENER: StreamEvents = {
  onHeaders: () => undefined,
  onBody: () => undefined,
  onTrailers: () => undefined,
  onDrained: () => undefined,
  onReset: () => undefined,
}

/** Expected body length is unknown: not checked. */
export const ANY_LENGTH = -1

export class Http2Stream implements Stream {
  readonly id: number
  readonly #connection: StreamCarrier
  events: StreamEvents
  /** END_STREAM was sent or is queued. */
  ending = false
  /** END_STREAM is serialised. */
  localEnded: boolean = false
  /** The peer's END_STREAM has arrived. */
  remoteEnded: boolean = false
  /** Reset by either side, or lost with the connection: no more events. */
  dead: boolean = false
  /** The final response head was received, or on the server side: sent. */
  answered: boolean = false
  /** It is in the connection's round of streams with data to send. */
  scheduled: boolean = false
  /** Send window. */
  sendWindow: number
  /** Receive window. */
  receiveWindow: number
  /** Remaining growth of it. */
  #growth: number
  /** Consumed, but not yet returned to the peer. */
  #taken = 0
  /** Rest of the peer's `content-length`; ANY_LENGTH if there is none. */
  expectedBytes: number = ANY_LENGTH
  receivedBytes: number = 0
  /** Passed to `onBody` and not consumed yet. */
  unread: number = 0
  /** Client side, for HEAD requests: the response has no body, whatever its `content-length` (RFC 9110 section 9.3.2). */
  bodyless: boolean = false
  /** Client side: 1xx heads received. */
  interim = 0
  /** Client side: charge of the request. */
  charge: Charge | undefined = undefined
  queued: number = 0
  meter: QueueMeter | undefined = undefined
  /** Queued data; undefined until needed. */
  #queue: ChunkQueue | undefined
  #trailers: HeaderList | undefined
  #high = false

  constructor(connection: StreamCarrier, id: number, sendWindow: number, receiveWindow: number, growth: number) {
    this.#connection = connection
    this.id = id
    this.events = NO_LISTENER
    this.sendWindow = sendWindow
    this.receiveWindow = receiveWindow
    this.#growth = growth
  }

  // === the Stream interface ===

  get memory(): number {
    return this.#queue?.memory ?? 0
  }

  headers(list: HeaderList, end: boolean): void {
    if (this.dead || this.ending) return
    this.#connection.sendHead(this, list, end)
  }

  body(chunk: Buffer, end: boolean): void {
    if (this.dead || this.ending) return
    if (end) this.ending = true
    if (this.queued === 0 && this.#connection.sendNow(this, chunk, end)) return
    if (chunk.length > 0) this.#enqueue(chunk)
    this.#connection.schedule(this)
  }

  trailers(list: HeaderList): void {
    if (this.dead || this.ending) return
    this.ending = true
    if (this.queued === 0) this.#connection.sendTrailers(this, list)
    else this.#trailers = list
  }

  credit(bytes: number): void {
    // Nothing is unread once the stream is closed: its bytes were credited to the connection then.
    const taken = bytes < this.unread ? bytes : this.unread
    if (taken === 0) return
    this.unread -= taken
    this.#connection.onTaken(taken)
    if (this.remoteEnded) return
    this.#taken += taken
    const { firstUpdateBytes, streamUpdateBytes } = this.#connection
    if (this.#taken < (this.#growth > 0 ? firstUpdateBytes : streamUpdateBytes)) return
    const growth = Math.min(this.#growth, this.#taken)
    this.#growth -= growth
    this.receiveWindow += this.#taken + growth
    this.#connection.sendWindowUpdate(this.id, this.#taken + growth)
    this.#taken = 0
  }

  reset(reason: ResetReason): void {
    if (this.dead || (this.localEnded && this.remoteEnded)) return
    this.#connection.resetStream(this, resetCode(reason))
  }

  // === for the connection ===

  /** Copies the next `size` queued bytes to `sink`. */
  moveTo(sink: ByteSink, size: number): void {
    const queue = this.#queue
    if (queue === undefined) return
    queue.moveTo(sink, size)
    this.queued = queue.bytes
    this.meter?.onQueued(queue.memory)
  }

  /** Whether the DATA frame with the next `size` bytes has END_STREAM: nothing is queued behind it. */
  endsWith(size: number): boolean {
    return this.ending && size === this.queued && this.#trailers === undefined
  }

  /** Trailers that are due. */
  takeTrailers(): HeaderList | undefined {
    if (this.queued > 0) return undefined
    const list = this.#trailers
    this.#trailers = undefined
    return list
  }

  /** After sending: reports free room one frame at a time, so that no burst follows. */
  notifyDrained(): void {
    if (!this.#high || this.queued >= this.#connection.highWaterBytes) return
    if (this.queued === 0) this.#high = false
    this.events.onDrained()
  }

  /** Drops its buffers: the request path may hold a dead stream for a while. */
  clear(): void {
    this.#queue?.clear()
    this.#queue = undefined
    this.#trailers = undefined
    this.queued = 0
    this.meter?.onQueued(0)
  }

  #enqueue(chunk: Buffer): void {
    this.#queue ??= new ChunkQueue()
    this.#queue.push(chunk)
    this.queued = this.#queue.bytes
    if (this.queued >= LEAST_WATER_BYTES) this.#high = true
    this.meter?.onQueued(this.#queue.memory)
  }
}
