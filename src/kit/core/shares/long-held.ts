// A resource whose units are held for long, one per item (a watch, a connection), so that waiting for a release would take too long. While
// the reserve is in use, the source furthest above its share is next to lose its oldest item.

import { Places } from '../places/places.ts'
import { Shares, type Taken } from './shares.ts'

export class LongHeld<Item extends object> {
  readonly shares: Shares
  readonly #places: Places<Item>

  /** @param capacity see Shares */
  constructor(capacity: number) {
    this.shares = new Shares(capacity)
    this.#places = new Places(capacity)
  }

  /**
   * @param weight at least 1
   * @param preferred evicted before the source's other items
   */
  take(item: Item, source: string, weight: number, preferred: boolean): Taken {
    const taken = this.shares.take(source, weight, 1)
    if (taken === 'taken' && this.shares.capacity > 0) this.#places.add(item, source, weight, preferred)
    return taken
  }

  /** No-op for an item that was not taken or was already given back. */
  give(item: Item): void {
    const source = this.#places.delete(item)
    if (source !== undefined) this.shares.give(source, 1)
  }

  /** Sets whether the item is evicted before others of its source; it then counts as the youngest of its group. */
  prefer(item: Item, preferred: boolean): void {
    this.#places.setSpare(item, preferred)
  }

  /**
   * The next item to evict, while the reserve is in use and some source is above its share; undefined = none. It stays counted until it is
   * given back, and is not returned again.
   */
  toGiveUp(): Item | undefined {
    return this.#places.toGiveUp(this.#hasShare)
  }

  readonly #hasShare = (source: string, weight: number, count: number): boolean =>
    count <= this.shares.shareOf(source, weight)
}
