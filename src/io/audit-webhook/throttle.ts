// A token bucket, as client-go's (util/flowcontrol): full at the start.

export class Throttle {
  readonly #perMs: number
  readonly #burst: number
  readonly #now: () => number
  #tokens: number
  #filledMs: number

  /** @param now monotonic, milliseconds */
  constructor(perSecond: number, burst: number, now: () => number) {
    this.#perMs = perSecond / 1000
    this.#burst = burst
    this.#now = now
    this.#tokens = burst
    this.#filledMs = now()
  }

  /** Takes a token. @returns 0, or in how many milliseconds there is one */
  take(): number {
    const now = this.#now()
    this.#tokens = Math.min(this.#burst, this.#tokens + (now - this.#filledMs) * this.#perMs)
    this.#filledMs = now
    if (this.#tokens < 1) return Math.max(1, Math.ceil((1 - this.#tokens) / this.#perMs))
    this.#tokens--
    return 0
  }
}
