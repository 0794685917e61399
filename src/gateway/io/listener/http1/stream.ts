// One request and its response on a client's HTTP/1.1 connection, as a Stream.

import { ChunkQueue } from '../../../../http2/chunk-queue.ts'
import { SERVER_LIMITS } from '../../../../http2/limits.ts'
import type { Output } from '../../../../http2/output.ts'
import { NO_LISTENER } from '../../../../http2/stream.ts'
import {
  ANSWER_WATER_BYTES,
  type HeaderList,
  HIGH_WATER_BYTES,
  LEAST_WATER_BYTES,
  type Peer,
  type QueueMeter,
  type ResetReason,
  type Stream,
  type StreamEvents,
} from '../../../../kit/api/stream.ts'
import { headerListBytes } from '../../../core/request/header-list.ts'
import { contentLengthOf } from '../../http1/lines.ts'
import { writeAnswerHead, writeLastChunk } from './answer-head.ts'
import type { Http1Head } from './reader.ts'

/** The connection, for its streams. */
export interface Http1Carrier {
  readonly peer: Peer
  readonly output: Output
  /** Bytes of a body that may be written at once; more waits in the stream. */
  readonly room: number
  /** Last fields of an answer that is not the last. */
  readonly keepAlive: string
  /** The head of this answer, which is in turn, is being written. @returns whether the connection ends with it */
  isLast(stream: Http1Stream): boolean
  /** There is output. */
  signal(): void
  /** So many bytes more, or fewer, wait in streams. */
  onWaiting(bytes: number): void
  /** The answer is complete, and in the output. */
  onAnswered(stream: Http1Stream): void
  /** The body may be read on. */
  goOn(): void
  /** HTTP/1.1 can only reset by closing the connection: an unfinished message never ends cleanly. */
  abort(): void
}

const CONTINUE = Buffer.from('HTTP/1.1 100 Continue\r\n\r\n', 'latin1')
const CLOSE = 'connection: close\r\n\r\n'
const LINE_END = Buffer.from('\r\n', 'latin1')
const NOTHING = Buffer.alloc(0)
const NO_TRAILERS: HeaderList = []
const NO_LENGTH = -1

// How the end of a response is told.
const BODILESS = 0
const SIZED = 1
const CHUNKED = 2
/** By the end of the connection: HTTP/1.0. */
const UNTIL_CLOSE = 3
/** There is no body, and no field says so yet. */
const EMPTY = 4

/** Fields that tell it. */
const FRAMING_FIELDS: readonly string[] = ['', '', 'transfer-encoding: chunked\r\n', '', 'content-length: 0\r\n']

export class Http1Stream implements Stream {
  readonly #connection: Http1Carrier
  readonly #isHttp10: boolean
  readonly #isHead: boolean
  /** None once the answer is complete: it may wait for long, and its request is not charged any more. */
  #events: StreamEvents = NO_LISTENER
  meter: QueueMeter | undefined = undefined
  /** The request has come whole. */
  requestEnded: boolean
  /** It is the oldest request of its connection without a complete answer. */
  #inTurn = false
  /** The connection ends behind the answer. */
  isLast = false
  #isOver = false
  // The request's body.
  #uncredited = 0
  /** It is not read on until more of it is taken. */
  held = false
  // The response.
  #wantsContinue = false
  /** Its head, until it is written. */
  #head: HeaderList | undefined
  #hasHead = false
  #isHeadWritten = false
  #framing = BODILESS
  /** Bytes of the body that are still to come. */
  #left = NO_LENGTH
  #hasEnd = false
  #trailers: HeaderList = NO_TRAILERS
  /** Body that waits; undefined until needed. */
  #queue: ChunkQueue | undefined
  queued: number = 0
  /** Size of the head while it waits. */
  headBytes = 0
  #isHigh = false

  constructor(connection: Http1Carrier, { isHttp10, hasBody, list }: Http1Head) {
    this.#connection = connection
    this.#isHttp10 = isHttp10
    this.#isHead = list[1] === 'HEAD'
    this.requestEnded = !hasBody
  }

