// Heads of requests that have begun to come and have no end yet. What is kept of them is taken from the share of whoever sends it: a client
// could open any number of connections, send nearly all of a large head on each, and wait. Who has that share already, with bodies and answers,
// gets some room for the heads that come: it is requests that are refused then, and not connections, with all that they carry.

import type { Charge } from '../../api/stream.ts'
import type { Refusal } from '../refusal/refusal.ts'
import { SharedResource } from './shared-resource.ts'

/** Heads up to this size are bounded by the number of connections and requests. */
export const LARGE_HEAD_BYTES: number = 8 * 1024
/** Of a thread, on top, for heads of those who have their share, divided in the same way. */
const SPARE_BYTES = 4 * 1024 * 1024

export interface OpenHeadsOptions {
  readonly shared: SharedResource
  /** Somebody's head has no room: why, for the client. */
  refuse(charge: Charge): Refusal
}

/** Those of one thread. */
export class OpenHeads {
  readonly #options: OpenHeadsOptions
  readonly spare: SharedResource

  constructor(options: OpenHeadsOptions) {
    this.#options = options
    this.spare = new SharedResource(options.shared.limit, SPARE_BYTES)
  }

  /** @param payer who pays for a connection, from now on */
  of(payer: { readonly charge: Charge }): OpenHead {
    return new OpenHead(this.#options, this.spare, payer)
  }
}

/** That of one connection: it has one at a time. */
export class OpenHead {
  readonly #options: OpenHeadsOptions
  readonly #spare: SharedResource
  readonly #payer: { readonly charge: Charge }
  /** Who pays for this head: of the connection it may be somebody else by now. */
  #charge: Charge
  #held = 0
  /** In the place of the share. */
  #heldSpare = 0

  constructor(options: OpenHeadsOptions, spare: SharedResource, payer: { readonly charge: Charge }) {
    this.#options = options
    this.#spare = spare
    this.#payer = payer
    this.#charge = payer.charge
  }

  /**
   * Its memory is `bytes` from now on; 0 = it has ended, in whatever way. Undefined = there is room for them, otherwise why there is none: what
   * was held before stays held.
   */
  hold(bytes: number): Refusal | undefined {
    const wanted = bytes > LARGE_HEAD_BYTES ? bytes : 0
    const more = wanted - this.#held - this.#heldSpare
    if (more < 0) this.#give(-more)
    return more > 0 ? this.#take(more) : undefined
  }

  #take(bytes: number): Refusal | undefined {
    if (this.#held + this.#heldSpare === 0) this.#charge = this.#payer.charge
    const charge = this.#charge
    if (this.#options.shared.take(charge, bytes) === 'taken') this.#held += bytes
    else if (this.#spare.take(charge, bytes) === 'taken') this.#heldSpare += bytes
    else return this.#options.refuse(charge)
    return undefined
  }

  #give(bytes: number): void {
    const spare = Math.min(bytes, this.#heldSpare)
    if (spare > 0) this.#spare.give(this.#charge, spare)
    if (bytes > spare) this.#options.shared.give(this.#charge, bytes - spare)
    this.#heldSpare -= spare
    this.#held -= bytes - spare
  }
}
