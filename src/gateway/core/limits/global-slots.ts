// How many requests this replica may run under a maxRequestsInflight limit shared by all replicas. Pure: the clock is an argument.
//
// Redis keeps one lease per replica: a number of slots with an expiry. Leases never add up to more than the limit, unless requests were
// already running when the limit was lowered, or Redis lost its data. A replica holds the slots its requests use and a part of the free
// ones, so that requests never wait, and gives up spare slots when few are left. It stops using slots before it returns them to Redis, and
// uses new ones only after Redis has granted them.

import { type ReplicaPart, type SharingMode, wholePart } from './global-replicas.ts'

/** The slots of a replica that Redis has not heard from for this long are free: it has crashed. */
export const LEASE_MS = 5_000
/** How often an unchanged lease is renewed. */
const RENEW_MS = 500
/** A replica above its part yields this fraction of it at a time to one that is below its part and lacks slots. */
const YIELD = 0.1
/** The fraction of its slots that a replica may have spare before it returns them. */
const HOARD = 0.125

/** Redis's state of a limit. */
export interface LeaseAnswer {
  /** Slots of this replica. */
  readonly slots: number
  /** Slots of the other replicas together. */
  readonly others: number
  /** How many other replicas are below their part and recently refused requests. */
  readonly lacking: number
}

export class SlotLease {
  max: number
  /** Slots that Redis last granted; -1 = none requested yet. */
  #granted = -1
  #free = 0
  #othersLack = 0
  #grantedMs = Number.NEGATIVE_INFINITY
  #missed: number
  /** When requests were last refused for lack of slots. */
  #lackedMs = Number.NEGATIVE_INFINITY

  constructor(max: number, missed: number) {
    this.max = max
    this.#missed = missed
  }

  observe(missed: number, nowMs: number): void {
    if (missed !== this.#missed) this.#lackedMs = nowMs
    this.#missed = missed
  }

  /** While Redis is unavailable: this replica's part, but no more than its last lease as long as others may rely on it. */
  parted(part: ReplicaPart, nowMs: number): number {
    const own = wholePart(this.max, part)
    return this.#granted >= 0 && nowMs - this.#grantedMs < LEASE_MS ? Math.min(own, this.#granted) : own
  }

  /** How many slots this replica should have, with `running` in use. */
  target(running: number, mode: SharingMode, part: ReplicaPart, nowMs: number): number {
    const own = wholePart(this.max, part)
    if (this.#granted < 0) return Math.max(running, own)
    const spare = Math.max(0, this.#granted - running)
    const lacks = this.lacks(nowMs)
    // At least one while any is free; none otherwise, because the other replicas need theirs.
    const ahead = (this.#free + spare) / (part.replicas + 1)
    let target = running + (this.#free > 0 || lacks ? Math.max(1, Math.ceil(ahead)) : Math.floor(ahead))
    if (this.#yields(own)) {
      target = Math.min(target, Math.max(own, Math.floor(this.#granted * (1 - YIELD))))
    }
    if (mode === 'returning') target = Math.min(target, own)
    return Math.min(target, this.max)
  }

  lacks(nowMs: number): boolean {
    return nowMs - this.#lackedMs < RENEW_MS
  }

  #yields(own: number): boolean {
    return this.#othersLack > 0 && this.#granted > own
  }

  /** Whether to ask Redis for `target` now: for many fewer, for more, or to renew. */
  isDue(target: number, part: ReplicaPart, nowMs: number): boolean {
    if (target > this.#granted || nowMs - this.#grantedMs >= RENEW_MS) return true
    if (this.#yields(wholePart(this.max, part))) return target < this.#granted
    return this.#granted - target > this.#granted * HOARD
  }

  answered({ slots, others, lacking }: LeaseAnswer, nowMs: number): void {
    this.#granted = slots
    this.#free = Math.max(0, this.max - slots - others)
    this.#othersLack = lacking
    this.#grantedMs = nowMs
  }

  get granted(): number {
    return Math.max(0, this.#granted)
  }
}
