import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { TapRate } from './tap-rate.ts'

test('no window of any length shows more than a second at once and the rate', () => {
  const gaps = fc.array(fc.nat(500), { maxLength: 300 })
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 100 }), gaps, (perSecond, steps) => {
      const rate = new TapRate(perSecond, 0)
      const taken: number[] = []
      let now = 0
      for (const step of steps) {
        now += step
        if (rate.take(now)) taken.push(now)
      }
      for (const [first, from] of taken.entries()) {
        for (const [last, to] of taken.entries()) {
          if (last >= first) assert.ok(last - first + 1 <= perSecond + ((to - from) / 1000) * perSecond + 1e-6)
        }
      }
    }),
  )
})

test('after a pause a second at once, no more', () => {
  const rate = new TapRate(5, 0)
  const shown = (now: number): number => Array.from({ length: 20 }, () => rate.take(now)).filter(Boolean).length
  assert.deepEqual([shown(0), shown(200), shown(100_000)], [5, 1, 5])
})

test('a clock that stands still or goes back gives nothing', () => {
  const rate = new TapRate(1, 1000)
  assert.equal(rate.take(1000), true)
  assert.equal(rate.take(0), false)
  assert.equal(rate.take(1000), false)
})
