// Tracks which generation all gateway threads have put in force: a change is in force once the last of them has confirmed it, and callers wait for
// that here.

import type { WorkerSlot } from './worker-slot.ts'

interface Waiter {
  readonly done: () => boolean
  readonly resolve: () => void
  readonly reject: (error: Error) => void
}

interface Publication {
  readonly generation: number
  readonly resolve: () => void
}

export class ThreadProgress {
  readonly #slots: readonly WorkerSlot[]
  #waiters: Waiter[] = []
  /** Oldest first. */
  #unapplied: Publication[] = []

  constructor(slots: readonly WorkerSlot[]) {
    this.#slots = slots
  }

  /** Resolves once this generation is in force: in the order of publication, and before those waiting with `until`. Never rejects. */
  published(generation: number): Promise<void> {
    return new Promise((resolve) => {
      this.#unapplied.push({ generation, resolve })
    })
  }

  /** Whether every counting thread has put this generation in force. */
  isInForce(generation: number): boolean {
    return this.#appliedByAll() >= generation
  }

  /** Resolves when `done` is true; rejects if `fail` is called first. */
  until(done: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiters.push({ done, resolve, reject })
      this.settle()
    })
  }

  /** Rejects all waiters. */
  fail(error: Error): void {
    const waiters = this.#waiters
    this.#waiters = []
    for (const waiter of waiters) waiter.reject(error)
  }

  /** Resolves those whose generation is in force. */
  settle(): void {
    const applied = this.#appliedByAll()
    for (let next = this.#unapplied[0]; next !== undefined && next.generation <= applied; next = this.#unapplied[0]) {
      this.#unapplied.shift()
      next.resolve()
    }
    const waiters = this.#waiters
    this.#waiters = []
    for (const waiter of waiters) {
      if (waiter.done()) waiter.resolve()
      else this.#waiters.push(waiter)
    }
  }

  #appliedByAll(): number {
    let least = Number.POSITIVE_INFINITY
    for (const slot of this.#slots) if (slot.counts) least = Math.min(least, slot.applied)
    return least
  }
}
