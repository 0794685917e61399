// One request to an endpoint over HTTP/1.1 and its answer, as a Stream. It waits here, with its body, until it has a connection that writes it.

import { ChunkQueue } from '../../../../http2/chunk-queue.ts'
import type { Output } from '../../../../http2/output.ts'
import {
  ANSWER_WATER_BYTES,
  type Charge,
  type HeaderList,
  HIGH_WATER_BYTES,
  LEAST_WATER_BYTES,
  type ResetReason,
  type Stream,
  type StreamEvents,
} from '../../../../kit/api/stream.ts'
import { contentLengthOf } from '../../http1/lines.ts'
import { NO_LENGTH } from '../../http1/message-reader.ts'
import { isSendable, type RequestFields, requestFields, writeRequestHead } from './request-head.ts'

/** The connection that carries it. */
export interface RequestCarrier {
  readonly output: Output
  /** Bytes of a body that may be written at once; more waits in the stream. */
  readonly room: number
  /** There is output. */
  signal(): void
  /** The answer may be read on. */
  goOn(): void
  /** The request is not wanted any more. */
  abandon(stream: Http1ClientStream): void
}

/** Requests of its kind. */
interface RequestClass {
  /** It is over. */
  onOver(stream: Http1ClientStream): void
}

const NOTHING = Buffer.alloc(0)
const LINE_END = Buffer.from('\r\n', 'latin1')
const LAST_CHUNK = Buffer.from('0\r\n\r\n', 'latin1')
const CONTINUE: HeaderList = [':status', '100']
/** For their requests a length says that there is no body (RFC 9110 section 8.6). */
const WITH_LENGTH: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH'])

export class Http1ClientStream implements Stream {
  readonly charge: Charge
  readonly #fields: RequestFields
  readonly #events: StreamEvents
  readonly #class: RequestClass
  #carrier: RequestCarrier | undefined
  #isOver = false
  // The request.
  #isHeadWritten = false
  #isChunked = false
  /** Bytes of the body that are still to come. */
  #left = NO_LENGTH
  #hasEnd: boolean
  /** Body that waits; undefined until needed. */
  #queue: ChunkQueue | undefined
  queued = 0
  #isHigh = false
  // The answer.
  #uncredited = 0
  /** It is not read on until more of it is taken. */
  held = false

  constructor(
    head: HeaderList,
    shared: HeaderList,
    end: boolean,
    events: StreamEvents,
    charge: Charge,
    requests: RequestClass,
  ) {
    this.#fields = requestFields(head, shared)
    if (end) this.#fields.contentLength = undefined
    this.#hasEnd = end
    this.#events = events
    this.charge = charge
    this.#class = requests
  }

  /** By the count of HTTP/2 (header-list.ts). */
  get listBytes(): number {
    return this.#fields.listBytes
  }

