// Memory of a port of the control plane, divided among those who use it: users, and addresses, which have a part of their own on top.

import { statusError } from '../../api/kube/status.ts'
import type { Charge } from '../../api/ports/stream.ts'
import { unknownCapacity } from '../../core/shares/shared-resource.ts'
import { Shares } from '../../core/shares/shares.ts'

/** As metrics name it. `control-bodies`: of bodies that are being received; `control-answers`: of answers that wait for their clients. */
export type PortLimit = 'control-bodies' | 'control-answers'

/** Counts a request that is refused because of a limit. @param known whether an authenticated user sent it */
export type CountLimited = (limit: PortLimit, known: boolean) => void

const RETRY_SECONDS = 1

export class PortMemory {
  readonly #limit: PortLimit
  readonly #known: Shares
  readonly #unknown: Shares
  readonly #onLimited: CountLimited | undefined

  /** @param bytes for users */
  constructor(limit: PortLimit, bytes: number, onLimited: CountLimited | undefined) {
    this.#limit = limit
    this.#known = new Shares(bytes)
    this.#unknown = new Shares(unknownCapacity(bytes))
    this.#onLimited = onLimited
  }

  /** Of everybody. */
  get held(): number {
    return this.#known.held + this.#unknown.held
  }

  of(charge: Charge): Shares {
    return charge.known ? this.#known : this.#unknown
  }

  /**
   * A StatusError, 429, which counts.
   * @param has how the source has its bytes, as in `SOURCE HAS 5 of 10 bytes`
   * @param what takes them, as in `bytes that WHAT`
   */
  refusal(charge: Charge, has: string, what: string): Error {
    const { source, weight, known } = charge
    this.#onLimited?.(this.#limit, known)
    const shares = this.of(charge)
    const share = Math.floor(shares.shareOf(source, weight))
    const message =
      `${source} ${has} ${shares.heldBy(source)} of ${shares.capacity} bytes that ${what}, ` +
      `and its share while others need theirs is ${share}; come back in ${RETRY_SECONDS} s`
    return statusError('TooManyRequests', message, { retryAfterSeconds: RETRY_SECONDS })
  }
}
