// The streams of a connection: open and recently closed ones, their output, and how they end.

import type { HeaderList } from '../kit/api/stream.ts'
import type { AbuseKind, Http2Counters } from './counters.ts'
import { INTERNAL_ERROR, PROTOCOL_ERROR, REFUSED_STREAM } from './frames.ts'
import type { Http2Limits } from './limits.ts'
import type { ReceiveWindow } from './receive-window.ts'
import type { Sender } from './sender.ts'
import { ANY_LENGTH, Http2Stream, NO_LISTENER, type StreamCarrier } from './stream.ts'
import { StreamTable } from './stream-table.ts'

/** The connection. */
export interface StreamsHost {
  /** Nothing more is sent. */
  readonly closed: boolean
  abuse(kind: AbuseKind, why?: string): void
  blame(stream: Http2Stream, code: number): void
  /** We ended our half; the peer's is open. */
  onLocalEnd(stream: Http2Stream): void
  /** The peer ended its half; ours is open. */
  onRemoteEnd(stream: Http2Stream): void
  /** We reset it before the peer ended its half: the peer may still work on it. */
  onResetByUs(stream: Http2Stream): void
  /** A stream was closed. */
  onStreamGone(stream: Http2Stream, byUs: boolean): void
  closeIfIdle(): void
}

/** The response head is too large for the client (RFC 9110 section 15.6.3: the upstream response can't be passed on). */
const HEAD_TOO_LARGE_ANSWER: HeaderList = [':status', '502', 'content-length', '0']
/** Largest window update, so that data does not arrive in bursts. */
const LARGEST_UPDATE_BYTES = 64 * 1024

export class ConnectionStreams implements StreamCarrier {
  readonly open: StreamTable = new StreamTable()
  readonly closed: ClosedStreams = new ClosedStreams()
  readonly firstUpdateBytes: number
  readonly streamUpdateBytes: number
  readonly highWaterBytes: number
  readonly #host: StreamsHost
  readonly #sender: Sender
  readonly #window: ReceiveWindow
  readonly #limits: Http2Limits
  readonly #counters: Http2Counters

  constructor(host: StreamsHost, sender: Sender, window: ReceiveWindow, limits: Http2Limits, counters: Http2Counters) {
    this.#host = host
    this.#sender = sender
    this.#window = window
    this.#limits = limits
    this.#counters = counters
    const { streamWindowBytes, streamWindowGrowthBytes } = limits
    this.firstUpdateBytes = Math.min(streamWindowBytes >> 1, LARGEST_UPDATE_BYTES)
    this.streamUpdateBytes = Math.min((streamWindowBytes + streamWindowGrowthBytes) >> 1, LARGEST_UPDATE_BYTES)
    this.highWaterBytes = limits.highWaterBytes
  }

  /** Opens a stream with the peer's initial window. */
  add(id: number, sendWindow: number): Http2Stream {
    const { streamWindowBytes, streamWindowGrowthBytes } = this.#limits
    const stream = new Http2Stream(this, id, sendWindow, streamWindowBytes, streamWindowGrowthBytes)
    this.open.add(stream)
    return stream
  }

  // === called by the streams ===

