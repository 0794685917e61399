// The memory that one request has of what all share: a large head, and what is kept of its body. Charged to whoever sends it.

import type { Charge } from '../../../kit/api/stream.ts'
import type { Refusal } from '../../../kit/core/refusal/refusal.ts'
import { refuseShare } from '../../../kit/core/shares/refuse-share.ts'
import type { Gateway } from './gateway.ts'

export class BufferedBytes {
  readonly #gw: Pick<Gateway, 'shares' | 'events' | 'random'>
  #charge: Charge
  #held = 0

  constructor(gw: Pick<Gateway, 'shares' | 'events' | 'random'>, charge: Charge) {
    this.#gw = gw
    this.#charge = charge
  }

  /** False: its source has its share, or there is no room. */
  take(bytes: number): boolean {
    if (bytes === 0) return true
    const { shares, events } = this.#gw
    if (shares.buffered.take(this.#charge, bytes) !== 'taken') {
      events.limited(shares.buffered.limit, this.#charge.known)
      return false
    }
    this.#held += bytes
    return true
  }

  /** @param bytes at most as many as were taken */
  give(bytes: number): void {
    if (bytes === 0) return
    this.#gw.shares.buffered.give(this.#charge, bytes)
    this.#held -= bytes
  }

  /** From here on somebody else pays. False: who has no room for it, and nothing is held any more. */
  chargeTo(charge: Charge): boolean {
    const held = this.#held
    this.end()
    this.#charge = charge
    return this.take(held)
  }

  /** Why there is no room. */
  refusal(): Refusal {
    const { shares, random } = this.#gw
    const { buffered } = shares
    return refuseShare(buffered.limit, buffered.of(this.#charge), this.#charge, random())
  }

  end(): void {
    this.give(this.#held)
  }
}
