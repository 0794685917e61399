import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRestartHistory, restartDelayMs } from './restart-delay.ts'

test('at once, then 1 s doubling to 30 s while it crashes within 10 s of its start; at once after a quiet time', () => {
  const history = createRestartHistory()
  let now = 5
  const delays: number[] = []
  for (let i = 0; i < 8; i++) {
    const delay = restartDelayMs(history, now)
    delays.push(delay)
    now += delay + 9_999
  }
  assert.deepEqual(delays, [0, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000])
  assert.equal(restartDelayMs(history, now + 1), 0)
  assert.equal(restartDelayMs(history, now + 2), 1000)
})
