import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StatusError } from '../../api/kube/status.ts'
import { addressCharge, ownUserCharge } from '../../core/shares/charge.ts'
import { BodyMemory } from './body-memory.ts'
import { BodyReader } from './read-body.ts'

const ALICE = ownUserCharge('alice')
const MALLORY = ownUserCharge('mallory')
const PIECE = Buffer.alloc(100)

function tooMany(message: RegExp): (error: unknown) => boolean {
  return (error) =>
    error instanceof StatusError &&
    error.status.reason === 'TooManyRequests' &&
    message.test(error.status.message ?? '')
}

test('one user may have all of it, and another one still gets something', () => {
  const memory = new BodyMemory('tests', 800)
  const mallory = new BodyReader(10_000, 0, memory.shareOf(MALLORY))
  for (let i = 0; i < 8; i++) mallory.add(PIECE)
  const second = new BodyReader(10_000, 0, memory.shareOf(MALLORY))
  assert.throws(
    () => second.add(PIECE),
    tooMany(
      /^user "mallory" of the control plane is sending 800 of 800 bytes that bodies of tests .*its share .* is 800;/,
    ),
  )
  new BodyReader(10_000, 0, memory.shareOf(ALICE)).add(PIECE)
  assert.equal(memory.held, 900)
})

test('who is not known takes nothing from users', () => {
  const limited: unknown[] = []
  const memory = new BodyMemory('tests', 800, (...counted) => limited.push(counted))
  const stranger = new BodyReader(10_000, 0, memory.shareOf(addressCharge('10.0.0.1')))
  stranger.add(PIECE)
  stranger.add(PIECE)
  assert.throws(() => stranger.add(PIECE), tooMany(/^address 10\.0\.0\.1/))
  assert.deepEqual(limited, [['control-bodies', false]])
  // What had come of it is gone.
  assert.equal(memory.held, 0)
})

test('what was read, dropped or too large is given back', () => {
  const memory = new BodyMemory('tests', 800)
  const read = new BodyReader(150, 0, memory.shareOf(ALICE))
  read.add(PIECE)
  assert.equal(read.bytes().length, 100)
  read.add(PIECE)
  read.drop()
  read.drop()
  assert.equal(memory.held, 0)
  read.add(PIECE)
  assert.throws(() => read.add(PIECE), /too large/)
  assert.equal(memory.held, 0)
})
