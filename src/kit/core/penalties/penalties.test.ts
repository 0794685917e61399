import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Penalties, penaltyMs } from './penalties.ts'

const SCALE = { firstMs: 10, growth: 3, longestMs: 100 }
const QUIET_MS = 1_000

test('each time for longer, up to the longest', () => {
  assert.deepEqual(
    [0, 1, 2, 3, 1_000].map((times) => penaltyMs(SCALE, times)),
    [10, 30, 90, 100, 100],
  )
  const penalties = new Penalties(QUIET_MS, 4)
  assert.deepEqual(
    [0, 5, 50].map((nowMs) => penalties.charge('a', 1, SCALE, nowMs)),
    [10, 30, 90],
  )
  assert.deepEqual([penalties.leftMs('a', 100), penalties.leftMs('a', 140), penalties.leftMs('b', 100)], [40, 0, 0])
})

test('harm adds up to a penalty, and is forgotten after a quiet time', () => {
  const penalties = new Penalties(QUIET_MS, 4)
  assert.deepEqual([penalties.charge('a', 0.5, SCALE, 0), penalties.charge('a', 0.5, SCALE, QUIET_MS - 1)], [0, 10])
  const overMs = QUIET_MS - 1 + 10
  assert.equal(penalties.charge('a', 0.9, SCALE, overMs + QUIET_MS), 0)
  assert.equal(penalties.charge('a', 0.1, SCALE, overMs + QUIET_MS), 10, 'as the first time')
})

test('what another one has decided holds, and is over in time', () => {
  const penalties = new Penalties(0, 4)
  penalties.punish('a', 60, 0)
  penalties.punish('b', 20, 0)
  assert.deepEqual(
    [...penalties.all(10)],
    [
      { source: 'a', forMs: 50 },
      { source: 'b', forMs: 10 },
    ],
  )
  assert.deepEqual([...penalties.all(20)], [{ source: 'a', forMs: 40 }])
  assert.deepEqual([penalties.leftMs('b', 20), penalties.size], [0, 1])
})

test('the one that did harm least recently is forgotten first', () => {
  const forgotten: string[] = []
  const penalties = new Penalties(QUIET_MS, 2, (source) => forgotten.push(source))
  for (const source of ['a', 'b', 'a', 'c']) penalties.charge(source, 1, SCALE, 0)
  assert.deepEqual([forgotten, penalties.size, penalties.leftMs('b', 1)], [['b'], 2, 0])
})
