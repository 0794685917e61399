// A token bucket of one thread, for what is harmless in small amounts and an attack in large ones. It stands here because both the HTTP/2
// engine, which imports nothing but src/api/, and the request path need it.

export interface BudgetSize {
  /** Size of a burst. */
  readonly burst: number
  readonly perSecond: number
}

export class Budget {
  readonly #size: BudgetSize
  #left: number
  #atMs: number

  constructor(size: BudgetSize, nowMs: number) {
    this.#size = size
    this.#left = size.burst
    this.#atMs = nowMs
  }

  /** False when the budget is spent. */
  take(nowMs: number): boolean {
    if (this.#left < 1) this.#refill(nowMs)
    if (this.#left < 1) return false
    this.#left--
    return true
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

  #refill(nowMs: number): void {
    const { burst, perSecond } = this.#size
    this.#left = Math.min(burst, this.#left + ((nowMs - this.#atMs) * perSecond) / 1000)
    this.#atMs = nowMs
  }
}
