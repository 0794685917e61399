// State that every gateway thread needs, whenever it starts: the latest message of each kind. Running threads get it at once, later ones when they
// come online.

import type { ToThread } from '../messages.ts'
import type { WorkerSlot } from './worker-slot.ts'

export class StandingMessages {
  readonly #slots: readonly WorkerSlot[]
  /** Messages with the same key replace each other; in the order first sent. */
  readonly #latest = new Map<string, ToThread>()

  constructor(slots: readonly WorkerSlot[]) {
    this.#slots = slots
  }

  /** Sends it to all threads, and remembers it for later ones. `about` distinguishes messages of one type that do not replace each other. */
  send(message: ToThread, about = ''): void {
    this.#latest.set(`${message.type} ${about}`, message)
    this.sendOnce(message)
  }

  /** Sends it to running threads: ends an earlier message with the same `about`. */
  withdraw(message: ToThread, about: string): void {
    this.#latest.delete(`${message.type} ${about}`)
    this.sendOnce(message)
  }

  /** Sends it to running threads, except one. */
  sendOnce(message: ToThread, except?: WorkerSlot): void {
    for (const slot of this.#slots) if (slot !== except && slot.takesMessages) slot.post(message)
  }

  /** A thread has come online. */
  welcome(slot: WorkerSlot): void {
    for (const message of this.#latest.values()) slot.post(message)
  }
}
