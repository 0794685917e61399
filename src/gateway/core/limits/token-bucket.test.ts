// A token bucket is exact: compared with a rational model, over years, and through changes of its limit.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { CompiledSchema } from '../cluster/compiled-cluster.ts'
import { refund, resize, tokensLeft, tryAcquire } from './flow-control.ts'
import { createFlowMemory, FlowCounter } from './flow-counter.ts'

const NONE = { max: 0, perUser: false, cost: false, maxWatches: 0, shadow: false, strategy: '', shared: undefined }

function bucket(qps: number, burst: number): CompiledSchema {
  return { ...NONE, name: 'b', kind: 'tokenBucket', qps, burst }
}

/** A counter without history: the bucket is full. */
function createFlowCounter(): FlowCounter {
  return new FlowCounter(createFlowMemory(1), 0, 0)
}

function take(schema: CompiledSchema, counter: FlowCounter, nowMs: number, wanted: number): number {
  let taken = 0
  for (let i = 0; i < wanted; i++) if (tryAcquire(schema, counter, nowMs)) taken++
  return taken
}

/** A token bucket in arbitrary-precision integers. Time in units of 1/U ms. */
class RationalBucket {
  readonly qps: bigint
  readonly burst: bigint
  readonly scale: bigint
  /** Tokens times `scale`. */
  level: bigint
  at: bigint

  constructor(qps: number, burst: number, unit: number, start: bigint) {
    this.qps = BigInt(qps)
    this.burst = BigInt(burst)
    this.scale = 1000n * BigInt(unit)
    this.level = this.burst * this.scale
    this.at = start
  }

  tryAcquire(now: bigint): boolean {
    const refilled = this.level + (now - this.at) * this.qps
    const full = this.burst * this.scale
    this.level = refilled < full ? refilled : full
    this.at = now
    if (this.level < this.scale) return false
    this.level -= this.scale
    return true
  }
}

describe('token bucket', () => {
  const limits = fc.record({ qps: fc.constantFrom(1, 3, 7, 10, 1000, 999_983), extra: fc.nat({ max: 20 }) })
  const starts = fc.constantFrom(0, 1, 12_345, 1e9, 1e12)

  it('decides exactly as a rational model, where time falls on ticks', () => {
    const steps = fc.array(fc.oneof(fc.nat({ max: 40 }), fc.nat({ max: 8_000_000 })), { maxLength: 200 })
    fc.assert(
      fc.property(limits, starts, steps, ({ qps, extra }, start, ticks) => {
        const schema = bucket(qps, qps + extra)
        const counter = createFlowCounter()
        let now = BigInt(start) * 4096n
        const model = new RationalBucket(qps, qps + extra, 4096, now)
        for (const step of ticks) {
          now += BigInt(step)
          assert.equal(tryAcquire(schema, counter, Number(now) / 4096), model.tryAcquire(now))
        }
      }),
    )
  })

  it('never admits more than burst + qps * t in any window, for any time a double can hold', () => {
    // Finer than a tick; near 1e12 doubles are no finer than 2^-13 ms.
    const unit = 8192
    const steps = fc.array(fc.oneof(fc.nat({ max: 3 }), fc.nat({ max: 30_000 })), { minLength: 50, maxLength: 300 })
    const small = fc.record({
      qps: fc.constantFrom(1, 3, 1000, 999_983, 4_096_000, 8_192_000),
      burst: fc.integer({ min: 1, max: 5 }),
    })
    fc.assert(
      fc.property(small, starts, steps, ({ qps, burst }, start, units) => {
        const schema = bucket(qps, burst)
        const counter = createFlowCounter()
        const admitted: bigint[] = []
        let now = BigInt(start) * BigInt(unit)
        for (const step of units) {
          now += BigInt(step)
          if (tryAcquire(schema, counter, Number(now) / unit)) admitted.push(now)
        }
        for (let first = 0; first < admitted.length; first++) {
          for (let last = first; last < admitted.length; last++) {
            const over = BigInt(last - first + 1 - burst) * 1000n * BigInt(unit)
            const earned = ((admitted[last] ?? 0n) - (admitted[first] ?? 0n)) * BigInt(qps)
            assert.ok(over <= earned, `${last - first + 1} admitted in ${earned} / ${1000 * unit} tokens`)
          }
        }
      }),
    )
  })

  it('earns nothing after the moment it is full, also when that is between two ticks', () => {
    // 1.5 tokens a tick: full at 4/3 ticks, so at most 2 + 0.5 * 1.5 can go between 1.5 and 2 ticks.
    const schema = bucket(6_144_000, 2)
    const counter = createFlowCounter()
    assert.equal(take(schema, counter, 0, 9), 2)
    assert.ok(take(schema, counter, 1.5 / 4096, 1) + take(schema, counter, 2 / 4096, 9) <= 2)
  })

  it('comes at most two ticks late', () => {
    const steps = fc.array(fc.double({ min: 0, max: 50, noNaN: true }), { minLength: 20, maxLength: 200 })
    fc.assert(
      fc.property(steps, (intervals) => {
        const schema = bucket(100, 100)
        const counter = createFlowCounter()
        let now = 1000.3
        assert.equal(take(schema, counter, now, 101), 100)
        let spent = 0
        const start = now
        for (const interval of intervals) {
          now += interval
          const earned = Math.min(100, ((now - start - 2 / 4096) * 100) / 1000 - spent)
          const taken = take(schema, counter, now, 20)
          assert.ok(taken >= Math.min(20, Math.floor(earned)), `${taken} taken of ${earned}`)
          spent += taken
        }
      }),
    )
  })

  it('has not drifted after ten years at its limit', () => {
    const schema = bucket(7, 7)
    const counter = createFlowCounter()
    const years = 10 * 365 * 86_400
    assert.equal(take(schema, counter, 0, 8), 7)
    let admitted = 0
    // Less than a token at a time, so that the bucket is never full and nothing is forgiven.
    for (let second = 1; second < 100_000; second++) admitted += take(schema, counter, second * 1000, 7)
    assert.equal(admitted, 99_999 * 7)
    assert.equal(take(schema, counter, years * 1000, 8), 7)
    assert.equal(take(schema, counter, years * 1000 + 142.75, 1), 0)
    assert.equal(take(schema, counter, years * 1000 + 143, 1), 1)
  })

  it('gives nothing for time that goes backwards', () => {
    const schema = bucket(10, 10)
    const counter = createFlowCounter()
    assert.equal(take(schema, counter, 5000, 20), 10)
    assert.equal(take(schema, counter, 4000, 20), 0)
    assert.equal(take(schema, counter, 5099.9, 20), 0)
    assert.equal(take(schema, counter, 5100, 20), 1)
  })

  it('counts its burst exactly in one instant, also between two ticks', () => {
    const nows = fc.double({ min: 0, max: 1e12, noNaN: true })
    fc.assert(
      fc.property(nows, fc.integer({ min: 1, max: 300 }), (now, burst) => {
        assert.equal(take(bucket(burst, burst), createFlowCounter(), now, burst + 5), burst)
      }),
    )
  })

  it('works at the ends of its range', () => {
    const most = 2 ** 31 - 1
    const counter = createFlowCounter()
    assert.equal(take(bucket(most, most), counter, 1e12, 1000), 1000)
    assert.equal(tokensLeft(bucket(most, most), counter, 1e12), most - 1000)
    assert.equal(tokensLeft(bucket(most, most), counter, 1e12 + 1), most)
  })

  it('puts a token back, and never above the burst', () => {
    const schema = bucket(1, 3)
    const counter = createFlowCounter()
    assert.equal(take(schema, counter, 100, 3), 3)
    refund(schema, counter)
    assert.equal(take(schema, counter, 100, 3), 1)
    refund(schema, counter)
    assert.equal(take(schema, counter, 60_000, 9), 3)
    for (let i = 0; i < 9; i++) refund(schema, counter)
    assert.equal(take(schema, counter, 60_000, 9), 3)
  })
})

