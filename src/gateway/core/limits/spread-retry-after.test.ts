import assert from 'node:assert/strict'
import { test } from 'node:test'
import { retryAfterBlock, spreadRetryAfter } from './spread-retry-after.ts'

/** The earliest and the latest. */
const range = (likelyMs: number): [number, number] => [spreadRetryAfter(likelyMs, 0), spreadRetryAfter(likelyMs, 0.999)]

test('who could come back at once is spread over four seconds', () => {
  assert.deepEqual(range(0), [1, 4])
  assert.deepEqual(range(1_000), [1, 4])
  assert.deepEqual(
    [0, 0.25, 0.5, 0.75].map((random) => spreadRetryAfter(1, random)),
    [1, 2, 3, 4],
  )
})

test('who has to wait for longer is spread around that time', () => {
  assert.deepEqual(range(8_000), [4, 11])
  assert.deepEqual(range(30_000), [15, 44])
})

test('who is blocked comes back when that is over, and up to a quarter later', () => {
  assert.deepEqual([retryAfterBlock(1, 0), retryAfterBlock(1_500, 0.5)], [1, 2])
  assert.deepEqual([retryAfterBlock(8_000, 0), retryAfterBlock(8_000, 0.99)], [8, 10])
})

test('who is blocked for long comes back after ten seconds at most, and not together with the others', () => {
  const answers = [0, 0.5, 0.99].map((random) => retryAfterBlock(288_000, random))
  assert.deepEqual(answers, [10, 8, 6])
})
