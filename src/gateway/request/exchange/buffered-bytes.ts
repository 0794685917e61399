// Shared memory held by one request: a large head, and the part of its body that is kept. Charged to the sender.

import type { Charge } from '../../../kit/api/stream.ts'
import type { Refusal } from '../../../kit/core/refusal/refusal.ts'
import { refuseShare } from '../../../kit/core/shares/refuse-share.ts'
import type { Gateway } from './gateway.ts'

export class BufferedBytes {
  readonly #gw: Pick<Gateway, 'shares' | 'events' | 'random'>
  #charge: Charge
  #held = 0
  /** A large head is charged once. */
  #head = false

  constructor(gw: Pick<Gateway, 'shares' | 'events' | 'random'>, charge: Charge) {
    this.#gw = gw
    this.#charge = charge
  }

  /** False: the source has used up its share, or memory is exhausted. */
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

  /** Undefined = it fits. */
  takeHead(bytes: number): Refusal | undefined {
    this.#head ||= this.take(bytes)
    return this.#head ? undefined : this.refusal()
  }

  /** @param bytes at most as many as were taken */
  give(bytes: number): void {
    if (bytes === 0) return
    this.#gw.shares.buffered.give(this.#charge, bytes)
    this.#held -= bytes
  }

  /** Moves the charge. On false the new payer has no room, and nothing is held any more. */
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
