// Reads a client's requests from the bytes of its connection (RFC 9112), without a socket: heads, bodies with a length or in chunks, trailers, one
// request behind the other. What another server might read differently is refused, and nothing behind it is
// read.

import type { Pace } from '../../../../http2/frame-reader.ts'
import type { HeaderList } from '../../../../kit/api/stream.ts'
import {
  CLOSE,
  CR,
  chunkSizeOf,
  connectionOptions,
  contentLengthOf,
  Http1Lines,
  KEEP_ALIVE,
  LF,
  UPGRADE,
} from './lines.ts'

/** Gets what was read. */
export interface Http1Sink {
  /** A head is complete: see `head` of the reader. What follows it begins at `at` of the chunk. */
  onHead(chunk: Buffer, at: number): void
  /** Bytes of a body; `end` = the last ones. Valid during the call. */
  onBody(bytes: Buffer, end: boolean): void
  /** The end of a body that has trailers. */
  onTrailers(list: HeaderList): void
  /** Nothing more is read. @param status of the answer */
  onInvalid(status: string): void
  /** Nothing more may be read for now. */
  readonly held: boolean
}

/** A request as its head describes it. */
export interface Http1Head {
  /** With pseudo-header fields, as over HTTP/2. */
  list: HeaderList
  isHttp10: boolean
  /** Whether the client goes on to use the connection. */
  keepsAlive: boolean
  hasBody: boolean
  /** The protocol that the client asks for, as lower case; '' = none, or it may not be granted. */
  upgrade: string
}

const BAD_REQUEST = '400 Bad Request'
const NOT_IMPLEMENTED = '501 Not Implemented'
export const FIELDS_TOO_LARGE = '431 Request Header Fields Too Large'

/** More fields than any client sends. */
const MAX_HEADER_PAIRS = 2000
/** Entries of their list, with those of the pseudo-header fields. */
const MOST_ENTRIES = 2 * (MAX_HEADER_PAIRS + 4)
/** Size and extensions of a chunk. */
const MAX_CHUNK_LINE_BYTES = 4096
/** Some clients send one behind a body (RFC 9112 section 2.2). */
const MAX_EMPTY_LINES = 1
/** First size of the memory for a line that has come in part. */
const FIRST_LINE_BYTES = 256
/** A line end is found by a loop if it is near: a native call takes longer. */
const NEAR_BYTES = 64
/** Overhead of a field in a list, as HTTP/2 counts (header-list.ts). */
const FIELD_OVERHEAD = 32
/** Bytes of the pseudo-header fields without method, path and authority. */
const PSEUDO_BYTES = ':method:path:authority:schemehttps'.length + 4 * FIELD_OVERHEAD
const AUTHORITY_AT = 5
const NO_LENGTH = -1
const NOTHING = Buffer.alloc(0)
const NO_FIELDS: HeaderList = []

// What the next bytes are.
const REQUEST_LINE = 0
const FIELD_LINE = 1
const TRAILER_LINE = 2
const CHUNK_LINE = 3
const CHUNK_END = 4
const CHUNK_DATA = 5
const SIZED_BODY = 6
const STOPPED = 7

export class Http1Reader {
  /** The one that the sink is being told of; its list is not kept. */
  readonly head: Http1Head = { list: [], isHttp10: false, keepsAlive: false, hasBody: false, upgrade: '' }
  readonly #sink: Http1Sink
  readonly #maxBytes: number
  readonly #lines = new Http1Lines()
  #state = REQUEST_LINE
  #emptyLines = 0
  /** A line that has come in part. */
  #line: Buffer = NOTHING
  #lineBytes = 0
  // The head, or the trailers, being read.
  #list: HeaderList = []
  #bytes = 0
  #listBytes = 0
  #sinceMs = -1
  // What the head being read says about the message.
  #hosts = 0
  #length = NO_LENGTH
  #isChunked = false
  /** What Connection lists: see lines.ts. */
  #options = 0
  #upgrade = ''
  /** Bytes left of a body, or of a chunk. */
  #left = 0

  /** @param maxHeaderBytes of a head, and of trailers: octets, and the size of its list (header-list.ts) */
  constructor(sink: Http1Sink, maxHeaderBytes: number) {
    this.#sink = sink
    this.#maxBytes = maxHeaderBytes
  }

