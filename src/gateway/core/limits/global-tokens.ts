// How many tokens of a shared bucket this replica requests from Redis, and when. Pure: the clock is an argument.
//
// The bucket lives in Redis. Half of the burst stays there; the other half may be held by the replicas, in equal parts while there is no
// demand. Beyond its part a replica holds what its requests will take until the next answer, and returns what it no longer needs. So in any
// time t, all replicas together admit at most
//
//   burst + qps * t + AHEAD_MS * qps
//
// requests. While demand exceeds the limit, nothing is saved up (CONTENDED_MS), and they admit at most qps * (t + CONTENDED_MS + AHEAD_MS),
// a tenth above the limit in any one second. Each term is at least one token, so limits of a few requests per second are coarser. A single
// replica finds most of the burst, not all: the others hold a part.

import type { CompiledSharedLimit } from '../cluster/compiled-cluster.ts'
import type { ReplicaPart, SharingMode } from './global-replicas.ts'

/** Milliseconds between two measurements of consumption. */
export const TOKENS_EVERY_MS = 25
/** Tokens are fetched for the expected demand of this time ahead. */
export const AHEAD_MS = 50
/** While demand exceeds the limit, tokens not fetched within this time are lost. */
export const CONTENDED_MS = 50
/** An account that Redis has not heard of for this long starts empty, because its past use is unknown. */
export const FORGOTTEN_MS = 3_000
/** How often an idle replica asks for the level, which also keeps the account from expiring. */
const REFRESH_MS = 500
/** Decay time of the demand estimate. */
const DEMAND_MS = 100
/** Before Redis has answered about a new limit, a replica may use the tokens of this time. */
const SEED_MS = 50

/** The part of the burst that stays in Redis; replicas may hold the rest. */
export function pooledBurst(burst: number): number {
  return burst - Math.floor(burst / 2)
}

export class ReplicaTokens {
  limit: CompiledSharedLimit
  /** Requests per second, admitted or not. */
  demand = 0
  /** Tokens in Redis at its last answer. */
  #level = 0
  #taken: number
  #missed: number
  #lastMs: number
  #syncMs = Number.NEGATIVE_INFINITY
  #lacking = false
  /** Accrued fractions of tokens from this replica's part of the limit. */
  #allowance = 0

  constructor(limit: CompiledSharedLimit, nowMs: number, taken: number, missed: number) {
    this.limit = limit
    this.#lastMs = nowMs
    this.#taken = taken
    this.#missed = missed
  }

  /** Tokens that may be used before the first answer from Redis. */
  seed(part: ReplicaPart): number {
    return Math.max(1, Math.floor((this.limit.qps * SEED_MS) / 1000 / part.replicas))
  }

  /** Called on each tick: updates the demand, and this replica's share accrued since the last tick. */
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
    // A late tick must not admit in one go what would have been admitted in between.
    const counted = this.#lacking ? Math.min(elapsed, CONTENDED_MS) : elapsed
    const most = Math.max(1, (this.limit.qps * AHEAD_MS) / 1000 / replicas)
    this.#allowance = Math.min(this.#allowance, most) + (this.limit.qps * counted) / 1000 / replicas
  }

  /** While Redis is unavailable: how many tokens of this replica's part are due. */
  due(atHand: number, { replicas }: ReplicaPart): number {
    const room = Math.max(1, Math.floor(this.limit.burst / replicas)) - atHand
    const whole = Math.max(0, Math.min(Math.floor(this.#allowance), room))
    this.#allowance = Math.min(this.#allowance - whole, 1)
    this.#syncMs = Number.NEGATIVE_INFINITY
    this.#level = 0
    return whole
  }

  /**
   * How many tokens to request from Redis; negative = to return, 0 = only query the level; undefined = no call is needed.
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

  /** The answer: this replica gains `change` tokens (or loses them), and `level` are left in Redis. */
  answered(change: number, level: number, nowMs: number): void {
    this.#level = level
    this.#syncMs = nowMs
    if (change > 0) this.#allowance = Math.max(0, this.#allowance - change)
  }

  /** An equal part of the unused tokens, here and in Redis, but at most this replica's part of half of the burst. */
  #reserve(atHand: number, replicas: number): number {
    const most = Math.floor(this.limit.burst / 2 / replicas)
    // A replica in debt reserves nothing.
    return Math.max(0, Math.min(most, Math.floor((this.#level + atHand) / (replicas + 1))))
  }
}
