// One HTTP/2 connection without I/O (RFC 9113): bytes in, events and bytes out. What both sides share is here; how a stream
// begins and what its heads must hold is in server.ts and client.ts.

import type { HeaderList } from '../api/stream.ts'
import {
  Budget,
  EMPTY_FRAMES,
  IGNORED_FRAMES,
  PINGS,
  RESETS,
  SETTINGS_FRAMES,
  WINDOW_UPDATES,
  WINDOW_UPDATES_PER_DATA,
} from './budget.ts'
import type { AbuseKind, Http2Counters } from './counters.ts'
import * as frame from './frames.ts'
import { COMPRESSION, HpackDecoder, MALFORMED } from './hpack-decoder.ts'
import { encodeBound, HpackEncoder } from './hpack-encoder.ts'
import type { Http2Limits } from './limits.ts'
import { Output } from './output.ts'
import { ANY_LENGTH, type Http2Stream, NOBODY, resetReason } from './stream.ts'

/** Who moves the bytes: src/io/http2-socket.ts. */
export interface ConnectionDriver {
  /** Output waits: `takeOutput` is to be called before long. Not said again until then. */
  onOutput(): void
  /** Nothing more is read or sent but what `takeOutput` still gives; then the socket is to be closed. */
  onClosed(code: number, message: string): void
}

const { DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION } = frame
const { FLAG_END_STREAM, FLAG_ACK, FLAG_END_HEADERS, FLAG_PADDED, FLAG_PRIORITY, FRAME_HEADER_BYTES } = frame
const { NO_ERROR, PROTOCOL_ERROR, FLOW_CONTROL_ERROR, FRAME_SIZE_ERROR, STREAM_CLOSED, COMPRESSION_ERROR } = frame
const { ENHANCE_YOUR_CALM, INTERNAL_ERROR, SETTINGS_TIMEOUT, LARGEST_WINDOW_BYTES } = frame

const EMPTY = Buffer.alloc(0)
/** Above this much unsent, bodies wait in their streams, so that they are counted, and heads of other streams go first. */
const OUTPUT_HIGH_BYTES = 64 * 1024
/** A block of the largest size in full frames, and as many again for peers that split as they like. */
const MAX_CONTINUATIONS = 128
/** Closed streams that are remembered: what is still on its way for them is no offence. */
const REMEMBERED_STREAMS = 128
/** Payload of our PINGs: those that ask for life, and the one between the two steps of GOAWAY. */
const PING_KEEPALIVE = 0x706f7274
const PING_DRAIN = 0x64726169
/** The second step of GOAWAY follows the answer to a PING, or comes after this time without one. */
const DRAIN_STEP_MS = 1000

