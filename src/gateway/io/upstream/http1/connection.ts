// One connection to an endpoint over HTTP/1.1: one request at a time. It is free again when its answer was read to the end, and nothing behind it has come.

import type { Duplex } from 'node:stream'
import type { Pace } from '../../../../http2/frame-reader.ts'
import { CANCEL } from '../../../../http2/frames.ts'
import type { HeadMemory } from '../../../../http2/header-frames.ts'
import { Output } from '../../../../http2/output.ts'
import type { HeaderList } from '../../../../kit/api/stream.ts'
import { LARGE_HEAD_BYTES } from '../../../../kit/core/shares/open-heads.ts'
import { AT } from '../../../../kit/io/stalls/steps.ts'
import { EngineSocket, type EngineSocketEvents, type SocketEngine } from '../../socket/engine-socket.ts'
import { type AnswerSink, Http1AnswerReader } from './answer-reader.ts'
import type { Http1ClientStream, RequestCarrier } from './stream.ts'

export interface Http1ConnectionOwner {
  /** It may carry the next request. */
  onFree(connection: Http1ClientConnection): void
  /** It carries no more. Called once. */
  onGone(connection: Http1ClientConnection): void
  /** Nothing of the request was sent, because the endpoint has closed a connection that was free: it may have another one. */
  resend(stream: Http1ClientStream): void
  /** The endpoint may be down. */
  onBroken(error: Error): void
  /** Its connections end behind their answers. */
  readonly draining: boolean
}

/** Below the 90 s after which kube-apiserver closes idle connections, so that we never write into a closing one. */
const KEEP_ALIVE_MS = 60_000
/** So much earlier than the endpoint closes an idle connection, by its Keep-Alive, do we. */
const KEEP_ALIVE_MARGIN_MS = 2_000
/** Output that the socket has not taken, above which bodies wait in their streams. */
const OUTPUT_HIGH_BYTES = 64 * 1024
/** Memory for a head is taken in steps of this size, to make its cost negligible. */
const STEP_BYTES = 16 * 1024
const NOTHING = Buffer.alloc(0)

export class Http1ClientConnection implements SocketEngine, AnswerSink, RequestCarrier, EngineSocketEvents {
  readonly output: Output = new Output()
  readonly readsToEnd = true
  readonly #owner: Http1ConnectionOwner
  readonly #memory: HeadMemory
  readonly #driver: EngineSocket
  readonly #reader: Http1AnswerReader = new Http1AnswerReader(this)
  #stream: Http1ClientStream | undefined
  /** The head of its request is written. */
  #isSent = false
  /** Its answer has come to its end. */
  #isAnswered = false
  /** All of its request had been given to the socket by then. */
  #isWritten = false
  /** It has carried a request before. */
  #isUsed = false
  #isGone = false
  #heldBytes = 0
  /** When it is closed if it is free. */
  #idleUntilMs = 0

  /** @param memory accounts for an incoming head */
  constructor(socket: Duplex, owner: Http1ConnectionOwner, memory: HeadMemory) {
    this.#owner = owner
    this.#memory = memory
    this.#idleUntilMs = performance.now() + KEEP_ALIVE_MS
    this.#driver = new EngineSocket(socket, this, {})
    this.#driver.start(this, AT.upstream)
  }

  /** It is free, and the endpoint has neither closed it nor sent anything, as far as we know, nor is about to close it. */
  isUsable(nowMs: number): boolean {
    return !this.#isGone && this.#stream === undefined && !this.#hasInput && nowMs < this.#idleUntilMs
  }

