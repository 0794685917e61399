// What bytes on a connection may mean at most: a second, simple reading of them, to hold the engine's flow control and its
// output against. It knows no state machine: an upper bound is enough.

import { DECODED, type HpackDecoder } from '../../src/http2/hpack/decoder.ts'
import * as h2 from '../harness/frames/h2-frames.ts'

const FRAME_HEADER_BYTES = 9
const DEFAULT_WINDOW = 65_535
const STREAM_MASK = 0x7fffffff
/** So much of a payload goes into the checksum. */
const SUMMED_BYTES = 64

/** A model of the frames that the engine was sent. */
export class Received {
  /** The bytes end with a whole frame, and with no header block open. */
  clean = false
  /** What the engine may send: on the connection, and by stream. */
  connectionWindow: number = DEFAULT_WINDOW
  initialWindow: number = DEFAULT_WINDOW
  largestInitialWindow: number = DEFAULT_WINDOW
  /** SETTINGS have come. */
  settled = false
  /** GOAWAY has come: the connection may close when its last stream has ended. */
  goaway = false
  /** Largest number of a stream with HEADERS. */
  lastStream = 0
  readonly streamUpdates: Map<number, number> = new Map()
  largestFrame = 16_384
  /** Largest table that the peer has allowed our encoder. */
  largestTable = 4_096
  /** Payload of DATA, padding included: on the connection, and by stream. */
  data = 0
  readonly streamData: Map<number, number> = new Map()

  read(bytes: Buffer, from: number): void {
    let at = from
    let inBlock = false
    while (at + FRAME_HEADER_BYTES <= bytes.length) {
      const length = bytes.readUIntBE(at, 3)
      const type = bytes[at + 3] ?? 0
      const flags = bytes[at + 4] ?? 0
      const stream = bytes.readUInt32BE(at + 5) & STREAM_MASK
      const payload = at + FRAME_HEADER_BYTES
      at = payload + length
      // What is given back as it comes is given back when the frame begins.
      if (type === h2.DATA) this.#onData(stream, length)
      if (at > bytes.length) break
      if (type === h2.SETTINGS && (flags & h2.ACK) === 0) this.#onSettings(bytes, payload, length)
      else if (type === h2.WINDOW_UPDATE && length === 4) this.#onWindowUpdate(stream, bytes.readUInt32BE(payload))
      else if (type === h2.GOAWAY) this.goaway = true
      else if (type === h2.HEADERS || type === h2.CONTINUATION) {
        inBlock = (flags & h2.END_HEADERS) === 0
        this.lastStream = Math.max(this.lastStream, stream)
      }
    }
    this.clean = at === bytes.length && !inBlock
  }

  #onData(stream: number, length: number): void {
    this.data += length
    this.streamData.set(stream, (this.streamData.get(stream) ?? 0) + length)
  }

  #onWindowUpdate(stream: number, increment: number): void {
    const bytes = increment & STREAM_MASK
    if (stream === 0) this.connectionWindow += bytes
    else this.streamUpdates.set(stream, (this.streamUpdates.get(stream) ?? 0) + bytes)
  }

  #onSettings(bytes: Buffer, from: number, length: number): void {
    this.settled = true
    for (let at = from; at + 6 <= from + length; at += 6) {
      const value = bytes.readUInt32BE(at + 2)
      const setting = bytes.readUInt16BE(at)
      if (setting === h2.INITIAL_WINDOW_SIZE) {
        this.initialWindow = value
        this.largestInitialWindow = Math.max(this.largestInitialWindow, value)
      } else if (setting === h2.MAX_FRAME_SIZE) this.largestFrame = Math.max(this.largestFrame, value)
      else if (setting === h2.HEADER_TABLE_SIZE) this.largestTable = Math.max(this.largestTable, value)
    }
  }
}

/** Reads the frames that the engine sends, and complains about what no peer may be sent. */
export class Sent {
  /** What the engine has given back: on the connection, and by stream. */
  connectionCredit = 0
  readonly streamCredit: Map<number, number> = new Map()
  /** By how much it may let the window of a stream grow: as much again as came, until then. */
  windowGrowth = 0
  data = 0
  readonly streamData: Map<number, number> = new Map()
  /** Streams on which END_STREAM, or RST_STREAM, was sent. */
  readonly ended: Set<number> = new Set()
  readonly reset: Set<number> = new Set()
  /** Codes of GOAWAY frames. */
  readonly goaways: number[] = []
  frames = 0
  /** Checksum of everything but WINDOW_UPDATEs: those depend on how the input was cut. */
  checksum = 0
  #block = 0
  #blockParts: Buffer[] = []
  /** Reads the heads, when there is one: it costs much. */
  readonly #decoder: HpackDecoder | undefined

  constructor(decoder: HpackDecoder | undefined) {
    this.#decoder = decoder
  }

  /** Whole frames; '' or what is wrong. */
  read(bytes: Buffer, received: Received, start: number): string {
    let at = start
    while (at + FRAME_HEADER_BYTES <= bytes.length) {
      const length = bytes.readUIntBE(at, 3)
      const end = at + FRAME_HEADER_BYTES + length
      if (end > bytes.length) return 'output ends inside a frame'
      const problem = this.#frame(bytes, at, length, received)
      if (problem !== '') return problem
      at = end
    }
    return at === bytes.length ? '' : 'output ends inside a frame header'
  }

