// Memory of a port of the control plane, shared fairly between its users, and between unauthenticated addresses, which have a separate part
// on
// top. A source that starts many large bodies and never ends them, or requests large responses and reads none, can't starve the others.

import type { Charge, QueueMeter, Stream } from '../../kit/api/stream.ts'
import { SharedResource } from '../../kit/core/shares/shared-resource.ts'
import type { Shares } from '../../kit/core/shares/shares.ts'
import { statusError } from '../../kube/api/status.ts'

/** Label in metrics. `control-bodies`: bodies being received; `control-answers`: responses queued for their clients. */
type PortLimit = 'control-bodies' | 'control-answers'

/** Counts a request refused by a limit. @param known whether its sender is an authenticated user */
export type CountLimited = (limit: PortLimit, known: boolean) => void

/** Words of a refusal: `SOURCE HAS 5 of 10 bytes that FOR`. */
interface PortWords {
  readonly has: string
  readonly for: string
}

const RETRY_SECONDS = 1

/**
 * @param what whose bodies, as in "bodies of WHAT"
 * @param bytes for authenticated users; others have a separate part on top
 * @param onLimited default: refusals are not counted
 */
export function bodyMemory(what: string, bytes: number, onLimited?: CountLimited): PortMemory {
  const words = { has: 'is sending', for: `bodies of ${what} may take at the same time` }
  return new PortMemory('control-bodies', bytes, words, onLimited)
}

/** Like bodyMemory, for responses that clients of the API server have not read yet. */
export function answerMemory(bytes: number, onLimited?: CountLimited): PortMemory {
  const words = { has: 'has not read', for: 'answers of the API server may take while they wait' }
  return new PortMemory('control-answers', bytes, words, onLimited)
}

export class PortMemory extends SharedResource<PortLimit> {
  readonly #words: PortWords
  readonly #onLimited: CountLimited | undefined

  constructor(limit: PortLimit, bytes: number, words: PortWords, onLimited: CountLimited | undefined) {
    super(limit, bytes)
    this.#words = words
    this.#onLimited = onLimited
  }

  /** Total over all sources. */
  get held(): number {
    return this.known.held + this.unknown.held
  }

  /** Charges part of a body. @throws {StatusError} 429, which counts */
  receive(charge: Charge, bytes: number): void {
    if (this.take(charge, bytes) !== 'taken') throw this.#refusal(charge)
  }

  /** @throws {StatusError} 429, which counts: memory is exhausted, and `charge` has used up its share */
  admit(charge: Charge): void {
    if (this.of(charge).isOver(charge.source, charge.weight)) throw this.#refusal(charge)
  }

  /** Charges what is queued in `stream` until it is sent. */
  chargeAnswer(stream: Stream, charge: Charge): void {
    if (stream.queued === 0) return
    const meter = new AnswerMeter(this.of(charge), charge)
    stream.meter = meter
    meter.onQueued(stream.memory ?? stream.queued)
  }

  #refusal(charge: Charge): Error {
    const { source, weight, known } = charge
    this.#onLimited?.(this.limit, known)
    const shares = this.of(charge)
    const share = Math.floor(shares.shareOf(source, weight))
    const message =
      `${source} ${this.#words.has} ${shares.heldBy(source)} of ${shares.capacity} bytes that ${this.#words.for}, ` +
      `and its fair share under contention is ${share}; retry in ${RETRY_SECONDS} s`
    return statusError('TooManyRequests', message, { retryAfterSeconds: RETRY_SECONDS })
  }
}

class AnswerMeter implements QueueMeter {
  readonly #shares: Shares
  readonly #charge: Charge
  #bytes = 0

  constructor(shares: Shares, charge: Charge) {
    this.#shares = shares
    this.#charge = charge
  }

  onQueued(bytes: number): void {
    const { source, weight } = this.#charge
    const more = bytes - this.#bytes
    this.#bytes = bytes
    if (more > 0) this.#shares.charge(source, weight, more)
    else if (more < 0) this.#shares.give(source, -more)
  }
}