  /** The endpoint has closed it, or has sent bytes that wait for their turn of the thread: a request sent before they are read would have them for its answer. */
  get #hasInput(): boolean {
    return this.#driver.isInputOver || this.#driver.isWaiting
  }

  /** Requires `isUsable`. */
  carry(stream: Http1ClientStream): void {
    this.#stream = stream
    this.#isSent = false
    this.#isAnswered = false
    stream.carrier = this
    this.#driver.onOutput()
  }

  /** Ends at once, if it is free. */
  closeIfFree(): void {
    if (this.#stream === undefined) this.#close()
  }

  // === for the driver ===

  receive(chunk: Buffer, nowMs: number, from: number, pace: Pace): number {
    if (this.#isGone) return chunk.length
    const at = this.#reader.read(chunk, from, nowMs, pace)
    if (this.#isGone) return chunk.length
    this.#countHead()
    if (!this.#reader.hasEnded) return at
    // It would be read as the answer to the next request.
    if (at < chunk.length) this.#onSurplus()
    else if (this.#isAnswered) this.#onAnswered(nowMs)
    return chunk.length
  }

  get held(): boolean {
    return this.#stream?.held === true
  }

  takeOutput(budget: number, into: Buffer[]): boolean {
    const { output } = this
    while (this.#stream !== undefined && !this.#isSent && !this.#hasInput) this.#send(this.#stream)
    while (this.#isSent && this.#stream !== undefined && this.#stream.queued > 0 && output.bytes < budget)
      this.#stream.moveOn(output, budget - output.bytes)
    if (output.bytes === 0) return false
    output.take(into)
    return true
  }

  #send(stream: Http1ClientStream): void {
    this.#isSent = true
    if (stream.write(this.output)) {
      this.#reader.begin(stream.isHead)
      stream.onSent()
      return
    }
    // Nothing was written.
    this.#stream = undefined
    this.#owner.onFree(this)
    stream.fail('internal')
  }

  releaseOutput(): void {
    this.output.release()
  }

  get hasOutput(): boolean {
    return this.output.bytes > 0 || (this.#stream !== undefined && (!this.#isSent || this.#stream.queued > 0))
  }

  onSocketClosed(): void {
    // `onClosed` says why.
  }

  destroy(code: number): void {
    this.#driver.onClosed(code, '')
  }

  tick(nowMs: number): void {
    if (this.#stream === undefined && nowMs >= this.#idleUntilMs) this.#close()
  }

  onWritten(): void {
    // There is more output where it is signalled.
  }

  /** The connection is gone. */
  onClosed(_code: number, message: string): void {
    if (this.#isGone) return
    const stream = this.#stream
    const isWhole = this.#reader.isUntilClose && this.#driver.isInputOver && !this.#driver.hasFailed
    this.#leave()
    if (stream === undefined) return
    if (isWhole) stream.onEnd(NOTHING, undefined)
    if (isWhole || this.#isAnswered) stream.release()
    else this.#lose(stream, message)
  }

  #lose(stream: Http1ClientStream, why: string): void {
    if (!this.#isSent && this.#isUsed) {
      this.#owner.resend(stream)
      return
    }
    this.#owner.onBroken(new Error(why))
    stream.fail(this.#isSent ? 'connection' : 'refused')
  }

  // === answers ===

  onHead(list: HeaderList, end: boolean): void {
    const stream = this.#stream
    stream?.onHead(list)
    if (end) this.#onEnd(stream, NOTHING, undefined)
  }

  onBody(bytes: Buffer, end: boolean): void {
    if (end) this.#onEnd(this.#stream, bytes, undefined)
    else this.#stream?.onBody(bytes)
  }

  onTrailers(list: HeaderList): void {
    this.#onEnd(this.#stream, NOTHING, list)
  }

  #onEnd(stream: Http1ClientStream | undefined, last: Buffer, trailers: HeaderList | undefined): void {
    this.#isAnswered = true
    // Before the stream drops what is left of its body.
    this.#isWritten = stream?.isWritten === true && this.output.bytes === 0
    stream?.onEnd(last, trailers)
  }

  onMalformed(why: string): void {
    const stream = this.#stream
    this.#abort()
    if (stream !== undefined) this.#lose(stream, why)
  }

  onRefused(): void {
    const stream = this.#stream
    this.#abort()
    stream?.fail('protocol')
  }

  /** The answer is complete, and nothing has come behind it. */
  #onAnswered(nowMs: number): void {
    const stream = this.#stream
    const { keepsAlive, keepAliveSeconds } = this.#reader
    this.#stream = undefined
    this.#isUsed = true
    const limitMs = keepAliveSeconds < 0 ? KEEP_ALIVE_MS : keepAliveSeconds * 1000 - KEEP_ALIVE_MARGIN_MS
    this.#idleUntilMs = nowMs + Math.min(KEEP_ALIVE_MS, limitMs)
    // The endpoint has answered before it has read the request: it need not read the rest, and the next request would be taken for it.
    if (!this.#isWritten) this.#abort()
    else if (!keepsAlive || limitMs <= 0 || this.#owner.draining) this.#close()
    else if (!this.#driver.isInputOver) this.#owner.onFree(this)
    stream?.release()
  }

  /** Bytes that belong to no answer. */
  #onSurplus(): void {
    const stream = this.#stream
    this.#abort()
    if (stream === undefined) return
    if (this.#isAnswered) stream.release()
    else this.#lose(stream, 'the endpoint has sent an answer before it had the request')
  }

  /** Out of memory for an incoming head: the connection ends. */
  #countHead(): void {
    const bytes = this.#reader.keptBytes
    const wanted = bytes > LARGE_HEAD_BYTES ? Math.ceil(bytes / STEP_BYTES) * STEP_BYTES : 0
    if (wanted === this.#heldBytes) return
    const refusal = this.#memory.hold(wanted)
    if (refusal === undefined) this.#heldBytes = wanted
    else this.onRefused()
  }

  // === for the stream ===

  get room(): number {
    return OUTPUT_HIGH_BYTES - this.output.bytes
  }

  signal(): void {
    this.#driver.onOutput()
  }

  goOn(): void {
    this.#driver.goOn()
  }

  abandon(stream: Http1ClientStream): void {
    if (this.#stream !== stream) return
    this.#stream = undefined
    if (this.#isSent) this.#abort()
    else if (!this.#isGone) this.#owner.onFree(this)
  }

  // === the end ===

  /** Behind the output, which an endpoint need not read: soon without it. */
  #close(): void {
    this.#leave()
    this.#driver.onClosed(CANCEL, '')
  }

  /** At once. */
  #abort(): void {
    this.#leave()
    this.#driver.abort()
  }

  #leave(): void {
    if (this.#isGone) return
    this.#isGone = true
    this.#reader.stop()
    if (this.#heldBytes > 0) this.#memory.hold(0)
    this.#heldBytes = 0
    this.#stream = undefined
    this.#owner.onGone(this)
  }

  /** At once: its request fails. */
  abort(): void {
    const stream = this.#stream
    this.#abort()
    stream?.fail('connection')
  }
}
