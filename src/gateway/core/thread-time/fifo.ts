// An array-backed FIFO that does not move the rest on each removal.

const COMPACT_AT = 64

export class Fifo<T> {
  readonly #items: (T | undefined)[] = []
  #head = 0

  get length(): number {
    return this.#items.length - this.#head
  }

  get first(): T | undefined {
    return this.#items[this.#head]
  }

  push(item: T): void {
    this.#items.push(item)
  }

  shift(): T | undefined {
    const items = this.#items
    if (this.#head === items.length) return undefined
    const item = items[this.#head]
    items[this.#head++] = undefined
    if (this.#head === items.length) {
      items.length = 0
      this.#head = 0
    } else if (this.#head >= COMPACT_AT && this.#head * 2 >= items.length) {
      items.splice(0, this.#head)
      this.#head = 0
    }
    return item
  }
}
