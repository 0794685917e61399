import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitFor } from '../../../test/harness/wait.ts'
import { busyThread, TakingTime } from './taking-time.ts'

test('time in which the thread is busy counts a tenth', () => {
  const time = new TakingTime(1000)
  assert.equal(time.pass(2000, false), 1000)
  assert.equal(time.pass(12_000, true), 2000)
  assert.equal(time.pass(12_000, false), 2000)
  time.restart(20_000)
  assert.equal(time.pass(20_500, false), 500)
})

test('a thread is busy if it has not waited for anything', async () => {
  const wasBusy = busyThread()
  let turns = 0
  // Each turn of the event loop has work.
  while (turns < 1000) await new Promise((resolve) => setImmediate(() => resolve(turns++)))
  assert.equal(wasBusy(), true)
  await waitFor('a moment without work', () => !wasBusy())
})
