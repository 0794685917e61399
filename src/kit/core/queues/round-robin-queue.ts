// Weighted round robin over sources: each waiting source gets as many turns in a row as its weight. Also counts what each source holds, for
// capacity divided by shares. O(1), except `first`, `overflow` and what returns all items.

// An intrusive doubly linked list: finding the first item and removing any item take O(1). (In a Set, deleting and re-adding the first item
// over and over walks past the deleted entries.)

/** In at most one chain at a time. */
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

  /** The item must be in this chain. */
  remove(item: T): void {
    if (item.before === undefined) this.first = item.after as T | undefined
    else item.before.after = item.after
    if (item.after === undefined) this.last = item.before as T | undefined
    else item.after.before = item.before
    item.before = undefined
    item.after = undefined
    this.size--
  }

  /** During the iteration only the item returned last may be removed. */
  *[Symbol.iterator](): Iterator<T> {
    for (let item = this.first; item !== undefined; ) {
      const after = item.after as T | undefined
      yield item
      item = after
    }
  }
}

/** A waiting item, in at most one queue at a time. The queue stores its links in the item, so that waiting allocates nothing. */
export abstract class Queued extends Linked {
  /** Memory held while it waits. Changed by `RoundRobinQueue.grow` only. */
  waitingBytes = 0
  /** Set by the queue while the item waits. */
  waitsIn: QueueSource | undefined = undefined
}

interface QueueSize {
  /** Maximum number of waiting items. */
  readonly count: number
  /** Maximum bytes held by all of them. */
  readonly bytes: number
}

/** One source: its items in order of arrival, and what it holds. */
export class QueueSource extends Linked {
  readonly name: string
  weight: number
  readonly items: Chain<Queued> = new Chain()
  /** The line in which it waits for its turn. */
  line: Chain<QueueSource> | undefined = undefined
  bytes = 0
  /** Units that it holds of the contended resource. */
  held = 0
  /** Grants since its turn began. */
  granted = 0

  constructor(name: string, weight: number) {
    super()
    this.name = name
    this.weight = weight
  }
}

const UNLIMITED: QueueSize = { count: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY }
/** Shared by all queues that no source has used yet: there can be dozens for each of thousands of clusters. Never written. */
const NO_SOURCES: Map<string, QueueSource> = new Map()

export class RoundRobinQueue<T extends Queued> {
  readonly #size: QueueSize
  /** Sources that wait or hold something. */
  #sources = NO_SOURCES
  /** Waiting sources, next turn first. A source found at its share moves to `#over` until `#under` is empty. */
  readonly #under: Chain<QueueSource> = new Chain()
  readonly #over: Chain<QueueSource> = new Chain()
  #count = 0
  #bytes = 0
  #held = 0
  /** Sum over `#sources`. */
  #weights = 0

  /** @param size limit at which `overflow` removes something. Default: unlimited */
  constructor(size: QueueSize = UNLIMITED) {
    this.#size = size
  }

  /** Number of waiting items. */
  get count(): number {
    return this.#count
  }

  /** Bytes held by waiting items. */
  get bytes(): number {
    return this.#bytes
  }

  /** Number of waiting sources. */
  get sources(): number {
    return this.#under.size + this.#over.size
  }

  /** What all sources hold together. */
  get held(): number {
    return this.#held
  }

  /** Number of waiting items of one source. */
  waitingOf(name: string): number {
    return this.#sources.get(name)?.items.size ?? 0
  }

  /** What one source holds. */
  heldBy(name: string): number {
    return this.#sources.get(name)?.held ?? 0
  }

  // === waiting ===

  /** Queued behind all items of its source; no-op if already waiting. If the queue is bounded, call `overflow` afterwards. */
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

