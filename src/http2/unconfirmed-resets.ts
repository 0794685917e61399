// Streams that we have reset before the peer knows. Until then they count as open: a server still working
// on them would otherwise exceed its SETTINGS_MAX_CONCURRENT_STREAMS, and Go's ends the connection with all its streams
// (golang/go#63417). As in Go's own client (golang/go#66763), a PING shows when the peer has read RST_STREAM.

import type { Sender } from './sender.ts'

/** Payload of these PINGs. */
const PING_RESETS = 0x72737473
/**
 * PINGs between two ticks, besides the tick's own, while only resets keep a connection full. Go's server ends a connection with more than
 * four times its streams waiting for handlers that don't end (http2/server.go, scheduleHandler): with these it is three times a second.
 */
const EXTRA_PINGS = 2

export class UnconfirmedResets {
  /** Resets before the PING in flight, and since then. */
  #asked = 0
  #since = 0
  #extraPings = EXTRA_PINGS

  /** Number of unconfirmed resets. */
  get count(): number {
    return this.#asked + this.#since
  }

  add(): void {
    this.#since++
  }

  /**
   * Call it about every second: one PING for all streams reset since the last. This also bounds the wasted work of
   * a server: on each connection its streams, three times a second.
   */
  tick(sender: Sender): void {
    this.#extraPings = EXTRA_PINGS
    this.#ask(sender)
  }

  /** Call it when only these resets leave no stream free: otherwise requests would wait, or open connections. */
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

  /** Called for any PING of ours. True: some resets are confirmed. */
  onPingAnswered(payload: number): boolean {
    if (payload !== PING_RESETS || this.#asked === 0) return false
    this.#asked = 0
    return true
  }
}
