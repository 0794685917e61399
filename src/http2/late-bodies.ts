// Request bodies that still come when their answer is complete (RFC 9113 section 8.1). RST_STREAM right behind the answer makes clients report
// the reset instead of the answer (curl), or wait for ever (Node), so the rest is taken and dropped until the client has ended its request or
// stopped by itself. What that may take is bounded for a stream, a connection and, by the share of whoever sends it, a thread.

import type { Charge, StreamEvents } from '../kit/api/stream.ts'
import type { Http2Counters } from './counters.ts'
import type { ServerLimits } from './limits.ts'
import { ANY_LENGTH, type Http2Stream } from './stream.ts'

/** What all late bodies of a thread may still bring, divided among those who send them. */
export interface LateBodyShare {
  take(charge: Charge, bytes: number): 'taken' | 'over-share' | 'full'
  give(charge: Charge, bytes: number): void
}

/** The connection. */
export interface LateBodyHost {
  /** Ends the stream with RST_STREAM: enough of it has come. */
  cutBody(stream: Http2Stream): void
}

/** What a piece counts beside its bytes: as much as its frame may have of padding, which costs the sender next to nothing. */
const PIECE_BYTES = 256

/** Those of one connection. */
export class LateBodies {
  readonly #host: LateBodyHost
  readonly #limits: ServerLimits
  readonly #counters: Http2Counters
  readonly #share: LateBodyShare | undefined
  /** By stream, the oldest first. */
  readonly #open = new Map<number, LateBody>()
  /** What may still come of all of them before any window is given back. */
  #promised = 0

  /** @param share default: only the connection bounds them */
  constructor(host: LateBodyHost, limits: ServerLimits, counters: Http2Counters, share: LateBodyShare | undefined) {
    this.#host = host
    this.#limits = limits
    this.#counters = counters
    this.#share = share
  }

  get size(): number {
    return this.#open.size
  }

  /** From here on the stream's body is dropped. False: there is no room for it. */
  begin(stream: Http2Stream, charge: Charge, nowMs: number): boolean {
    const { streamWindowBytes, connectionWindowBytes, lateBodyBytes } = this.#limits
    const { expectedBytes, receivedBytes } = stream
    const rest = expectedBytes === ANY_LENGTH ? streamWindowBytes : expectedBytes - receivedBytes
    const promised = Math.max(1, Math.min(rest, streamWindowBytes))
    if (this.#promised + promised > connectionWindowBytes) return false
    if (this.#share !== undefined && this.#share.take(charge, promised) !== 'taken') return false
    this.#promised += promised
    const body = new LateBody(this.#host, stream, charge, promised, nowMs, lateBodyBytes, expectedBytes)
    this.#open.set(stream.id, body)
    stream.events = body
    // Nobody reads it, so a wrong length is not a error: curl ends what it stops sending.
    stream.expectedBytes = ANY_LENGTH
    // Whoever answered without reading it gives nothing back.
    stream.credit(stream.unread)
    return true
  }

  /** Cuts those that take too long. */
  tick(nowMs: number): void {
    for (const body of this.#open.values()) {
      if (nowMs - body.sinceMs < this.#limits.lateBodyMs) return
      this.#host.cutBody(body.stream)
    }
  }

  /** A stream has ended. @param byUs we have reset it */
  onStreamGone(stream: Http2Stream, byUs: boolean): void {
    const body = this.#open.get(stream.id)
    if (body === undefined) return
    this.#open.delete(stream.id)
    this.#promised -= body.promised
    this.#share?.give(body.charge, body.promised)
    if (byUs) this.#counters.lateBodiesCut++
    else if (stream.remoteEnded) this.#counters.lateBodiesTaken++
    else this.#counters.lateBodiesLeft++
  }

  /** The connection has ended. */
  loseAll(): void {
    for (const { stream } of this.#open.values()) this.onStreamGone(stream, false)
  }
}

/** That of one stream. */
class LateBody implements StreamEvents {
  readonly #host: LateBodyHost
  readonly stream: Http2Stream
  readonly charge: Charge
  readonly promised: number
  readonly sinceMs: number
  /** How much more of it is taken. */
  #left: number
  readonly #expectedBytes: number

  constructor(
    host: LateBodyHost,
    stream: Http2Stream,
    charge: Charge,
    promised: number,
    nowMs: number,
    maxBytes: number,
    expectedBytes: number,
  ) {
    this.#host = host
    this.stream = stream
    this.charge = charge
    this.promised = promised
    this.sinceMs = nowMs
    this.#left = maxBytes
    this.#expectedBytes = expectedBytes
  }

  onBody(chunk: Buffer, end: boolean): void {
    if (end) {
      this.#onEnd()
      return
    }
    this.stream.credit(chunk.length)
    this.#left -= chunk.length + PIECE_BYTES
    if (this.#left < 0) this.#host.cutBody(this.stream)
  }

  /**
   * A client may end what it stops sending. Then curl (7.88) notices the end of the stream only with the reset, which any client has to expect: it
   * might have crossed this end on its way (RFC 9113 section 5.1, closed).
   */
  #onEnd(): void {
    const { stream } = this
    if (stream.receivedBytes !== this.#expectedBytes) this.#host.cutBody(stream)
  }

  onHeaders(): void {
    // Only responses have a second head.
  }

  onTrailers(): void {
    // Nobody reads them.
  }

  onDrained(): void {
    // The answer was sent.
  }

  onReset(): void {
    // `onStreamGone` says so.
  }
}
