// A bounded pool of places held for long, one per item (a watch, a connection). When it is over capacity, the source with the most items
// for its weight loses one: its oldest spare item, which costs its client least, or else one in use.

/** The items of one source. */
interface Holding<Item> {
  readonly source: string
  weight: number
  /** Oldest first. */
  readonly spare: Set<Item>
  readonly used: Set<Item>
  /** In the order in which they came into use, newest last; may contain stale entries. Empty unless the newest is evicted. */
  stack: Item[]
  /** Items per unit of weight, rounded down. */
  level: number
}

interface Level<Item> {
  readonly withSpare: Set<Holding<Item>>
  readonly others: Set<Holding<Item>>
}

interface PlaceOrder {
  /** Evict the newest of the items in use, so that the longest waiters are served. Default: the oldest */
  readonly newestFirst?: boolean
  /** If several sources have the most, evict from the one that came last. Default: from one with a spare item */
  readonly newcomersLeave?: boolean
}

/** A stack with at most this many stale entries is not cleared. */
const LEAST_STACK = 16

export class Places<Item extends object> {
  readonly #capacity: number
  readonly #order: PlaceOrder
  /** The holding that last gained an item. */
  #newcomer: Holding<Item> | undefined
  readonly #holdings = new Map<string, Holding<Item>>()
  /** Includes evicted items until they are deleted. */
  readonly #holdingOf = new Map<Item, Holding<Item>>()
  #leaving = 0
  readonly #levels: Level<Item>[] = []

  /** @param capacity 0 = unlimited */
  constructor(capacity: number, order: PlaceOrder = {}) {
    this.#capacity = capacity
    this.#order = order
  }

  /** Items not yet evicted. */
  get size(): number {
    return this.#holdingOf.size - this.#leaving
  }

  countOf(source: string): number {
    const holding = this.#holdings.get(source)
    return holding === undefined ? 0 : countOf(holding)
  }

  /** Adds an item that is not here yet. @param weight at least 1; a source's latest one counts */
  add(item: Item, source: string, weight = 1, spare = true): void {
    let holding = this.#holdings.get(source)
    if (holding === undefined) {
      holding = { source, weight, spare: new Set(), used: new Set(), stack: [], level: 0 }
      this.#holdings.set(source, holding)
    }
    holding.weight = weight
    this.#holdingOf.set(item, holding)
    this.#put(holding, item, spare)
    this.#newcomer = holding
  }

  /** Makes it the newest of its source's spare items, or of those in use. */
  setSpare(item: Item, spare: boolean): void {
    const holding = this.#holdingOf.get(item)
    if (holding !== undefined && (spare ? holding.used : holding.spare).delete(item)) this.#put(holding, item, spare)
  }

  /** @returns its source; undefined = unknown item */
  delete(item: Item): string | undefined {
    const holding = this.#holdingOf.get(item)
    if (holding === undefined) return undefined
    this.#holdingOf.delete(item)
    if (!this.#takeOut(holding, item)) this.#leaving--
    return holding.source
  }

  /**
   * The item to evict while over capacity; undefined = there is room. It no longer counts, and is not returned again.
   * @param mayKeep whether a source with this many items is spared
   */
  toGiveUp(mayKeep?: (source: string, weight: number, count: number) => boolean): Item | undefined {
    if (this.#capacity === 0 || this.size <= this.#capacity) return undefined
    const most = this.#most()
    if (most === undefined || mayKeep?.(most.source, most.weight, countOf(most)) === true) return undefined
    return this.#giveUp(most, first(most.spare) ?? this.#firstUsed(most))
  }

  /** The oldest spare item of this source; undefined = none. Otherwise as toGiveUp. */
  toGiveUpSpare(source: string): Item | undefined {
    const holding = this.#holdings.get(source)
    return holding && this.#giveUp(holding, first(holding.spare))
  }

  #giveUp(holding: Holding<Item>, item: Item | undefined): Item | undefined {
    if (item === undefined) return undefined
    this.#takeOut(holding, item)
    this.#leaving++
    return item
  }

  #most(): Holding<Item> | undefined {
    const top = this.#levels.at(-1)
    if (this.#order.newcomersLeave === true && this.#newcomer?.level === this.#levels.length - 1) return this.#newcomer
    // A newcomer has a spare item, so it goes before the others' items in use.
    return first(top?.withSpare) ?? first(top?.others)
  }

  #firstUsed(holding: Holding<Item>): Item | undefined {
    if (this.#order.newestFirst !== true) return first(holding.used)
    for (let item = holding.stack.pop(); item !== undefined; item = holding.stack.pop()) {
      if (holding.used.has(item)) return item
    }
    return undefined
  }

  #put(holding: Holding<Item>, item: Item, spare: boolean): void {
    if (spare) holding.spare.add(item)
    else holding.used.add(item)
    this.#rank(holding)
    if (spare || this.#order.newestFirst !== true) return
    holding.stack.push(item)
    if (holding.stack.length > 2 * holding.used.size + LEAST_STACK) holding.stack = [...holding.used]
  }

  /** @returns false if it was already leaving */
  #takeOut(holding: Holding<Item>, item: Item): boolean {
    if (!holding.spare.delete(item) && !holding.used.delete(item)) return false
    this.#rank(holding)
    // Leaving items still refer to it; the source's next item gets a new holding.
    if (holding.spare.size + holding.used.size === 0) this.#holdings.delete(holding.source)
    return true
  }

  #rank(holding: Holding<Item>): void {
    const before = this.#levels[holding.level]
    const level = Math.floor(countOf(holding) / holding.weight)
    const withSpare = holding.spare.size > 0
    // It keeps its position among its equals.
    if (level === holding.level && (withSpare ? before?.withSpare : before?.others)?.has(holding) === true) return
    before?.withSpare.delete(holding)
    before?.others.delete(holding)
    holding.level = level
    while (this.#levels.length <= level) this.#levels.push({ withSpare: new Set(), others: new Set() })
    const now = this.#levels[level]
    // At 0 there is nothing to evict.
    if (level > 0) (withSpare ? now?.withSpare : now?.others)?.add(holding)
    while (isEmpty(this.#levels.at(-1))) this.#levels.pop()
  }
}

function countOf<Item>({ spare, used }: Holding<Item>): number {
  return spare.size + used.size
}

function isEmpty<Item>(level: Level<Item> | undefined): boolean {
  return level !== undefined && level.withSpare.size + level.others.size === 0
}

function first<T>(items: ReadonlySet<T> | undefined): T | undefined {
  for (const item of items ?? []) return item
  return undefined
}
