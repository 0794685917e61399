import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { backoffCeilingMs, backoffMs } from './backoff.ts'

const BACKOFF = { baseMs: 100, capMs: 5_000 }

describe('backoff', () => {
  it('doubles up to the cap', () => {
    const ceilings = [0, 1, 2, 3, 4, 5, 6, 7, 5_000].map((attempt) => backoffCeilingMs(BACKOFF, attempt))
    assert.deepEqual(ceilings, [100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000])
  })

  it('waits anything between nothing and the ceiling', () => {
    assert.equal(backoffMs(BACKOFF, 3, 0), 0)
    assert.equal(backoffMs(BACKOFF, 3, 0.5), 400)
    const attempts = fc.integer({ min: -1, max: 1e9 })
    const randoms = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
    fc.assert(
      fc.property(attempts, randoms, (attempt, random) => {
        const wait = backoffMs(BACKOFF, attempt, random)
        assert.ok(wait >= 0 && wait <= 5_000)
      }),
    )
  })

  it('is no time at all with a base of 0', () => assert.equal(backoffMs({ baseMs: 0, capMs: 10 }, 1e9, 0.5), 0))
})
