// A resource in two pools: one for users, and a smaller one for unauthenticated clients, so that they can't take anything from users.

import type { Charge } from '../../api/stream.ts'
import { Places } from '../places/places.ts'
import { Shares, type Taken } from './shares.ts'

/** Limits divided among sources, as metrics and refusals name them. */
export type ShareLimit =
  | 'requests-inflight'
  | 'watches'
  | 'buffered-bytes'
  | 'late-bodies'
  | 'answer-bytes'
  | 'followed-bytes'

/** The pool for unauthenticated clients, on top: one part in this many. */
export const UNKNOWN_PART = 4

function unknownCapacity(capacity: number): number {
  return capacity === 0 ? 0 : Math.max(1, Math.floor(capacity / UNKNOWN_PART))
}

/** For units held briefly. */
export class SharedResource<Limit extends string = ShareLimit> {
  readonly limit: Limit
  readonly known: Shares
  readonly unknown: Shares

  /** @param capacity for users, in units of the resource; 0 = unlimited */
  constructor(limit: Limit, capacity: number) {
    this.limit = limit
    this.known = new Shares(capacity)
    this.unknown = new Shares(unknownCapacity(capacity))
  }

  of(charge: Charge): Shares {
    return charge.known ? this.known : this.unknown
  }

  take(charge: Charge, amount: number): Taken {
    return this.of(charge).take(charge.source, charge.weight, amount)
  }

  give(charge: Charge, amount: number): void {
    this.of(charge).give(charge.source, amount)
  }
}

/** For units held for long. */
export class SharedItems<Item extends object> {
  readonly limit: ShareLimit
  readonly known: LongHeld<Item>
  readonly unknown: LongHeld<Item>

  /** @param capacity see SharedResource */
  constructor(limit: ShareLimit, capacity: number) {
    this.limit = limit
    this.known = new LongHeld(capacity)
    this.unknown = new LongHeld(unknownCapacity(capacity))
  }

  of(charge: Charge): LongHeld<Item> {
    return charge.known ? this.known : this.unknown
  }
}

/**
 * A pool whose units are held for long, one per item (a watch, a connection), so that waiting for a release would take too long. While
 * the reserve is in use, the source furthest above its share is next to lose its oldest item.
 */
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
