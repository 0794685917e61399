// Reads a client's requests, one behind the other: see message-reader.ts.

import type { HeaderList } from '../../../../kit/api/stream.ts'
import { CLOSE, KEEP_ALIVE, UPGRADE } from '../../http1/lines.ts'
import {
  CHUNK_LINE,
  FIELD_OVERHEAD,
  FIRST_LINE,
  MessageReader,
  type MessageSink,
  NO_LENGTH,
  SIZED_BODY,
} from '../../http1/message-reader.ts'
import { RequestLine } from './request-line.ts'

/** Gets what was read. */
export interface Http1Sink extends MessageSink {
  /** A head is complete: see `head` of the reader. What follows it begins at `at` of the chunk. */
  onHead(chunk: Buffer, at: number): void
  /** Nothing more is read. @param status of the answer */
  onInvalid(status: string): void
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
const FIELDS_TOO_LARGE = '431 Request Header Fields Too Large'

/** More fields than any client sends. */
const MAX_HEADER_PAIRS = 2000
/** Some clients send one behind a body (RFC 9112 section 2.2). */
const MAX_EMPTY_LINES = 1
/** Bytes of the pseudo-header fields without method, path and authority. */
const PSEUDO_BYTES = ':method:path:authority:schemehttps'.length + 4 * FIELD_OVERHEAD
const AUTHORITY_AT = 5
const NO_FIELDS: HeaderList = []

export class Http1Reader extends MessageReader {
  /** The one that the sink is being told of; its list is not kept. */
  readonly head: Http1Head = { list: [], isHttp10: false, keepsAlive: false, hasBody: false, upgrade: '' }
  readonly #requests: Http1Sink
  readonly #requestLine = new RequestLine()
  #emptyLines = 0
  // What the head being read says about the message.
  #hosts = 0
  #upgrade = ''

  /** @param maxHeaderBytes of a head, and of trailers: octets, and the size of its list (header-list.ts) */
  constructor(sink: Http1Sink, maxHeaderBytes: number) {
    super(sink, { maxHeaderBytes, maxFields: MAX_HEADER_PAIRS }, FIRST_LINE)
    this.#requests = sink
  }

  /** All that was read is complete. */
  get isBetweenRequests(): boolean {
    return this.state === FIRST_LINE && this.heldSinceMs < 0
  }

  protected override onFirstLine(bytes: Buffer, from: number, to: number): void {
    if (from === to) {
      this.forget()
      if (++this.#emptyLines > MAX_EMPTY_LINES) this.#fail(BAD_REQUEST)
      return
    }
    const line = this.#requestLine
    if (!line.read(bytes, from, to)) {
      this.#fail(BAD_REQUEST)
      return
    }
    this.#emptyLines = 0
    this.#hosts = 0
    const list = [':method', line.method, ':path', line.target, ':authority', '', ':scheme', 'https']
    this.beginHead(list, PSEUDO_BYTES + line.method.length + line.target.length)
  }

  protected override understand(name: string, value: string): boolean {
    switch (name) {
      case 'host':
        this.list[AUTHORITY_AT] = value
        this.listBytes += value.length
        return ++this.#hosts === 1
      case 'upgrade':
        this.#upgrade += this.#upgrade === '' ? value.toLowerCase() : `, ${value.toLowerCase()}`
        return true
      default:
        return super.understand(name, value)
    }
  }

  protected override onHeadEnd(chunk: Buffer, at: number): void {
    const { isHttp10, method } = this.#requestLine
    const { isChunked, length, options } = this
    // RFC 9112 sections 3.2, 6.1 and 6.3.
    const isAmbiguous = isChunked && (isHttp10 || length !== NO_LENGTH)
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
    const hasBody = isChunked || length > 0
    head.list = this.list
    head.isHttp10 = isHttp10
    head.hasBody = hasBody
    head.keepsAlive = (options & CLOSE) === 0 && (!isHttp10 || (options & KEEP_ALIVE) !== 0)
    head.upgrade = hasBody || isHttp10 || (options & UPGRADE) === 0 ? '' : this.#upgrade
    this.forget()
    this.beginBody(isChunked ? CHUNK_LINE : hasBody ? SIZED_BODY : undefined)
    this.#requests.onHead(chunk, at)
    head.list = NO_FIELDS
    head.upgrade = ''
  }

  protected override forget(): void {
    super.forget()
    this.#requestLine.forget()
    this.#upgrade = ''
  }

  protected override onMalformed(): void {
    this.#fail(BAD_REQUEST)
  }

  protected override onTooLarge(): void {
    this.#fail(FIELDS_TOO_LARGE)
  }

  #fail(status: string): void {
    this.stop()
    this.#requests.onInvalid(status)
  }
}
