// How often names occur, for names that clients choose: no more of them are kept than the limit, the rest is counted together.

export interface Counted {
  readonly name: string
  readonly requests: number
}

/** Different names that are counted one by one. */
const MAX_NAMES = 10_000
const OTHERS = '(others)'

export class Counts {
  readonly #counts = new Map<string, number>()
  readonly #maxNames: number

  constructor(maxNames: number = MAX_NAMES) {
    this.#maxNames = maxNames
  }

  add(name: string): void {
    const known = this.#counts.get(name)
    const as = known === undefined && this.#counts.size >= this.#maxNames ? OTHERS : name
    this.#counts.set(as, (this.#counts.get(as) ?? 0) + 1)
  }

  /** The most frequent first. */
  top(n: number): Counted[] {
    const all = [...this.#counts].map(([name, requests]) => ({ name, requests }))
    return all.sort((a, b) => b.requests - a.requests || (a.name < b.name ? -1 : 1)).slice(0, n)
  }

  get names(): number {
    return this.#counts.size
  }
}
