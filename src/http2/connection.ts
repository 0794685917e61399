// One HTTP/2 connection without I/O (RFC 9113): bytes in, events and bytes out. What both sides share is here; how a stream
// begins and what its heads must hold is in server.ts and client.ts.

import type { HeaderList } from '../api/stream.ts'
import { PeerBudgets } from './budget.ts'
import { ClosedStreams } from './closed-streams.ts'
import type { AbuseKind, Http2Counters } from './counters.ts'
import { FrameReader, type FrameSink } from './frame-reader.ts'
import * as frame from './frames.ts'
import { HeaderBlock } from './header-block.ts'
import { COMPRESSION, DECODED, HpackDecoder, MALFORMED, TOO_LARGE } from './hpack-decoder.ts'
import type { Http2Limits } from './limits.ts'
import { Sender, type SenderHost } from './sender.ts'
import { ANY_LENGTH, type Http2Stream, NOBODY, resetReason, type StreamCarrier } from './stream.ts'
import { StreamTable } from './stream-table.ts'

/** Who moves the bytes: src/io/http2-socket.ts. */
export interface ConnectionDriver {
  /** Output waits: `takeOutput` is to be called before long. Not said again until then. */
  onOutput(): void
  /** Nothing more is read or sent but what `takeOutput` still gives; then the socket is to be closed. */
  onClosed(code: number, message: string): void
}

const { HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION } = frame
const { FLAG_END_STREAM, FLAG_ACK, FLAG_END_HEADERS, FLAG_PADDED, FLAG_PRIORITY } = frame
const { NO_ERROR, PROTOCOL_ERROR, FLOW_CONTROL_ERROR, FRAME_SIZE_ERROR, STREAM_CLOSED, COMPRESSION_ERROR } = frame
const { ENHANCE_YOUR_CALM, INTERNAL_ERROR, SETTINGS_TIMEOUT, LARGEST_WINDOW_BYTES } = frame

const EMPTY = Buffer.alloc(0)
/** A header block may be this much larger than the list that it stands for. */
const BLOCK_SLACK_BYTES = 64 * 1024
/** A list that is too large, from a block so much smaller: made to be unpacked (CVE-2016-6581). */
const BOMB_FACTOR = 8
/** A window is given back in pieces no larger than this, so that what it lets in does not come in bursts. */
const LARGEST_UPDATE_BYTES = 64 * 1024
/** What `onClosed` says of a peer that does not answer; the code is NO_ERROR, as of a clean end. */
export const PING_UNANSWERED = 'no answer to PING'
/** Payload of our PINGs: those that ask for life, and the one between the two steps of GOAWAY. */
const PING_KEEPALIVE = 0x706f7274
const PING_DRAIN = 0x64726169
/** The second step of GOAWAY follows the answer to a PING, or comes after this time without one. */
const DRAIN_STEP_MS = 1000

export abstract class Connection implements StreamCarrier, FrameSink, SenderHost {
  protected readonly limits: Http2Limits
  protected readonly counters: Http2Counters
  protected readonly driver: ConnectionDriver
  protected readonly streams: StreamTable = new StreamTable()
  protected readonly decoder: HpackDecoder
  protected readonly sender: Sender
  protected nowMs: number
  /** No more input is looked at; `closed` when the driver was told, too. */
  protected over = false
  /** The largest id of a stream that the peer opened. */
  protected lastPeerStream = 0
  protected drainState: 'no' | 'announced' | 'final' = 'no'
  protected peerGoaway = false
  /** The peer's settings. */
  protected peerWindowBytes: number = frame.DEFAULT_WINDOW_BYTES
  protected peerMaxStreams: number = Number.POSITIVE_INFINITY
  /** The peer's first SETTINGS have come. */
  protected settled = false
  /** At least so much is given back to the peer at a time. */
  readonly streamUpdateBytes: number
  readonly #connectionUpdateBytes: number
  readonly #reader: FrameReader
  readonly #budgets: PeerBudgets
  protected readonly closedStreams: ClosedStreams = new ClosedStreams()
  #receiveWindow: number
  #taken = 0
  #settingsAcked = false
  readonly #startedMs: number
  #lastReceivedMs: number
  #pingSentMs = -1
  #drainedMs = 0
  /** GOAWAY with the last stream that is served has been sent. */
  #goawayDone = false
  /** Who gets the DATA frame that is being read, and whether it is the last. */
  #dataStream: Http2Stream | undefined
  #dataEnd = false
  readonly #block: HeaderBlock = new HeaderBlock()
  /** The stream depends on itself (RFC 7540 section 5.3.1): RFC 9113 dropped priorities, but not every peer has. */
  #blockBroken = false

