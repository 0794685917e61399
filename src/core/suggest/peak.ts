// The most that was seen of something: requests in one second, or running at once, with its busiest day and second. And of all days
// their peaks, which say whether the highest was usual.

const DAY_MS = 86_400_000
const SECOND_MS = 1000
/** Days that are told apart; a log of more counts the rest as the last one. */
const MAX_DAYS = 400

export class Peak {
  /** The highest value, and when it was reached: milliseconds since the epoch. */
  value = 0
  atMs = 0
  readonly #ofDays = new Map<number, number>()

  see(value: number, nowMs: number): void {
    if (value > this.value) {
      this.value = value
      this.atMs = nowMs
    }
    const day = Math.floor(nowMs / DAY_MS)
    const known = this.#ofDays.get(day)
    if (known === undefined ? this.#ofDays.size < MAX_DAYS : value > known) this.#ofDays.set(day, value)
  }

  get days(): number {
    return this.#ofDays.size
  }

  /** The nearest rank: of the peaks of all days, that which `part` of them do not exceed. */
  percentile(part: number): number {
    const sorted = [...this.#ofDays.values()].sort((a, b) => a - b)
    return sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)] ?? 0
  }
}

/** Counts what happens within each second of the clock. */
export class SecondCounter {
  #second = Number.NEGATIVE_INFINITY
  #count = 0

  /** @returns how many there are in this second by now */
  count(nowMs: number): number {
    const second = Math.floor(nowMs / SECOND_MS)
    if (second !== this.#second) {
      this.#second = second
      this.#count = 0
    }
    this.#count++
    return this.#count
  }
}
