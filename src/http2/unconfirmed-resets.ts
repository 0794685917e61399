// Streams that we have reset, and of which the peer may not know yet. Until it does they count as open: a server that still works
// on them works on more than its SETTINGS_MAX_CONCURRENT_STREAMS otherwise, and Go's ends the connection, with all its streams
// (golang/go#63417). As Go's own client does (golang/go#66763), a PING says when the peer has read RST_STREAM.

import type { Sender } from './sender.ts'

/** Payload of these PINGs. */
const PING_RESETS = 0x72737473

export class UnconfirmedResets {
  /** Before the PING that is under way, and since then. */
  #asked = 0
  #since = 0

  /** How many there are. */
  get count(): number {
    return this.#asked + this.#since
  }

  add(): void {
    this.#since++
  }

  /**
   * To be called every second or so: one PING for all that were reset since the last. What a server begins for nothing is
   * bounded that way, too: on each connection its streams once a second.
   */
  tick(sender: Sender): void {
    if (this.#asked > 0 || this.#since === 0) return
    this.#asked = this.#since
    this.#since = 0
    sender.ping(PING_RESETS, 0, false)
  }

  /** The answer to any PING of ours. True: the peer knows of some. */
  onPingAnswered(payload: number): boolean {
    if (payload !== PING_RESETS || this.#asked === 0) return false
    this.#asked = 0
    return true
  }
}
