// Sending: heads in the order in which they were encoded, control frames, and bodies as the windows allow, a
// frame of each stream in turn (RFC 9113 sections 4.3, 5.2 and 6.9).

import type { Budget } from '../kit/api/limits/budget.ts'
import type { EncodedFields } from '../kit/api/stream.ts'
import { WINDOW_UPDATES_PER_DATA } from './budget.ts'
import * as frame from './frames.ts'
import { encodeBound, HpackEncoder, listBytesOf, MAX_TABLE_BYTES } from './hpack/encoder.ts'
import { blockScratch } from './hpack/scratch.ts'
import { Output } from './output.ts'
import { SLAB_BYTES } from './slabs.ts'
import type { Http2Stream } from './stream.ts'

/** The connection. */
export interface SenderHost {
  /** There is output; not repeated until it is taken. */
  onBytes(): void
  /** The last frame of our half of a stream was written. */
  onEndSent(stream: Http2Stream): void
}

const { DATA, HEADERS, CONTINUATION, SETTINGS, PING, GOAWAY } = frame
const { FLAG_END_STREAM, FLAG_END_HEADERS, FLAG_ACK, FRAME_HEADER_BYTES } = frame

/** Above this much unsent, bodies wait in their streams, so that they are counted and other streams' heads go first. */
const OUTPUT_HIGH_BYTES = 64 * 1024
/** Below this many streams in the round, dead ones are not removed. */
const MIN_ROUND = 64
const COMPACT_AT = 1024
/** May contain a user name of any length. */
const MAX_DEBUG_BYTES = 1024

export class Sender {
  /** Made by the first head: thousands of connections may wait for theirs. */
  #encoder: HpackEncoder | undefined
  /** The peer's SETTINGS_MAX_FRAME_SIZE. */
  frameBytes: number = frame.DEFAULT_FRAME_BYTES
  /** The peer's SETTINGS_MAX_HEADER_LIST_SIZE. Go's server ends the connection, with all its streams, for lists well above it. */
  maxListBytes: number = Number.POSITIVE_INFINITY
  /** The window of the connection. */
  window: number = frame.DEFAULT_WINDOW_BYTES
  readonly #host: SenderHost
  readonly #windowUpdates: Budget
  readonly #output: Output = new Output()
  #signalled = false
  /** Streams with data to send and an open window, in turn. */
  readonly #round: Http2Stream[] = []
  #roundAt = 0

  /** @param windowUpdates refilled with each DATA frame, which justifies window updates of the peer */
  constructor(host: SenderHost, windowUpdates: Budget) {
    this.#host = host
    this.#windowUpdates = windowUpdates
  }

  /** SETTINGS_HEADER_TABLE_SIZE of the peer. */
  setMaxTableBytes(bytes: number): void {
    if (this.#encoder !== undefined || bytes < MAX_TABLE_BYTES) this.#heads().setMaxTableBytes(bytes)
  }

  #heads(): HpackEncoder {
    this.#encoder ??= new HpackEncoder()
    return this.#encoder
  }

  /** Serialised bytes not taken yet. */
  get bytes(): number {
    return this.#output.bytes
  }

  get hasOutput(): boolean {
    return this.#output.bytes > 0 || (this.window > 0 && this.#roundAt < this.#round.length)
  }