  /** Memory of a head, or of trailers, that have come in part. */
  get keptBytes(): number {
    return Math.max(this.#bytes, this.#listBytes) + this.#line.length - this.#lineBytes
  }

  /** When it began; -1 = there is none. */
  get heldSinceMs(): number {
    return this.#sinceMs
  }

  /** All that was read is complete. */
  get isBetweenRequests(): boolean {
    return this.#state === REQUEST_LINE && this.#sinceMs < 0
  }

  /** Nothing more is read. */
  stop(): void {
    this.#state = STOPPED
    this.#forget()
  }

  /** Time in which nothing could be read does not count: the head that has come in part begins now. */
  restartClock(nowMs: number): void {
    if (this.#sinceMs >= 0) this.#sinceMs = nowMs
  }

  /** Reads `chunk` from `from` on, until `pace` or the sink stops it. @returns how far: the rest has to be read before anything else */
  read(chunk: Buffer, from: number, nowMs: number, pace: Pace): number {
    let at = from
    while (at < chunk.length && this.#state !== STOPPED) {
      at = this.#state >= CHUNK_DATA ? this.#readData(chunk, at) : this.#readLine(chunk, at, nowMs)
      if (this.#sink.held || !pace.goOn()) break
    }
    return this.#state === STOPPED ? chunk.length : at
  }

  // === bodies ===

  #readData(chunk: Buffer, at: number): number {
    const to = Math.min(chunk.length, at + this.#left)
    this.#left -= to - at
    const isWhole = this.#left === 0
    const end = isWhole && this.#state === SIZED_BODY
    if (end) this.#state = REQUEST_LINE
    else if (isWhole) this.#state = CHUNK_END
    this.#sink.onBody(chunk.subarray(at, to), end)
    return to
  }

  #onChunkLine(bytes: Buffer, from: number, to: number): void {
    this.#left = chunkSizeOf(bytes, from, to)
    if (this.#left < 0) this.#fail(BAD_REQUEST)
    else if (this.#left > 0) this.#state = CHUNK_DATA
    else {
      this.#list = []
      this.#state = TRAILER_LINE
    }
  }

  #onTrailerLine(bytes: Buffer, from: number, to: number): void {
    if (from < to) {
      if (!this.#lines.readField(bytes, from, to) || isFraming(this.#lines.name)) this.#fail(BAD_REQUEST)
      else this.#addField(this.#lines.name, this.#lines.value)
      return
    }
    const list = this.#list
    this.#forget()
    this.#state = REQUEST_LINE
    if (list.length > 0) this.#sink.onTrailers(list)
    else this.#sink.onBody(NOTHING, true)
  }

  // === lines ===

  #readLine(chunk: Buffer, at: number, nowMs: number): number {
    const end = lineEnd(chunk, at)
    const to = end < 0 ? chunk.length : end + 1
    if (this.#sinceMs < 0 && this.#state <= TRAILER_LINE) this.#sinceMs = nowMs
    if (!this.#hasRoom(to - at)) return chunk.length
    if (end >= 0 && this.#lineBytes === 0) this.#onLine(chunk, at, to, chunk, to)
    else {
      this.#keep(chunk, at, to)
      if (end >= 0) this.#onLine(this.#line, 0, this.#lineBytes, chunk, to)
    }
    return to
  }

  /** Counts so many bytes more. False: they are too many. */
  #hasRoom(bytes: number): boolean {
    if (this.#state > TRAILER_LINE) {
      if (this.#lineBytes + bytes <= MAX_CHUNK_LINE_BYTES) return true
      this.#fail(BAD_REQUEST)
      return false
    }
    this.#bytes += bytes
    if (this.#bytes <= this.#maxBytes) return true
    this.#fail(FIELDS_TOO_LARGE)
    return false
  }

  /** Part of a line is copied once, however many pieces it comes in. */
  #keep(chunk: Buffer, from: number, to: number): void {
    const bytes = this.#lineBytes + to - from
    if (bytes > this.#line.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(bytes, FIRST_LINE_BYTES, 2 * this.#line.length))
      this.#line.copy(larger, 0, 0, this.#lineBytes)
      this.#line = larger
    }
    chunk.copy(this.#line, this.#lineBytes, from, to)
    this.#lineBytes = bytes
  }

  /** `bytes` from `from` to `to` are a line with its end; what follows it begins at `at` of the chunk. */
  #onLine(bytes: Buffer, from: number, to: number, chunk: Buffer, at: number): void {
    this.#lineBytes = 0
    this.#line = NOTHING
    const end = to - 2
    if (end < from || bytes[end] !== CR) {
      this.#fail(BAD_REQUEST)
      return
    }
    switch (this.#state) {
      case REQUEST_LINE:
        this.#onRequestLine(bytes, from, end)
        return
      case FIELD_LINE:
        if (from < end) this.#onFieldLine(bytes, from, end)
        else this.#onHeadEnd(chunk, at)
        return
      case TRAILER_LINE:
        this.#onTrailerLine(bytes, from, end)
        return
      case CHUNK_LINE:
        this.#onChunkLine(bytes, from, end)
        return
      default:
        if (from < end) this.#fail(BAD_REQUEST)
        else this.#state = CHUNK_LINE
    }
  }

  // === heads ===

  #onRequestLine(bytes: Buffer, from: number, to: number): void {
    if (from === to) {
      this.#forget()
      if (++this.#emptyLines > MAX_EMPTY_LINES) this.#fail(BAD_REQUEST)
      return
    }
    const lines = this.#lines
    if (!lines.readRequestLine(bytes, from, to)) {
      this.#fail(BAD_REQUEST)
      return
    }
    this.#emptyLines = 0
    this.#hosts = 0
    this.#length = NO_LENGTH
    this.#isChunked = false
    this.#list = [':method', lines.method, ':path', lines.target, ':authority', '', ':scheme', 'https']
    this.#listBytes = PSEUDO_BYTES + lines.method.length + lines.target.length
    this.#state = FIELD_LINE
  }

  #onFieldLine(bytes: Buffer, from: number, to: number): void {
    const lines = this.#lines
    if (!lines.readField(bytes, from, to) || !this.#understand(lines.name, lines.value)) this.#fail(BAD_REQUEST)
    else this.#addField(lines.name, lines.value)
  }

  #addField(name: string, value: string): void {
    this.#list.push(name, value)
    this.#listBytes += name.length + value.length + FIELD_OVERHEAD
    if (this.#listBytes > this.#maxBytes || this.#list.length > MOST_ENTRIES) this.#fail(FIELDS_TOO_LARGE)
  }

  /** What the fields say about the message itself. False: not what they may say. */
  #understand(name: string, value: string): boolean {
    switch (name) {
      case 'host':
        this.#list[AUTHORITY_AT] = value
        this.#listBytes += value.length
        return ++this.#hosts === 1
      case 'content-length': {
        const isFirst = this.#length === NO_LENGTH
        this.#length = contentLengthOf(value)
        return isFirst && this.#length >= 0 && !this.#lines.hasTab
      }
      case 'transfer-encoding': {
        const isFirst = !this.#isChunked
        this.#isChunked = true
        return isFirst && value.toLowerCase() === 'chunked' && !this.#lines.hasTab
      }
      case 'connection':
        this.#options |= connectionOptions(value)
        return true
      case 'upgrade':
        this.#upgrade += this.#upgrade === '' ? value.toLowerCase() : `, ${value.toLowerCase()}`
        return true
      default:
        return true
    }
  }

  #onHeadEnd(chunk: Buffer, at: number): void {
    const { isHttp10, method } = this.#lines
    // RFC 9112 sections 3.2, 6.1 and 6.3.
    const isAmbiguous = this.#isChunked && (isHttp10 || this.#length !== NO_LENGTH)
    if (isAmbiguous || (this.#hosts === 0 && !isHttp10)) {
      this.#fail(BAD_REQUEST)
      return
    }
    // The gateway is not a tunnel (RFC 9110 section 15.6.2).
    if (method === 'CONNECT') {
      this.#fail(NOT_IMPLEMENTED)
      return
    }
    const { head } = this
    const hasBody = this.#isChunked || this.#length > 0
    const options = this.#options
    head.list = this.#list
    head.isHttp10 = isHttp10
    head.hasBody = hasBody
    head.keepsAlive = (options & CLOSE) === 0 && (!isHttp10 || (options & KEEP_ALIVE) !== 0)
    head.upgrade = hasBody || isHttp10 || (options & UPGRADE) === 0 ? '' : this.#upgrade
    this.#forget()
    this.#left = this.#length
    this.#state = this.#isChunked ? CHUNK_LINE : hasBody ? SIZED_BODY : REQUEST_LINE
    this.#sink.onHead(chunk, at)
    head.list = NO_FIELDS
    head.upgrade = ''
  }

  /** Nothing is kept any more: a head has up to a megabyte, for which an idle connection is not charged. */
  #forget(): void {
    this.#lines.forget()
    this.#options = 0
    this.#upgrade = ''
    this.#list = []
    this.#line = NOTHING
    this.#lineBytes = 0
    this.#bytes = 0
    this.#listBytes = 0
    this.#sinceMs = -1
  }

  #fail(status: string): void {
    this.stop()
    this.#sink.onInvalid(status)
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
