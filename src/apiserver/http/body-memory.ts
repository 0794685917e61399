// The memory of bodies that a port is receiving, of all its connections: divided among those who send them, so that whoever begins many large
// ones and never ends them keeps nobody else from writing.

import type { Charge } from '../../api/ports/stream.ts'
import { type CountLimited, PortMemory } from './port-memory.ts'

/** What one body takes of it. */
export interface BodyShare {
  /** @throws {StatusError} 429 */
  take(bytes: number): void
  give(bytes: number): void
}

export class BodyMemory {
  readonly #what: string
  readonly #memory: PortMemory

  /**
   * @param what whose bodies, as in "bodies of WHAT"
   * @param bytes for those who are known; others have a part of their own on top
   * @param onLimited default: refusals are not counted
   */
  constructor(what: string, bytes: number, onLimited?: CountLimited) {
    this.#what = what
    this.#memory = new PortMemory('control-bodies', bytes, onLimited)
  }

  /** Of all bodies. */
  get held(): number {
    return this.#memory.held
  }

  /** For a body that `charge` sends. */
  shareOf(charge: Charge): BodyShare {
    const shares = this.#memory.of(charge)
    return {
      take: (bytes) => {
        if (shares.take(charge.source, charge.weight, bytes) === 'taken') return
        throw this.#memory.refusal(charge, 'is sending', `bodies of ${this.#what} may take at the same time`)
      },
      give: (bytes) => shares.give(charge.source, bytes),
    }
  }
}
