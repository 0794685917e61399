// The window of the connection for what the peer sends (RFC 9113 section 5.2): what it lets in, and when that is given back.

import type { Http2Limits } from './limits.ts'
import type { Sender } from './sender.ts'

/** Whose window it is. */
export interface WindowHost {
  /** Nothing is given back any more. */
  readonly closed: boolean
}

export class ReceiveWindow {
  readonly #host: WindowHost
  readonly #sender: Sender
  /** It is given back when the bytes were taken; else as they come. */
  readonly #whenTaken: boolean
  /** At least so much at a time. */
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

  /** This much has come. False: it is more than was allowed. */
  receive(bytes: number): boolean {
    if (bytes > this.#left) return false
    this.#left -= bytes
    if (!this.#whenTaken) this.#giveBack(bytes)
    return true
  }

  /** This much of what came was taken. */
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
