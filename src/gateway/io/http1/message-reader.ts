// Reads messages from the bytes of a connection over HTTP/1.1 (RFC 9112), without a socket: heads, bodies with a length or in chunks, trailers. What
// their first lines are, and what heads mean, is for requests and answers to say. What another server, or client, might read differently is refused,
// and nothing behind it is read.

import type { Pace } from '../../../http2/frame-reader.ts'
import type { HeaderList } from '../../../kit/api/stream.ts'
import { CR, chunkSizeOf, connectionOptions, contentLengthOf, FieldLine, LF } from './lines.ts'

/** Gets what was read of a message behind its head. */
export interface MessageSink {
  /** Bytes of a body; `end` = the last ones. Valid during the call. */
  onBody(bytes: Buffer, end: boolean): void
  /** The end of a body that has trailers. */
  onTrailers(list: HeaderList): void
  /** Nothing more may be read for now. */
  readonly held: boolean
}

export interface MessageLimits {
  /** Size of a head, and of trailers: octets, and those of their list (header-list.ts). */
  readonly maxHeaderBytes: number
  /** Header fields of a head, and of trailers. */
  readonly maxFields: number
}

/** Size and extensions of a chunk. */
const MAX_CHUNK_LINE_BYTES = 4096
/** First size of the memory for a line that has come in part. */
const FIRST_LINE_BYTES = 256
/** A line end is found by a loop if it is near: a native call takes longer. */
const NEAR_BYTES = 64
/** Overhead of a field in a list, as HTTP/2 counts (header-list.ts). */
export const FIELD_OVERHEAD = 32
export const NO_LENGTH = -1
const NOTHING = Buffer.alloc(0)

// What the next bytes are.
export const FIRST_LINE = 0
const FIELD_LINE = 1
const TRAILER_LINE = 2
export const CHUNK_LINE = 3
const CHUNK_END = 4
const CHUNK_DATA = 5
export const SIZED_BODY = 6
/** It ends with the connection. */
export const ENDLESS_BODY = 7
/** The message has ended, and nothing may follow. */
export const ENDED = 8
const STOPPED = 9

export abstract class MessageReader {
  readonly #sink: MessageSink
  readonly #limits: MessageLimits
  /** What follows a message. */
  readonly #behind: number
  protected state: number
  protected readonly line: FieldLine = new FieldLine()
  /** A line that has come in part. */
  #part: Buffer = NOTHING
  #partBytes = 0
  // The head, or the trailers, being read.
  protected list: HeaderList = []
  protected listBytes = 0
  /** Entries of the list beside header fields. */
  protected pseudoEntries = 0
  #bytes = 0
  #sinceMs = -1
  // What the head being read says about the message.
  protected length: number = NO_LENGTH
  protected isChunked = false
  /** What Connection lists: see lines.ts. */
  protected options = 0
  /** Bytes left of a body, or of a chunk. */
  #left = 0

  /** @param behind what follows a message: FIRST_LINE, or ENDED */
  constructor(sink: MessageSink, limits: MessageLimits, behind: number) {
    this.#sink = sink
    this.#limits = limits
    this.#behind = behind
    this.state = behind
  }