  /** Reports output, once until it is taken. */
  signal(): void {
    if (this.#signalled) return
    this.#signalled = true
    this.#host.onBytes()
  }

  /** The window of the connection has grown. */
  windowOpened(): void {
    if (this.#roundAt < this.#round.length) this.signal()
  }

  // === heads ===

  /**
   * HEADERS, with CONTINUATION if the peer's frames are too small. `shared` follows `list`. False: nothing was sent,
   * because the list exceeds the peer's limit.
   */
  head(id: number, list: readonly string[], shared: EncodedFields | undefined, end: boolean): boolean {
    const own = encodeBound(list)
    if (listBytesOf(own, list.length >>> 1) + (shared === undefined ? 0 : shared.listBytes) > this.maxListBytes)
      return false
    const bound = own + (shared === undefined ? 0 : shared.octets.length)
    if (bound > this.frameBytes || bound > SLAB_BYTES - FRAME_HEADER_BYTES)
      this.#longHead(id, list, shared?.octets, end, bound)
    else this.#shortHead(id, list, shared?.octets, end, bound)
    return true
  }

  #shortHead(id: number, list: readonly string[], shared: Uint8Array | undefined, end: boolean, bound: number): void {
    const output = this.#output
    output.reserve(FRAME_HEADER_BYTES + bound)
    const { buffer, at } = output
    let to = this.#heads().encode(list, buffer, at + FRAME_HEADER_BYTES)
    if (shared !== undefined) {
      buffer.set(shared, to)
      to += shared.length
    }
    const flags = end ? FLAG_END_HEADERS | FLAG_END_STREAM : FLAG_END_HEADERS
    frame.writeFrameHeader(buffer, at, to - at - FRAME_HEADER_BYTES, HEADERS, flags, id)
    output.advance(to - at)
    this.signal()
  }

  #longHead(id: number, list: readonly string[], shared: Uint8Array | undefined, end: boolean, bound: number): void {
    const block = blockScratch.of(bound)
    let size = this.#heads().encode(list, block, 0)
    if (shared !== undefined) {
      block.set(shared, size)
      size += shared.length
    }
    for (let from = 0; from === 0 || from < size; from += this.frameBytes) {
      const length = Math.min(this.frameBytes, size - from)
      const flags = (from + length >= size ? FLAG_END_HEADERS : 0) | (end && from === 0 ? FLAG_END_STREAM : 0)
      this.#frame(from === 0 ? HEADERS : CONTINUATION, flags, id, block.subarray(from, from + length))
    }
    this.signal()
  }

  // === bodies ===

