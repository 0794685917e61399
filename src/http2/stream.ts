// One stream: the seam's Stream on an HTTP/2 connection, and what the connection knows of it. Server and client sides are
// the same class: what differs is when a head may come, which server.ts and client.ts say.

import {
  type HeaderList,
  HIGH_WATER_BYTES,
  type ResetReason,
  type Stream,
  type StreamEvents,
} from '../api/ports/stream.ts'
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
      return INTERNAL_ERROR
  }
}

/** What a stream asks of the connection that it is on. */
export interface StreamCarrier {
  /** At least so much of a stream's window is given back at a time. */
  readonly streamUpdateBytes: number
  sendHead(stream: Http2Stream, list: HeaderList, end: boolean): void
  /** False: it has to be queued, and `schedule` be called. */
  sendNow(stream: Http2Stream, chunk: Buffer, end: boolean): boolean
  schedule(stream: Http2Stream): void
  sendTrailers(stream: Http2Stream, list: HeaderList): void
  sendWindowUpdate(id: number, bytes: number): void
  /** So much of what came was taken. */
  onTaken(bytes: number): void
  resetStream(stream: Http2Stream, code: number): void
}

/** Hears of a stream until the request path has said who listens, and after nobody does any more. */
export const NOBODY: StreamEvents = {
  onHeaders: () => undefined,
  onBody: () => undefined,
  onTrailers: () => undefined,
  onDrained: () => undefined,
  onReset: () => undefined,
}

/** What the body of a message must have: no check. */
export const ANY_LENGTH = -1

export class Http2Stream implements Stream {
  readonly id: number
  readonly #connection: StreamCarrier
  events: StreamEvents
  /** We have sent END_STREAM, or have it queued. */
  ending = false
  /** END_STREAM is serialised. */
  localEnded: boolean = false
  /** The peer's END_STREAM has come. */
  remoteEnded: boolean = false
  /** Reset by one of us, or lost with the connection: nothing more happens. */
  dead: boolean = false
  /** The final response head has come, or on the server side: was sent. */
  answered: boolean = false
  /** The connection has it in its round of streams with data to send. */
  scheduled: boolean = false
  /** What the peer lets us send. */
  sendWindow: number
  /** What we let the peer send. */
  receiveWindow: number
  /** Taken by the other side, not yet given back to the peer. */
  #taken = 0
  /** Of the peer's `content-length`; ANY_LENGTH when there is none. */
  expectedBytes: number = ANY_LENGTH
  receivedBytes: number = 0
  /** Given to `onBody` and not taken yet. */
  unread: number = 0
  /** Client side, of a request by HEAD: the answer has no body, whatever its `content-length` says (RFC 9110 section 9.3.2). */
  bodyless: boolean = false
  queued: number = 0
  /** What waits for its turn; undefined until something does. */
  #queue: ChunkQueue | undefined
  #trailers: HeaderList | undefined
  #high = false

  constructor(connection: StreamCarrier, id: number, sendWindow: number, receiveWindow: number) {
    this.#connection = connection
    this.id = id
    this.events = NOBODY
    this.sendWindow = sendWindow
    this.receiveWindow = receiveWindow
  }

  // === the seam ===

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
    // Nothing is unread once the stream is over: its bytes were given back to the connection then.
    const taken = bytes < this.unread ? bytes : this.unread
    if (taken === 0) return
    this.unread -= taken
    this.#connection.onTaken(taken)
    if (this.remoteEnded) return
    this.#taken += taken
    if (this.#taken < this.#connection.streamUpdateBytes) return
    this.receiveWindow += this.#taken
    this.#connection.sendWindowUpdate(this.id, this.#taken)
    this.#taken = 0
  }

  reset(reason: ResetReason): void {
    if (this.dead || (this.localEnded && this.remoteEnded)) return
    this.#connection.resetStream(this, resetCode(reason))
  }

  // === for the connection ===

  /** Copies the next `size` bytes of what is queued to `sink`. */
  moveTo(sink: ByteSink, size: number): void {
    const queue = this.#queue
    if (queue === undefined) return
    queue.moveTo(sink, size)
    this.queued = queue.bytes
  }

  /** END_STREAM belongs on the DATA frame that takes the next `size` bytes: nothing is queued behind it. */
  endsWith(size: number): boolean {
    return this.ending && size === this.queued && this.#trailers === undefined
  }

  /** Trailers whose turn has come. */
  takeTrailers(): HeaderList | undefined {
    if (this.queued > 0) return undefined
    const list = this.#trailers
    this.#trailers = undefined
    return list
  }

  /** After sending: tells who waits that there is room again, a frame's worth at a time, so that no burst follows. */
  notifyDrained(): void {
    if (!this.#high || this.queued >= HIGH_WATER_BYTES) return
    if (this.queued === 0) this.#high = false
    this.events.onDrained()
  }

  /** Nothing of it is kept: a dead stream may be held by the request path for a while. */
  clear(): void {
    this.#queue?.clear()
    this.#queue = undefined
    this.#trailers = undefined
    this.queued = 0
  }

  #enqueue(chunk: Buffer): void {
    this.#queue ??= new ChunkQueue()
    this.#queue.push(chunk)
    this.queued = this.#queue.bytes
    if (this.queued >= HIGH_WATER_BYTES) this.#high = true
  }
}
