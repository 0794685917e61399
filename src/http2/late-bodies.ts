// Request bodies that continue after their response is complete (RFC 9113 section 8.1). An immediate RST_STREAM makes clients report
// the reset instead of the response (curl), or hang (Node), so the rest is read and discarded until the client ends its request or
// stops by itself. The amount is limited per stream, per connection and, by the sender's share, per thread.

import type { Charge, StreamEvents } from '../kit/api/stream.ts'
import type { Http2Counters } from './counters.ts'
import type { ServerLimits } from './limits.ts'
import { ANY_LENGTH, type Http2Stream } from './stream.ts'

/** Bytes of late bodies that a thread may still receive, shared fairly among senders. */
export interface LateBodyShare {
  take(charge: Charge, bytes: number): 'taken' | 'over-share' | 'full'
  give(charge: Charge, bytes: number): void
}

/** The connection. */
export interface LateBodyHost {
  /** Ends the stream with RST_STREAM: its limit is reached. */
  cutBody(stream: Http2Stream): void
}

/** Overhead counted per piece: the padding that its frame may have, which costs the sender next to nothing. */
const PIECE_BYTES = 256

/** Late bodies of one connection. */
export class LateBodies {
  readonly #host: LateBodyHost
  readonly #limits: ServerLimits
  readonly #counters: Http2Counters
  readonly #share: LateBodyShare | undefined
  /** By stream, oldest first. */
  readonly #open = new Map<number, LateBody>()
  /** Total that may still arrive before any window is given back. */
  #promised = 0

  /** @param share default: limited only per connection */
  constructor(host: LateBodyHost, limits: ServerLimits, counters: Http2Counters, share: LateBodyShare | undefined) {
    this.#host = host
    this.#limits = limits
    this.#counters = counters
    this.#share = share
  }

  get size(): number {
    return this.#open.size
  }

  /** Discards the stream's body from here on. False: over the limit. */
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
    // It is discarded, so a wrong length is not an error: curl ends a body that it stops sending.
    stream.expectedBytes = ANY_LENGTH
    // The request path answered without reading this part, so it won't credit it.
    stream.credit(stream.unread)
    return true
  }

  /** Resets those that take too long. */
  tick(nowMs: number): void {
    for (const body of this.#open.values()) {
      if (nowMs - body.sinceMs < this.#limits.lateBodyMs) return
      this.#host.cutBody(body.stream)
    }
  }

  /** A stream has ended. @param byUs we reset it */
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

/** Late body of one stream. */
class LateBody implements StreamEvents {
  readonly #host: LateBodyHost
  readonly stream: Http2Stream
  readonly charge: Charge
  readonly promised: number
  readonly sinceMs: number
  /** Bytes still accepted. */
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
   * A client may end a body that it stops sending. curl (7.88) then notices the end of the stream only by the reset, which any client has
   * to
   * expect: it might have crossed this end on its way (RFC 9113 section 5.1, closed).
   */
  #onEnd(): void {
    const { stream } = this
    if (stream.receivedBytes !== this.#expectedBytes) this.#host.cutBody(stream)
  }

  onHeaders(): void {
    // Only responses have a second head.
  }

  onTrailers(): void {
    // Discarded.
  }

  onDrained(): void {
    // The response was sent.
  }

  onReset(): void {
    // Handled by `onStreamGone`.
  }
}
