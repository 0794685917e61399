// How many tokens of a bucket that all replicas share this one asks Redis for, and when. Pure: the clock is an argument.
//
// The bucket lives in Redis, cut in two: one half of the burst stays there, the other half may lie with the replicas, an
// equal part with each while nobody needs it. Beyond that part a replica holds what its requests will take until
// the next answer, and gives back what it no longer needs. So in any time t, all replicas admit at most
//
//   burst + qps * t + AHEAD_MS * qps
//
// requests together. While they ask for more than there is, nothing is saved up (CONTENDED_MS): then it is at most
// qps * (t + CONTENDED_MS + AHEAD_MS), a tenth above the limit in any one second. Each term is one token at least, so
// limits of a few requests a second are coarser. One replica alone finds most of the burst, not all: others hold a part.

import type { CompiledSharedLimit } from '../cluster/compiled-cluster.ts'
import type { ReplicaPart, SharingMode } from './global-replicas.ts'

/** Milliseconds between two looks at what requests took. */
export const TOKENS_EVERY_MS = 25
/** For so long a time tokens are fetched ahead. */
export const AHEAD_MS = 50
/** What was not fetched for so long a time is lost while there is too little for all. */
export const CONTENDED_MS = 50
/** An account that Redis has heard nothing of for so long starts empty: what was spent of it, nobody knows. */
export const FORGOTTEN_MS = 3_000
/** A replica that needs nothing asks so often: what is left, and so that the account is not forgotten. */
const REFRESH_MS = 500
/** How fast demand is forgotten. */
const DEMAND_MS = 100
/** Of a second: what a replica may take of a limit that is new to it, before Redis has answered. */
const SEED_MS = 50

/** What of the burst is kept in Redis. The rest may lie with replicas. */
export function pooledBurst(burst: number): number {
  return burst - Math.floor(burst / 2)
}

export class TokenShare {
  limit: CompiledSharedLimit
  /** Requests a second, admitted or not. */
  demand = 0
  /** Tokens in Redis when it last said so. */
  #level = 0
  #taken: number
  #missed: number
  #lastMs: number
  #syncMs = Number.NEGATIVE_INFINITY
  #lacking = false
  /** Fractions of tokens that are this replica's part of the limit. */
  #allowance = 0

  constructor(limit: CompiledSharedLimit, nowMs: number, taken: number, missed: number) {
    this.limit = limit
    this.#lastMs = nowMs
    this.#taken = taken
    this.#missed = missed
  }

  /** What may be admitted before Redis has said anything. */
  seed(part: ReplicaPart): number {
    return Math.max(1, Math.floor((this.limit.qps * SEED_MS) / 1000 / part.replicas))
  }

  /** To be called at every look: how demand is, and what of the limit is this replica's part since the last look. */
  observe(taken: number, missed: number, { replicas }: ReplicaPart, nowMs: number): void {
    const elapsed = nowMs - this.#lastMs
    if (elapsed <= 0) return
    const lacked = (missed - this.#missed) | 0
    const rate = ((((taken - this.#taken) | 0) + lacked) * 1000) / elapsed
    const weight = 1 - Math.exp(-elapsed / DEMAND_MS)
    this.demand = rate > this.demand ? rate : this.demand + weight * (rate - this.demand)
    this.#taken = taken
    this.#missed = missed
    this.#lastMs = nowMs
    this.#lacking = lacked > 0
    // A look that comes late must not let through at once what would have been let through meanwhile.
    const counted = this.#lacking ? Math.min(elapsed, CONTENDED_MS) : elapsed
    const most = Math.max(1, (this.limit.qps * AHEAD_MS) / 1000 / replicas)
    this.#allowance = Math.min(this.#allowance, most) + (this.limit.qps * counted) / 1000 / replicas
  }

  /** With Redis away: how many tokens of this replica's part are due. */
  due(atHand: number, { replicas }: ReplicaPart): number {
    const room = Math.max(1, Math.floor(this.limit.burst / replicas)) - atHand
    const whole = Math.max(0, Math.min(Math.floor(this.#allowance), room))
    this.#allowance = Math.min(this.#allowance - whole, 1)
    this.#syncMs = Number.NEGATIVE_INFINITY
    this.#level = 0
    return whole
  }

  /**
   * How many tokens to ask Redis for; less than 0 = to give back, 0 = to ask only how many there are; undefined = nothing
   * to say.
   */
  wants(atHand: number, mode: SharingMode, { replicas }: ReplicaPart, nowMs: number): number | undefined {
    const ahead = Math.ceil((this.demand * AHEAD_MS) / 1000)
    const target = ahead + this.#reserve(atHand, replicas)
    let wanted = target - atHand
    if (mode === 'returning') wanted = Math.min(wanted, Math.floor(this.#allowance))
    const spare = -wanted
    if (wanted > 0 || spare > 1 + Math.floor(target / 4)) return wanted
    return nowMs - this.#syncMs >= REFRESH_MS ? 0 : undefined
  }

  /** What came of it: `change` tokens more (or less) with this replica, `level` left in Redis. */
  answered(change: number, level: number, nowMs: number): void {
    this.#level = level
    this.#syncMs = nowMs
    if (change > 0) this.#allowance = Math.max(0, this.#allowance - change)
  }

  /** An equal part of what lies unused, here and in Redis, and never more than its part of half of the burst. */
  #reserve(atHand: number, replicas: number): number {
    const most = Math.floor(this.limit.burst / 2 / replicas)
    return Math.min(most, Math.floor((this.#level + atHand) / (replicas + 1)))
  }
}