export abstract class Connection {
  protected readonly limits: Http2Limits
  protected readonly counters: Http2Counters
  protected readonly driver: ConnectionDriver
  protected readonly streams: Map<number, Http2Stream> = new Map()
  protected readonly output: Output = new Output()
  protected readonly decoder: HpackDecoder
  protected readonly encoder: HpackEncoder = new HpackEncoder()
  protected nowMs: number
  /** No more input is looked at; `closed` when the driver was told, too. */
  protected over = false
  /** The largest id of a stream that the peer opened. */
  protected lastPeerStream = 0
  protected drainState: 'no' | 'announced' | 'final' = 'no'
  protected peerGoaway = false
  /** The peer's settings. */
  protected peerWindowBytes: number = frame.DEFAULT_WINDOW_BYTES
  protected peerFrameBytes: number = frame.DEFAULT_FRAME_BYTES
  protected peerMaxStreams: number = Number.POSITIVE_INFINITY
  /** The peer's first SETTINGS have come. */
  protected settled = false
  /** At least so much is given back to the peer at a time. */
  readonly streamUpdateBytes: number
  readonly #connectionUpdateBytes: number
  readonly #prefaceBytes: number
  #prefaceSeen = 0
  #sendWindow: number = frame.DEFAULT_WINDOW_BYTES
  #receiveWindow: number
  #taken = 0
  #settingsAcked = false
  readonly #startedMs: number
  #lastReceivedMs: number
  #pingSentMs = -1
  #drainedMs = 0
  /** GOAWAY with the last stream that is served has been sent. */
  #goawayDone = false
  // A frame that has come in part; DATA is not held but passed on.
  #held: Buffer = EMPTY
  #heldBytes = 0
  #heldNeed = 0
  #heldSinceMs = 0
  // The DATA frame that is being read.
  #dataLeft = 0
  #dataPad = 0
  #dataPadUnread = false
  #dataEnd = false
  #dataStream: Http2Stream | undefined
  // The header block that is being read.
  #blockStream = 0
  #blockEnd = false
  #blockParts: Buffer[] | undefined
  #blockBytes = 0
  #blockFrames = 0
  /** The stream depends on itself (RFC 7540 section 5.3.1): RFC 9113 dropped priorities, but not every peer has. */
  #blockBroken = false
  /** Streams with data to send and a window for it, in turn. */
  readonly #ready: Http2Stream[] = []
  #readyAt = 0
  #signalled = false
  readonly #closedStreams: Int32Array = new Int32Array(REMEMBERED_STREAMS)
  #closedAt = 0
  readonly #resets: Budget
  readonly #settingsFrames: Budget
  readonly #pings: Budget
  readonly #emptyFrames: Budget
  readonly #windowUpdates: Budget
  readonly #ignored: Budget

  constructor(
    limits: Http2Limits,
    counters: Http2Counters,
    driver: ConnectionDriver,
    prefaceBytes: number,
    nowMs: number,
  ) {
    this.limits = limits
    this.counters = counters
    this.driver = driver
    this.nowMs = nowMs
    this.decoder = new HpackDecoder(limits.headerTableBytes)
    this.streamUpdateBytes = limits.streamWindowBytes >> 1
    this.#connectionUpdateBytes = limits.connectionWindowBytes >> 1
    this.#receiveWindow = limits.connectionWindowBytes
    this.#prefaceBytes = prefaceBytes
    this.#startedMs = nowMs
    this.#lastReceivedMs = nowMs
    this.#resets = new Budget(RESETS, nowMs)
    this.#settingsFrames = new Budget(SETTINGS_FRAMES, nowMs)
    this.#pings = new Budget(PINGS, nowMs)
    this.#emptyFrames = new Budget(EMPTY_FRAMES, nowMs)
    this.#windowUpdates = new Budget(WINDOW_UPDATES, nowMs)
    this.#ignored = new Budget(IGNORED_FRAMES, nowMs)
    counters.connectionsOpened++
  }

  get openStreams(): number {
    return this.streams.size
  }

  get closed(): boolean {
    return this.over
  }

