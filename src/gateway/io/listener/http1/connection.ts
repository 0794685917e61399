// One connection of a client over HTTP/1.1, without its socket: requests are read one after the other and served at once; their answers leave in the
// order of the requests.

import type { Pace } from '../../../../http2/frame-reader.ts'
import { SERVER_LIMITS } from '../../../../http2/limits.ts'
import { Output } from '../../../../http2/output.ts'
import type { HeaderList, Peer, RequestHandler } from '../../../../kit/api/stream.ts'
import { LARGE_HEAD_BYTES, type OpenHead } from '../../../../kit/core/shares/open-heads.ts'
import type { SocketEngine } from '../../socket/engine-socket.ts'
import { LINGER_MS } from '../../socket/socket-close.ts'
import { bareAnswer, refusalAnswer } from './bare-answers.ts'
import { Http1Reader, type Http1Sink } from './reader.ts'
import { type Http1Carrier, Http1Stream } from './stream.ts'

export interface Http1ConnectionLimits {
  readonly maxHeaderBytes: number
  /** Requests without a complete answer: at the limit, the next one is the connection's last. */
  readonly maxConcurrentStreams: number
  /** Deadline of a complete request head, against slowloris. Milliseconds. */
  readonly headerTimeoutMs: number
  /** A connection without running requests is closed after this time. */
  readonly idleTimeoutMs: number
}

/** Moves the bytes: src/gateway/io/socket/engine-socket.ts. */
interface Http1Driver {
  /** There is output. */
  onOutput(): void
  /** The connection is done: sends the output, then closes. @param code 0 = it was not for what the client did */
  onClosed(code: number, message: string): void
  /** Closes for writing behind the output; what comes is still received. */
  endOutput(): void
  /** `held` is false again. */
  goOn(): void
  /** Closes at once: what was sent must not look complete. */
  abort(): void
  /** Input waits for its turn. */
  readonly isWaiting: boolean
  /** The socket has taken all output, and the end behind it. */
  readonly isEnded: boolean
}

/** Common to the connections of a server. */
export interface Http1Serving {
  readonly limits: Http1ConnectionLimits
  readonly handler: RequestHandler
  /** Every answer closes its connection. */
  draining: boolean
}

/** A request that asks to switch protocols, behind which nothing was read. `first` has come behind it. */
type UpgradeListener = (list: HeaderList, first: Buffer) => void

/** Why a connection ends: what the client sent. */
const BY_CLIENT = 1
/** Output that the socket has not taken, above which bodies wait in their streams, and no more requests are read. */
const OUTPUT_HIGH_BYTES = 64 * 1024
/** Memory for a head is taken in steps of this size, to make its cost negligible. */
const STEP_BYTES = 16 * 1024

export class Http1Connection implements SocketEngine, Http1Sink, Http1Carrier {
  readonly peer: Peer
  readonly output: Output = new Output()
  readonly keepAlive: string
  /** The next response on it is the last. */
  draining = false
  readonly #serving: Http1Serving
  readonly #driver: Http1Driver
  readonly #onUpgrade: UpgradeListener
  readonly #heads: OpenHead | undefined
  readonly #reader: Http1Reader
  /** Requests without a complete answer, oldest first. */
  readonly #line: Http1Stream[] = []
  /** The newest request, while its body is arriving. */
  #receiving: Http1Stream | undefined
  /** No more requests are read. */
  #closing = false
  #over = false
  #isAnswering = false
  /** Memory taken for a head that has come in part. */
  #heldBytes = 0
  /** Answers in streams. */
  #waitingBytes = 0
  #receivedMs = 0
  /** Approximately when the last answer was complete; -1 = not seen yet. */
  #idleSinceMs = -1
  #requests = 0
  #requestsSeen = 0
  /** The rest of a body is dropped, behind the last answer. */
  #isLingering = false
  #lingeringSinceMs = -1

  /** @param heads accounts for a head that is incomplete; undefined = it is not counted */
  constructor(
    serving: Http1Serving,
    driver: Http1Driver,
    peer: Peer,
    heads: OpenHead | undefined,
    onUpgrade: UpgradeListener,
  ) {
    this.#serving = serving
    this.#driver = driver
    this.peer = peer
    this.#onUpgrade = onUpgrade
    this.#heads = heads
    this.#reader = new Http1Reader(this, serving.limits.maxHeaderBytes)
    const idleSeconds = Math.floor(serving.limits.idleTimeoutMs / 1000)
    this.keepAlive = `connection: keep-alive\r\nkeep-alive: timeout=${idleSeconds}\r\n\r\n`
  }

