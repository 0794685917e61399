// Request heads received only in part. Their memory is charged to the sender's share: a client could otherwise open any number of
// connections, send nearly all of a large head on each, and wait. A source whose share is already taken by bodies and answers gets some
// extra room for heads, so that its requests are refused rather than its connections with everything on them.

import type { Charge } from '../../api/stream.ts'
import type { Refusal } from '../refusal/refusal.ts'
import { SharedResource } from './shared-resource.ts'

/** Heads up to this size are bounded by the number of connections and requests. */
export const LARGE_HEAD_BYTES: number = 8 * 1024
/** Extra bytes per thread for heads of sources at their share, divided in the same way. */
const SPARE_BYTES = 4 * 1024 * 1024

interface OpenHeadsOptions {
  readonly shared: SharedResource
  /** Builds the refusal for a head that has no room. */
  refuse(charge: Charge): Refusal
}

/** Open heads of one thread. */
export class OpenHeads {
  readonly #options: OpenHeadsOptions
  readonly spare: SharedResource

  constructor(options: OpenHeadsOptions) {
    this.#options = options
    this.spare = new SharedResource(options.shared.limit, SPARE_BYTES)
  }

  /** @param payer who is charged for the connection from now on */
  of(payer: { readonly charge: Charge }): OpenHead {
    return new OpenHead(this.#options, this.spare, payer)
  }
}

/** The open head of a connection, which has one at a time. */
export class OpenHead {
  readonly #options: OpenHeadsOptions
  readonly #spare: SharedResource
  readonly #payer: { readonly charge: Charge }
  /** Who is charged for this head; the connection may belong to another user by now. */
  #charge: Charge
  #held = 0
  /** Taken from the spare bytes instead of the share. */
  #heldSpare = 0

  constructor(options: OpenHeadsOptions, spare: SharedResource, payer: { readonly charge: Charge }) {
    this.#options = options
    this.#spare = spare
    this.#payer = payer
    this.#charge = payer.charge
  }

  /**
   * Sets the head's memory to `bytes`; 0 = it has ended, in whatever way. Undefined = granted; otherwise why it was refused, in which case
   * the previous amount stays held.
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
