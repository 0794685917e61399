// Simulated time: what is to happen, in order; and random numbers that depend on a seed and a purpose only, so that two
// algorithms on the same seed meet the same world as long as they act alike.

interface Entry {
  readonly at: number
  readonly order: number
  readonly act: () => void
}

/** Milliseconds from the start of the run. Events of one instant happen in the order in which they were asked for. */
export class SimQueue {
  now = 0
  private readonly heap: Entry[] = []
  private count = 0

  after(delayMs: number, act: () => void): void {
    this.at(this.now + delayMs, act)
  }

  at(at: number, act: () => void): void {
    const { heap } = this
    const entry: Entry = { at: Math.max(at, this.now), order: this.count++, act }
    let index = heap.length
    heap.push(entry)
    while (index > 0) {
      const parent = (index - 1) >> 1
      const above = heap[parent]
      if (above === undefined || isBefore(above, entry)) break
      heap[index] = above
      index = parent
    }
    heap[index] = entry
  }

  /** Lets the next thing happen. @returns false when nothing is left until `endMs`, which it is then */
  step(endMs: number): boolean {
    const first = this.heap[0]
    if (first === undefined || first.at > endMs) {
      this.now = endMs
      return false
    }
    this.pop()
    this.now = first.at
    first.act()
    return true
  }

  private pop(): void {
    const { heap } = this
    const last = heap.pop()
    if (last === undefined || heap.length === 0) return
    let index = 0
    for (;;) {
      let child = 2 * index + 1
      const left = heap[child]
      if (left === undefined) break
      const right = heap[child + 1]
      let smaller = left
      if (right !== undefined && isBefore(right, left)) {
        child++
        smaller = right
      }
      if (isBefore(last, smaller)) break
      heap[index] = smaller
      index = child
    }
    heap[index] = last
  }
}

function isBefore(a: Entry, b: Entry): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order)
}

/** mulberry32: small, fast, and good enough for a world. */
export class SimRandom {
  private state: number

  constructor(seed: number, purpose: string) {
    let hash = 0x811c9dc5 ^ seed
    for (let i = 0; i < purpose.length; i++) hash = Math.imul(hash ^ purpose.charCodeAt(i), 0x01000193)
    this.state = hash ^ Math.imul(seed, 0x9e3779b1)
    for (let i = 0; i < 3; i++) this.next()
  }

  /** In [0, 1). */
  next(): number {
    this.state = (this.state + 0x6d2b79f5) | 0
    let t = this.state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }

  chance(probability: number): boolean {
    return this.next() < probability
  }

  between(low: number, high: number): number {
    return low + this.next() * (high - low)
  }

  integer(low: number, high: number): number {
    return low + Math.floor(this.next() * (high - low + 1))
  }

  pick<T>(from: readonly [T, ...T[]]): T {
    return from[Math.floor(this.next() * from.length)] ?? from[0]
  }

  /** Exponential, of a mean, with a limit. */
  wait(meanMs: number, maxMs: number): number {
    return Math.min(maxMs, -Math.log(1 - this.next()) * meanMs)
  }
}
