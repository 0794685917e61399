// A queue in which sources take turns: whoever adds many waits behind the first of everybody else.

export class SourceTurns<T> {
  /** The source whose turn is next comes first; the oldest of each first. */
  readonly #waiting = new Map<string, Set<T>>()
  #size = 0

  get size(): number {
    return this.#size
  }

  /** Behind all of its source; a source that had none is the last. */
  add(source: string, item: T): void {
    const own = this.#waiting.get(source)
    if (own === undefined) this.#waiting.set(source, new Set([item]))
    else own.add(item)
    this.#size++
  }

  /** Does nothing when it does not wait. */
  delete(source: string, item: T): void {
    const own = this.#waiting.get(source)
    if (own?.delete(item) !== true) return
    this.#size--
    if (own.size === 0) this.#waiting.delete(source)
  }

  /** Takes the oldest of the source whose turn it is; undefined = none waits. */
  next(): T | undefined {
    for (const [source, own] of this.#waiting) {
      for (const item of own) {
        own.delete(item)
        this.#size--
        // Behind all the others.
        this.#waiting.delete(source)
        if (own.size > 0) this.#waiting.set(source, own)
        return item
      }
    }
    return undefined
  }
}
