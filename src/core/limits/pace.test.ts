import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createPace, paceMs } from './pace.ts'

test('a burst goes at once, the rest at the rate', () => {
  const pace = createPace()
  assert.deepEqual(
    [0, 0, 0, 0].map(() => paceMs(pace, 10, 3, 1_000)),
    [0, 0, 0, 100],
  )
  assert.equal(paceMs(pace, 10, 3, 1_100), 0, 'the next is due by now')
  assert.equal(paceMs(pace, 10, 3, 1_100), 100)
})

test('a call that has to wait takes no place, however often it is made', () => {
  const pace = createPace()
  paceMs(pace, 10, 1, 1_000)
  for (let i = 0; i < 5_000; i++) assert.equal(paceMs(pace, 10, 1, 1_000), 100)
  assert.equal(paceMs(pace, 10, 1, 1_100), 0)
})

test('no more than the burst is saved up, and 0 = not limited', () => {
  const pace = createPace()
  paceMs(pace, 1, 2, 0)
  assert.deepEqual(
    [0, 0, 0].map(() => paceMs(pace, 1, 2, 3_600_000)),
    [0, 0, 1_000],
  )
  assert.equal(paceMs(createPace(), 0, 0, 0), 0)
  assert.equal(paceMs(pace, 0, 0, 0), 0)
})

test('a rate that was raised counts at once', () => {
  const pace = createPace()
  paceMs(pace, 0.01, 1, 0)
  assert.equal(paceMs(pace, 0.01, 1, 0), 100_000)
  assert.equal(paceMs(pace, 10, 1, 0), 100)
})