  /** Sends a head; a response or, with `end`, a whole message. */
  sendHead(stream: Http2Stream, list: HeaderList, end: boolean): void {
    if (!this.#sender.head(stream.id, list, undefined, end)) {
      this.#headTooLarge(stream, list)
      return
    }
    if (list[1]?.charCodeAt(0) !== 0x31) stream.answered = true
    if (end) {
      stream.ending = true
      this.afterLocalEnd(stream)
    }
    if (this.#sender.bytes > this.#limits.maxBacklogBytes) this.#host.abuse('slowRead')
  }

  /** The response head is too large for the client, which gets one without fields. An interim one is dropped. */
  #headTooLarge(stream: Http2Stream, list: HeaderList): void {
    this.#counters.headsNotSent++
    if (list[1]?.startsWith('1') === true) return
    const { events } = stream
    stream.events = NO_LISTENER
    stream.ending = true
    if (this.#sender.head(stream.id, HEAD_TOO_LARGE_ANSWER, undefined, true)) this.afterLocalEnd(stream)
    else this.resetStream(stream, INTERNAL_ERROR)
    events.onReset('internal')
  }

  sendTrailers(stream: Http2Stream, list: HeaderList): void {
    this.#sender.trailers(stream, list)
    this.afterLocalEnd(stream)
  }

  sendNow(stream: Http2Stream, chunk: Buffer, end: boolean): boolean {
    return this.#sender.bodyNow(stream, chunk, end)
  }

  schedule(stream: Http2Stream): void {
    this.#sender.schedule(stream)
  }

  onTaken(bytes: number): void {
    this.#window.onTaken(bytes)
  }

  sendWindowUpdate(id: number, bytes: number): void {
    if (!this.#host.closed) this.#sender.windowUpdate(id, bytes)
  }

  /** Reset by us. */
  resetStream(stream: Http2Stream, code: number): void {
    if (!this.#host.closed) this.sendReset(stream.id, code)
    this.kill(stream, true)
    this.#host.closeIfIdle()
  }

  // === end of a stream ===

  /** Sends only the frame, for a stream that doesn't exist or is closed. */
  sendReset(id: number, code: number): void {
    if (code === REFUSED_STREAM) this.#counters.streamsRefused++
    this.#sender.reset(id, code)
  }

  /** RFC 9113 section 8.1.1: a body whose length differs from `content-length` is malformed, and the stream is reset. */
  lengthFits(stream: Http2Stream): boolean {
    if (stream.expectedBytes === ANY_LENGTH || stream.receivedBytes === stream.expectedBytes) return true
    this.#host.blame(stream, PROTOCOL_ERROR)
    return false
  }

  /** Our half has ended. */
  afterLocalEnd(stream: Http2Stream): void {
    stream.localEnded = true
    if (stream.remoteEnded) this.#retire(stream)
    else this.#host.onLocalEnd(stream)
  }

  /** The peer's half has ended, and the listener was notified. */
  afterRemoteEnd(stream: Http2Stream): void {
    if (stream.dead) return
    if (stream.localEnded) this.#retire(stream)
    else this.#host.onRemoteEnd(stream)
  }

  /** Reset by the peer or by us. */
  kill(stream: Http2Stream, byUs = false): void {
    stream.dead = true
    if (byUs && !stream.remoteEnded) this.#host.onResetByUs(stream)
    this.#forget(stream, byUs)
  }

  /** Both halves have ended. */
  #retire(stream: Http2Stream): void {
    this.#forget(stream, false)
    this.#host.closeIfIdle()
  }

  #forget(stream: Http2Stream, byUs: boolean): void {
    if (!this.open.delete(stream.id)) return
    this.closed.add(stream.id, byUs)
    this.onTaken(stream.unread)
    stream.unread = 0
    stream.clear()
    stream.events = NO_LISTENER
    this.#sender.forget(stream, this.open.size)
    this.#host.onStreamGone(stream, byUs)
  }

  /** The connection is over. */
  loseAll(): void {
    const lost = this.open.all()
    this.open.clear()
    this.#sender.forgetAll()
    for (const stream of lost) {
      const { events } = stream
      stream.dead = true
      stream.clear()
      stream.events = NO_LISTENER
      // Its last event is being delivered right now: it is complete.
      if (!stream.localEnded || !stream.remoteEnded) events.onReset('connection')
    }
  }
}

// The most recently closed streams of a connection: frames still in flight for them are not errors (RFC 9113 section 5.1, closed).
const REMEMBERED = 128
const NO_IDS: Int32Array = new Int32Array(0)

class ClosedStreams {
  /** A ring, made by the first; negative: reset by us. */
  #ids: Int32Array = NO_IDS
  #at = 0
  #forgottenTo = 0

  add(id: number, resetByUs: boolean): void {
    if (this.#ids === NO_IDS) this.#ids = new Int32Array(REMEMBERED)
    const forgotten = Math.abs(this.#ids[this.#at] ?? 0)
    if (forgotten > this.#forgottenTo) this.#forgottenTo = forgotten
    this.#ids[this.#at] = resetByUs ? -id : id
    this.#at = (this.#at + 1) % REMEMBERED
  }

  /** The peer may not know about it yet. */
  wasResetByUs(id: number): boolean {
    return this.#ids.includes(-id)
  }

  /** Ended by the peer's END_STREAM or RST_STREAM, so it knows. */
  wasEndedByPeer(id: number): boolean {
    return this.#ids.includes(id)
  }

  /** It may have been open long ago. */
  isForgotten(id: number): boolean {
    return id <= this.#forgottenTo
  }
}