describe('changed limits', () => {
  const rows = [
    { name: 'an empty bucket stays empty', from: [10, 10], spent: 10, to: [1000, 1000], left: 0 },
    { name: 'what is left stays, when the burst grows', from: [10, 20], spent: 5, to: [10, 100], left: 15 },
    { name: 'the new burst caps what is left', from: [10, 20], spent: 5, to: [5, 8], left: 8 },
    { name: 'a small rest survives a smaller burst', from: [10, 20], spent: 18, to: [5, 8], left: 2 },
    { name: 'the same limit changes nothing', from: [10, 20], spent: 7, to: [10, 20], left: 13 },
  ] as const
  for (const { name, from, spent, to, left } of rows) {
    it(name, () => {
      const [previous, next] = [bucket(from[0], from[1]), bucket(to[0], to[1])]
      const counter = createFlowCounter()
      take(previous, counter, 777.7, spent)
      resize(previous, next, counter, 777.7)
      assert.equal(tokensLeft(next, counter, 777.7), left)
      assert.equal(take(next, counter, 777.7, 2000), left)
    })
  }

  it('counts the time before the change at the old rate, also of a token begun', () => {
    const counter = createFlowCounter()
    take(bucket(10, 10), counter, 0, 10)
    // 2.5 tokens at the old rate; the missing half takes 50 ms at 10 a second, 500 ms at 1 a second.
    resize(bucket(10, 10), bucket(1, 10), counter, 250)
    assert.equal(take(bucket(1, 10), counter, 250, 9), 2)
    assert.equal(take(bucket(1, 10), counter, 749, 9), 0)
    assert.equal(take(bucket(1, 10), counter, 750.25, 9), 1)
  })

  it('gives nothing for any number of changes at one moment', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.integer({ min: 1, max: 50 }), fc.nat({ max: 50 })), { minLength: 1 }),
        (changes) => {
          const counter = createFlowCounter()
          let schema = bucket(10, 40)
          let left = 40 - take(schema, counter, 100.1, 7)
          for (const [qps, extra] of changes) {
            const next = bucket(qps, qps + extra)
            resize(schema, next, counter, 100.1)
            left = Math.min(left, qps + extra)
            schema = next
            assert.equal(tokensLeft(schema, counter, 100.1), left)
          }
        },
      ),
    )
  })
})