  /** Memory of a head, or of trailers, that have come in part. */
  get keptBytes(): number {
    return Math.max(this.#bytes, this.listBytes) + this.#part.length - this.#partBytes
  }

  /** When it began; -1 = there is none. */
  get heldSinceMs(): number {
    return this.#sinceMs
  }

  /** Nothing more is read. */
  stop(): void {
    this.state = STOPPED
    this.forget()
  }

  /** Time in which nothing could be read does not count: the head that has come in part begins now. */
  restartClock(nowMs: number): void {
    if (this.#sinceMs >= 0) this.#sinceMs = nowMs
  }

  /** Reads `chunk` from `from` on, until `pace` or the sink stops it. @returns how far: the rest has to be read before anything else */
  read(chunk: Buffer, from: number, nowMs: number, pace: Pace): number {
    let at = from
    while (at < chunk.length && this.state < ENDED) {
      at = this.state >= CHUNK_DATA ? this.#readData(chunk, at) : this.#readLine(chunk, at, nowMs)
      if (this.#sink.held || !pace.goOn()) break
    }
    return this.state === STOPPED ? chunk.length : at
  }

  // === for requests and answers ===

  /** `bytes` from `from` to `to`, without the end of the line. */
  protected abstract onFirstLine(bytes: Buffer, from: number, to: number): void

  /** What follows the head begins at `at` of the chunk. */
  protected abstract onHeadEnd(chunk: Buffer, at: number): void

  protected abstract onMalformed(why: string): void

  protected abstract onTooLarge(): void

  /** A head begins: its list has `bytes` so far. */
  protected beginHead(list: HeaderList, bytes: number): void {
    this.length = NO_LENGTH
    this.isChunked = false
    this.list = list
    this.listBytes = bytes
    this.pseudoEntries = list.length
    this.state = FIELD_LINE
  }

  /** The body begins. @param state SIZED_BODY, with a length above 0, CHUNK_LINE, or ENDLESS_BODY; `undefined` = there is none */
  protected beginBody(state: number | undefined): void {
    this.#left = this.length
    this.state = state ?? this.#behind
  }

  /** What the fields say about the message itself. False: not what they may say. */
  protected understand(name: string, value: string): boolean {
    switch (name) {
      case 'content-length': {
        const isFirst = this.length === NO_LENGTH
        this.length = contentLengthOf(value)
        return isFirst && this.length >= 0 && !this.line.hasTab
      }
      case 'transfer-encoding': {
        const isFirst = !this.isChunked
        this.isChunked = true
        return isFirst && value.toLowerCase() === 'chunked' && !this.line.hasTab
      }
      case 'connection':
        this.options |= connectionOptions(value)
        return true
      default:
        return true
    }
  }

  /** Nothing is kept any more: a head has up to a megabyte, for which an idle connection is not charged. */
  protected forget(): void {
    this.line.forget()
    this.options = 0
    this.list = []
    this.#part = NOTHING
    this.#partBytes = 0
    this.#bytes = 0
    this.listBytes = 0
    this.#sinceMs = -1
  }

  // === bodies ===

  #readData(chunk: Buffer, at: number): number {
    if (this.state === ENDLESS_BODY) {
      this.#sink.onBody(at === 0 ? chunk : chunk.subarray(at), false)
      return chunk.length
    }
    const to = Math.min(chunk.length, at + this.#left)
    this.#left -= to - at
    const isWhole = this.#left === 0
    const end = isWhole && this.state === SIZED_BODY
    if (end) this.state = this.#behind
    else if (isWhole) this.state = CHUNK_END
    this.#sink.onBody(chunk.subarray(at, to), end)
    return to
  }

  #onChunkLine(bytes: Buffer, from: number, to: number): void {
    this.#left = chunkSizeOf(bytes, from, to)
    if (this.#left < 0) this.onMalformed('the size of a chunk is none')
    else if (this.#left > 0) this.state = CHUNK_DATA
    else {
      this.list = []
      this.pseudoEntries = 0
      this.state = TRAILER_LINE
    }
  }

  #onTrailerLine(bytes: Buffer, from: number, to: number): void {
    const { line } = this
    if (from < to) {
      if (!line.read(bytes, from, to) || isFraming(line.name)) this.onMalformed('a trailer is none')
      else this.#addField()
      return
    }
    const { list } = this
    this.forget()
    this.state = this.#behind
    if (list.length > 0) this.#sink.onTrailers(list)
    else this.#sink.onBody(NOTHING, true)
  }

  // === lines ===

  #readLine(chunk: Buffer, at: number, nowMs: number): number {
    const end = lineEnd(chunk, at)
    const to = end < 0 ? chunk.length : end + 1
    if (this.#sinceMs < 0 && this.state <= TRAILER_LINE) this.#sinceMs = nowMs
    if (!this.#hasRoom(to - at)) return chunk.length
    if (end >= 0 && this.#partBytes === 0) this.#onLine(chunk, at, to, chunk, to)
    else {
      this.#keep(chunk, at, to)
      if (end >= 0) this.#onLine(this.#part, 0, this.#partBytes, chunk, to)
    }
    return to
  }

  /** Counts so many bytes more. False: they are too many. */
  #hasRoom(bytes: number): boolean {
    if (this.state > TRAILER_LINE) {
      if (this.#partBytes + bytes <= MAX_CHUNK_LINE_BYTES) return true
      this.onMalformed('the line in front of a chunk is too long')
      return false
    }
    this.#bytes += bytes
    if (this.#bytes <= this.#limits.maxHeaderBytes) return true
    this.onTooLarge()
    return false
  }

  /** Part of a line is copied once, however many pieces it comes in. */
  #keep(chunk: Buffer, from: number, to: number): void {
    const bytes = this.#partBytes + to - from
    if (bytes > this.#part.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(bytes, FIRST_LINE_BYTES, 2 * this.#part.length))
      this.#part.copy(larger, 0, 0, this.#partBytes)
      this.#part = larger
    }
    chunk.copy(this.#part, this.#partBytes, from, to)
    this.#partBytes = bytes
  }

  /** `bytes` from `from` to `to` are a line with its end; what follows it begins at `at` of the chunk. */
  #onLine(bytes: Buffer, from: number, to: number, chunk: Buffer, at: number): void {
    this.#partBytes = 0
    this.#part = NOTHING
    const end = to - 2
    if (end < from || bytes[end] !== CR) {
      this.onMalformed('a line does not end with CR LF')
      return
    }
    switch (this.state) {
      case FIRST_LINE:
        this.onFirstLine(bytes, from, end)
        return
      case FIELD_LINE:
        if (from < end) this.#onFieldLine(bytes, from, end)
        else this.onHeadEnd(chunk, at)
        return
      case TRAILER_LINE:
        this.#onTrailerLine(bytes, from, end)
        return
      case CHUNK_LINE:
        this.#onChunkLine(bytes, from, end)
        return
      default:
        if (from < end) this.onMalformed('a chunk is longer than its size')
        else this.state = CHUNK_LINE
    }
  }

  #onFieldLine(bytes: Buffer, from: number, to: number): void {
    const { line } = this
    if (!line.read(bytes, from, to)) this.onMalformed('a header field is none')
    else if (!this.understand(line.name, line.value)) this.onMalformed('a header field says what it may not')
    else this.#addField()
  }

  #addField(): void {
    const { name, value } = this.line
    const { maxHeaderBytes, maxFields } = this.#limits
    this.list.push(name, value)
    this.listBytes += name.length + value.length + FIELD_OVERHEAD
    if (this.listBytes > maxHeaderBytes || this.list.length - this.pseudoEntries > 2 * maxFields) this.onTooLarge()
  }
}

/** Where the line ends that begins at `from`; -1 = not in this chunk. */
function lineEnd(chunk: Buffer, from: number): number {
  const near = Math.min(chunk.length, from + NEAR_BYTES)
  for (let i = from; i < near; i++) if (chunk[i] === LF) return i
  return near === chunk.length ? -1 : chunk.indexOf(LF, near)
}

/** They say where a message ends, which is not for trailers to say (RFC 9110 section 6.5.1). */
function isFraming(name: string): boolean {
  return name === 'content-length' || name === 'transfer-encoding' || name === 'host'
}
