import assert from 'node:assert/strict'
import { test } from 'node:test'
import { userCharge } from '../../../kit/core/shares/charge.ts'
import { takeSteps } from './sliced-steps.ts'
import { LONG_SLICE_MS } from './thread-scheduler.ts'

const ALICE = userCharge('prod', 'alice', 1)

function* slowSteps(count: number, done: number[]): Generator<undefined> {
  for (let n = 0; n < count; n++) {
    const untilMs = performance.now() + LONG_SLICE_MS / 4
    while (performance.now() < untilMs);
    done.push(n)
    yield undefined
  }
}

test('all steps are taken, in order, and other work is done between them', async () => {
  const done: number[] = []
  const turns: number[] = []
  let isOver = false
  const look = (): void => {
    turns.push(done.length)
    if (!isOver) setImmediate(look)
  }
  look()
  await takeSteps(ALICE, slowSteps(40, done), () => false)
  isOver = true
  assert.deepEqual(
    done,
    Array.from({ length: 40 }, (_, n) => n),
  )
  assert.ok(new Set(turns).size > 4, String(turns))
})

test('no step is taken for a client that has gone', async () => {
  const done: number[] = []
  await takeSteps(ALICE, slowSteps(40, done), () => done.length >= 10)
  assert.equal(done.length, 10)
})

test('an error of a step reaches its caller, whether it is in the first slice or in a later one', async () => {
  for (const at of [0, 30]) {
    const done: number[] = []
    const steps = function* (): Generator<undefined> {
      yield* slowSteps(at, done)
      throw new Error('a bug')
    }
    await assert.rejects(
      takeSteps(ALICE, steps(), () => false),
      /a bug/,
    )
    assert.equal(done.length, at)
  }
})
