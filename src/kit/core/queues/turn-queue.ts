// Weighted round robin over sources: each source that waits has as many turns in a row as its weight, then the next one has its own. Counts
// what each source holds as well, for capacity that is divided by shares. O(1), but for `first`, `overflow` and what returns all.

// A doubly linked list whose items carry the links: what is first is found at once, and anything is removed at once. (A Set whose first
// is deleted and added again and again walks over the deleted ones.)

/** In one chain at a time. */
abstract class Linked {
  before: Linked | undefined = undefined
  after: Linked | undefined = undefined
}

class Chain<T extends Linked> {
  first: T | undefined = undefined
  last: T | undefined = undefined
  size = 0

  push(item: T): void {
    item.before = this.last
    item.after = undefined
    if (this.last === undefined) this.first = item
    else this.last.after = item
    this.last = item
    this.size++
  }

  /** It has to be in this chain. */
  remove(item: T): void {
    if (item.before === undefined) this.first = item.after as T | undefined
    else item.before.after = item.after
    if (item.after === undefined) this.last = item.before as T | undefined
    else item.after.before = item.before
    item.before = undefined
    item.after = undefined
    this.size--
  }

  /** Meanwhile only the item that was given out last may be removed. */
  *[Symbol.iterator](): Iterator<T> {
    for (let item = this.first; item !== undefined; ) {
      const after = item.after as T | undefined
      yield item
      item = after
    }
  }
}

/** An item that waits, in one queue at a time. The queue keeps its links in the item, so that waiting allocates nothing. */
export abstract class Queued extends Linked {
  /** Memory that it keeps while it waits. Changed by `TurnQueue.grow` only. */
  waitingBytes = 0
  /** Set by the queue while the item waits. */
  waitsIn: TurnSource | undefined = undefined
}

interface QueueSize {
  /** Most items that wait. */
  readonly count: number
  /** Most bytes that they keep, all together. */
  readonly bytes: number
}

/** One source: its items in order of arrival, and what it holds. */
export class TurnSource extends Linked {
  readonly name: string
  weight: number
  readonly items: Chain<Queued> = new Chain()
  /** The line in which it waits for its turn. */
  line: Chain<TurnSource> | undefined = undefined
  bytes = 0
  /** How much it holds of what others wait for. */
  held = 0
  /** Grants since its turn began. */
  granted = 0

  constructor(name: string, weight: number) {
    super()
    this.name = name
    this.weight = weight
  }
}

export class TurnQueue<T extends Queued> {
  readonly #size: QueueSize
  /** Sources that wait or hold something. */
  readonly #sources = new Map<string, TurnSource>()
  /** Sources that wait, the next turn first. A source that is found to hold its share waits in `#over` until none is left in `#under`. */
  readonly #under: Chain<TurnSource> = new Chain()
  readonly #over: Chain<TurnSource> = new Chain()
  #count = 0
  #bytes = 0
  #held = 0
  /** Sum over `#sources`. */
  #weights = 0

  /** @param size when `overflow` removes something. Default: never */
  constructor(size: QueueSize = { count: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY }) {
    this.#size = size
  }

  /** Items that wait. */
  get count(): number {
    return this.#count
  }

  /** Bytes that they keep. */
  get bytes(): number {
    return this.#bytes
  }

  /** Sources that wait. */
  get sources(): number {
    return this.#under.size + this.#over.size
  }

  /** What all sources hold together. */
  get held(): number {
    return this.#held
  }

  /** Items of one source that wait. */
  waitingOf(name: string): number {
    return this.#sources.get(name)?.items.size ?? 0
  }

  /** What one source holds. */
  heldBy(name: string): number {
    return this.#sources.get(name)?.held ?? 0
  }

  // === waiting ===

  /** Behind all items of its source; one that waits already stays where it is. Where the queue is bounded, call `overflow` afterwards. */
  add(item: T, name: string, weight: number = 1): void {
    if (item.waitsIn !== undefined) return
    const source = this.#sourceOf(name, weight)
    item.waitsIn = source
    source.items.push(item)
    source.bytes += item.waitingBytes
    this.#count++
    this.#bytes += item.waitingBytes
    if (source.line !== undefined) return
    this.#line(source, this.#under)
    if (source.weight !== weight) this.#weigh(source, weight)
  }