  /** HTTP/1.1 can carry its first lines. */
  get isSendable(): boolean {
    return isSendable(this.#fields)
  }

  // === the request ===

  get isHead(): boolean {
    return this.#fields.method === 'HEAD'
  }

  /** All of it is in the output. */
  get isWritten(): boolean {
    return this.#isHeadWritten && this.#hasEnd && this.queued === 0
  }

  set carrier(carrier: RequestCarrier | undefined) {
    this.#carrier = carrier
  }

  /** What there is of the request. False: nothing was written, because HTTP/1.1 cannot carry it. */
  write(output: Output): boolean {
    const framing = this.#frame()
    if (framing === undefined || !writeRequestHead(output, this.#fields, framing)) return false
    this.#isHeadWritten = true
    return true
  }

  /** A client that waits for 100 (Continue) would wait forever: from here on its body is consumed. */
  onSent(): void {
    if (this.#fields.expectsContinue) this.#events.onHeaders(CONTINUE, false)
  }

  /** The field that tells where the body ends (RFC 9112 section 6.3); undefined = its length is none. */
  #frame(): string | undefined {
    const { method, contentLength } = this.#fields
    if (contentLength === undefined) {
      if (this.#hasEnd && this.queued === 0 && !WITH_LENGTH.has(method)) return ''
      if (this.#hasEnd) return `content-length: ${this.queued}\r\n`
      this.#isChunked = true
      return 'transfer-encoding: chunked\r\n'
    }
    const length = contentLengthOf(contentLength)
    if (length < this.queued || (this.#hasEnd && length !== this.queued)) return undefined
    this.#left = length - this.queued
    return `content-length: ${length}\r\n`
  }

  headers(_list: HeaderList, _end: boolean): void {
    // The head is written by `write`.
  }

  body(chunk: Buffer, end: boolean): void {
    if (this.#hasEnd || this.#isOver) return
    if (this.#isHeadWritten && !this.#isChunked && !this.#count(chunk.length, end)) return
    if (end) this.#hasEnd = true
    const carrier = this.#carrier
    const isNext = carrier !== undefined && this.#isHeadWritten && this.queued === 0
    if (isNext && chunk.length <= Math.max(0, carrier.room)) this.#writeNext(carrier.output, chunk)
    else if (chunk.length > 0) this.#enqueue(chunk)
    carrier?.signal()
  }

  #writeNext(output: Output, chunk: Buffer): void {
    if (chunk.length > 0) {
      this.#writeSize(output, chunk.length)
      output.append(chunk)
      this.#writeEnd(output)
    }
    if (this.#hasEnd && this.#isChunked) output.append(LAST_CHUNK)
  }

  /** An endpoint would take what is too much for the next request, or wait for what is missing. */
  #count(bytes: number, end: boolean): boolean {
    this.#left -= bytes
    if (this.#left >= 0 && (!end || this.#left === 0)) return true
    this.#carrier?.abandon(this)
    // The caller does not expect it inside of its call.
    queueMicrotask(() => this.fail('internal'))
    return false
  }

  #enqueue(chunk: Buffer): void {
    this.#queue ??= new ChunkQueue()
    this.#queue.push(chunk)
    this.queued = this.#queue.bytes
    if (this.queued >= LEAST_WATER_BYTES) this.#isHigh = true
  }

  /** Trailers are not sent: kube-apiserver reads none. */
  trailers(_list: HeaderList): void {
    this.body(NOTHING, true)
  }

  /** Moves at most about `most` bytes of the body into the output. */
  moveOn(output: Output, most: number): void {
    const queue = this.#queue
    if (queue === undefined) return
    const size = Math.min(most, queue.bytes)
    this.#writeSize(output, size)
    queue.moveTo(output, size)
    this.#writeEnd(output)
    this.queued = queue.bytes
    if (this.queued === 0 && this.#hasEnd && this.#isChunked) output.append(LAST_CHUNK)
    if (!this.#isHigh || this.queued >= HIGH_WATER_BYTES) return
    if (this.queued === 0) this.#isHigh = false
    this.#events.onDrained()
  }

  #writeSize(output: Output, bytes: number): void {
    if (this.#isChunked) output.append(Buffer.from(`${bytes.toString(16)}\r\n`, 'latin1'))
  }

  #writeEnd(output: Output): void {
    if (this.#isChunked) output.append(LINE_END)
  }

  // === the answer ===

  onHead(list: HeaderList): void {
    if (!this.#isOver) this.#events.onHeaders(list, false)
  }

  onBody(bytes: Buffer): void {
    if (this.#isOver) return
    this.#uncredited += bytes.length
    if (this.#uncredited >= ANSWER_WATER_BYTES) this.held = true
    this.#events.onBody(bytes, false)
  }

  credit(bytes: number): void {
    this.#uncredited = Math.max(0, this.#uncredited - bytes)
    if (!this.held || this.#uncredited >= ANSWER_WATER_BYTES) return
    this.held = false
    this.#carrier?.goOn()
  }

  /** The answer is complete. `last` are its last bytes, or `trailers` its last fields. */
  onEnd(last: Buffer, trailers: HeaderList | undefined): void {
    if (this.#isOver) return
    this.#end()
    if (trailers === undefined) this.#events.onBody(last, true)
    else this.#events.onTrailers(trailers)
  }

  // === the end ===

  fail(reason: ResetReason): void {
    if (this.#isOver) return
    this.#end()
    this.#class.onOver(this)
    this.#events.onReset(reason)
  }

  reset(_reason: ResetReason): void {
    if (this.#isOver) return
    this.#end()
    this.#carrier?.abandon(this)
    this.#class.onOver(this)
  }

  /** Nothing more is sent or told. */
  #end(): void {
    this.#isOver = true
    this.held = false
    this.#queue?.clear()
    this.#queue = undefined
    this.queued = 0
  }

  /** The connection is free again, or gone. */
  release(): void {
    this.#carrier = undefined
    this.#class.onOver(this)
  }
}
