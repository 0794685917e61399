// The memory of bodies that a port is receiving, of all its connections: divided among those who send them, so that whoever begins many large
// ones and never ends them keeps nobody else from writing.

import { statusError } from '../../api/kube/status.ts'
import type { Charge } from '../../api/ports/stream.ts'
import { unknownCapacity } from '../../core/shares/shared-resource.ts'
import { Shares } from '../../core/shares/shares.ts'
import type { CountLimited } from './port-limit.ts'

/** What one body takes of it. */
export interface BodyShare {
  /** @throws {StatusError} 429 */
  take(bytes: number): void
  give(bytes: number): void
}

const RETRY_SECONDS = 1

export class BodyMemory {
  readonly #what: string
  readonly #known: Shares
  readonly #unknown: Shares
  readonly #onLimited: CountLimited | undefined

  /**
   * @param what whose bodies, as in "bodies of WHAT"
   * @param bytes for those who are known; others have a part of their own on top
   * @param onLimited default: refusals are not counted
   */
  constructor(what: string, bytes: number, onLimited?: CountLimited) {
    this.#onLimited = onLimited
    this.#what = what
    this.#known = new Shares(bytes)
    this.#unknown = new Shares(unknownCapacity(bytes))
  }

  /** Of all bodies. */
  get held(): number {
    return this.#known.held + this.#unknown.held
  }

  /** For a body that `charge` sends. */
  shareOf(charge: Charge): BodyShare {
    const shares = charge.known ? this.#known : this.#unknown
    return {
      take: (bytes) => {
        if (shares.take(charge.source, charge.weight, bytes) !== 'taken') throw this.#refusal(shares, charge)
      },
      give: (bytes) => shares.give(charge.source, bytes),
    }
  }

  #refusal(shares: Shares, { source, weight, known }: Charge): Error {
    this.#onLimited?.('control-bodies', known)
    const share = Math.floor(shares.shareOf(source, weight))
    const message =
      `${source} is sending ${shares.heldBy(source)} of ${shares.capacity} bytes that bodies of ${this.#what} may take ` +
      `at the same time, and its share while others need theirs is ${share}; come back in ${RETRY_SECONDS} s`
    return statusError('TooManyRequests', message, { retryAfterSeconds: RETRY_SECONDS })
  }
}