  #frame(bytes: Buffer, at: number, length: number, received: Received): string {
    const type = bytes[at + 3] ?? 0
    const flags = bytes[at + 4] ?? 0
    const stream = bytes.readUInt32BE(at + 5)
    const payload = at + FRAME_HEADER_BYTES
    this.frames++
    if (type !== h2.WINDOW_UPDATE) this.#add(bytes, at, payload + Math.min(length, SUMMED_BYTES))
    if (length > received.largestFrame) return `a frame of ${length} bytes`
    if (this.frames === 1 && type !== h2.SETTINGS) return 'the first frame is not SETTINGS'
    if (this.#block !== 0 && (type !== h2.CONTINUATION || stream !== this.#block)) return 'a block was not continued'
    switch (type) {
      case h2.DATA:
        return this.#data(stream, flags, length, received)
      case h2.HEADERS:
      case h2.CONTINUATION:
        return this.#head(type, stream, flags, bytes.subarray(payload, payload + length))
      case h2.RST_STREAM:
        if (length !== 4 || stream === 0) return 'a broken RST_STREAM'
        this.reset.add(stream)
        return ''
      case h2.WINDOW_UPDATE:
        return this.#windowUpdate(stream, length === 4 ? bytes.readUInt32BE(payload) : 0, received)
      case h2.GOAWAY:
        this.goaways.push(bytes.readUInt32BE(payload + 4))
        return stream === 0 && length >= 8 ? '' : 'a broken GOAWAY'
      case h2.SETTINGS:
        return stream === 0 && length % 6 === 0 ? '' : 'broken SETTINGS'
      case h2.PING:
        return stream === 0 && length === 8 ? '' : 'a broken PING'
      default:
        return `a frame of type ${type}`
    }
  }

  #data(stream: number, flags: number, length: number, received: Received): string {
    if (this.ended.has(stream) || this.reset.has(stream)) return `DATA behind the end of stream ${stream}`
    if (length === 0 && (flags & h2.END_STREAM) === 0) return `DATA without data on stream ${stream}`
    this.data += length
    const onStream = (this.streamData.get(stream) ?? 0) + length
    this.streamData.set(stream, onStream)
    if ((flags & h2.END_STREAM) !== 0) this.ended.add(stream)
    if (this.data > received.connectionWindow) return 'DATA above the window of the connection'
    const window = received.largestInitialWindow + (received.streamUpdates.get(stream) ?? 0)
    return onStream > window ? `DATA above the window of stream ${stream}` : ''
  }

  #head(type: number, stream: number, flags: number, part: Buffer): string {
    if (type === h2.HEADERS) {
      if (stream === 0 || stream % 2 === 0) return `HEADERS on stream ${stream}`
      if (this.ended.has(stream) || this.reset.has(stream)) return `HEADERS behind the end of stream ${stream}`
      if ((flags & h2.END_STREAM) !== 0) this.ended.add(stream)
    } else if (this.#block === 0) return 'CONTINUATION of nothing'
    this.#block = (flags & h2.END_HEADERS) === 0 ? stream : 0
    return this.#decoder === undefined ? '' : this.#decode(this.#decoder, part)
  }

  #decode(decoder: HpackDecoder, part: Buffer): string {
    this.#blockParts.push(Buffer.from(part))
    if (this.#block !== 0) return ''
    const block = Buffer.concat(this.#blockParts)
    this.#blockParts = []
    return decoder.decode(block, 0, block.length, 1_000_000) === DECODED ? '' : 'a head that cannot be read'
  }

  #windowUpdate(stream: number, increment: number, received: Received): string {
    if (increment === 0 || increment > STREAM_MASK) return `WINDOW_UPDATE of ${increment}`
    if (stream === 0) {
      this.connectionCredit += increment
      return this.connectionCredit > received.data ? 'more given back on the connection than came' : ''
    }
    if (this.reset.has(stream)) return `WINDOW_UPDATE behind RST_STREAM of ${stream}`
    const credit = (this.streamCredit.get(stream) ?? 0) + increment
    this.streamCredit.set(stream, credit)
    const came = received.streamData.get(stream) ?? 0
    return credit > came + Math.min(came, this.windowGrowth) ? `more given back on stream ${stream} than came` : ''
  }

  /** FNV-1a over four bytes at a time, good enough to tell outputs apart. */
  #add(bytes: Buffer, from: number, to: number): void {
    let sum = this.checksum
    let at = from
    for (; at + 4 <= to; at += 4) {
      const word =
        (bytes[at] as number) |
        ((bytes[at + 1] as number) << 8) |
        ((bytes[at + 2] as number) << 16) |
        ((bytes[at + 3] as number) << 24)
      sum = Math.imul(sum ^ word, 0x01000193)
    }
    for (; at < to; at++) sum = Math.imul(sum ^ (bytes[at] as number), 0x01000193)
    this.checksum = sum
  }
}
