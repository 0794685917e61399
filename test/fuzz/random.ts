// Numbers that look random and are the same again from the same seed.

export class Random {
  #state: number

  /** The sequence of one input of a campaign: known by these two numbers alone. */
  constructor(seed: number, input: number) {
    this.#state = (Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(input + 1, 0xc2b2ae35)) | 0
    this.#next()
    this.#next()
  }

  /** mulberry32 */
  #next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let t = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return (t ^ (t >>> 14)) >>> 0
  }

  /** 0 <= n < limit */
  below(limit: number): number {
    return this.#next() % limit
  }

  /** True once in `n` times. */
  oneIn(n: number): boolean {
    return this.#next() % n === 0
  }

  pick<T>(list: readonly T[]): T {
    return list[this.#next() % list.length] as T
  }
}
