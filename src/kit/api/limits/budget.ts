// The token bucket of one thread: for whatever is harmless in small amounts and an attack in large ones, and for what the gateway itself does
// at a limited rate. It stands here because both the HTTP/2 engine, which imports nothing but src/api/, and all other layers need it.

export interface BudgetSize {
  /** Size of a burst. */
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

  /** False when the budget is spent. */
  take(nowMs: number): boolean {
    // Always: what comes in while the bucket is full is lost, and must not be there once it is empty.
    this.#refill(nowMs)
    if (this.#left < 1) return false
    this.#left--
    return true
  }

  /**
   * Takes one (0), or returns the milliseconds until there is one. A caller that has to wait takes none and asks again: tokens taken ahead for
   * what is never done would delay all that comes later.
   */
  takeOrWaitMs(nowMs: number): number {
    return this.take(nowMs) ? 0 : ((1 - this.#left) * 1000) / this.#size.perSecond
  }

  /** Tokens left now. */
  left(nowMs: number): number {
    this.#refill(nowMs)
    return this.#left
  }

  /** Adds tokens: something has happened that makes more of it legitimate. */
  add(count: number): void {
    this.#left = Math.min(this.#size.burst, this.#left + count)
  }

  /** The size from now on. What was saved up stays, as far as it fits. */
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
