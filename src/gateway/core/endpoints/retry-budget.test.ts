import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { createRetryBudget, MINIMUM_RETRIES, onRequest, type RetryBudget, tryRetry } from './retry-budget.ts'

function requests(budget: RetryBudget, count: number, nowMs: number): void {
  for (let i = 0; i < count; i++) onRequest(budget, nowMs)
}

function retries(budget: RetryBudget, wanted: number, nowMs: number): number {
  let taken = 0
  for (let i = 0; i < wanted; i++) if (tryRetry(budget, nowMs)) taken++
  return taken
}

describe('retry budget', () => {
  it('lets everything be retried that one apiserver had in flight, without history', () => {
    assert.equal(retries(createRetryBudget(), 1000, 123_456), MINIMUM_RETRIES)
  })

  it('is a tenth of the requests of the last ten seconds', () => {
    const budget = createRetryBudget()
    for (let second = 0; second < 20; second++) requests(budget, 1000, 50_000 + second * 1000)
    assert.equal(retries(budget, 5000, 69_999), 1000)
    assert.equal(retries(budget, 1, 69_999), 0)
  })

  it('comes back as retries leave the window', () => {
    const budget = createRetryBudget()
    assert.equal(retries(budget, 300, 1500), 300)
    assert.equal(retries(budget, 300, 2500), 100)
    assert.equal(retries(budget, 1, 10_999), 0)
    assert.equal(retries(budget, 1000, 11_000), 300)
    assert.equal(retries(budget, 1000, 12_000), 100)
  })

  it('forgets requests with the window', () => {
    const budget = createRetryBudget()
    requests(budget, 50_000, 0)
    assert.equal(retries(budget, 9000, 9_999), 5000)
    assert.equal(retries(budget, 9000, 25_000), MINIMUM_RETRIES)
  })

  it('never exceeds a tenth or the minimum in any ten seconds, however time jumps', () => {
    const steps = fc.array(fc.tuple(fc.nat({ max: 15_000 }), fc.nat({ max: 3000 }), fc.nat({ max: 600 })), {
      maxLength: 30,
    })
    fc.assert(
      fc.property(steps, (events) => {
        const budget = createRetryBudget()
        const seen: { second: number; requests: number; retries: number }[] = []
        let now = 0
        for (const [step, asked, wanted] of events) {
          now += step
          requests(budget, asked, now)
          const second = Math.floor(now / 1000)
          const window = seen.filter((one) => one.second > second - 10)
          const sum = (key: 'requests' | 'retries'): number => window.reduce((total, one) => total + one[key], 0)
          const allowed = Math.max(MINIMUM_RETRIES, Math.floor((sum('requests') + asked) / 10))
          const taken = retries(budget, wanted, now)
          assert.equal(taken, Math.min(wanted, Math.max(0, allowed - sum('retries'))))
          seen.push({ second, requests: asked, retries: taken })
        }
      }),
    )
  })
})
