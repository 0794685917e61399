import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Shares } from './shares.ts'
import { reportShares, sumOfShares } from './shares-report.ts'

test('what threads report is summed by resource and source', () => {
  const threads = [0, 1].map((thread) => {
    const shares = new Shares(10)
    shares.take('a', 1, 3)
    shares.take('b', 2, 2 + thread)
    shares.take(`c${thread}`, 1, 1)
    return [reportShares('watches', true, shares), reportShares('watches', false, new Shares(2))]
  })
  assert.deepEqual(sumOfShares(threads, 2), [
    {
      limit: 'watches',
      known: true,
      capacity: 20,
      held: 13,
      sources: 6,
      largest: [
        { source: 'a', weight: 1, held: 6 },
        { source: 'b', weight: 2, held: 5 },
      ],
    },
    { limit: 'watches', known: false, capacity: 4, held: 0, sources: 0, largest: [] },
  ])
})
