// Limits how many keys of a RetryBatch write at once. The others wait in line and keep gathering: a write that waited in some
// other queue could not take later requests along.

export interface SlotWaiter {
  /** A slot is free now and may be taken once. */
  slotFree(): void
}

export class WriteSlots {
  #free: number
  readonly #line = new Set<SlotWaiter>()

  constructor(count: number) {
    this.#free = count
  }

  /** @returns false = none is free; `waiter` is in line */
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

  /** Takes it out of the line. */
  leave(waiter: SlotWaiter): void {
    this.#line.delete(waiter)
  }
}
