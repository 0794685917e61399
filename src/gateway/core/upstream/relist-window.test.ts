import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FIRST_RELISTS, type RelistOutcome, RelistWindow } from './relist-window.ts'

/** Admits as many as allowed, then answers all of them; returns how many there were. */
function round(window: RelistWindow, outcome: RelistOutcome): number {
  let count = 0
  while (count < 10_000 && window.take()) count++
  for (let i = 0; i < count; i++) window.settle(outcome)
  return count
}

test('without an accident there is no limit', () => {
  const window = new RelistWindow()
  assert.equal(round(window, 'good'), 10_000)
  assert.equal(window.calm, true)
})

test('after one it begins small and doubles with each round of answers', () => {
  const window = new RelistWindow()
  window.begin(0)
  const rounds = Array.from({ length: 5 }, () => round(window, 'good'))
  assert.deepEqual(
    rounds,
    [1, 2, 4, 8, 16].map((factor) => factor * FIRST_RELISTS),
  )
})

test('slow answers do not let in more, and none who gives up does', () => {
  const window = new RelistWindow()
  window.begin(0)
  round(window, 'slow')
  round(window, 'given-up')
  assert.equal(window.size, FIRST_RELISTS)
})

test('an overload halves it once, however many errors come of one round; then it grows by one a round', () => {
  const window = new RelistWindow()
  window.begin(0)
  for (let i = 0; i < 4; i++) round(window, 'good')
  assert.equal(window.size, 16 * FIRST_RELISTS)
  round(window, 'overload')
  assert.equal(window.size, 8 * FIRST_RELISTS)
  const before = window.size
  round(window, 'good')
  assert.ok(window.size <= before + 1, `${window.size}`)
})

test('it never falls below what it began with', () => {
  const window = new RelistWindow()
  window.begin(0)
  for (let i = 0; i < 10; i++) round(window, 'overload')
  assert.equal(window.size, FIRST_RELISTS)
})

test('it is over when no list has waited for a while', () => {
  const window = new RelistWindow()
  window.begin(0)
  window.tick(4_000, 1)
  window.tick(8_000, 0)
  assert.equal(window.calm, false)
  window.tick(9_000, 0)
  assert.equal(window.calm, true)
})

test('what was under way when it began counts against it, and its answers tell nothing', () => {
  const window = new RelistWindow()
  for (let i = 0; i < 20; i++) window.take()
  window.begin(0)
  assert.equal(window.take(), false)
  for (let i = 0; i < 20; i++) window.settle('good')
  assert.equal(window.size, FIRST_RELISTS)
  assert.equal(round(window, 'good'), FIRST_RELISTS)
})
