// A connection under test, what feeds it, and everything that must hold whatever it is fed.

import type { Connection, ConnectionDriver } from '../../src/http2/connection.ts'
import { HpackDecoder } from '../../src/http2/hpack/decoder.ts'
import type { Http2Limits } from '../../src/http2/limits.ts'
import { CLIENT_SIDE_LIMITS, SERVER_LIMITS, type ServerLimits } from '../../src/http2/limits.ts'
import type { ResetReason, Stream, StreamEvents } from '../../src/kit/api/stream.ts'
import * as h2 from '../harness/frames/h2-frames.ts'
import { build, buildPing, buildWindowUpdate, join } from './build-frames.ts'
import { Received, Sent } from './wire-model.ts'

export const MAX_STREAMS = 3
/** The smallest windows that the engine takes: every mistake shows soon. `wire-model.ts` counts on them. */
const SMALL = {
  streamWindowBytes: 65_535,
  connectionWindowBytes: 65_535,
  maxHeaderListBytes: 1_000,
  blockSlackBytes: 65_536,
}
export const LIMITS: { readonly server: ServerLimits; readonly client: Http2Limits } = {
  server: { ...SERVER_LIMITS, ...SMALL, maxConcurrentStreams: MAX_STREAMS },
  client: { ...CLIENT_SIDE_LIMITS, ...SMALL },
}
export const NOW_MS = 1_000
const LARGEST_WINDOW = 2 ** 31 - 1
const FILL = Buffer.alloc(70_000, 'r')
const PROBE_BYTES = FILL.subarray(0, 16_384)
const OUTPUT_BUDGET = 100_000

/** What the engine did that it must never do. */
export class Violation extends Error {}

/** How the other side behaves that reads a stream: what it does must not depend on how the input was cut. */
export const CREDIT_AT_ONCE = 0
export const CREDIT_AT_END = 1
export const CREDIT_NEVER = 2

/** One stream, as the request path sees it. */
export class Heard implements StreamEvents {
  readonly subject: Subject
  readonly number: number
  readonly credit: number
  stream: Stream | undefined
  /** A final head has come: always so on the server's side. */
  answered: boolean
  /** All of the peer's message has come. */
  ended = false
  /** All of ours has been given to the stream. */
  given = false
  resetHeard = false
  resetByUs = false
  #bytes = 0
  #owed = 0

  constructor(subject: Subject, number: number, credit: number, answered: boolean) {
    this.subject = subject
    this.number = number
    this.credit = credit
    this.answered = answered
  }

  onHeaders(list: string[], end: boolean): void {
    this.#mayHear('onHeaders')
    const isFinal = Number(list[1]) >= 200
    if (this.answered) throw new Violation('a second final head')
    if (isFinal) this.answered = true
    else if (end) throw new Violation('a message that ends with an interim head')
    this.subject.note(1, this.number, list.length)
    if (end) this.#end()
  }

  onBody(chunk: Buffer, end: boolean): void {
    this.#mayHear('onBody')
    if (!this.answered) throw new Violation('a body before the head')
    this.#bytes += chunk.length
    this.#owed += chunk.length
    if (this.credit === CREDIT_AT_ONCE) this.settle()
    if (end) this.#end()
  }

  onTrailers(list: string[]): void {
    this.#mayHear('onTrailers')
    if (!this.answered) throw new Violation('trailers before the head')
    this.subject.note(2, this.number, list.length)
    this.#end()
  }

  onDrained(): void {
    if (this.resetHeard || this.resetByUs) throw new Violation('onDrained behind the end')
  }

  onReset(reason: ResetReason): void {
    if (this.resetHeard) throw new Violation('two resets')
    if (this.resetByUs) throw new Violation('a reset that we sent comes back')
    this.resetHeard = true
    this.subject.note(3, this.number, reason.length)
    this.subject.onStreamEnd(this)
  }

  reset(reason: ResetReason): void {
    // A stream that is over in both directions cannot be reset any more; the engine ignores it.
    if (!this.resetHeard) this.resetByUs = true
    this.stream?.reset(reason)
  }

  settle(): void {
    if (this.subject.holdAll) return
    const bytes = this.#owed
    this.#owed = 0
    if (bytes > 0) this.stream?.credit(bytes)
  }

