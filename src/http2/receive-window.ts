// The connection's receive window (RFC 9113 section 5.2), and when it is returned to the peer.

import type { Http2Limits } from './limits.ts'
import type { Sender } from './sender.ts'

/** The connection. */
export interface WindowHost {
  /** Nothing is returned any more. */
  readonly closed: boolean
}

export class ReceiveWindow {
  readonly #host: WindowHost
  readonly #sender: Sender
  /** Whether it is returned when bytes were consumed; otherwise on arrival. */
  readonly #whenTaken: boolean
  /** Least size of an update. */
  readonly #updateBytes: number
  #left: number
  #taken = 0

  constructor(host: WindowHost, sender: Sender, limits: Http2Limits) {
    this.#host = host
    this.#sender = sender
    this.#whenTaken = limits.connectionCredit === 'when-taken'
    this.#updateBytes = limits.connectionWindowBytes >> 1
    this.#left = limits.connectionWindowBytes
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
    if (this.#taken < this.#updateBytes || this.#host.closed) return
    this.#left += this.#taken
    this.#sender.windowUpdate(0, this.#taken)
    this.#taken = 0
  }
}
