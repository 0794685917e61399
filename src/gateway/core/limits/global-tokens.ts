// How many tokens of a shared bucket this replica asks Redis for, and when. Pure: the clock is an argument.
//
// The bucket lives in Redis. One half of the burst stays there; the other half may be held by the replicas, in equal parts
// while nobody needs it. Beyond its part a replica holds what its requests will take until the next answer, and returns what
// it no longer needs. So in any time t, all replicas admit at most
//
//   burst + qps * t + AHEAD_MS * qps
//
// requests together. While demand exceeds the limit, nothing is saved up (CONTENDED_MS), and they admit at most
// qps * (t + CONTENDED_MS + AHEAD_MS), a tenth above the limit in any one second. Each term is one token at least, so
// limits of a few requests a second are coarser. One replica alone finds most of the burst, not all: others hold a part.

import type { CompiledSharedLimit } from '../cluster/compiled-cluster.ts'
import type { ReplicaPart, SharingMode } from './global-replicas.ts'

/** Milliseconds between two looks at what requests took. */
export const TOKENS_EVERY_MS = 25
/** Tokens are fetched for the demand of this time ahead. */
export const AHEAD_MS = 50
/** While demand exceeds the limit, what was not fetched for this time is lost. */
export const CONTENDED_MS = 50
/** An account that Redis has not heard of for this long starts empty: nobody knows what was spent. */
export const FORGOTTEN_MS = 3_000
/** How often a replica that needs nothing asks for the level, which also keeps the account from being forgotten. */
const REFRESH_MS = 500
/** How fast demand is forgotten. */
const DEMAND_MS = 100
/** What a replica may take of a limit that is new to it, before Redis has answered: the tokens of this time. */
const SEED_MS = 50

/** The part of the burst that stays in Redis. Replicas may hold the rest. */
export function pooledBurst(burst: number): number {
  return burst - Math.floor(burst / 2)
}

export class ReplicaTokens {
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

  /** Call at each tick: updates the demand, and this replica's part of the limit since the last tick. */
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
    // A late tick must not admit at once what would have been admitted in between.
    const counted = this.#lacking ? Math.min(elapsed, CONTENDED_MS) : elapsed
    const most = Math.max(1, (this.limit.qps * AHEAD_MS) / 1000 / replicas)
    this.#allowance = Math.min(this.#allowance, most) + (this.limit.qps * counted) / 1000 / replicas
  }

  /** While Redis is away: how many tokens of this replica's part are due. */
  due(atHand: number, { replicas }: ReplicaPart): number {
    const room = Math.max(1, Math.floor(this.limit.burst / replicas)) - atHand
    const whole = Math.max(0, Math.min(Math.floor(this.#allowance), room))
    this.#allowance = Math.min(this.#allowance - whole, 1)
    this.#syncMs = Number.NEGATIVE_INFINITY
    this.#level = 0
    return whole
  }

  /**
   * How many tokens to ask Redis for; less than 0 = to return, 0 = to ask only for the level; undefined = no call is
   * needed.
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

  /** The answer: this replica has `change` tokens more (or fewer), and `level` are left in Redis. */
  answered(change: number, level: number, nowMs: number): void {
    this.#level = level
    this.#syncMs = nowMs
    if (change > 0) this.#allowance = Math.max(0, this.#allowance - change)
  }

  /** An equal part of the unused tokens, here and in Redis, and at most this replica's part of half of the burst. */
  #reserve(atHand: number, replicas: number): number {
    const most = Math.floor(this.limit.burst / 2 / replicas)
    // A replica that owes tokens reserves none.
    return Math.max(0, Math.min(most, Math.floor((this.#level + atHand) / (replicas + 1))))
  }
}