  set events(events: StreamEvents) {
    if (!this.#hasEnd && !this.#isOver) this.#events = events
  }

  // === the request's body ===

  onBody(bytes: Buffer, end: boolean): void {
    if (end) this.requestEnded = true
    if (this.#hasEnd || this.#isOver) return
    this.#uncredited += bytes.length
    if (this.#uncredited >= this.#mostUncredited && !end) this.held = true
    this.#events.onBody(bytes, end)
  }

  onTrailers(list: HeaderList): void {
    this.requestEnded = true
    if (!this.#hasEnd && !this.#isOver) this.#events.onTrailers(list)
  }

  /** As over HTTP/2: little before the caller is authenticated. */
  get #mostUncredited(): number {
    return this.#connection.peer.charge.known ? HIGH_WATER_BYTES : SERVER_LIMITS.initialConnectionWindowBytes
  }

  credit(bytes: number): void {
    this.#uncredited = Math.max(0, this.#uncredited - bytes)
    if (this.held && this.#uncredited < this.#mostUncredited) this.#release()
  }

  #release(): void {
    if (!this.held) return
    this.held = false
    this.#connection.goOn()
  }

  // === the response ===

  get memory(): number {
    return this.#queue?.memory ?? 0
  }

  /** Its body is complete when the connection ends. */
  get isUntilClose(): boolean {
    return this.#framing === UNTIL_CLOSE
  }

  /** The answer is complete, and none of it waits. */
  get isAnswered(): boolean {
    return this.#hasEnd && this.#isHeadWritten && this.queued === 0
  }

  headers(list: HeaderList, end: boolean): void {
    if (this.#isOver || this.#hasHead) return
    const status = Number(list[1])
    if (status < 200) {
      // RFC 9110 section 15.2: HTTP/1.0 has no interim responses, and of the others clients expect only this one.
      if (status === 100 && !this.#isHttp10) this.#continue()
      return
    }
    this.#hasHead = true
    this.#head = list
    if (!this.#frame(list, status, end)) {
      this.reset('internal')
      return
    }
    if (end) this.#hasEnd = true
    if (this.#inTurn) this.#writeHead()
    else {
      this.headBytes = headerListBytes(list)
      this.#connection.onWaiting(this.headBytes)
    }
    if (end) this.#onEnd()
  }

  #continue(): void {
    if (!this.#inTurn) {
      this.#wantsContinue = true
      return
    }
    this.#connection.output.append(CONTINUE)
    this.#connection.signal()
  }

  /** RFC 9112 section 6.3. False: the length is none, or that of a body which does not follow. */
  #frame(list: HeaderList, status: number, end: boolean): boolean {
    let length = NO_LENGTH
    for (let i = 2; i + 1 < list.length; i += 2) {
      if (list[i] !== 'content-length') continue
      if (length !== NO_LENGTH) return false
      length = contentLengthOf(list[i + 1] ?? '')
      if (length < 0) return false
    }
    if (this.#isHead || status === 204 || status === 304) return true
    if (length !== NO_LENGTH) this.#framing = SIZED
    else if (end) this.#framing = EMPTY
    else this.#framing = this.#isHttp10 ? UNTIL_CLOSE : CHUNKED
    this.#left = length
    return !end || length <= 0
  }

  body(chunk: Buffer, end: boolean): void {
    if (this.#isOver || this.#hasEnd || !this.#hasHead) return
    if (this.#framing === SIZED) {
      this.#left -= chunk.length
      // A client would take what is too much for the next response, or wait for what is missing.
      if (this.#left < 0 || (end && this.#left > 0)) {
        this.reset('internal')
        return
      }
    }
    if (end) this.#hasEnd = true
    if (chunk.length > 0 && this.#framing !== BODILESS) this.#send(chunk)
    if (end) this.#onEnd()
  }

  trailers(list: HeaderList): void {
    this.#trailers = list
    this.body(NOTHING, true)
  }

  #send(chunk: Buffer): void {
    const connection = this.#connection
    if (this.#isHeadWritten && this.queued === 0 && chunk.length <= connection.room) {
      this.#write(chunk.length)
      connection.output.append(chunk)
      this.#writeEnd()
      connection.signal()
      return
    }
    this.#queue ??= new ChunkQueue()
    this.#queue.push(chunk)
    this.queued = this.#queue.bytes
    connection.onWaiting(chunk.length)
    if (this.queued >= LEAST_WATER_BYTES) this.#isHigh = true
    this.meter?.onQueued(this.#queue.memory)
    if (this.#inTurn) connection.signal()
  }

  #write(bytes: number): void {
    if (this.#framing === CHUNKED) this.#connection.output.append(Buffer.from(`${bytes.toString(16)}\r\n`, 'latin1'))
  }

  #writeEnd(): void {
    if (this.#framing === CHUNKED) this.#connection.output.append(LINE_END)
  }

  #onEnd(): void {
    this.#events = NO_LISTENER
    // The rest of the body is read and dropped.
    this.#release()
    if (this.isAnswered) this.#finish()
  }

  #finish(): void {
    const connection = this.#connection
    if (this.#framing === CHUNKED && !writeLastChunk(connection.output, this.#trailers)) {
      this.reset('internal')
      return
    }
    connection.signal()
    connection.onAnswered(this)
  }

  // === for the connection ===

  /** All responses before it are complete. */
  begin(): void {
    this.#inTurn = true
    if (this.#wantsContinue) this.#continue()
    if (this.#hasHead && !this.#isOver) this.#writeHead()
    if (this.isAnswered && !this.#isOver) this.#finish()
  }

  #writeHead(): void {
    const connection = this.#connection
    const head = this.#head ?? []
    this.#head = undefined
    connection.onWaiting(-this.headBytes)
    this.headBytes = 0
    this.isLast = connection.isLast(this) || this.isUntilClose
    const alive = this.isLast ? CLOSE : connection.keepAlive
    if (!writeAnswerHead(connection.output, head, (FRAMING_FIELDS[this.#framing] ?? '') + alive)) {
      this.reset('internal')
      return
    }
    this.#isHeadWritten = true
    connection.signal()
  }

  /** Moves at most about `most` bytes of the body into the output. */
  moveOn(most: number): void {
    const queue = this.#queue
    if (queue === undefined || !this.#isHeadWritten) return
    const size = Math.min(most, queue.bytes)
    this.#write(size)
    queue.moveTo(this.#connection.output, size)
    this.#writeEnd()
    this.#connection.onWaiting(-size)
    this.queued = queue.bytes
    this.meter?.onQueued(queue.memory)
    if (this.isAnswered) this.#finish()
    else this.#notifyDrained()
  }

  #notifyDrained(): void {
    if (!this.#isHigh || this.queued >= ANSWER_WATER_BYTES) return
    if (this.queued === 0) this.#isHigh = false
    this.#events.onDrained()
  }

  reset(_reason: ResetReason): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#connection.abort()
  }

  /** The connection is gone. */
  lose(): void {
    const isTold = !this.#isOver && !this.#hasEnd
    this.#isOver = true
    this.#queue?.clear()
    this.#queue = undefined
    this.queued = 0
    this.meter?.onQueued(0)
    if (isTold) this.#events.onReset('connection')
  }
}
