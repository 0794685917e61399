// A resource in two pools: one for users, and a smaller one for unauthenticated clients, so that they can't take anything from users.

import type { Charge } from '../../api/stream.ts'
import { LongHeld } from './long-held.ts'
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

export function unknownCapacity(capacity: number): number {
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

/** For units held for long, one per item. */
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
