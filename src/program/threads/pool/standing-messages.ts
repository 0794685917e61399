// What every gateway thread has to know, whenever it starts: the latest message of each kind. Threads that run get it at once, those
// that start later when they come online.

import type { ToThread } from '../messages.ts'
import type { WorkerSlot } from './worker-slot.ts'

export class StandingMessages {
  readonly #slots: readonly WorkerSlot[]
  /** By what each replaces; in the order in which they were first sent. */
  readonly #latest = new Map<string, ToThread>()

  constructor(slots: readonly WorkerSlot[]) {
    this.#slots = slots
  }

  /** Tells all threads, and remembers it for those that start later. `about` tells apart messages of one type that do not replace each other. */
  send(message: ToThread, about = ''): void {
    this.#latest.set(`${message.type} ${about}`, message)
    this.sendOnce(message)
  }

  /** Tells the threads that run: a message that ends what an earlier one with the same `about` said. */
  withdraw(message: ToThread, about: string): void {
    this.#latest.delete(`${message.type} ${about}`)
    this.sendOnce(message)
  }

  /** Tells the threads that run, but for one. */
  sendOnce(message: ToThread, except?: WorkerSlot): void {
    for (const slot of this.#slots) if (slot !== except && slot.takesMessages) slot.post(message)
  }

  /** A thread has come online. */
  welcome(slot: WorkerSlot): void {
    for (const message of this.#latest.values()) slot.post(message)
  }
}
