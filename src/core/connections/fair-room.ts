// A bounded number of places that are held for long, one for each item. When there are more items than places, the source that has the most
// gives one up: its oldest idle one, or else its newest, so that those who have waited longest for something get it.
// Of several sources that have the most, the one with an idle item gives one up, or (`newcomersLeave`) the one that an item was added to last.

interface Holding<Item> {
  /** The oldest first. */
  readonly idle: Set<Item>
  readonly busy: Set<Item>
  /** As they became busy, the newest last; some are no longer. */
  stack: Item[]
  readonly source: string
  /** How many it has. */
  count: number
}

interface Level<Item> {
  readonly withIdle: Set<Holding<Item>>
  readonly others: Set<Holding<Item>>
}

/** A stack with this many more entries than needed is not cleared. */
const LEAST_STACK = 16

export class FairRoom<Item extends object> {
  readonly #capacity: number
  readonly #newcomersLeave: boolean
  /** The holding that an item was added to last. */
  #newcomer: Holding<Item> | undefined
  readonly #holdings = new Map<string, Holding<Item>>()
  readonly #holdingOf = new Map<Item, Holding<Item>>()
  /** By how many they have; those with an idle one, and the others. */
  readonly #levels: Level<Item>[] = []

  /**
   * @param capacity 0 = any number
   * @param newcomersLeave whether, among sources that have as many each, the one that came last has to go. Otherwise that is one that is
   *   idle. Default: no
   */
  constructor(capacity: number, newcomersLeave = false) {
    this.#capacity = capacity
    this.#newcomersLeave = newcomersLeave
  }

  get size(): number {
    return this.#holdingOf.size
  }

  /** An item that is not here yet; idle, until `setIdle`. */
  add(item: Item, source: string): void {
    let holding = this.#holdings.get(source)
    if (holding === undefined) {
      holding = { idle: new Set(), busy: new Set(), stack: [], source, count: 0 }
      this.#holdings.set(source, holding)
    }
    holding.idle.add(item)
    this.#holdingOf.set(item, holding)
    this.#rank(holding)
    this.#newcomer = holding
  }

  /** It is then the newest of the idle ones, or of the busy ones, of its source. */
  setIdle(item: Item, idle: boolean): void {
    const holding = this.#holdingOf.get(item)
    if (holding === undefined) return
    const [from, to] = idle ? [holding.busy, holding.idle] : [holding.idle, holding.busy]
    if (!from.delete(item)) return
    to.add(item)
    this.#rank(holding)
    if (idle) return
    holding.stack.push(item)
    if (holding.stack.length > 2 * holding.busy.size + LEAST_STACK) holding.stack = [...holding.busy]
  }

  /** Does nothing for what is not here. */
  delete(item: Item): void {
    const holding = this.#holdingOf.get(item)
    if (holding === undefined) return
    this.#holdingOf.delete(item)
    if (!holding.idle.delete(item)) holding.busy.delete(item)
    this.#rank(holding)
    if (holding.count === 0) this.#holdings.delete(holding.source)
  }

  /** Takes out the item that has to go, while there are more than places; undefined = there is room. */
  toGiveUp(): Item | undefined {
    if (this.#capacity === 0 || this.size <= this.#capacity) return undefined
    const top = this.#levels.at(-1)
    const isNewcomer = this.#newcomersLeave && this.#newcomer?.count === this.#levels.length - 1
    // Among equals otherwise one that costs nobody anything: a newcomer is idle, and so it goes itself before those that wait for something.
    const most = isNewcomer ? this.#newcomer : (first(top?.withIdle) ?? first(top?.others))
    const item = first(most?.idle) ?? newestBusy(most)
    if (item !== undefined) this.delete(item)
    return item
  }

  #rank(holding: Holding<Item>): void {
    const before = this.#levels[holding.count]
    const count = holding.idle.size + holding.busy.size
    const withIdle = holding.idle.size > 0
    // It stays where it is among its equals.
    if (count === holding.count && (withIdle ? before?.withIdle : before?.others)?.has(holding) === true) return
    before?.withIdle.delete(holding)
    before?.others.delete(holding)
    holding.count = count
    while (this.#levels.length <= count) this.#levels.push({ withIdle: new Set(), others: new Set() })
    const level = this.#levels[count]
    if (count > 0) (withIdle ? level?.withIdle : level?.others)?.add(holding)
    while (isEmpty(this.#levels.at(-1))) this.#levels.pop()
  }
}

function isEmpty<Item>(level: Level<Item> | undefined): boolean {
  return level !== undefined && level.withIdle.size + level.others.size === 0
}

function first<T>(items: ReadonlySet<T> | undefined): T | undefined {
  for (const item of items ?? []) return item
  return undefined
}

function newestBusy<Item>(holding: Holding<Item> | undefined): Item | undefined {
  for (let item = holding?.stack.pop(); item !== undefined; item = holding?.stack.pop()) {
    if (holding?.busy.has(item) === true) return item
  }
  return undefined
}
