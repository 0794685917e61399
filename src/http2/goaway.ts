// GOAWAY of both sides (RFC 9113 section 6.8): a server sends it in two steps, so that no request in flight is lost.

import type { Http2Counters } from './counters.ts'
import { LARGEST_STREAM_ID, NO_ERROR } from './frames.ts'
import type { Sender } from './sender.ts'

/** The connection. */
export interface GoawayHost {
  readonly isServer: boolean
  /** The largest stream id that the peer has opened. */
  readonly lastPeerStream: number
  closeIfIdle(): void
}

/** Payload of the PING between the two steps. */
const PING_DRAIN = 0x64726169
/** The second step follows the answer to the PING, or comes after this time without one. */
const DRAIN_STEP_MS = 1000

export class Goaway {
  /** Ours: `announced` = streams in flight are served, `final` = no new streams. */
  state: 'no' | 'announced' | 'final' = 'no'
  /** The peer accepts no new streams. */
  received: boolean = false
  readonly #host: GoawayHost
  readonly #sender: Sender
  readonly #counters: Http2Counters
  #announcedMs = 0
  /** Whether the last stream id was sent. */
  #done = false

  constructor(host: GoawayHost, sender: Sender, counters: Http2Counters) {
    this.#host = host
    this.#sender = sender
    this.#counters = counters
  }

  /** Whether new streams are refused, from now on or soon. */
  begin(nowMs: number): void {
    if (!this.#host.isServer) {
      // A client needs no GOAWAY to stop: it closes when its last stream has ended.
      this.state = 'final'
      this.#host.closeIfIdle()
      return
    }
    this.state = 'announced'
    this.#announcedMs = nowMs
    this.#write(LARGEST_STREAM_ID, NO_ERROR)
    this.#sender.ping(PING_DRAIN, 0, false)
  }

  /** Called for any PING of ours. */
  onPingAnswered(payload: number): void {
    if (this.state === 'announced' && payload === PING_DRAIN) this.#finish()
  }

  tick(nowMs: number): void {
    if (this.state === 'announced' && nowMs - this.#announcedMs > DRAIN_STEP_MS) this.#finish()
  }

  #finish(): void {
    this.state = 'final'
    this.#write(this.#host.lastPeerStream, NO_ERROR)
    this.#done = true
    this.#host.closeIfIdle()
  }

  /** The connection ends: sends the reason, unless the final GOAWAY was sent. @param why debug data; '' = none */
  end(code: number, why: string): void {
    if (!this.#done || code !== NO_ERROR) this.#write(this.#host.lastPeerStream, code, why)
  }

  #write(lastStream: number, code: number, why = ''): void {
    this.#counters.goawaySent++
    this.#sender.goaway(lastStream, code, why)
  }
}
