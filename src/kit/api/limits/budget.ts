// Token bucket of one thread: for events that are harmless in small numbers and an attack in large ones, and for the gateway's own rate-limited work.
// It lives here because both the HTTP/2 engine, which imports only src/kit/, and all other layers need it.

export interface BudgetSize {
  /** Burst size. */
  readonly burst: number
  readonly perSecond: number
}

export class Budget {
  #size: BudgetSize
  #left: number
  #atMs: number

  constructor(size: BudgetSize, nowMs: number) {
    this.#size = size
    this.#left = size.burst
    this.#atMs = nowMs
  }

  /** False if the budget is spent. */
  take(nowMs: number): boolean {
    // Always refill: tokens that arrive while the bucket is full are lost, and must not be there once it is empty.
    this.#refill(nowMs)
    if (this.#left < 1) return false
    this.#left--
    return true
  }

  /**
   * Takes one (0), or returns the milliseconds until the next one. A caller that has to wait takes none and asks again: tokens taken ahead for work
   * that is then abandoned would delay everything after it.
   */
  takeOrWaitMs(nowMs: number): number {
    return this.take(nowMs) ? 0 : ((1 - this.#left) * 1000) / this.#size.perSecond
  }

  /** Tokens left now. */
  left(nowMs: number): number {
    this.#refill(nowMs)
    return this.#left
  }

  /** Adds tokens, after an event that justifies more. */
  add(count: number): void {
    this.#left = Math.min(this.#size.burst, this.#left + count)
  }

  /** Changes the size. Saved tokens are kept as far as they fit. */
  resize(size: BudgetSize, nowMs: number): void {
    this.#refill(nowMs)
    this.#size = size
    this.#left = Math.min(size.burst, this.#left)
  }

  #refill(nowMs: number): void {
    const { burst, perSecond } = this.#size
    this.#left = Math.min(burst, this.#left + ((nowMs - this.#atMs) * perSecond) / 1000)
    this.#atMs = nowMs
  }
}
