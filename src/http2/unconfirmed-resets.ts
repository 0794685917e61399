// Streams that we have reset, and of which the peer may not know yet. Until it does they count as open: a server that still works
// on them works on more than its SETTINGS_MAX_CONCURRENT_STREAMS otherwise, and Go's ends the connection, with all its streams
// (golang/go#63417). As Go's own client does (golang/go#66763), a PING says when the peer has read RST_STREAM.

import type { Sender } from './sender.ts'

/** Payload of these PINGs. */
const PING_RESETS = 0x72737473
/**
 * PINGs between two ticks, beside the tick's own, while resets alone keep a connection full. Go's server ends a connection on which more
 * than four times its streams wait for handlers that do not end (http2/server.go, scheduleHandler): with these it is three times a second.
 */
const EXTRA_PINGS = 2

export class UnconfirmedResets {
  /** Before the PING that is under way, and since then. */
  #asked = 0
  #since = 0
  #extraPings = EXTRA_PINGS

  /** How many there are. */
  get count(): number {
    return this.#asked + this.#since
  }

  add(): void {
    this.#since++
  }

  /**
   * To be called every second or so: one PING for all that were reset since the last. What a server begins for nothing is
   * bounded that way, too: on each connection its streams, three times a second.
   */
  tick(sender: Sender): void {
    this.#extraPings = EXTRA_PINGS
    this.#ask(sender)
  }

  /** To be called when no stream is free, and some would be but for these: others would have to wait, or open connections. */
  tickWhenFull(sender: Sender): void {
    if (this.#extraPings > 0 && this.#ask(sender)) this.#extraPings--
  }

  #ask(sender: Sender): boolean {
    if (this.#asked > 0 || this.#since === 0) return false
    this.#asked = this.#since
    this.#since = 0
    sender.ping(PING_RESETS, 0, false)
    return true
  }

  /** The answer to any PING of ours. True: the peer knows of some. */
  onPingAnswered(payload: number): boolean {
    if (payload !== PING_RESETS || this.#asked === 0) return false
    this.#asked = 0
    return true
  }
}