  constructor(limits: Http2Limits, counters: Http2Counters, driver: ConnectionDriver, preface: string, nowMs: number) {
    this.limits = limits
    this.counters = counters
    this.driver = driver
    this.nowMs = nowMs
    this.decoder = new HpackDecoder(limits.headerTableBytes)
    this.streamUpdateBytes = Math.min(limits.streamWindowBytes >> 1, LARGEST_UPDATE_BYTES)
    this.#connectionUpdateBytes = limits.connectionWindowBytes >> 1
    this.#receiveWindow = limits.connectionWindowBytes
    this.#reader = new FrameReader(this, limits.maxFrameBytes, preface)
    this.#budgets = new PeerBudgets(nowMs)
    this.sender = new Sender(this, this.#budgets.windowUpdates)
    this.#startedMs = nowMs
    this.#lastReceivedMs = nowMs
    counters.connectionsOpened++
  }

  get openStreams(): number {
    return this.streams.size
  }

  get closed(): boolean {
    return this.over
  }

  get hasOutput(): boolean {
    return this.sender.hasOutput
  }

  // === what differs between the sides ===

  protected abstract readonly isServer: boolean

  /** A whole header block; `outcome` is the decoder's. */
  protected abstract onHead(id: number, end: boolean, outcome: number): void
  protected abstract onPeerSettings(): void
  protected abstract onPeerGoaway(lastStream: number, code: number): void
  protected abstract onStreamGone(): void
  /** Whether a stream of this id has never been opened (RFC 9113 section 5.1, idle). */
  protected abstract isIdle(id: number): boolean

  // === in ===

  /** Bytes from the peer. `onBody` hands out parts of `chunk`; afterwards its memory may be used again. Never throws. */
  receive(chunk: Buffer, nowMs: number): void {
    if (this.over) return
    this.nowMs = nowMs
    this.#lastReceivedMs = nowMs
    this.#reader.read(chunk, nowMs)
    if (this.sender.bytes > this.limits.maxBacklogBytes && !this.over) this.#abuse('slowRead')
  }

  onFrameError(code: number, message: string): void {
    this.fail(code, message)
  }

  onFrame(type: number, flags: number, id: number, bytes: Buffer, payload: number, length: number): void {
    const block = this.#block.stream
    if (block !== 0 && (type !== CONTINUATION || id !== block)) {
      this.fail(PROTOCOL_ERROR, 'a header block was not continued')
      return
    }
    if (!this.settled && (type !== SETTINGS || (flags & FLAG_ACK) !== 0)) {
      this.fail(PROTOCOL_ERROR, 'the first frame is not SETTINGS')
      return
    }
    switch (type) {
      case HEADERS:
        this.#onHeaders(bytes, payload, length, flags, id)
        return
      case PRIORITY:
        this.#onPriority(bytes, payload, length, id)
        return
      case RST_STREAM:
        this.#onReset(bytes, payload, length, id)
        return
      case SETTINGS:
        this.#onSettings(bytes, payload, length, flags, id)
        return
      case PUSH_PROMISE:
        this.fail(PROTOCOL_ERROR, 'PUSH_PROMISE')
        return
      case PING:
        this.#onPing(bytes, payload, length, flags, id)
        return
      case GOAWAY:
        this.#onGoaway(bytes, payload, length, id)
        return
      case WINDOW_UPDATE:
        this.#onWindowUpdate(bytes, payload, length, id)
        return
      case CONTINUATION:
        this.#onContinuation(bytes, payload, length, flags, id)
        return
      default:
        // RFC 9113 section 4.1: unknown types are ignored.
        if (!this.#budgets.ignored.take(this.nowMs)) this.#abuse('unknownFrames')
    }
  }

  // === DATA ===

  onDataStart(length: number, flags: number, id: number): boolean {
    if (!this.settled || this.#block.stream !== 0 || id === 0) {
      this.fail(PROTOCOL_ERROR, 'DATA where none may be')
      return false
    }
    if (length > this.#receiveWindow) {
      this.fail(FLOW_CONTROL_ERROR, 'DATA above the window of the connection')
      return false
    }
    this.#receiveWindow -= length
    if (this.limits.connectionCredit === 'at-once') this.#giveBack(length)
    const end = (flags & FLAG_END_STREAM) !== 0
    if (length === 0 && !end && !this.#budgets.emptyFrames.take(this.nowMs)) {
      this.#abuse('emptyFrames')
      return false
    }
    if (length === 0 && (flags & FLAG_PADDED) !== 0) {
      this.fail(FRAME_SIZE_ERROR, 'padded DATA without a padding length')
      return false
    }
    this.#dataEnd = end
    this.#dataStream = this.#streamForData(id, length)
    return !this.over
  }

  /** Who gets the data; undefined = nobody, and they only count. */
  #streamForData(id: number, length: number): Http2Stream | undefined {
    const stream = this.streams.get(id)
    if (stream === undefined) {
      if (this.isIdle(id)) this.fail(PROTOCOL_ERROR, 'DATA on an idle stream')
      else this.#onClosedStream(id)
      return undefined
    }
    if (stream.remoteEnded) {
      this.blame(stream, STREAM_CLOSED)
      return undefined
    }
    // A response begins with its head (RFC 9113 section 8.1); a request's stream was opened by it.
    if (!stream.answered && !this.isServer) {
      this.blame(stream, PROTOCOL_ERROR)
      return undefined
    }
    if (length > stream.receiveWindow) {
      this.blame(stream, FLOW_CONTROL_ERROR)
      return undefined
    }
    stream.receiveWindow -= length
    return stream
  }

  /** Padding counts in flow control (RFC 9113 section 6.1), and nobody will take it. */
  onPadding(bytes: number, all: boolean): void {
    if (all && !this.#dataEnd && !this.#budgets.emptyFrames.take(this.nowMs)) {
      this.#abuse('emptyFrames')
      return
    }
    const stream = this.#dataStream
    if (stream !== undefined && !stream.dead) {
      stream.unread += bytes
      stream.credit(bytes)
    } else this.onTaken(bytes)
  }

  onDataBytes(chunk: Buffer, from: number, to: number, last: boolean): void {
    const stream = this.#dataStream
    const size = to - from
    if (stream === undefined || stream.dead) {
      this.onTaken(size)
      return
    }
    stream.receivedBytes += size
    if (stream.expectedBytes !== ANY_LENGTH && stream.receivedBytes > stream.expectedBytes) {
      this.onTaken(size)
      this.blame(stream, PROTOCOL_ERROR)
      return
    }
    stream.unread += size
    // With the last bytes of the frame goes the end of the stream: one event less.
    const end = this.#dataEnd && last
    if (end && !this.lengthFits(stream)) return
    if (end) {
      this.#dataEnd = false
      stream.remoteEnded = true
    }
    stream.events.onBody(chunk.subarray(from, to), end)
    if (end) this.afterRemoteEnd(stream)
  }

  onDataEnd(): void {
    const stream = this.#dataStream
    this.#dataStream = undefined
    if (!this.#dataEnd || stream === undefined || stream.dead || !this.lengthFits(stream)) return
    stream.remoteEnded = true
    stream.events.onBody(EMPTY, true)
    this.afterRemoteEnd(stream)
  }

  /** RFC 9113 section 8.1.1: a body of another length than `content-length` says is malformed. */
  protected lengthFits(stream: Http2Stream): boolean {
    if (stream.expectedBytes === ANY_LENGTH || stream.receivedBytes === stream.expectedBytes) return true
    this.blame(stream, PROTOCOL_ERROR)
    return false
  }

  protected afterRemoteEnd(stream: Http2Stream): void {
    if (stream.dead) return
    if (stream.localEnded) this.#retire(stream)
    else this.onRemoteEnd(stream)
  }

  /** The peer has ended its half, ours is open. */
  protected onRemoteEnd(_stream: Http2Stream): void {
    // A server still has to answer; the client side decides otherwise.
  }

  // === HEADERS and CONTINUATION ===

  #onHeaders(bytes: Buffer, payload: number, length: number, flags: number, id: number): void {
    if (id === 0) {
      this.fail(PROTOCOL_ERROR, 'HEADERS on stream 0')
      return
    }
    let from = payload
    let to = payload + length
    if ((flags & FLAG_PADDED) !== 0) {
      if (length === 0) {
        this.fail(FRAME_SIZE_ERROR, 'padded HEADERS without a padding length')
        return
      }
      to -= bytes[from++] ?? 0
    }
    if ((flags & FLAG_PRIORITY) !== 0) {
      if (payload + length - from < 5) {
        this.fail(FRAME_SIZE_ERROR, 'HEADERS too short for its priority')
        return
      }
      this.#blockBroken = (frame.readUint32(bytes, from) & LARGEST_WINDOW_BYTES) === id
      from += 5
    }
    if (to < from) {
      this.fail(PROTOCOL_ERROR, 'padding longer than the frame')
      return
    }
    const end = (flags & FLAG_END_STREAM) !== 0
    if ((flags & FLAG_END_HEADERS) !== 0) {
      this.#onBlock(id, end, bytes, from, to)
      return
    }
    if (to === from && !this.#budgets.emptyFrames.take(this.nowMs)) {
      this.#abuse('emptyFrames')
      return
    }
    this.#block.begin(id, end, bytes, from, to, this.nowMs)
  }

  #onContinuation(bytes: Buffer, payload: number, length: number, flags: number, id: number): void {
    const block = this.#block
    if (id === 0 || block.stream !== id) {
      this.fail(PROTOCOL_ERROR, 'CONTINUATION without a header block')
      return
    }
    if (!block.add(bytes, payload, payload + length, this.limits.maxHeaderListBytes + BLOCK_SLACK_BYTES)) {
      this.#abuse('continuationFlood')
      return
    }
    if ((flags & FLAG_END_HEADERS) !== 0) {
      const whole = block.take()
      this.#onBlock(id, block.end, whole, 0, whole.length)
    } else if (length === 0 && !this.#budgets.emptyFrames.take(this.nowMs)) this.#abuse('emptyFrames')
  }

  #onBlock(id: number, end: boolean, bytes: Buffer, from: number, to: number): void {
    const outcome = this.decoder.decode(bytes, from, to, this.limits.maxHeaderListBytes)
    if (outcome === TOO_LARGE && (to - from) * BOMB_FACTOR < this.limits.maxHeaderListBytes) this.counters.hpackBomb++
    const broken = this.#blockBroken
    this.#blockBroken = false
    if (outcome === COMPRESSION) this.fail(COMPRESSION_ERROR, 'invalid header block')
    else this.onHead(id, end, broken ? MALFORMED : outcome)
  }

