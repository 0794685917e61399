// A priority queue ordered by time: a binary heap.

interface Timed<T> {
  readonly atMs: number
  /** Tie-breaker: at the same time, first added comes first. */
  readonly order: number
  readonly item: T
}

export class TimeQueue<T> {
  readonly #heap: Timed<T>[] = []
  #added = 0

  get size(): number {
    return this.#heap.length
  }

  /** Time of the first item; Infinity = empty. */
  get firstMs(): number {
    return this.#heap[0]?.atMs ?? Number.POSITIVE_INFINITY
  }

  add(atMs: number, item: T): void {
    const heap = this.#heap
    const added = { atMs, order: this.#added++, item }
    let at = heap.push(added) - 1
    while (at > 0) {
      const parent = (at - 1) >> 1
      const above = heap[parent]
      if (above === undefined || isBefore(above, added)) break
      heap[at] = above
      at = parent
    }
    heap[at] = added
  }

  /** undefined = empty. */
  takeFirst(): T | undefined {
    const heap = this.#heap
    const first = heap[0]
    const last = heap.pop()
    if (first === undefined || last === undefined || first === last) return first?.item
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      let below = heap[child]
      const right = heap[child + 1]
      if (right !== undefined && below !== undefined && isBefore(right, below)) {
        below = right
        child++
      }
      if (below === undefined || isBefore(last, below)) break
      heap[at] = below
      at = child
    }
    heap[at] = last
    return first.item
  }
}

function isBefore(a: Timed<unknown>, b: Timed<unknown>): boolean {
  return a.atMs === b.atMs ? a.order < b.order : a.atMs < b.atMs
}
