// How many keys of a RetryBatch write at once. The others wait in line, and gather what comes meanwhile: a write that only
// stands in another queue would take nothing along.

export interface SlotWaiter {
  /** There is a slot now: it may be taken, once. */
  slotFree(): void
}

export class WriteSlots {
  #free: number
  readonly #line = new Set<SlotWaiter>()

  constructor(count: number) {
    this.#free = count
  }

  /** @returns false = not now; `waiter` is in line */
  take(waiter: SlotWaiter): boolean {
    if (this.#free === 0) {
      this.#line.add(waiter)
      return false
    }
    this.#free--
    return true
  }

  giveBack(): void {
    this.#free++
    for (const waiter of this.#line) {
      if (this.#free === 0) return
      this.#line.delete(waiter)
      waiter.slotFree()
    }
  }

  /** It waits no more. */
  leave(waiter: SlotWaiter): void {
    this.#line.delete(waiter)
  }
}