  /** Sends a body at once if possible; false: it has to be queued. */
  bodyNow(stream: Http2Stream, chunk: Buffer, end: boolean): boolean {
    const size = chunk.length
    if (size > 0) {
      if (size > stream.sendWindow || size > this.window || size > this.frameBytes) return false
      if (this.#output.bytes >= OUTPUT_HIGH_BYTES || this.#roundAt < this.#round.length) return false
    } else if (!end) return true
    this.#dataHeader(stream, size, end)
    if (size > 0) this.#output.append(chunk)
    this.signal()
    if (end) this.#host.onEndSent(stream)
    return true
  }

  /** The stream has queued data: it joins the round when its window is open. */
  schedule(stream: Http2Stream): void {
    if (stream.scheduled || stream.dead || stream.queued === 0 || stream.sendWindow <= 0) return
    stream.scheduled = true
    this.#round.push(stream)
    if (this.window > 0) this.signal()
  }

  /** The stream is closed. While the connection window is closed, many of these would pile up in the round. */
  forget(stream: Http2Stream, openStreams: number): void {
    if (!stream.scheduled || this.#round.length - this.#roundAt <= 2 * openStreams + MIN_ROUND) return
    const round = this.#round
    let kept = 0
    for (let i = this.#roundAt; i < round.length; i++) {
      const other = round[i]
      if (other !== undefined && !other.dead) round[kept++] = other
    }
    round.length = kept
    this.#roundAt = 0
  }

  forgetAll(): void {
    this.#round.length = 0
    this.#roundAt = 0
  }

  /** Serialises bodies up to about `budget` bytes of output. */
  fill(budget: number): void {
    const round = this.#round
    while (this.#output.bytes < budget && this.window > 0 && this.#roundAt < round.length) {
      const stream = round[this.#roundAt++]
      if (stream === undefined) continue
      stream.scheduled = false
      if (!stream.dead && stream.queued > 0 && stream.sendWindow > 0) this.#sendFrame(stream)
    }
    if (this.#roundAt === round.length) this.forgetAll()
    else if (this.#roundAt > COMPACT_AT) {
      round.splice(0, this.#roundAt)
      this.#roundAt = 0
    }
  }

  /** Sends one frame of a stream; then its end, or the stream waits for its next turn. */
  #sendFrame(stream: Http2Stream): void {
    const size = Math.min(this.frameBytes, stream.sendWindow, this.window, stream.queued)
    const end = stream.endsWith(size)
    this.#dataHeader(stream, size, end)
    stream.moveTo(this.#output, size)
    if (end) {
      this.#host.onEndSent(stream)
      return
    }
    const trailers = stream.takeTrailers()
    if (trailers === undefined) this.schedule(stream)
    else {
      this.trailers(stream, trailers)
      this.#host.onEndSent(stream)
    }
    stream.notifyDrained()
  }

  /** Ends the stream with trailers, or without them if the list exceeds the peer's limit (RFC 9110 section 6.5.1). */
  trailers(stream: Http2Stream, list: readonly string[]): void {
    if (this.head(stream.id, list, undefined, true)) return
    this.#dataHeader(stream, 0, true)
    this.signal()
  }

  /** The header of a DATA frame, whose `size` bytes follow. */
  #dataHeader(stream: Http2Stream, size: number, end: boolean): void {
    stream.sendWindow -= size
    this.window -= size
    this.#windowUpdates.add(WINDOW_UPDATES_PER_DATA)
    this.#header(DATA, end ? FLAG_END_STREAM : 0, stream.id, size)
  }

  // === control frames ===

  settings(pairs: readonly number[]): void {
    const payload = Buffer.allocUnsafe(pairs.length * 3)
    for (let i = 0; i < pairs.length; i += 2) {
      payload.writeUInt16BE(pairs[i] ?? 0, i * 3)
      payload.writeUInt32BE(pairs[i + 1] ?? 0, i * 3 + 2)
    }
    this.#frame(SETTINGS, 0, 0, payload)
    this.signal()
  }

  settingsAck(): void {
    this.#small(SETTINGS, FLAG_ACK, 0, 0, 0, 0)
  }

  ping(high: number, low: number, ack: boolean): void {
    this.#small(PING, ack ? FLAG_ACK : 0, 0, 8, high, low)
  }

  /** @param why debug data (RFC 9113 section 6.8) */
  goaway(lastStream: number, code: number, why: string): void {
    if (why === '') {
      this.#small(GOAWAY, 0, 0, 8, lastStream, code)
      return
    }
    const payload = Buffer.concat([Buffer.alloc(8), Buffer.from(why).subarray(0, MAX_DEBUG_BYTES)])
    frame.writeUint32(payload, 0, lastStream)
    frame.writeUint32(payload, 4, code)
    this.#frame(GOAWAY, 0, 0, payload)
    this.signal()
  }

  reset(id: number, code: number): void {
    this.#small(frame.RST_STREAM, 0, id, 4, code, 0)
  }

  windowUpdate(id: number, bytes: number): void {
    this.#small(frame.WINDOW_UPDATE, 0, id, 4, bytes, 0)
  }

  /** A frame of zero, one or two numbers. */
  #small(type: number, flags: number, id: number, length: 0 | 4 | 8, first: number, second: number): void {
    const output = this.#output
    output.reserve(FRAME_HEADER_BYTES + length)
    const { buffer, at } = output
    frame.writeFrameHeader(buffer, at, length, type, flags, id)
    if (length > 0) frame.writeUint32(buffer, at + FRAME_HEADER_BYTES, first)
    if (length > 4) frame.writeUint32(buffer, at + FRAME_HEADER_BYTES + 4, second)
    output.advance(FRAME_HEADER_BYTES + length)
    this.signal()
  }

  #frame(type: number, flags: number, id: number, payload: Buffer): void {
    this.#header(type, flags, id, payload.length)
    this.#output.append(payload)
  }

  #header(type: number, flags: number, id: number, length: number): void {
    const output = this.#output
    output.reserve(FRAME_HEADER_BYTES)
    frame.writeFrameHeader(output.buffer, output.at, length, type, flags, id)
    output.advance(FRAME_HEADER_BYTES)
  }

  /** The client's connection preface. */
  preface(): void {
    this.#output.append(Buffer.from(frame.PREFACE, 'latin1'))
  }

  // === for the driver ===

  take(into: Buffer[]): boolean {
    this.#signalled = false
    if (this.#output.bytes === 0) return false
    this.#output.take(into)
    return true
  }

  release(): void {
    this.#output.release()
  }
}
