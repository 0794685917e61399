// The memory of answers that wait for the clients of a port, of all its connections: charged to who asked, so that whoever asks for large ones
// and reads none gets no more, and nobody else is kept from reading.

import { statusError } from '../../api/kube/status.ts'
import type { Charge, QueueMeter, Stream } from '../../api/ports/stream.ts'
import { SharedResource } from '../../core/shares/shared-resource.ts'
import type { Shares } from '../../core/shares/shares.ts'
import type { CountLimited } from './port-limit.ts'

const RETRY_SECONDS = 1

export class AnswerMemory {
  readonly #shared: SharedResource
  readonly #onLimited: CountLimited | undefined

  /**
   * @param bytes for those who are known; others have a part of their own on top
   * @param onLimited default: refusals are not counted
   */
  constructor(bytes: number, onLimited?: CountLimited) {
    this.#onLimited = onLimited
    this.#shared = new SharedResource('buffered-bytes', bytes)
  }

  /** Of all answers. */
  get held(): number {
    return this.#shared.known.held + this.#shared.unknown.held
  }

  /** @throws {StatusError} 429, when nothing is left and answers to `charge` have its share */
  admit(charge: Charge): void {
    const { source, weight, known } = charge
    const shares = this.#shared.of(charge)
    if (!shares.isOver(source, weight)) return
    this.#onLimited?.('control-answers', known)
    const share = Math.floor(shares.shareOf(source, weight))
    const message =
      `${source} has not read ${shares.heldBy(source)} of ${shares.capacity} bytes that answers of the API server may take ` +
      `while they wait, and its share while others need theirs is ${share}; come back in ${RETRY_SECONDS} s`
    throw statusError('TooManyRequests', message, { retryAfterSeconds: RETRY_SECONDS })
  }

  /** What `stream` has been given is charged as long as it waits there. */
  charge(stream: Stream, charge: Charge): void {
    if (stream.queued === 0) return
    const meter = new AnswerMeter(this.#shared.of(charge), charge)
    stream.meter = meter
    meter.onQueued(stream.memory ?? stream.queued)
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
