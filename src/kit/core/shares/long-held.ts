// A resource whose units are held for long, one for each item (a watch, a connection): waiting until somebody gives back would take too long.
// While the reserve is in use, the source that is most above its share is the next to give up one, its oldest.

import { Places } from '../places/places.ts'
import { Shares, type Taken } from './shares.ts'

export class LongHeld<Item extends object> {
  readonly shares: Shares
  readonly #places: Places<Item>

  /** @param capacity as of Shares */
  constructor(capacity: number) {
    this.shares = new Shares(capacity)
    this.#places = new Places(capacity)
  }

  /**
   * @param weight at least 1
   * @param preferred it is given up before those of the same source that are not
   */
  take(item: Item, source: string, weight: number, preferred: boolean): Taken {
    const taken = this.shares.take(source, weight, 1)
    if (taken === 'taken' && this.shares.capacity > 0) this.#places.add(item, source, weight, preferred)
    return taken
  }

  /** Does nothing for what was not taken, or was given back before. */
  give(item: Item): void {
    const source = this.#places.delete(item)
    if (source !== undefined) this.shares.give(source, 1)
  }

  /** From now on it is, or is not, given up before others of its source; among its like it counts as the youngest. */
  prefer(item: Item, preferred: boolean): void {
    this.#places.setSpare(item, preferred)
  }

  /**
   * The next that is to end, while the reserve is in use and somebody has more than a share; undefined = none. It stays counted until it is
   * given back, and is not named again.
   */
  toGiveUp(): Item | undefined {
    return this.#places.toGiveUp(this.#hasShare)
  }

  readonly #hasShare = (source: string, weight: number, count: number): boolean =>
    count <= this.shares.shareOf(source, weight)
}
