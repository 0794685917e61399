// The memory of answers that wait for the clients of a port, of all its connections: charged to who asked, so that whoever asks for large ones
// and reads none gets no more, and nobody else is kept from reading.

import type { Charge, QueueMeter, Stream } from '../../api/ports/stream.ts'
import type { Shares } from '../../core/shares/shares.ts'
import { type CountLimited, PortMemory } from './port-memory.ts'

export class AnswerMemory {
  readonly #memory: PortMemory

  /**
   * @param bytes for those who are known; others have a part of their own on top
   * @param onLimited default: refusals are not counted
   */
  constructor(bytes: number, onLimited?: CountLimited) {
    this.#memory = new PortMemory('control-answers', bytes, onLimited)
  }

  /** Of all answers. */
  get held(): number {
    return this.#memory.held
  }

  /** @throws {StatusError} 429, when nothing is left and answers to `charge` have its share */
  admit(charge: Charge): void {
    if (!this.#memory.of(charge).isOver(charge.source, charge.weight)) return
    throw this.#memory.refusal(charge, 'has not read', 'answers of the API server may take while they wait')
  }

  /** What `stream` has been given is charged as long as it waits there. */
  charge(stream: Stream, charge: Charge): void {
    if (stream.queued === 0) return
    const meter = new AnswerMeter(this.#memory.of(charge), charge)
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
