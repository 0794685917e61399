// Three replicas sharing a bucket, on a fake clock: admissions stay within the documented bound, whatever the arrival pattern.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { ReplicaPart } from './global-replicas.ts'
import { AHEAD_MS, CONTENDED_MS, pooledBurst, ReplicaTokens, TOKENS_EVERY_MS } from './global-tokens.ts'

const PART: ReplicaPart = { replicas: 3, rank: 0 }

/** The same rules as the script in Redis. */
class Pool {
  level = 0
  #since = 0
  #short = 0
  readonly #size: number
  readonly #qps: number

  constructor(qps: number, burst: number) {
    this.#qps = qps
    this.#size = pooledBurst(burst)
  }

  take(wanted: number, nowMs: number): number {
    const contended = this.#since - this.#short < 1000
    const room = contended ? Math.min(this.#size, Math.max(1, (this.#qps * CONTENDED_MS) / 1000)) : this.#size
    this.level = Math.min(room, this.level + (this.#qps * (nowMs - this.#since)) / 1000)
    const given = wanted > 0 ? Math.min(wanted, Math.floor(this.level)) : wanted
    if (given < wanted) this.#short = nowMs
    this.level = Math.min(room, this.level - given)
    this.#since = nowMs
    return given
  }
}

class Replica {
  readonly sharing: ReplicaTokens
  tokens = 0
  #taken = 0
  #missed = 0

  constructor(qps: number, burst: number) {
    this.sharing = new ReplicaTokens({ qps, burst, max: 0 }, 0, 0, 0)
    this.tokens = this.sharing.seed(PART)
  }

  requests(count: number): number {
    const admitted = Math.min(count, this.tokens)
    this.tokens -= admitted
    this.#taken += admitted
    this.#missed += count - admitted
    return admitted
  }

  look(pool: Pool | undefined, nowMs: number): void {
    this.sharing.observe(this.#taken, this.#missed, PART, nowMs)
    if (pool === undefined) {
      this.tokens += this.sharing.due(this.tokens, PART)
      return
    }
    const wanted = this.sharing.wants(this.tokens, 'shared', PART, nowMs)
    if (wanted === undefined) return
    const change = pool.take(Math.max(wanted, -this.tokens), nowMs)
    this.tokens += change
    this.sharing.answered(change, pool.level, nowMs)
  }
}

/** Admissions in each step of 5 ms. `demand`: requests per second at each replica, by step. */
function run(
  qps: number,
  burst: number,
  steps: number,
  demand: (step: number) => readonly number[],
  redis = true,
): number[] {
  const pool = redis ? new Pool(qps, burst) : undefined
  const replicas = [0, 1, 2].map(() => new Replica(qps, burst))
  const owed = [0, 0, 0]
  return Array.from({ length: steps }, (_, step) => {
    const nowMs = (step + 1) * 5
    let admitted = 0
    for (const [i, replica] of replicas.entries()) {
      owed[i] = (owed[i] ?? 0) + ((demand(step)[i] ?? 0) * 5) / 1000
      const whole = Math.floor(owed[i] ?? 0)
      owed[i] = (owed[i] ?? 0) - whole
      admitted += replica.requests(whole)
      if ((step + i) % (TOKENS_EVERY_MS / 5) === 0) replica.look(pool, nowMs)
    }
    return admitted
  })
}

function mostIn(admitted: readonly number[], steps: number): number {
  let most = 0
  for (let i = 0; i + steps <= admitted.length; i++) {
    most = Math.max(most, sum(admitted.slice(i, i + steps)))
  }
  return most
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0)

describe('a bucket that three replicas share', () => {
  it('gives out all of the limit, and no more', () => {
    for (const demand of [
      [200, 200, 200],
      [600, 0, 0],
      [10, 900, 30],
    ] as const) {
      const admitted = run(300, 300, 12_000, () => demand)
      assert.ok(Math.abs(sum(admitted) - 18_000) <= 360, `${sum(admitted)}`)
      assert.ok(mostIn(admitted, 200) <= 330, `${mostIn(admitted, 200)}`)
    }
  })

  it('refuses nothing below the limit', () => {
    for (const each of [5, 60, 95]) {
      // The first second: a bucket that Redis does not know starts empty.
      const admitted = sum(run(300, 300, 2_200, () => [each, each, each]).slice(200))
      assert.ok(admitted >= each * 30 - 3, `${admitted} of ${each * 30}`)
    }
  })

  it('has what idle replicas held back, once others have too little', () => {
    const admitted = run(300, 300, 2_000, (step) => [step < 400 ? 0 : 900, step < 1_400 ? 0 : 600, 0])
    const most = mostIn(admitted.slice(1_000), 200)
    assert.ok(most <= 330, `${most}`)
  })

  it('has one burst after a pause, and not one for each replica', () => {
    const admitted = run(300, 300, 2_000, (step) => (step < 1_000 ? [0, 0, 0] : [3_000, 3_000, 3_000]))
    assert.ok(mostIn(admitted, 20) <= 300 + 30 + 15, `${mostIn(admitted, 20)}`)
    assert.ok(mostIn(admitted, 20) >= 250, `${mostIn(admitted, 20)}`)
  })

  it('never admits more than burst + qps * t + what is fetched ahead, whatever comes', () => {
    const rate = fc.integer({ min: 0, max: 3_000 })
    const phases = fc.array(fc.tuple(rate, rate, rate), { minLength: 6, maxLength: 6 })
    const limits = fc.tuple(fc.integer({ min: 20, max: 1_000 }), fc.integer({ min: 0, max: 1_000 }))
    fc.assert(
      fc.property(limits, phases, ([qps, more], plan) => {
        const burst = qps + more
        const admitted = run(qps, burst, 1_200, (step) => plan[Math.floor(step / 200)] ?? [0, 0, 0])
        const ahead = (qps * AHEAD_MS) / 1000 + 3
        for (const steps of [1, 20, 200, 600]) {
          const bound = burst + (qps * steps * 5) / 1000 + ahead
          assert.ok(mostIn(admitted, steps) <= bound, `${mostIn(admitted, steps)} in ${steps * 5} ms, bound ${bound}`)
        }
      }),
      { numRuns: 50 },
    )
  })

  it('is the sum of the parts when Redis is away', () => {
    const admitted = run(300, 300, 2_000, () => [300, 300, 300], false)
    assert.ok(Math.abs(sum(admitted) - 3_000) <= 60, `${sum(admitted)}`)
    const one = run(300, 300, 2_000, () => [300, 0, 0], false)
    assert.ok(sum(one) <= 1_110 && sum(one) >= 980, `${sum(one)}`)
  })
})