  /** A body of ours; with `end` our message is complete. */
  give(size: number, end: boolean): void {
    if (end) this.given = true
    this.stream?.body(FILL.subarray(0, size), end)
  }

  #mayHear(event: string): void {
    if (this.resetHeard) throw new Violation(`${event} behind onReset`)
    if (this.resetByUs) throw new Violation(`${event} behind our reset`)
    if (this.ended) throw new Violation(`${event} behind the end`)
  }

  #end(): void {
    this.ended = true
    this.subject.note(4, this.number, this.#bytes)
    if (this.credit === CREDIT_AT_END) this.settle()
    this.subject.onStreamEnd(this)
  }
}

export abstract class Subject implements ConnectionDriver {
  readonly received: Received = new Received()
  readonly sent: Sent
  readonly heard: Heard[] = []
  /** A hash of all events, in order. */
  events = 0
  protected abstract readonly connection: Connection
  /** No stream gives anything back any more. */
  holdAll = false
  #signalled = false
  #closedTold = 0
  readonly #parts: Buffer[] = []

  constructor(readHeads: boolean) {
    this.sent = new Sent(readHeads ? new HpackDecoder(65_536) : undefined)
  }

  abstract onStreamEnd(stream: Heard): void
  /** The window of the connection is given back as the bytes are taken, not as they come. */
  protected abstract readonly givesBackWhenTaken: boolean
  /** Frames that open a stream on which DATA may follow, and its number; undefined when none can be opened. */
  protected abstract openProbe(): { frames: Buffer; id: number } | undefined

  get isClosed(): boolean {
    return this.connection.closed
  }

  note(kind: number, stream: number, value: number): void {
    this.events = Math.imul(Math.imul(this.events ^ kind, 0x01000193) ^ stream, 0x01000193) ^ value
  }

  // === ConnectionDriver ===