  /** Its weight has changed while it held something and nothing of it waited. */
  #weigh(source: TurnSource, weight: number): void {
    this.#weights -= source.weight
    source.weight = Math.max(1, weight)
    this.#weights += source.weight
  }

  /** The item keeps more memory. Call `overflow` afterwards. */
  grow(item: T, bytes: number): void {
    item.waitingBytes += bytes
    if (item.waitsIn === undefined) return
    item.waitsIn.bytes += bytes
    this.#bytes += bytes
  }

  /** @returns whether the item was waiting here */
  remove(item: T): boolean {
    const source = item.waitsIn
    if (source === undefined || this.#sources.get(source.name) !== source) return false
    this.#takeOut(source, item)
    return true
  }

  #takeOut(source: TurnSource, item: T): void {
    item.waitsIn = undefined
    source.items.remove(item)
    source.bytes -= item.waitingBytes
    this.#count--
    this.#bytes -= item.waitingBytes
    if (source.items.size === 0) {
      this.#line(source, undefined)
      source.granted = 0
      this.#forgetUnused(source)
    }
  }

  /**
   * Removes one item if more waits than may: the last one of the source that has just come if that waits with its share or more, else of
   * the source that waits with most. Call it until it returns undefined.
   * @param latest what was added, or has grown
   */
  overflow(latest: T): T | undefined {
    const tooMany = this.#count > this.#size.count
    if (!tooMany && this.#bytes <= this.#size.bytes) return undefined
    const own = latest.waitsIn
    const isOwn = own !== undefined && this.#waitsWithItsShare(own, tooMany)
    const last = isOwn ? (own.items.last as T | undefined) : this.lastOfLongest(tooMany)
    if (last !== undefined) this.remove(last)
    return last
  }

  #waitsWithItsShare(source: TurnSource, byCount: boolean): boolean {
    const all = byCount ? this.#count : this.#bytes
    const own = byCount ? source.items.size : source.bytes
    // Sources that hold something and do not wait count in `#weights`, too: this share may be too small, never too large.
    return own * this.#weights >= all * source.weight
  }

  /**
   * The last item of the source that waits with most for its weight. Of equals the one furthest from its turn, so that a newcomer does not
   * displace those who came before it. O(sources).
   */
  lastOfLongest(byCount: boolean = true): T | undefined {
    let longest: TurnSource | undefined
    let most = -1
    for (const line of [this.#under, this.#over]) {
      for (let source = line.first; source !== undefined; source = source.after as TurnSource | undefined) {
        const length = (byCount ? source.items.size : source.bytes) / source.weight
        if (length < most) continue
        longest = source
        most = length
      }
    }
    return longest?.items.last as T | undefined
  }

  /** Takes the item whose turn it is; undefined = none waits. Call `hold` for what it gets. */
  next(): T | undefined {
    for (let source = this.#under.first; source !== undefined; source = this.#under.first) {
      if (!this.isAtShare(source)) return this.grant(source)
      this.#line(source, this.#over)
    }
    const source = this.#over.first
    return source === undefined ? undefined : this.grant(source)
  }

  /**
   * The first source, in the order of their turns, that `admits` accepts. Call `grant` for its item.
   * @param admits called with the source and its oldest item
   */
  first(admits: (source: TurnSource, item: T) => boolean): TurnSource | undefined {
    for (const line of [this.#under, this.#over]) {
      for (let source = line.first; source !== undefined; source = source.after as TurnSource | undefined) {
        if (admits(source, source.items.first as T)) return source
      }
    }
    return undefined
  }

  /** Takes the oldest item of a source, which uses one of its turns. */
  grant(source: TurnSource): T | undefined {
    const item = source.items.first as T | undefined
    if (item === undefined) return undefined
    source.granted++
    if (source.granted >= source.weight) {
      source.granted = 0
      this.#line(source, source.line)
    }
    this.#takeOut(source, item)
    return item
  }

  /** Moves a source to the end of a line; undefined = it no longer waits. */
  #line(source: TurnSource, line: Chain<TurnSource> | undefined): void {
    source.line?.remove(source)
    source.line = line
    line?.push(source)
  }

  /** The oldest item of each source. */
  *firsts(): Iterable<T> {
    for (const source of [...this.#under, ...this.#over])
      if (source.items.first !== undefined) yield source.items.first as T
  }

  /** Takes out everything that waits, in no order. */
  takeAll(): T[] {
    const all: T[] = []
    for (const source of [...this.#under, ...this.#over]) {
      for (let item = source.items.first; item !== undefined; item = source.items.first) {
        all.push(item as T)
        this.remove(item as T)
      }
    }
    return all
  }

  // === holding ===

  /** A source has got one of what others may wait for. */
  hold(name: string, weight: number = 1): void {
    this.#sourceOf(name, weight).held++
    this.#held++
  }

  /** It has given one back. */
  release(name: string): void {
    const source = this.#sources.get(name)
    if (source === undefined || source.held === 0) return
    source.held--
    this.#held--
    if (source.line === this.#over) this.#line(source, this.#under)
    this.#forgetUnused(source)
  }

  /** From now on nothing counts as held. */
  forgetHeld(): void {
    for (const source of this.#sources.values()) {
      source.held = 0
      this.#forgetUnused(source)
    }
    this.#held = 0
    for (let source = this.#over.first; source !== undefined; source = this.#over.first) this.#line(source, this.#under)
  }

  /** Whether a source holds as much of what is held as its weight gives it, or more. One that holds nothing does not. */
  holdsItsShare(name: string): boolean {
    const source = this.#sources.get(name)
    return source !== undefined && this.isAtShare(source)
  }

  /** As `holdsItsShare`. */
  isAtShare(source: TurnSource): boolean {
    return source.held * this.#weights >= this.#held * source.weight && source.held > 0
  }

  #sourceOf(name: string, weight: number): TurnSource {
    const known = this.#sources.get(name)
    if (known !== undefined) return known
    const source = new TurnSource(name, Math.max(1, weight))
    this.#sources.set(name, source)
    this.#weights += source.weight
    return source
  }

  #forgetUnused(source: TurnSource): void {
    if (source.items.size > 0 || source.held > 0) return
    this.#sources.delete(source.name)
    this.#weights -= source.weight
  }
}