  // === for the driver ===

  receive(chunk: Buffer, nowMs: number, from: number, pace: Pace): number {
    if (this.#over) return chunk.length
    this.#receivedMs = nowMs
    const at = this.#reader.read(chunk, from, nowMs, pace)
    if (this.#heads !== undefined) this.#countHead(this.#heads)
    return at
  }

  /** A client that waits for none of its answers is not read further, nor one whose body is not taken. */
  get held(): boolean {
    const receiving = this.#receiving
    if (receiving !== undefined) return receiving.held
    return this.output.bytes + this.#waitingBytes >= OUTPUT_HIGH_BYTES && !this.#over
  }

  takeOutput(budget: number, into: Buffer[]): boolean {
    const { output } = this
    while (!this.#over && output.bytes < budget) {
      const stream = this.#line[0]
      if (stream === undefined || stream.queued === 0) break
      stream.moveOn(budget - output.bytes)
    }
    if (output.bytes === 0) return false
    output.take(into)
    return true
  }

  releaseOutput(): void {
    this.output.release()
  }

  get hasOutput(): boolean {
    return this.output.bytes > 0 || (!this.#over && (this.#line[0]?.queued ?? 0) > 0)
  }

  /** Bytes that the client has not read, beside bodies in their streams, which are counted there. */
  get unreadBytes(): number {
    let { bytes } = this.output
    for (const stream of this.#line) bytes += stream.headBytes
    return bytes
  }

  onSocketClosed(): void {
    // The driver would close for writing, as if that were all.
    const isBroken = this.#line[0]?.isUntilClose === true
    this.#end()
    if (isBroken) this.abort()
  }

  destroy(code: number): void {
    if (this.#over) return
    this.#end()
    this.#driver.onClosed(code, '')
  }

  tick(nowMs: number): void {
    if (this.#over) return
    if (this.#idleSinceMs < 0) this.#idleSinceMs = nowMs
    const { headerTimeoutMs, idleTimeoutMs } = this.#serving.limits
    if (this.#isLingering) this.#checkLingering(nowMs)
    else if (this.#driver.isWaiting || this.held) this.#reader.restartClock(nowMs)
    else if (this.#reader.heldSinceMs >= 0) {
      if (nowMs - this.#reader.heldSinceMs >= headerTimeoutMs) this.#refuse(bareAnswer('408 Request Timeout'))
    } else if (this.#line.length > 0 || this.#receiving !== undefined || this.#requests !== this.#requestsSeen) {
      this.#requestsSeen = this.#requests
      this.#idleSinceMs = nowMs
    } else if (this.#requests === 0) {
      if (nowMs - this.#idleSinceMs >= headerTimeoutMs) this.#refuse(bareAnswer('408 Request Timeout'))
    } else if (nowMs - this.#idleSinceMs >= idleTimeoutMs) this.destroy(0)
  }

  /** Nothing is being read, and nothing is to be answered. */
  get isIdle(): boolean {
    return this.#line.length === 0 && this.#receiving === undefined && this.#reader.isBetweenRequests
  }

  // === requests ===

  onHead(chunk: Buffer, at: number): void {
    const { head } = this.#reader
    const { limits, handler } = this.#serving
    if (this.#closing) {
      this.#reader.stop()
      return
    }
    this.#requests++
    if (head.upgrade === 'websocket' || head.upgrade === 'spdy/3.1') {
      this.#upgrade(head.list, chunk, at)
      return
    }
    if (this.#line.length >= limits.maxConcurrentStreams || !head.keepsAlive) this.#closing = true
    const stream = new Http1Stream(this, head)
    this.#line.push(stream)
    const { hasBody } = head
    if (hasBody) this.#receiving = stream
    if (this.#line.length === 1) stream.begin()
    stream.events = handler(this.peer, stream, head.list, !hasBody)
    if (this.#closing && !hasBody) this.#reader.stop()
  }

  /** Behind pending requests, bytes of the new protocol would be read as a response to one of them. */
  #upgrade(list: HeaderList, chunk: Buffer, at: number): void {
    this.#reader.stop()
    if (this.#line.length > 0) this.abort()
    else {
      this.#end()
      this.#onUpgrade(list, Buffer.from(chunk.subarray(at)))
    }
  }

  onBody(bytes: Buffer, end: boolean): void {
    const stream = this.#receiving
    if (end) this.#onRequestEnd()
    stream?.onBody(bytes, end)
    if (end) this.#afterLastBody()
  }

  onTrailers(list: HeaderList): void {
    const stream = this.#receiving
    this.#onRequestEnd()
    stream?.onTrailers(list)
    this.#afterLastBody()
  }

  #onRequestEnd(): void {
    this.#receiving = undefined
    if (this.#closing) this.#reader.stop()
  }

  #afterLastBody(): void {
    if (this.#isLingering) this.destroy(0)
  }

  onInvalid(status: string): void {
    // The answer to it has gone, and the end with it.
    if (!this.#isLingering) this.#refuse(bareAnswer(status))
  }

  /** Out of memory for an incoming head: the connection ends. */
  #countHead(heads: OpenHead): void {
    const bytes = this.#reader.keptBytes
    const wanted = bytes > LARGE_HEAD_BYTES ? Math.ceil(bytes / STEP_BYTES) * STEP_BYTES : 0
    if (wanted === this.#heldBytes || this.#over) return
    const refusal = heads.hold(wanted)
    if (refusal === undefined) this.#heldBytes = wanted
    else this.#refuse(refusalAnswer(refusal))
  }

  // === answers ===

  get room(): number {
    return OUTPUT_HIGH_BYTES - this.output.bytes
  }

  signal(): void {
    this.#driver.onOutput()
  }

  onWaiting(bytes: number): void {
    this.#waitingBytes += bytes
  }

  /**
   * Decided as late as possible: requests that are pipelined behind it have already begun and are answered, too, so that `close` goes into the last
   * answer (RFC 9112 section 9.6). The connection ends for a drain, if its end is that of the answer, and if the rest of a request's body would have
   * to be taken for the next request.
   */
  isLast(stream: Http1Stream): boolean {
    if (this.draining || this.#serving.draining || !stream.requestEnded || stream.isUntilClose) {
      this.#closing = true
      if (this.#receiving === undefined) this.#reader.stop()
    }
    return this.#closing && stream === this.#line[this.#line.length - 1]
  }

  onAnswered(): void {
    // One that is complete completes the next one in its turn.
    if (this.#isAnswering) return
    this.#isAnswering = true
    for (let stream = this.#line[0]; stream?.isAnswered && !this.#over; stream = this.#line[0]) {
      this.#line.shift()
      if (stream.isLast) this.#endBehind(stream)
      else this.#line[0]?.begin()
    }
    this.#isAnswering = false
  }

  /**
   * A client in the middle of an upload gets the whole response at once, with time to read it: the rest of its body is dropped, and the connection
   * closed afterwards, or after a period of silence, or when it takes too long. A client that is slow to read has not been silent.
   */
  #endBehind(stream: Http1Stream): void {
    if (stream.requestEnded) {
      this.destroy(0)
      return
    }
    this.#isLingering = true
    this.#driver.endOutput()
  }

  #checkLingering(nowMs: number): void {
    if (!this.#driver.isEnded) return
    if (this.#lingeringSinceMs < 0) this.#lingeringSinceMs = nowMs
    const silentMs = nowMs - Math.max(this.#receivedMs, this.#lingeringSinceMs)
    if (silentMs >= LINGER_MS || nowMs - this.#lingeringSinceMs >= SERVER_LIMITS.lateBodyMs) this.abort()
  }

  goOn(): void {
    this.#driver.goOn()
  }

  // === the end ===

  abort(): void {
    this.#driver.abort()
  }

  /** A malformed request: nothing behind it is read. */
  #refuse(answer: string): void {
    // It would be read as a part of the answer that is being sent, or as the answer to another request.
    if (this.#line.length > 0 || this.#receiving !== undefined) {
      this.abort()
      return
    }
    this.#end()
    this.output.append(Buffer.from(answer, 'latin1'))
    this.#driver.onClosed(BY_CLIENT, '')
  }

  #end(): void {
    if (this.#over) return
    this.#over = true
    this.#reader.stop()
    if (this.#heldBytes > 0) this.#heads?.hold(0)
    this.#heldBytes = 0
    this.#receiving = undefined
    for (const stream of this.#line.splice(0)) stream.lose()
  }
}