  onOutput(): void {
    if (this.#signalled) throw new Violation('onOutput twice')
    this.#signalled = true
  }

  onClosed(code: number, _message: string): void {
    this.#closedTold++
    this.note(5, 0, code)
  }

  // === feeding ===

  feed(chunk: Buffer): void {
    this.connection.receive(chunk, NOW_MS)
    if (this.connection.openStreams > 2 * MAX_STREAMS) throw new Violation(`${this.connection.openStreams} streams`)
  }

  /** Takes everything that can be sent, and checks it. */
  drainOutput(): void {
    if (this.connection.hasOutput && !this.#signalled) throw new Violation('output that was not signalled')
    for (let turns = 0; ; turns++) {
      this.#parts.length = 0
      this.#signalled = false
      if (!this.connection.takeOutput(OUTPUT_BUDGET, this.#parts)) break
      const bytes = this.#parts.length === 1 ? (this.#parts[0] as Buffer) : join(this.#parts)
      const preface = this.sent.frames === 0 && bytes.subarray(0, 3).toString() === 'PRI' ? h2.PREFACE.length : 0
      const problem = this.sent.read(bytes, this.received, preface)
      this.connection.releaseOutput()
      if (problem !== '') throw new Violation(problem)
      if (turns > 1_000) throw new Violation('output without end')
    }
    this.#signalled = false
  }

  // === at the end of an input ===

  /** The windows are opened: everything that waits must go out. */
  checkNothingStalls(): void {
    if (!this.#isUsable() || !this.heard.some(({ stream }) => (stream?.queued ?? 0) > 0)) return
    const parts: Buffer[] = []
    const connectionWindow = this.received.connectionWindow - this.sent.data
    if (connectionWindow < LARGEST_WINDOW) parts.push(buildWindowUpdate(0, LARGEST_WINDOW - connectionWindow))
    for (const { number, resetByUs, resetHeard } of this.heard) {
      if (resetByUs || resetHeard) continue
      const updates = this.received.streamUpdates.get(number) ?? 0
      const window = this.received.initialWindow + updates - (this.sent.streamData.get(number) ?? 0)
      if (window < LARGEST_WINDOW)
        parts.push(buildWindowUpdate(number, Math.min(LARGEST_WINDOW, LARGEST_WINDOW - window)))
    }
    this.#feedFrames(parts)
    this.drainOutput()
    if (this.isClosed && this.received.goaway && this.sent.goaways.every((code) => code === h2.NO_ERROR)) return
    if (this.isClosed) throw new Violation(`closed by windows that were opened: GOAWAY ${this.sent.goaways.join()}`)
    for (const stream of this.heard) {
      if (stream.resetByUs || stream.resetHeard) continue
      if ((stream.stream?.queued ?? 0) > 0) throw new Violation(`stream ${stream.number} stalls`)
      if (stream.given && !this.sent.ended.has(stream.number) && !this.sent.reset.has(stream.number))
        throw new Violation(`stream ${stream.number} was not ended`)
    }
  }

  /** All streams end, and all that came is taken: then every byte of DATA must have been given back on the connection. */
  checkNothingLeaks(): void {
    if (!this.#isUsable()) return
    for (const stream of this.heard) stream.reset('cancel')
    this.drainOutput()
    if (this.isClosed) return
    const probe = this.openProbe()
    if (probe === undefined) return
    this.#feedFrames([probe.frames])
    let updates = 0
    for (let i = 0; i < 2 && !this.isClosed; i++) {
      const before = this.sent.connectionCredit
      this.#feedFrames([build(h2.DATA, 0, probe.id, PROBE_BYTES)])
      for (const stream of this.heard) stream.settle()
      this.drainOutput()
      if (this.sent.connectionCredit === before) continue
      updates++
      const { data } = this.received
      if (this.sent.connectionCredit !== data)
        throw new Violation(`of ${data} bytes ${this.sent.connectionCredit} were given back on the connection`)
    }
    if (this.isClosed && this.received.goaway && this.sent.goaways.every((code) => code === h2.NO_ERROR)) return
    if (this.isClosed) throw new Violation(`DATA within the windows: GOAWAY ${this.sent.goaways.join()}`)
    if (updates === 0) throw new Violation('the window of the connection was not given back')
  }

  /** The window of the connection is what the frames say, to the byte: so much is taken, and one byte more is not. */
  checkWindowExact(): void {
    if (!this.#isUsable() || !this.givesBackWhenTaken) return
    for (const stream of this.heard) stream.reset('cancel')
    this.drainOutput()
    if (this.isClosed) return
    const probe = this.openProbe()
    if (probe === undefined) return
    this.#feedFrames([probe.frames])
    this.holdAll = true
    const send = (size: number): void => {
      this.#feedFrames([build(h2.DATA, 0, probe.id, FILL.subarray(0, size))])
      this.drainOutput()
    }
    const mostFrames = Math.ceil(LIMITS.server.connectionWindowBytes / PROBE_BYTES.length) + 1
    for (let left = this.#windowLeft(), frames = 0; left > 0; left = this.#windowLeft(), frames++) {
      // A stream that was refused takes nothing: its DATA is given back.
      if (frames > mostFrames) return
      send(Math.min(left, PROBE_BYTES.length))
      if (this.isClosed) throw new Violation(`DATA within the window: GOAWAY ${this.sent.goaways.join()}`)
    }
    send(1)
    if (this.sent.goaways.at(-1) !== h2.FLOW_CONTROL_ERROR) throw new Violation('DATA above the window is taken')
  }

  /** The socket is gone: every stream has been told, once. */
  checkEnd(): void {
    this.connection.onSocketClosed()
    if (this.connection.openStreams !== 0) throw new Violation('streams on a closed connection')
    if (this.#closedTold !== 1) throw new Violation(`onClosed ${this.#closedTold} times`)
    for (const stream of this.heard) {
      if (stream.resetByUs || stream.resetHeard || stream.ended || stream.given) continue
      throw new Violation(`stream ${stream.number} was forgotten`)
    }
    this.connection.receive(buildPing(1, 0), NOW_MS)
    this.connection.tick(NOW_MS * 1_000)
  }

  #windowLeft(): number {
    return LIMITS.server.connectionWindowBytes - this.received.data + this.sent.connectionCredit
  }

  #isUsable(): boolean {
    return !this.isClosed && this.received.clean && this.received.settled
  }

  #feedFrames(frames: readonly Buffer[]): void {
    for (const frame of frames) {
      this.received.read(frame, 0)
      if (!this.isClosed) this.feed(frame)
    }
  }
}
