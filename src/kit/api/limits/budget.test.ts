// The token bucket against the simplest possible model: every token with the time at which it arrived.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import '../../../../test/harness/property-seed.ts'
import { Budget } from './budget.ts'

function takeAll(budget: Budget, nowMs: number): number {
  let taken = 0
  while (budget.take(nowMs)) taken++
  return taken
}

describe('take', () => {
  test('a budget that was not used for an hour gives one burst, and not what was added meanwhile', () => {
    const budget = new Budget({ burst: 5, perSecond: 1 }, 0)
    assert.equal(takeAll(budget, 3_600_000), 5)
    assert.equal(takeAll(budget, 3_600_999), 0)
    assert.equal(takeAll(budget, 3_601_000), 1)
  })

  test('no window of any length gives more than a burst and the rate', () => {
    const sizes = fc.record({ burst: fc.integer({ min: 1, max: 100 }), perSecond: fc.integer({ min: 1, max: 100 }) })
    fc.assert(
      fc.property(sizes, fc.array(fc.nat(500), { maxLength: 300 }), (size, steps) => {
        const budget = new Budget(size, 0)
        const taken: number[] = []
        let now = 0
        for (const step of steps) {
          now += step
          if (budget.take(now)) taken.push(now)
        }
        for (const [first, from] of taken.entries()) {
          for (const [last, to] of taken.entries()) {
            const most = size.burst + ((to - from) / 1000) * size.perSecond + 1e-6
            if (last >= first) assert.ok(last - first + 1 <= most)
          }
        }
      }),
    )
  })

  test('a clock that stands still or goes back gives nothing', () => {
    const budget = new Budget({ burst: 1, perSecond: 1 }, 1000)
    assert.deepEqual(
      [budget.take(1000), budget.take(0), budget.take(1000), budget.take(2000)],
      [true, false, false, true],
    )
  })
})

describe('takeOrWaitMs', () => {
  test('a burst at once, then one each interval', () => {
    const budget = new Budget({ burst: 3, perSecond: 10 }, 1_000)
    assert.deepEqual(
      [0, 0, 0, 0].map(() => budget.takeOrWaitMs(1_000)),
      [0, 0, 0, 100],
    )
    assert.equal(budget.takeOrWaitMs(1_100), 0, 'the next is due by now')
    assert.equal(budget.takeOrWaitMs(1_100), 100)
  })

  test('who has to wait takes nothing: the next one is due when it was', () => {
    const budget = new Budget({ burst: 1, perSecond: 10 }, 1_000)
    budget.take(1_000)
    for (let i = 0; i < 5_000; i++) assert.equal(budget.takeOrWaitMs(1_000), 100)
    assert.equal(budget.takeOrWaitMs(1_100), 0)
  })
})

test('a larger budget begins with what is left, a smaller one with what fits, and the new rate counts from then on', () => {
  const budget = new Budget({ burst: 10, perSecond: 0.01 }, 0)
  assert.equal(takeAll(budget, 0), 10)
  assert.equal(budget.takeOrWaitMs(0), 100_000)
  budget.resize({ burst: 100, perSecond: 10 }, 0)
  assert.equal(budget.takeOrWaitMs(0), 100)
  assert.equal(budget.left(2_000), 20)
  budget.resize({ burst: 2, perSecond: 10 }, 2_000)
  assert.equal(takeAll(budget, 2_000), 2)
})

test('what is given back can be taken again, up to a burst', () => {
  const budget = new Budget({ burst: 3, perSecond: 1 }, 0)
  assert.equal(takeAll(budget, 0), 3)
  budget.add(2)
  assert.equal(takeAll(budget, 0), 2)
  budget.add(100)
  assert.equal(takeAll(budget, 0), 3)
})