  /** Behind a body (RFC 9113 section 8.1): no pseudo-header fields, and nothing after them. */
  protected onTrailers(stream: Http2Stream, end: boolean, outcome: number): void {
    if (!end || outcome !== DECODED || this.decoder.pseudoCount > 0) {
      this.blame(stream, PROTOCOL_ERROR)
      return
    }
    if (!this.lengthFits(stream)) return
    stream.remoteEnded = true
    stream.events.onTrailers(this.decoder.fields)
    this.afterRemoteEnd(stream)
  }

  // === small frames ===

  #onPriority(bytes: Buffer, payload: number, length: number, id: number): void {
    if (id === 0) {
      this.fail(PROTOCOL_ERROR, 'PRIORITY on stream 0')
      return
    }
    if (!this.#budgets.ignored.take(this.nowMs)) {
      this.#abuse('priorityFlood')
      return
    }
    if (length !== 5) this.#streamError(id, FRAME_SIZE_ERROR)
    else if ((frame.readUint32(bytes, payload) & LARGEST_WINDOW_BYTES) === id) this.#streamError(id, PROTOCOL_ERROR)
  }

  #onReset(bytes: Buffer, payload: number, length: number, id: number): void {
    if (id === 0) {
      this.fail(PROTOCOL_ERROR, 'RST_STREAM on stream 0')
      return
    }
    if (length !== 4) {
      this.fail(FRAME_SIZE_ERROR, 'RST_STREAM')
      return
    }
    const stream = this.streams.get(id)
    if (stream === undefined) {
      if (this.isIdle(id)) this.fail(PROTOCOL_ERROR, 'RST_STREAM on an idle stream')
      return
    }
    const code = frame.readUint32(bytes, payload)
    if (code === frame.REFUSED_STREAM) this.counters.streamsRefused++
    const { events } = stream
    this.kill(stream)
    if (this.isServer && !this.#budgets.resets.take(this.nowMs)) this.#abuse('rapidReset')
    events.onReset(resetReason(code))
    this.closeIfIdle()
  }

  #onSettings(bytes: Buffer, payload: number, length: number, flags: number, id: number): void {
    if (id !== 0) {
      this.fail(PROTOCOL_ERROR, 'SETTINGS on a stream')
      return
    }
    if ((flags & FLAG_ACK) !== 0) {
      if (length !== 0) {
        this.fail(FRAME_SIZE_ERROR, 'SETTINGS acknowledgement with a payload')
        return
      }
      this.#settingsAcked = true
      if (!this.#budgets.settings.take(this.nowMs)) this.#abuse('settingsFlood')
      return
    }
    if (length % 6 !== 0) {
      this.fail(FRAME_SIZE_ERROR, 'SETTINGS')
      return
    }
    if (!this.#budgets.settings.take(this.nowMs)) {
      this.#abuse('settingsFlood')
      return
    }
    for (let at = payload; at < payload + length && !this.over; at += 6) {
      this.#applySetting(((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0), frame.readUint32(bytes, at + 2))
    }
    if (this.over) return
    this.sender.settingsAck()
    this.settled = true
    this.onPeerSettings()
  }

  #applySetting(setting: number, value: number): void {
    switch (setting) {
      case frame.HEADER_TABLE_SIZE:
        this.sender.encoder.setMaxTableBytes(value)
        return
      case frame.ENABLE_PUSH:
        if (value > 1 || (value === 1 && !this.isServer)) this.fail(PROTOCOL_ERROR, 'ENABLE_PUSH')
        return
      case frame.MAX_CONCURRENT_STREAMS:
        this.peerMaxStreams = value
        return
      case frame.INITIAL_WINDOW_SIZE:
        if (value > LARGEST_WINDOW_BYTES) this.fail(FLOW_CONTROL_ERROR, 'INITIAL_WINDOW_SIZE')
        else this.#resizeWindows(value)
        return
      case frame.MAX_FRAME_SIZE:
        if (value < frame.DEFAULT_FRAME_BYTES || value > frame.LARGEST_FRAME_BYTES) {
          this.fail(PROTOCOL_ERROR, 'MAX_FRAME_SIZE')
        } else this.sender.frameBytes = value
        return
      case frame.ENABLE_CONNECT_PROTOCOL:
        if (value > 1) this.fail(PROTOCOL_ERROR, 'ENABLE_CONNECT_PROTOCOL')
        return
      default:
      // Unknown settings are ignored (RFC 9113 section 6.5.2).
    }
  }

  /** RFC 9113 section 6.9.2: open streams change, too, and may fall below zero. */
  #resizeWindows(bytes: number): void {
    const change = bytes - this.peerWindowBytes
    this.peerWindowBytes = bytes
    for (const stream of this.streams.all()) {
      stream.sendWindow += change
      if (stream.sendWindow > LARGEST_WINDOW_BYTES) {
        this.fail(FLOW_CONTROL_ERROR, 'INITIAL_WINDOW_SIZE makes a window overflow')
        return
      }
      if (change > 0 && stream.queued > 0) this.schedule(stream)
    }
  }

  #onPing(bytes: Buffer, payload: number, length: number, flags: number, id: number): void {
    if (id !== 0) {
      this.fail(PROTOCOL_ERROR, 'PING on a stream')
      return
    }
    if (length !== 8) {
      this.fail(FRAME_SIZE_ERROR, 'PING')
      return
    }
    if (!this.#budgets.pings.take(this.nowMs)) {
      this.#abuse('pingFlood')
      return
    }
    if ((flags & FLAG_ACK) === 0) {
      this.sender.ping(frame.readUint32(bytes, payload), frame.readUint32(bytes, payload + 4), true)
      return
    }
    if (this.drainState === 'announced' && frame.readUint32(bytes, payload) === PING_DRAIN) this.#finishDrain()
  }

  #onGoaway(bytes: Buffer, payload: number, length: number, id: number): void {
    if (id !== 0) {
      this.fail(PROTOCOL_ERROR, 'GOAWAY on a stream')
      return
    }
    if (length < 8) {
      this.fail(FRAME_SIZE_ERROR, 'GOAWAY')
      return
    }
    this.counters.goawayReceived++
    this.peerGoaway = true
    this.onPeerGoaway(frame.readUint32(bytes, payload) & LARGEST_WINDOW_BYTES, frame.readUint32(bytes, payload + 4))
    this.closeIfIdle()
  }

  #onWindowUpdate(bytes: Buffer, payload: number, length: number, id: number): void {
    if (length !== 4) {
      this.fail(FRAME_SIZE_ERROR, 'WINDOW_UPDATE')
      return
    }
    if (!this.#budgets.windowUpdates.take(this.nowMs)) {
      this.#abuse('windowUpdateFlood')
      return
    }
    const increment = frame.readUint32(bytes, payload) & LARGEST_WINDOW_BYTES
    if (id === 0) {
      if (increment === 0) {
        this.fail(PROTOCOL_ERROR, 'WINDOW_UPDATE of 0')
        return
      }
      this.sender.window += increment
      if (this.sender.window > LARGEST_WINDOW_BYTES) this.fail(FLOW_CONTROL_ERROR, 'window of the connection')
      else this.sender.windowOpened()
      return
    }
    const stream = this.streams.get(id)
    if (stream === undefined) {
      if (this.isIdle(id)) this.fail(PROTOCOL_ERROR, 'WINDOW_UPDATE on an idle stream')
      return
    }
    if (increment === 0) {
      this.blame(stream, PROTOCOL_ERROR)
      return
    }
    stream.sendWindow += increment
    if (stream.sendWindow > LARGEST_WINDOW_BYTES) {
      this.blame(stream, FLOW_CONTROL_ERROR)
      return
    }
    if (stream.queued > 0) this.schedule(stream)
  }

  // === errors ===

  /** A connection error (RFC 9113 section 5.4.1). */
  protected fail(code: number, message: string): void {
    if (this.over) return
    this.counters.protocolErrors++
    this.#end(code, message)
  }

  #abuse(kind: AbuseKind): void {
    if (this.over) return
    this.counters[kind]++
    this.#end(ENHANCE_YOUR_CALM, kind)
  }

  /** A stream error that the peer caused: it counts, so that it cannot make us reset streams without end. */
  protected blame(stream: Http2Stream, code: number): void {
    const { events } = stream
    this.sendReset(stream.id, code)
    this.kill(stream, true)
    this.countBlame()
    events.onReset('protocol')
    this.closeIfIdle()
  }

  /** Only of clients: an upstream that resets its streams costs nothing that we have not asked for. */
  protected countBlame(): void {
    if (this.isServer && !this.#budgets.resets.take(this.nowMs)) this.#abuse('madeYouReset')
  }

  #streamError(id: number, code: number): void {
    const stream = this.streams.get(id)
    if (stream !== undefined) {
      this.blame(stream, code)
      return
    }
    // RST_STREAM must not be sent on an idle stream (RFC 9113 section 6.4).
    if (this.isIdle(id)) {
      this.fail(code, 'PRIORITY of an idle stream')
      return
    }
    this.sendReset(id, code)
    this.countBlame()
  }

  /** DATA for a stream that is over: silence if we reset it, since the peer may not know yet, or if it is over for long. */
  #onClosedStream(id: number): void {
    if (!this.closedStreams.wasEndedByPeer(id)) return
    this.sendReset(id, STREAM_CLOSED)
    this.countBlame()
  }

  // === the end of a stream ===

  /** We reset it. */
  resetStream(stream: Http2Stream, code: number): void {
    if (!this.over) this.sendReset(stream.id, code)
    this.kill(stream, true)
    this.closeIfIdle()
  }

  protected kill(stream: Http2Stream, byUs = false): void {
    stream.dead = true
    this.#forget(stream, byUs)
  }

  /** Both halves have ended. */
  #retire(stream: Http2Stream): void {
    this.#forget(stream, false)
    this.closeIfIdle()
  }

  #forget(stream: Http2Stream, byUs: boolean): void {
    if (!this.streams.delete(stream.id)) return
    this.closedStreams.add(stream.id, byUs)
    this.onTaken(stream.unread)
    stream.unread = 0
    stream.clear()
    stream.events = NOBODY
    this.sender.forget(stream, this.streams.size)
    this.onStreamGone()
  }

  // === out: called by the streams ===

  /** A head; a response or, with `end`, all of a message. */
  sendHead(stream: Http2Stream, list: HeaderList, end: boolean): void {
    if (end) stream.ending = true
    this.sender.head(stream.id, list, undefined, end)
    if (end) this.onEndSent(stream)
    if (this.sender.bytes > this.limits.maxBacklogBytes) this.#abuse('slowRead')
  }

  sendTrailers(stream: Http2Stream, list: HeaderList): void {
    this.sender.head(stream.id, list, undefined, true)
    this.onEndSent(stream)
  }

  sendNow(stream: Http2Stream, chunk: Buffer, end: boolean): boolean {
    return this.sender.bodyNow(stream, chunk, end)
  }

  schedule(stream: Http2Stream): void {
    this.sender.schedule(stream)
  }

  /** This much of what came was taken: it goes back to the peer in larger pieces. */
  onTaken(bytes: number): void {
    if (this.limits.connectionCredit === 'when-taken') this.#giveBack(bytes)
  }

  #giveBack(bytes: number): void {
    this.#taken += bytes
    if (this.#taken < this.#connectionUpdateBytes || this.over) return
    this.#receiveWindow += this.#taken
    this.sendWindowUpdate(0, this.#taken)
    this.#taken = 0
  }

  sendWindowUpdate(id: number, bytes: number): void {
    if (this.over) return
    this.sender.windowUpdate(id, bytes)
  }

  protected sendReset(id: number, code: number): void {
    if (code === frame.REFUSED_STREAM) this.counters.streamsRefused++
    this.sender.reset(id, code)
  }

  onEndSent(stream: Http2Stream): void {
    stream.localEnded = true
    if (stream.remoteEnded) this.#retire(stream)
    else this.onLocalEnd(stream)
  }

  /** We have ended our half, the peer's is open. */
  protected onLocalEnd(_stream: Http2Stream): void {
    // A client waits for the answer; the server side decides otherwise.
  }

  /** SETTINGS and the window of the connection: the first frames of each side. */
  protected sendSettings(pairs: readonly number[]): void {
    this.sender.settings(pairs)
    const more = this.limits.connectionWindowBytes - frame.DEFAULT_WINDOW_BYTES
    if (more > 0) this.sendWindowUpdate(0, more)
  }

  onBytes(): void {
    this.driver.onOutput()
  }

  // === out: called by the driver ===

  /**
   * What is to be written next, in order; false = nothing. Heads and control frames first, then about `budget` bytes of
   * bodies, a frame of each stream in turn. The memory is the reader's until `releaseOutput`.
   */
  takeOutput(budget: number, into: Buffer[]): boolean {
    if (!this.over) this.sender.fill(budget)
    return this.sender.take(into)
  }

  releaseOutput(): void {
    this.sender.release()
  }

  // === the life of the connection ===

  /** To be called every second or so: deadlines. */
  tick(nowMs: number): void {
    if (this.over) return
    this.nowMs = nowMs
    const { limits, counters } = this
    if (!this.settled && nowMs - this.#startedMs > limits.headTimeoutMs) {
      counters.slowPreface++
      this.#end(SETTINGS_TIMEOUT, 'no SETTINGS in time')
    } else if (!this.#settingsAcked && nowMs - this.#startedMs > limits.settingsTimeoutMs) {
      counters.settingsTimeouts++
      this.#end(SETTINGS_TIMEOUT, 'SETTINGS were not acknowledged')
    } else if (this.#isHeadLate(nowMs)) {
      counters.slowPreface++
      this.#end(ENHANCE_YOUR_CALM, 'a frame or header block was not completed in time')
    } else this.#checkPeer(nowMs)
    if (this.drainState === 'announced' && nowMs - this.#drainedMs > DRAIN_STEP_MS) this.#finishDrain()
  }

  /** A frame, or a header block of several, that does not end. */
  #isHeadLate(nowMs: number): boolean {
    const oldestMs = nowMs - this.limits.headTimeoutMs
    const heldSinceMs = this.#reader.heldSinceMs
    return (heldSinceMs >= 0 && heldSinceMs < oldestMs) || (this.#block.stream !== 0 && this.#block.sinceMs < oldestMs)
  }

  #checkPeer(nowMs: number): void {
    const { limits } = this
    if (this.#pingSentMs >= 0) {
      if (this.#lastReceivedMs >= this.#pingSentMs) this.#pingSentMs = -1
      else if (nowMs - this.#pingSentMs > limits.pingTimeoutMs) {
        this.counters.pingTimeouts++
        this.#end(NO_ERROR, PING_UNANSWERED)
      }
      return
    }
    if (this.streams.size === 0 || nowMs - this.#lastReceivedMs < limits.pingIntervalMs) return
    this.#pingSentMs = nowMs
    this.sender.ping(PING_KEEPALIVE, 0, false)
  }

  /** No new streams; those that are open end in their own time. */
  drain(nowMs: number): void {
    if (this.over || this.drainState !== 'no') return
    this.nowMs = nowMs
    this.#drainedMs = nowMs
    this.drainState = 'announced'
    this.startDrain()
  }

  /** Server side: GOAWAY in two steps (RFC 9113 section 6.8), so that no request on its way is lost. */
  protected startDrain(): void {
    this.#writeGoaway(frame.LARGEST_STREAM_ID, NO_ERROR)
    this.sender.ping(PING_DRAIN, 0, false)
  }

  #finishDrain(): void {
    this.drainState = 'final'
    this.#writeGoaway(this.lastPeerStream, NO_ERROR)
    this.#goawayDone = true
    this.closeIfIdle()
  }

  /** Closes in good order when nobody needs the connection any more. */
  protected closeIfIdle(): void {
    if (this.over || this.streams.size > 0) return
    if (this.drainState === 'final' || this.peerGoaway) this.#end(NO_ERROR, '')
  }

  /** Ends the connection with GOAWAY; every open stream gets onReset. */
  destroy(code: number): void {
    this.#end(code, code === NO_ERROR ? '' : 'ended by the gateway')
  }

  /** The socket has ended or broken: nothing can be sent any more. */
  onSocketClosed(): void {
    if (this.over) return
    this.over = true
    this.#reader.stop()
    this.#block.clear()
    this.counters.connectionsClosed++
    this.#loseStreams()
    this.driver.onClosed(INTERNAL_ERROR, 'connection lost')
  }

  #end(code: number, message: string): void {
    if (this.over) return
    if (!this.#goawayDone || code !== NO_ERROR) this.#writeGoaway(this.lastPeerStream, code)
    this.over = true
    this.counters.connectionsClosed++
    this.#reader.stop()
    this.#block.clear()
    this.#loseStreams()
    this.driver.onClosed(code, message)
  }

  #loseStreams(): void {
    const lost = this.streams.all()
    this.streams.clear()
    this.sender.forgetAll()
    for (const stream of lost) {
      const { events } = stream
      stream.dead = true
      stream.clear()
      stream.events = NOBODY
      // Its last event is being heard just now: it is complete.
      if (!stream.localEnded || !stream.remoteEnded) events.onReset('connection')
    }
  }

  #writeGoaway(lastStream: number, code: number): void {
    this.counters.goawaySent++
    this.sender.goaway(lastStream, code)
  }
}
