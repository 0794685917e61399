// Memory of a port of the control plane, divided among those who use it: users, and addresses, which have a part of their own on top. Whoever
// begins many large bodies and never ends them, or asks for large answers and reads none, gets no more, and keeps nobody else out.

import type { Charge, QueueMeter, Stream } from '../../kit/api/stream.ts'
import { SharedResource } from '../../kit/core/shares/shared-resource.ts'
import type { Shares } from '../../kit/core/shares/shares.ts'
import { statusError } from '../../kube/api/status.ts'

/** As metrics name it. `control-bodies`: of bodies that are being received; `control-answers`: of answers that wait for their clients. */
export type PortLimit = 'control-bodies' | 'control-answers'

/** Counts a request that is refused because of a limit. @param known whether an authenticated user sent it */
export type CountLimited = (limit: PortLimit, known: boolean) => void

/** The words of a refusal: `SOURCE HAS 5 of 10 bytes that FOR`. */
interface PortWords {
  readonly has: string
  readonly for: string
}

const RETRY_SECONDS = 1

/**
 * @param what whose bodies, as in "bodies of WHAT"
 * @param bytes for those who are known; others have a part of their own on top
 * @param onLimited default: refusals are not counted
 */
export function bodyMemory(what: string, bytes: number, onLimited?: CountLimited): PortMemory {
  const words = { has: 'is sending', for: `bodies of ${what} may take at the same time` }
  return new PortMemory('control-bodies', bytes, words, onLimited)
}

/** As bodyMemory, for what the clients of the API server have not read. */
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

  /** Of everybody. */
  get held(): number {
    return this.known.held + this.unknown.held
  }

  /** Takes part of a body. @throws {StatusError} 429, which counts */
  receive(charge: Charge, bytes: number): void {
    if (this.take(charge, bytes) !== 'taken') throw this.#refusal(charge)
  }

  /** @throws {StatusError} 429, which counts: nothing is left, and `charge` has its share */
  admit(charge: Charge): void {
    if (this.of(charge).isOver(charge.source, charge.weight)) throw this.#refusal(charge)
  }

  /** What `stream` has been given is charged as long as it waits there. */
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
