// How many names are looked up at the same time: each look-up has sockets of its own, and with thousands of clusters all begin at once.

const MAX_LOOK_UPS = 64

export class LookUpTurns {
  #running = 0
  readonly #waiting: (() => void)[] = []
  /** Of those that have waited: how many have begun. */
  #begun = 0

  /** Resolves when a look-up may begin; end() follows once. */
  begin(): Promise<void> | undefined {
    if (this.#running < MAX_LOOK_UPS) {
      this.#running++
      return undefined
    }
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  end(): void {
    const next = this.#waiting[this.#begun]
    if (next === undefined) {
      this.#running--
      return
    }
    this.#begun++
    if (this.#begun === this.#waiting.length) this.#begun = this.#waiting.length = 0
    next()
  }
}
