// A resource whose units are held for long, one for each item (a watch, a connection): waiting until somebody gives back would take too long.
// While the reserve is in use, the source that is most above its share is the next to give up one, its oldest.

import { Shares, type Taken } from './shares.ts'

interface Holding<Item> {
  readonly source: string
  weight: number
  /** That may be given up, the oldest first: those that are preferred, because it costs their client least, and the others. */
  readonly preferred: Set<Item>
  readonly others: Set<Item>
  level: number
}

export class LongHeld<Item extends object> {
  readonly shares: Shares
  readonly #holdings = new Map<string, Holding<Item>>()
  readonly #holdingOf = new Map<Item, Holding<Item>>()
  /** Holdings by units for each unit of weight, rounded down. */
  readonly #levels: Set<Holding<Item>>[] = []
  /** Told to go, and not gone yet. */
  #leaving = 0

  /** @param capacity as of Shares */
  constructor(capacity: number) {
    this.shares = new Shares(capacity)
  }

  /**
   * @param weight at least 1
   * @param preferred it is given up before those of the same source that are not
   */
  take(item: Item, source: string, weight: number, preferred: boolean): Taken {
    const taken = this.shares.take(source, weight, 1)
    if (taken !== 'taken' || this.shares.capacity === 0) return taken
    let holding = this.#holdings.get(source)
    if (holding === undefined) {
      holding = { source, weight, preferred: new Set(), others: new Set(), level: 0 }
      this.#holdings.set(source, holding)
    } else holding.weight = weight
    setOf(holding, preferred).add(item)
    this.#holdingOf.set(item, holding)
    this.#rank(holding)
    return 'taken'
  }

  /** Does nothing for what was not taken, or was given back before. */
  give(item: Item): void {
    const holding = this.#holdingOf.get(item)
    if (holding === undefined) return
    this.#holdingOf.delete(item)
    this.shares.give(holding.source, 1)
    if (!this.#drop(holding, item)) this.#leaving--
    if (this.shares.heldBy(holding.source) === 0) this.#holdings.delete(holding.source)
  }

  /** From now on it is, or is not, given up before others of its source; among its like it counts as the youngest. */
  prefer(item: Item, preferred: boolean): void {
    const holding = this.#holdingOf.get(item)
    if (holding !== undefined && setOf(holding, !preferred).delete(item)) setOf(holding, preferred).add(item)
  }

  /**
   * The next that is to end, while the reserve is in use and somebody has more than a share; undefined = none. It stays counted until it is
   * given back, and is not named again.
   */
  toGiveUp(): Item | undefined {
    const { shares } = this
    if (shares.held - this.#leaving <= shares.capacity) return undefined
    const most = this.#most()
    if (most === undefined || countOf(most) <= shares.shareOf(most.source, most.weight)) return undefined
    const item = first(most.preferred) ?? first(most.others)
    if (item === undefined) return undefined
    this.#drop(most, item)
    this.#leaving++
    return item
  }

  /** False: it was leaving already. */
  #drop(holding: Holding<Item>, item: Item): boolean {
    if (!holding.preferred.delete(item) && !holding.others.delete(item)) return false
    this.#rank(holding)
    return true
  }

  #rank(holding: Holding<Item>): void {
    const level = Math.floor(countOf(holding) / holding.weight)
    this.#levels[holding.level]?.delete(holding)
    holding.level = level
    while (this.#levels.length <= level) this.#levels.push(new Set())
    // At 0 there is nothing to give up.
    if (level > 0) this.#levels[level]?.add(holding)
    while (this.#levels.at(-1)?.size === 0) this.#levels.pop()
  }

  #most(): Holding<Item> | undefined {
    const top = this.#levels.at(-1)
    return top === undefined ? undefined : first(top)
  }
}

function setOf<Item>(holding: Holding<Item>, preferred: boolean): Set<Item> {
  return preferred ? holding.preferred : holding.others
}

function countOf<Item>({ preferred, others }: Holding<Item>): number {
  return preferred.size + others.size
}

function first<T>(items: ReadonlySet<T>): T | undefined {
  for (const item of items) return item
  return undefined
}
