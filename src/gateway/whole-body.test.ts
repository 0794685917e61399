// Bodies that are read whole, and how much of them is held at a time.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BodyRoom, SMALL_BODY_BYTES, WholeBody } from './whole-body.ts'

const LIMIT = 3 * SMALL_BODY_BYTES
const SMALL = Buffer.alloc(SMALL_BODY_BYTES, 1)

test('long bodies share what room there is, and small ones need none', async () => {
  const room = new BodyRoom(2 * SMALL_BODY_BYTES)
  const read = (): WholeBody => new WholeBody(LIMIT, 60_000, room)
  const first = read()
  for (let i = 0; i < 3; i++) first.add(SMALL)
  first.finish('complete')
  assert.equal(await first.ended, 'complete')
  const second = read()
  second.add(SMALL)
  second.add(SMALL)
  assert.equal(await second.ended, 'no-room')
  const small = read()
  small.add(SMALL)
  small.finish('complete')
  assert.equal(await small.ended, 'complete')
  // It is held until its request has ended.
  assert.equal(first.take().length, LIMIT)
  const third = read()
  third.add(SMALL)
  third.add(SMALL)
  assert.equal(await third.ended, 'no-room')
  first.discard()
  first.discard()
  const fourth = read()
  for (let i = 0; i < 3; i++) fourth.add(SMALL)
  fourth.finish('complete')
  assert.equal(await fourth.ended, 'complete')
  for (const whole of [second, small, third, fourth]) whole.discard()
})

test('what ends otherwise gives its room back at once', async () => {
  const room = new BodyRoom(2 * SMALL_BODY_BYTES)
  for (const end of ['gone', 'too-late'] as const) {
    const whole = new WholeBody(LIMIT, 60_000, room)
    for (let i = 0; i < 3; i++) whole.add(SMALL)
    whole.finish(end)
    assert.equal(await whole.ended, end)
  }
  const large = new WholeBody(LIMIT, 60_000, room)
  for (let i = 0; i < 4; i++) large.add(SMALL)
  assert.equal(await large.ended, 'too-large')
  const last = new WholeBody(LIMIT, 60_000, room)
  for (let i = 0; i < 3; i++) last.add(SMALL)
  last.finish('complete')
  assert.equal(await last.ended, 'complete')
})
