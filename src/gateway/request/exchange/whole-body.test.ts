// Bodies that are read whole: up to a size limit and a timeout.

import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { WholeBody } from './request-body.ts'

const LIMIT = 1000
const PIECE = Buffer.alloc(500, 1)

test('a body up to the limit is taken whole, and one byte more is not', async () => {
  const whole = new WholeBody(LIMIT, 60_000)
  whole.add(PIECE)
  whole.add(PIECE)
  whole.finish('complete')
  assert.equal(await whole.ended, 'complete')
  assert.equal(whole.take().length, LIMIT)
  const large = new WholeBody(LIMIT, 60_000)
  large.add(PIECE)
  large.add(PIECE)
  large.add(Buffer.alloc(1))
  assert.equal(await large.ended, 'too-large')
  assert.equal(large.take().length, 0)
})

test('the first end counts, and nothing is kept of what did not end well', async () => {
  mock.timers.enable({ apis: ['setTimeout'] })
  const late = new WholeBody(LIMIT, 60_000)
  late.add(PIECE)
  mock.timers.tick(60_000)
  mock.timers.reset()
  late.add(PIECE)
  late.finish('complete')
  assert.deepEqual([await late.ended, late.take().length], ['too-late', 0])
  const gone = new WholeBody(LIMIT, 60_000)
  gone.add(PIECE)
  gone.discard()
  assert.deepEqual([await gone.ended, gone.take().length], ['gone', 0])
})
