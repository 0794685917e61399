// Who of those that wait gets what becomes free: sources take turns by weight, and one that holds its share already waits until
// nobody waits who holds less. Bounded; when it is full, the source that waits with most loses its last.

import type { Charge } from '../../api/ports/stream.ts'
import { Chain, Linked } from '../queues/chain.ts'

/** Something that waits: in one queue at a time. */
export abstract class Queued extends Linked {
  readonly charge: Charge
  /** Memory that it keeps while it waits. Changed by `FairQueue.grow` only. */
  waitingBytes = 0
  /** For the queue: those of its source, while it waits. */
  of: SourceQueue | undefined = undefined

  constructor(charge: Charge) {
    super()
    this.charge = charge
  }
}

export interface QueueSize {
  /** Most that wait. */
  readonly count: number
  /** Most bytes that they keep, all together. */
  readonly bytes: number
}

/** What waits of one source, in order of arrival, and what it holds. */
class SourceQueue extends Linked {
  readonly charge: Charge
  readonly weight: number
  readonly items: Chain<Queued> = new Chain()
  /** In which it waits for its turn. */
  line: Chain<SourceQueue> | undefined = undefined
  bytes = 0
  /** What it has of that for which others wait. */
  held = 0
  /** Grants since its turn began. */
  granted = 0

  constructor(charge: Charge) {
    super()
    this.charge = charge
    this.weight = Math.max(1, charge.weight)
  }
}

export class FairQueue<T extends Queued> {
  readonly #size: QueueSize
  /** Everybody who waits or holds something. */
  readonly #sources = new Map<string, SourceQueue>()
  /** Sources that wait, the next turn first: those that were not yet found to hold their share, and those that were. */
  readonly #under: Chain<SourceQueue> = new Chain()
  readonly #over: Chain<SourceQueue> = new Chain()
  #count = 0
  #bytes = 0
  #held = 0
  /** Of `#sources`. */
  #weights = 0

  constructor(size: QueueSize) {
    this.#size = size
  }

  /** How many wait. */
  get count(): number {
    return this.#count
  }

  /** What they keep. */
  get bytes(): number {
    return this.#bytes
  }

  /** Of one source. */
  waitingOf(charge: Charge): number {
    return this.#sources.get(charge.source)?.items.size ?? 0
  }

  /** Of one source: what it holds. */
  heldBy(charge: Charge): number {
    return this.#sources.get(charge.source)?.held ?? 0
  }

  // === waiting ===

  /** Call `overflow` afterwards. */
  add(item: T): void {
    const source = this.#sourceOf(item.charge)
    item.of = source
    source.items.push(item)
    source.bytes += item.waitingBytes
    this.#count++
    this.#bytes += item.waitingBytes
    if (source.line === undefined) this.#line(source, this.#under)
  }

  /** It keeps more memory. Call `overflow` afterwards. */
  grow(item: T, bytes: number): void {
    item.waitingBytes += bytes
    if (item.of === undefined) return
    item.of.bytes += bytes
    this.#bytes += bytes
  }

  /** Takes it out of the queue. @returns whether it waited */
  remove(item: T): boolean {
    const source = item.of
    if (source === undefined) return false
    item.of = undefined
    source.items.remove(item)
    source.bytes -= item.waitingBytes
    this.#count--
    this.#bytes -= item.waitingBytes
    if (source.items.size === 0) {
      this.#line(source, undefined)
      source.granted = 0
      this.#forgetUnused(source)
    }
    return true
  }

  /**
   * Removes one where more wait than may: the last of whoever has just come if its source waits with its share or more, else of the
   * source that waits with most. Call it until it returns undefined.
   * @param latest what was added, or has grown
   */
  overflow(latest: T): T | undefined {
    const tooMany = this.#count > this.#size.count
    if (!tooMany && this.#bytes <= this.#size.bytes) return undefined
    const own = latest.of
    const loser = own !== undefined && this.#waitsWithItsShare(own, tooMany) ? own : this.#longest(tooMany)
    const last = loser?.items.last as T | undefined
    if (last !== undefined) this.remove(last)
    return last
  }

  #waitsWithItsShare(source: SourceQueue, byCount: boolean): boolean {
    const all = byCount ? this.#count : this.#bytes
    const own = byCount ? source.items.size : source.bytes
    // Only sources that wait divide a queue among themselves; those that only hold something make this share too small, never too large.
    return own * this.#weights >= all * source.weight
  }

  #longest(byCount: boolean): SourceQueue | undefined {
    let longest: SourceQueue | undefined
    let most = -1
    for (const waiting of [this.#under, this.#over]) {
      for (const source of waiting) {
        const length = (byCount ? source.items.size : source.bytes) / source.weight
        if (length < most) continue
        longest = source
        most = length
      }
    }
    return longest
  }

  /** Whose turn it is, and no longer waits; undefined = nobody waits. Call `hold` for what it gets. */
  next(): T | undefined {
    const source = this.#nextSource()
    return source === undefined ? undefined : this.#grant(source)
  }

  /** The same, for something beside what is divided here: of sources that hold less than their share, the first one that `admits` accepts. */
  nextLight(admits: (charge: Charge) => boolean): T | undefined {
    for (const line of [this.#under, this.#over]) {
      for (const source of line) if (!this.#holdsItsShare(source) && admits(source.charge)) return this.#grant(source)
    }
    return undefined
  }

  #grant(source: SourceQueue): T | undefined {
    const item = source.items.first as T | undefined
    if (item === undefined) return undefined
    source.granted++
    if (source.granted >= source.weight) this.#endTurn(source)
    this.remove(item)
    return item
  }

  #nextSource(): SourceQueue | undefined {
    for (let source = this.#under.first; source !== undefined; source = this.#under.first) {
      if (!this.#holdsItsShare(source)) return source
      this.#line(source, this.#over)
    }
    return this.#over.first
  }

  /** Whether a source holds as much of what is held as its weight gives it, or more. Who holds nothing does not. */
  holdsItsShare(charge: Charge): boolean {
    const source = this.#sources.get(charge.source)
    return source !== undefined && this.#holdsItsShare(source)
  }

  #holdsItsShare(source: SourceQueue): boolean {
    return source.held * this.#weights >= this.#held * source.weight && source.held > 0
  }

  #endTurn(source: SourceQueue): void {
    source.granted = 0
    this.#line(source, source.line)
  }

  /** Lines up at the end. */
  #line(source: SourceQueue, line: Chain<SourceQueue> | undefined): void {
    source.line?.remove(source)
    source.line = line
    line?.push(source)
  }

  /** The first of each source: of each, what has waited longest. */
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
  hold(charge: Charge): void {
    this.#sourceOf(charge).held++
    this.#held++
  }

  /** It has given one back. */
  release(charge: Charge): void {
    const source = this.#sources.get(charge.source)
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
  }

  #sourceOf(charge: Charge): SourceQueue {
    const known = this.#sources.get(charge.source)
    if (known !== undefined) return known
    const source = new SourceQueue(charge)
    this.#sources.set(charge.source, source)
    this.#weights += source.weight
    return source
  }

  #forgetUnused(source: SourceQueue): void {
    if (source.items.size > 0 || source.held > 0 || this.#sources.get(source.charge.source) !== source) return
    this.#sources.delete(source.charge.source)
    this.#weights -= source.weight
  }
}
