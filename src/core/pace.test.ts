import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createPace, paceMs } from './pace.ts'

test('a burst goes at once, the rest at the rate', () => {
  const pace = createPace()
  const waits = Array.from({ length: 5 }, () => paceMs(pace, 10, 3, 1_000))
  assert.deepEqual(waits, [0, 0, 0, 100, 200])
  assert.equal(paceMs(pace, 10, 3, 1_300), 0, 'the next is due by now')
  assert.equal(paceMs(pace, 10, 3, 1_300), 100)
})

test('no more than the burst is saved up, and 0 is no limit', () => {
  const pace = createPace()
  paceMs(pace, 1, 2, 0)
  assert.deepEqual(
    [0, 0, 0].map(() => paceMs(pace, 1, 2, 3_600_000)),
    [0, 0, 1_000],
  )
  assert.equal(paceMs(createPace(), 0, 0, 0), 0)
  assert.equal(paceMs(pace, 0, 0, 0), 0)
})
