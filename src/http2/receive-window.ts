// The connection's receive window (RFC 9113 section 5.2), and when it is returned to the peer.

import type { Http2Limits } from './limits.ts'
import type { Sender } from './sender.ts'

/** The connection. */
interface WindowHost {
  /** Nothing more is returned. */
  readonly closed: boolean
}

export class ReceiveWindow {
  readonly #host: WindowHost
  readonly #sender: Sender
  /** Whether it is returned on consumption; otherwise on arrival. */
  readonly #whenTaken: boolean
  readonly #mostBytes: number
  /** Window granted so far. */
  #bytes: number
  #left: number
  #taken = 0

  constructor(host: WindowHost, sender: Sender, limits: Http2Limits) {
    this.#host = host
    this.#sender = sender
    this.#whenTaken = limits.connectionCredit === 'when-taken'
    this.#mostBytes = limits.connectionWindowBytes
    const { connectionWindowBytes, initialConnectionWindowBytes = connectionWindowBytes } = limits
    this.#bytes = Math.min(initialConnectionWindowBytes, connectionWindowBytes)
    this.#left = this.#bytes
  }

  /** Window granted to the peer so far. */
  get bytes(): number {
    return this.#bytes
  }

  /** Grants the peer the full window, if it doesn't have it yet. */
  widen(): void {
    const more = this.#mostBytes - this.#bytes
    if (more <= 0 || this.#host.closed) return
    this.#bytes = this.#mostBytes
    this.#left += more
    this.#sender.windowUpdate(0, more)
  }

  /** This many bytes have arrived. False: more than allowed. */
  receive(bytes: number): boolean {
    if (bytes > this.#left) return false
    this.#left -= bytes
    if (!this.#whenTaken) this.#giveBack(bytes)
    return true
  }

  /** This many bytes were consumed. */
  onTaken(bytes: number): void {
    if (this.#whenTaken) this.#giveBack(bytes)
  }

  #giveBack(bytes: number): void {
    this.#taken += bytes
    // Updates of half the window.
    if (this.#taken < this.#bytes >> 1 || this.#host.closed) return
    this.#left += this.#taken
    this.#sender.windowUpdate(0, this.#taken)
    this.#taken = 0
  }
}