  /** Its weight changed while it held something and had no waiting items. */
  #weigh(source: QueueSource, weight: number): void {
    this.#weights -= source.weight
    source.weight = Math.max(1, weight)
    this.#weights += source.weight
  }

  /** The item now holds more memory. Call `overflow` afterwards. */
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

  #takeOut(source: QueueSource, item: T): void {
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
   * Removes one item if the queue is over its limit: the last one from the source of `latest` if that waits with its share or more,
   * otherwise from the source that waits with the most. Call until it returns undefined.
   * @param latest the item that was added or has grown
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

  #waitsWithItsShare(source: QueueSource, byCount: boolean): boolean {
    const all = byCount ? this.#count : this.#bytes
    const own = byCount ? source.items.size : source.bytes
    // `#weights` includes sources that hold something and do not wait: this share may be too small, never too large.
    return own * this.#weights >= all * source.weight
  }

  /**
   * The last item of the source with the most waiting for its weight. Among equals, the source furthest from its turn, so that a newcomer
   * does not displace those before it. O(sources).
   */
  lastOfLongest(byCount: boolean = true): T | undefined {
    let longest: QueueSource | undefined
    let most = -1
    for (const line of [this.#under, this.#over]) {
      for (let source = line.first; source !== undefined; source = source.after as QueueSource | undefined) {
        const length = (byCount ? source.items.size : source.bytes) / source.weight
        if (length < most) continue
        longest = source
        most = length
      }
    }
    return longest?.items.last as T | undefined
  }

  /** Takes the item whose turn it is; undefined = none waits. Call `hold` if it gets a unit of the resource. */
  next(): T | undefined {
    for (let source = this.#under.first; source !== undefined; source = this.#under.first) {
      if (!this.isAtShare(source)) return this.grant(source)
      this.#line(source, this.#over)
    }
    const source = this.#over.first
    return source === undefined ? undefined : this.grant(source)
  }

  /**
   * The first source, in turn order, that `admits` accepts. Call `grant` for its item.
   * @param admits called with the source and its oldest item
   */
  first(admits: (source: QueueSource, item: T) => boolean): QueueSource | undefined {
    for (const line of [this.#under, this.#over]) {
      for (let source = line.first; source !== undefined; source = source.after as QueueSource | undefined) {
        if (admits(source, source.items.first as T)) return source
      }
    }
    return undefined
  }

  /** Takes the source's oldest item; this uses one of its turns. */
  grant(source: QueueSource): T | undefined {
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
  #line(source: QueueSource, line: Chain<QueueSource> | undefined): void {
    source.line?.remove(source)
    source.line = line
    line?.push(source)
  }

  /** The oldest item of each source. */
  *firsts(): Iterable<T> {
    for (const source of [...this.#under, ...this.#over])
      if (source.items.first !== undefined) yield source.items.first as T
  }

  /** Removes all waiting items, in no particular order. */
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

  /** The source now holds one more unit of the contended resource. */
  hold(name: string, weight: number = 1): void {
    this.#sourceOf(name, weight).held++
    this.#held++
  }

  /** The source has returned one. */
  release(name: string): void {
    const source = this.#sources.get(name)
    if (source === undefined || source.held === 0) return
    source.held--
    this.#held--
    if (source.line === this.#over) this.#line(source, this.#under)
    this.#forgetUnused(source)
  }

  /** Resets all holdings to zero. */
  forgetHeld(): void {
    for (const source of this.#sources.values()) {
      source.held = 0
      this.#forgetUnused(source)
    }
    this.#held = 0
    for (let source = this.#over.first; source !== undefined; source = this.#over.first) this.#line(source, this.#under)
  }

  /** Whether a source holds at least its share, by weight, of everything held. False if it holds nothing. */
  holdsItsShare(name: string): boolean {
    const source = this.#sources.get(name)
    return source !== undefined && this.isAtShare(source)
  }

  /** As `holdsItsShare`. */
  isAtShare(source: QueueSource): boolean {
    return source.held * this.#weights >= this.#held * source.weight && source.held > 0
  }

  #sourceOf(name: string, weight: number): QueueSource {
    const known = this.#sources.get(name)
    if (known !== undefined) return known
    const source = new QueueSource(name, Math.max(1, weight))
    if (this.#sources === NO_SOURCES) this.#sources = new Map()
    this.#sources.set(name, source)
    this.#weights += source.weight
    return source
  }

  #forgetUnused(source: QueueSource): void {
    if (source.items.size > 0 || source.held > 0) return
    this.#sources.delete(source.name)
    this.#weights -= source.weight
  }
}