  get hasOutput(): boolean {
    return this.output.bytes > 0 || (this.#sendWindow > 0 && this.#readyAt < this.#ready.length)
  }

  // === what differs between the sides ===

  /** A whole header block; `outcome` is the decoder's. */
  protected abstract onHead(id: number, end: boolean, outcome: number): void
  protected abstract onPeerSettings(): void
  protected abstract onPeerGoaway(lastStream: number, code: number): void
  protected abstract onStreamGone(): void
  /** Whether a stream of this id has never been opened (RFC 9113 section 5.1, idle). */
  protected abstract isIdle(id: number): boolean

  // === in ===

  /** Bytes from the peer. `onBody` hands out parts of `chunk`: its memory must not be used again. Never throws. */
  receive(chunk: Buffer, nowMs: number): void {
    if (this.over) return
    this.nowMs = nowMs
    this.#lastReceivedMs = nowMs
    let at = 0
    if (this.#prefaceSeen < this.#prefaceBytes) {
      at = this.#readPreface(chunk)
      if (at < 0) return
    }
    while (at < chunk.length && !this.over) {
      if (this.#dataLeft > 0) at = this.#readData(chunk, at)
      else if (this.#heldBytes > 0 || chunk.length - at < FRAME_HEADER_BYTES) at = this.#hold(chunk, at)
      else at = this.#readFrame(chunk, at)
    }
    if (this.output.bytes > this.limits.maxBacklogBytes && !this.over) this.#abuse('slowRead')
  }

  #readPreface(chunk: Buffer): number {
    let at = 0
    while (at < chunk.length && this.#prefaceSeen < this.#prefaceBytes) {
      if (chunk[at] !== frame.PREFACE.charCodeAt(this.#prefaceSeen)) {
        this.fail(PROTOCOL_ERROR, 'invalid connection preface')
        return -1
      }
      at++
      this.#prefaceSeen++
    }
    return at
  }

  /** At least a frame header is there, nothing is held. */
  #readFrame(chunk: Buffer, at: number): number {
    const length = ((chunk[at] ?? 0) << 16) | ((chunk[at + 1] ?? 0) << 8) | (chunk[at + 2] ?? 0)
    if (length > this.limits.maxFrameBytes) return this.#tooLong(chunk.length)
    const payload = at + FRAME_HEADER_BYTES
    if (chunk[at + 3] === DATA) {
      this.#startData(length, chunk[at + 4] ?? 0, frame.readUint32(chunk, at + 5) & LARGEST_WINDOW_BYTES)
      return payload
    }
    if (chunk.length - payload < length) return this.#hold(chunk, at)
    this.#onFrame(chunk, at, length)
    return payload + length
  }

  #tooLong(end: number): number {
    this.fail(FRAME_SIZE_ERROR, 'frame above SETTINGS_MAX_FRAME_SIZE')
    return end
  }

  /** Keeps what has come of a frame until all of it is there; of DATA, only until its header is. */
  #hold(chunk: Buffer, from: number): number {
    let at = from
    if (this.#heldBytes === 0) {
      this.#heldSinceMs = this.nowMs
      this.#heldNeed = FRAME_HEADER_BYTES
      this.#held = Buffer.allocUnsafe(FRAME_HEADER_BYTES)
    }
    for (;;) {
      const size = Math.min(this.#heldNeed - this.#heldBytes, chunk.length - at)
      chunk.copy(this.#held, this.#heldBytes, at, at + size)
      at += size
      this.#heldBytes += size
      if (this.#heldBytes < this.#heldNeed) return at
      const held = this.#held
      const length = ((held[0] ?? 0) << 16) | ((held[1] ?? 0) << 8) | (held[2] ?? 0)
      if (length > this.limits.maxFrameBytes) return this.#tooLong(chunk.length)
      if (held[3] === DATA || this.#heldNeed === FRAME_HEADER_BYTES + length) {
        this.#held = EMPTY
        this.#heldBytes = 0
        if (held[3] === DATA) this.#startData(length, held[4] ?? 0, frame.readUint32(held, 5) & LARGEST_WINDOW_BYTES)
        else this.#onFrame(held, 0, length)
        return at
      }
      this.#heldNeed = FRAME_HEADER_BYTES + length
      this.#held = Buffer.allocUnsafe(this.#heldNeed)
      held.copy(this.#held, 0, 0, FRAME_HEADER_BYTES)
    }
  }

  /** A whole frame other than DATA, its header at `at`. */
  #onFrame(bytes: Buffer, at: number, length: number): void {
    const type = bytes[at + 3] ?? 0
    const flags = bytes[at + 4] ?? 0
    const id = frame.readUint32(bytes, at + 5) & LARGEST_WINDOW_BYTES
    const payload = at + FRAME_HEADER_BYTES
    if (this.#blockStream !== 0 && (type !== CONTINUATION || id !== this.#blockStream)) {
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
        if (!this.#ignored.take(this.nowMs)) this.#abuse('unknownFrames')
    }
  }

  // === DATA ===

  #startData(length: number, flags: number, id: number): void {
    if (!this.settled || this.#blockStream !== 0 || id === 0) {
      this.fail(PROTOCOL_ERROR, 'DATA where none may be')
      return
    }
    if (length > this.#receiveWindow) {
      this.fail(FLOW_CONTROL_ERROR, 'DATA above the window of the connection')
      return
    }
    this.#receiveWindow -= length
    if (this.limits.connectionCredit === 'at-once') this.#giveBack(length)
    const end = (flags & FLAG_END_STREAM) !== 0
    if (length === 0 && !end && !this.#emptyFrames.take(this.nowMs)) {
      this.#abuse('emptyFrames')
      return
    }
    const padded = (flags & FLAG_PADDED) !== 0
    if (padded && length === 0) {
      this.fail(FRAME_SIZE_ERROR, 'padded DATA without a padding length')
      return
    }
    this.#dataStream = this.#streamForData(id, length)
    if (this.over) return
    this.#dataLeft = length
    this.#dataPad = 0
    this.#dataPadUnread = padded
    this.#dataEnd = end
    if (length === 0) this.#finishData()
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
    if (length > stream.receiveWindow) {
      this.blame(stream, FLOW_CONTROL_ERROR)
      return undefined
    }
    stream.receiveWindow -= length
    return stream
  }

  #readData(chunk: Buffer, from: number): number {
    let at = from
    if (this.#dataPadUnread) {
      const pad = chunk[at++] ?? 0
      this.#dataLeft--
      if (pad > this.#dataLeft) {
        this.fail(PROTOCOL_ERROR, 'padding as long as the frame or longer')
        return chunk.length
      }
      this.#dataPadUnread = false
      this.#dataPad = pad
      this.#skipPadding(pad + 1)
    }
    const body = Math.min(this.#dataLeft - this.#dataPad, chunk.length - at)
    if (body > 0) {
      this.#dataLeft -= body
      this.#deliver(chunk, at, at + body)
      at += body
      if (this.over) return chunk.length
    }
    const rest = Math.min(this.#dataLeft, chunk.length - at)
    if (this.#dataLeft === this.#dataPad && rest > 0) {
      this.#dataLeft -= rest
      this.#dataPad -= rest
      at += rest
    }
    if (this.#dataLeft === 0) this.#finishData()
    return at
  }

  /** Padding counts in flow control (RFC 9113 section 6.1), and nobody will take it. */
  #skipPadding(bytes: number): void {
    const stream = this.#dataStream
    if (stream !== undefined && !stream.dead) {
      stream.unread += bytes
      stream.credit(bytes)
    } else this.onTaken(bytes)
  }

  #deliver(chunk: Buffer, from: number, to: number): void {
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
    const end = this.#dataEnd && this.#dataLeft === 0
    if (end && !this.lengthFits(stream)) return
    if (end) {
      this.#dataEnd = false
      stream.remoteEnded = true
    }
    stream.events.onBody(chunk.subarray(from, to), end)
    if (end) this.afterRemoteEnd(stream)
  }

  #finishData(): void {
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
    if (to === from && !this.#emptyFrames.take(this.nowMs)) {
      this.#abuse('emptyFrames')
      return
    }
    this.#blockStream = id
    this.#blockEnd = end
    this.#blockBytes = to - from
    this.#blockFrames = 0
    this.#heldSinceMs = this.nowMs
    // A copy: a small part of a chunk would keep all of it alive.
    this.#blockParts = [Buffer.from(bytes.subarray(from, to))]
  }

  #onContinuation(bytes: Buffer, payload: number, length: number, flags: number, id: number): void {
    if (id === 0 || this.#blockStream !== id) {
      this.fail(PROTOCOL_ERROR, 'CONTINUATION without a header block')
      return
    }
    this.#blockBytes += length
    if (++this.#blockFrames > MAX_CONTINUATIONS || this.#blockBytes > this.limits.maxHeaderListBytes + 64 * 1024) {
      this.#abuse('continuationFlood')
      return
    }
    const end = (flags & FLAG_END_HEADERS) !== 0
    if (length === 0 && !end && !this.#emptyFrames.take(this.nowMs)) {
      this.#abuse('emptyFrames')
      return
    }
    this.#blockParts?.push(Buffer.from(bytes.subarray(payload, payload + length)))
    if (!end) return
    const block = Buffer.concat(this.#blockParts ?? [])
    this.#blockParts = undefined
    this.#blockStream = 0
    this.#onBlock(id, this.#blockEnd, block, 0, block.length)
  }

  #onBlock(id: number, end: boolean, bytes: Buffer, from: number, to: number): void {
    const outcome = this.decoder.decode(bytes, from, to, this.limits.maxHeaderListBytes)
    const broken = this.#blockBroken
    this.#blockBroken = false
    if (outcome === COMPRESSION) this.fail(COMPRESSION_ERROR, 'invalid header block')
    else this.onHead(id, end, broken ? MALFORMED : outcome)
  }

  // === small frames ===

  #onPriority(bytes: Buffer, payload: number, length: number, id: number): void {
    if (id === 0) {
      this.fail(PROTOCOL_ERROR, 'PRIORITY on stream 0')
      return
    }
    if (!this.#ignored.take(this.nowMs)) {
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
    if (!this.#resets.take(this.nowMs)) this.#abuse('rapidReset')
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
      if (!this.#settingsFrames.take(this.nowMs)) this.#abuse('settingsFlood')
      return
    }
    if (length % 6 !== 0) {
      this.fail(FRAME_SIZE_ERROR, 'SETTINGS')
      return
    }
    if (!this.#settingsFrames.take(this.nowMs)) {
      this.#abuse('settingsFlood')
      return
    }
    for (let at = payload; at < payload + length && !this.over; at += 6) {
      this.#applySetting(((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0), frame.readUint32(bytes, at + 2))
    }
    if (this.over) return
    this.output.reserve(FRAME_HEADER_BYTES)
    frame.writeFrameHeader(this.output.buffer, this.output.at, 0, SETTINGS, FLAG_ACK, 0)
    this.output.advance(FRAME_HEADER_BYTES)
    this.signal()
    this.settled = true
    this.onPeerSettings()
  }

  #applySetting(setting: number, value: number): void {
    switch (setting) {
      case frame.HEADER_TABLE_SIZE:
        this.encoder.setMaxTableBytes(value)
        return
      case frame.ENABLE_PUSH:
        if (value > 1 || (value === 1 && this.#prefaceBytes === 0)) this.fail(PROTOCOL_ERROR, 'ENABLE_PUSH')
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
        } else this.peerFrameBytes = value
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
    for (const stream of this.streams.values()) {
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
    if (!this.#pings.take(this.nowMs)) {
      this.#abuse('pingFlood')
      return
    }
    if ((flags & FLAG_ACK) === 0) {
      this.#sendPing(frame.readUint32(bytes, payload), frame.readUint32(bytes, payload + 4), FLAG_ACK)
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
    if (!this.#windowUpdates.take(this.nowMs)) {
      this.#abuse('windowUpdateFlood')
      return
    }
    const increment = frame.readUint32(bytes, payload) & LARGEST_WINDOW_BYTES
    if (id === 0) {
      if (increment === 0) {
        this.fail(PROTOCOL_ERROR, 'WINDOW_UPDATE of 0')
        return
      }
      this.#sendWindow += increment
      if (this.#sendWindow > LARGEST_WINDOW_BYTES) {
        this.fail(FLOW_CONTROL_ERROR, 'window of the connection')
        return
      }
      if (this.#readyAt < this.#ready.length) this.signal()
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
  }

  protected countBlame(): void {
    if (!this.#resets.take(this.nowMs)) this.#abuse('madeYouReset')
  }

  #streamError(id: number, code: number): void {
    const stream = this.streams.get(id)
    if (stream !== undefined) {
      this.blame(stream, code)
      return
    }
    this.sendReset(id, code)
    this.countBlame()
  }

  /** A frame for a stream that is over: silence if we reset it, since the peer may not know yet. */
  #onClosedStream(id: number): void {
    if (this.wasResetByUs(id)) return
    this.sendReset(id, STREAM_CLOSED)
    this.countBlame()
  }

  protected wasResetByUs(id: number): boolean {
    return this.#closedStreams.includes(-id)
  }

  protected wasClosed(id: number): boolean {
    return this.#closedStreams.includes(id) || this.#closedStreams.includes(-id)
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
    this.#remember(byUs ? -stream.id : stream.id)
    this.onTaken(stream.unread)
    stream.unread = 0
    stream.clear()
    stream.events = NOBODY
    this.onStreamGone()
  }

  /** A stream that we refused without having made one. */
  protected rememberReset(id: number): void {
    this.#remember(-id)
  }

  #remember(signedId: number): void {
    this.#closedStreams[this.#closedAt] = signedId
    this.#closedAt = (this.#closedAt + 1) % REMEMBERED_STREAMS
  }

  // === out: called by the streams ===

  /** A head; a response or, with `end`, all of a message. */
  sendHead(stream: Http2Stream, list: HeaderList, end: boolean): void {
    if (end) stream.ending = true
    this.writeHead(stream.id, list, undefined, end)
    if (end) this.#onLocalEnd(stream)
  }

  sendTrailers(stream: Http2Stream, list: HeaderList): void {
    this.writeHead(stream.id, list, undefined, true)
    this.#onLocalEnd(stream)
  }

  /** HEADERS, with CONTINUATION where the peer's frames are too small. The block is encoded in the order of sending. */
  protected writeHead(id: number, list: readonly string[], shared: Uint8Array | undefined, end: boolean): void {
    const { output } = this
    const bound = encodeBound(list) + (shared?.length ?? 0)
    if (bound > this.peerFrameBytes) {
      this.#writeLongHead(id, list, shared, end, bound)
      return
    }
    output.reserve(FRAME_HEADER_BYTES + bound)
    const { buffer, at } = output
    let to = this.encoder.encode(list, buffer, at + FRAME_HEADER_BYTES)
    if (shared !== undefined) {
      buffer.set(shared, to)
      to += shared.length
    }
    const length = to - at - FRAME_HEADER_BYTES
    frame.writeFrameHeader(buffer, at, length, HEADERS, FLAG_END_HEADERS | (end ? FLAG_END_STREAM : 0), id)
    output.advance(to - at)
    this.signal()
  }

  #writeLongHead(
    id: number,
    list: readonly string[],
    shared: Uint8Array | undefined,
    end: boolean,
    bound: number,
  ): void {
    const block = Buffer.allocUnsafe(bound)
    let size = this.encoder.encode(list, block, 0)
    if (shared !== undefined) {
      block.set(shared, size)
      size += shared.length
    }
    for (let from = 0; from === 0 || from < size; from += this.peerFrameBytes) {
      const length = Math.min(this.peerFrameBytes, size - from)
      const type = from === 0 ? HEADERS : CONTINUATION
      const flags = (from + length >= size ? FLAG_END_HEADERS : 0) | (end && from === 0 ? FLAG_END_STREAM : 0)
      this.#writeFrame(type, flags, id, block.subarray(from, from + length))
    }
    this.signal()
  }

  /** Sends a body at once, when nothing is in its way. */
  sendNow(stream: Http2Stream, chunk: Buffer, end: boolean): boolean {
    const size = chunk.length
    if (size > 0) {
      if (size > stream.sendWindow || size > this.#sendWindow || size > this.peerFrameBytes) return false
      if (this.output.bytes >= OUTPUT_HIGH_BYTES || this.#readyAt < this.#ready.length) return false
    } else if (!end) return true
    this.#writeData(stream, chunk, end)
    if (end) this.#onLocalEnd(stream)
    this.signal()
    return true
  }

  /** The stream has something queued: it takes part in the round when its window is open. */
  schedule(stream: Http2Stream): void {
    if (stream.scheduled || stream.dead || stream.queued === 0 || stream.sendWindow <= 0) return
    stream.scheduled = true
    this.#ready.push(stream)
    if (this.#sendWindow > 0) this.signal()
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
    this.#writeUint32(WINDOW_UPDATE, id, bytes)
  }

  protected sendReset(id: number, code: number): void {
    if (code === frame.REFUSED_STREAM) this.counters.streamsRefused++
    this.#writeUint32(RST_STREAM, id, code)
  }

  #writeUint32(type: number, id: number, value: number): void {
    const { output } = this
    output.reserve(FRAME_HEADER_BYTES + 4)
    frame.writeFrameHeader(output.buffer, output.at, 4, type, 0, id)
    frame.writeUint32(output.buffer, output.at + FRAME_HEADER_BYTES, value)
    output.advance(FRAME_HEADER_BYTES + 4)
    this.signal()
  }

  #sendPing(high: number, low: number, flags: number): void {
    const { output } = this
    output.reserve(FRAME_HEADER_BYTES + 8)
    frame.writeFrameHeader(output.buffer, output.at, 8, PING, flags, 0)
    frame.writeUint32(output.buffer, output.at + FRAME_HEADER_BYTES, high)
    frame.writeUint32(output.buffer, output.at + FRAME_HEADER_BYTES + 4, low)
    output.advance(FRAME_HEADER_BYTES + 8)
    this.signal()
  }

  #writeData(stream: Http2Stream, chunk: Buffer, end: boolean): void {
    stream.sendWindow -= chunk.length
    this.#sendWindow -= chunk.length
    this.#windowUpdates.add(WINDOW_UPDATES_PER_DATA)
    this.#writeFrame(DATA, end ? FLAG_END_STREAM : 0, stream.id, chunk)
  }

  #writeFrame(type: number, flags: number, id: number, payload: Buffer): void {
    const { output } = this
    output.reserve(FRAME_HEADER_BYTES)
    frame.writeFrameHeader(output.buffer, output.at, payload.length, type, flags, id)
    output.advance(FRAME_HEADER_BYTES)
    if (payload.length > 0) output.append(payload)
  }

  #onLocalEnd(stream: Http2Stream): void {
    stream.localEnded = true
    if (stream.remoteEnded) this.#retire(stream)
    else this.onLocalEnd(stream)
  }

  /** We have ended our half, the peer's is open. */
  protected onLocalEnd(_stream: Http2Stream): void {
    // A client waits for the answer; the server side decides otherwise.
  }

  /** SETTINGS and the window of the connection: the first bytes of each side (after the client's preface). */
  protected sendSettings(pairs: readonly number[]): void {
    const payload = Buffer.allocUnsafe(pairs.length * 3)
    for (let i = 0; i < pairs.length; i += 2) {
      payload.writeUInt16BE(pairs[i] ?? 0, i * 3)
      payload.writeUInt32BE(pairs[i + 1] ?? 0, i * 3 + 2)
    }
    this.#writeFrame(SETTINGS, 0, 0, payload)
    const more = this.limits.connectionWindowBytes - frame.DEFAULT_WINDOW_BYTES
    if (more > 0) this.sendWindowUpdate(0, more)
    this.signal()
  }

  protected signal(): void {
    if (this.#signalled) return
    this.#signalled = true
    this.driver.onOutput()
  }

  // === out: called by the driver ===

  /**
   * What is to be written next, in order; false = nothing. Heads and control frames first, then about `budget` bytes of
   * bodies, a frame of each stream in turn. The memory is the reader's until `releaseOutput`.
   */
  takeOutput(budget: number, into: Buffer[]): boolean {
    if (!this.over) this.#fill(budget)
    this.#signalled = false
    if (this.output.bytes === 0) return false
    this.output.take(into)
    return true
  }

  releaseOutput(): void {
    this.output.release()
  }

  #fill(budget: number): void {
    const ready = this.#ready
    while (this.output.bytes < budget && this.#sendWindow > 0 && this.#readyAt < ready.length && !this.over) {
      const stream = ready[this.#readyAt++]
      if (stream === undefined) continue
      stream.scheduled = false
      if (stream.dead || stream.queued === 0 || stream.sendWindow <= 0) continue
      const piece = stream.shift(Math.min(this.peerFrameBytes, stream.sendWindow, this.#sendWindow))
      const end = stream.endsWithData
      this.#writeData(stream, piece, end)
      if (end) this.#onLocalEnd(stream)
      else {
        const trailers = stream.takeTrailers()
        if (trailers !== undefined) this.sendTrailers(stream, trailers)
        else this.schedule(stream)
      }
      if (!end) stream.notifyDrained()
    }
    if (this.#readyAt === ready.length) {
      ready.length = 0
      this.#readyAt = 0
    } else if (this.#readyAt > 1024) {
      ready.splice(0, this.#readyAt)
      this.#readyAt = 0
    }
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
    } else if ((this.#blockStream !== 0 || this.#heldBytes > 0) && nowMs - this.#heldSinceMs > limits.headTimeoutMs) {
      counters.slowPreface++
      this.#end(ENHANCE_YOUR_CALM, 'a frame or header block was not completed in time')
    } else this.#checkPeer(nowMs)
    if (this.drainState === 'announced' && nowMs - this.#drainedMs > DRAIN_STEP_MS) this.#finishDrain()
  }

  #checkPeer(nowMs: number): void {
    const { limits } = this
    if (this.#pingSentMs >= 0) {
      if (this.#lastReceivedMs >= this.#pingSentMs) this.#pingSentMs = -1
      else if (nowMs - this.#pingSentMs > limits.pingTimeoutMs) {
        this.counters.pingTimeouts++
        this.#end(NO_ERROR, 'no answer to PING')
      }
      return
    }
    if (this.streams.size === 0 || nowMs - this.#lastReceivedMs < limits.pingIntervalMs) return
    this.#pingSentMs = nowMs
    this.#sendPing(PING_KEEPALIVE, 0, 0)
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
    this.#sendPing(PING_DRAIN, 0, 0)
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
    this.counters.connectionsClosed++
    this.#loseStreams()
    this.driver.onClosed(INTERNAL_ERROR, 'connection lost')
  }

  #end(code: number, message: string): void {
    if (this.over) return
    if (!this.#goawayDone || code !== NO_ERROR) this.#writeGoaway(this.lastPeerStream, code)
    this.over = true
    this.counters.connectionsClosed++
    this.#held = EMPTY
    this.#heldBytes = 0
    this.#blockParts = undefined
    this.#loseStreams()
    this.driver.onClosed(code, message)
  }

  #loseStreams(): void {
    const lost = [...this.streams.values()]
    this.streams.clear()
    this.#ready.length = 0
    this.#readyAt = 0
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
    const { output } = this
    this.counters.goawaySent++
    output.reserve(FRAME_HEADER_BYTES + 8)
    frame.writeFrameHeader(output.buffer, output.at, 8, GOAWAY, 0, 0)
    frame.writeUint32(output.buffer, output.at + FRAME_HEADER_BYTES, lastStream)
    frame.writeUint32(output.buffer, output.at + FRAME_HEADER_BYTES + 4, code)
    output.advance(FRAME_HEADER_BYTES + 8)
    this.signal()
  }
}
