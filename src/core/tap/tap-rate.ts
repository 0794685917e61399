// At most so many events a second. What comes above it is counted, and the reader is told.

/** What a thread may have on its way to a reader. */
const MAX_BURST = 256

export class TapRate {
  readonly #perSecond: number
  readonly #burst: number
  #tokens: number
  #sinceMs: number

  /** @param perSecond above 0; as many may come at once, but not more than MAX_BURST. @param nowMs monotonic */
  constructor(perSecond: number, nowMs: number) {
    this.#perSecond = perSecond
    this.#burst = Math.min(perSecond, MAX_BURST)
    this.#tokens = this.#burst
    this.#sinceMs = nowMs
  }

  /** Whether one more may be shown now. */
  take(nowMs: number): boolean {
    const elapsedMs = nowMs - this.#sinceMs
    if (elapsedMs > 0) {
      this.#tokens = Math.min(this.#burst, this.#tokens + (elapsedMs / 1000) * this.#perSecond)
      this.#sinceMs = nowMs
    }
    if (this.#tokens < 1) return false
    this.#tokens--
    return true
  }
}
