import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { QueueMeter, Stream } from '../../kit/api/stream.ts'
import { addressCharge, ownUserCharge } from '../../kit/core/shares/charge.ts'
import { StatusError } from '../../kube/api/status.ts'
import { answerMemory, bodyMemory } from './port-memory.ts'
import { BodyReader } from './read-body.ts'

const ALICE = ownUserCharge('alice')
const MALLORY = ownUserCharge('mallory')
const PIECE = Buffer.alloc(100)

class Waiting implements Stream {
  queued: number
  meter: QueueMeter | undefined = undefined

  constructor(queued: number) {
    this.queued = queued
  }

  headers(): void {}
  body(): void {}
  trailers(): void {}
  credit(): void {}
  reset(): void {}
}

function tooMany(message: RegExp): (error: unknown) => boolean {
  return (error) =>
    error instanceof StatusError &&
    error.status.reason === 'TooManyRequests' &&
    message.test(error.status.message ?? '')
}

test('one user may have all of it, and another one still gets something', () => {
  const memory = bodyMemory('tests', 800)
  const mallory = new BodyReader(10_000, 0, memory, MALLORY)
  for (let i = 0; i < 8; i++) mallory.add(PIECE)
  const second = new BodyReader(10_000, 0, memory, MALLORY)
  assert.throws(
    () => second.add(PIECE),
    tooMany(
      /^user "mallory" of the control plane is sending 800 of 800 bytes that bodies of tests .*its fair share .* is 800;/,
    ),
  )
  new BodyReader(10_000, 0, memory, ALICE).add(PIECE)
  assert.equal(memory.held, 900)
})

test('who is not known takes nothing from users', () => {
  const limited: unknown[] = []
  const memory = bodyMemory('tests', 800, (...counted) => limited.push(counted))
  const stranger = new BodyReader(10_000, 0, memory, addressCharge('10.0.0.1'))
  stranger.add(PIECE)
  stranger.add(PIECE)
  assert.throws(() => stranger.add(PIECE), tooMany(/^address 10\.0\.0\.1/))
  assert.deepEqual(limited, [['control-bodies', false]])
  // What was received of it is dropped.
  assert.equal(memory.held, 0)
})

test('what was read, dropped or too large is given back', () => {
  const memory = bodyMemory('tests', 800)
  const read = new BodyReader(150, 0, memory, ALICE)
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

test('who has all of it unread gets no more until it is read, and others do', () => {
  const memory = answerMemory(800)
  const answers = [new Waiting(500), new Waiting(400)]
  for (const answer of answers) {
    memory.admit(MALLORY)
    memory.chargeAnswer(answer, MALLORY)
  }
  assert.throws(
    () => memory.admit(MALLORY),
    tooMany(
      /^user "mallory" of the control plane has not read 900 of 800 bytes .*its fair share .* is 800; retry in 1 s$/,
    ),
  )
  memory.admit(ALICE)
  memory.admit(addressCharge('10.0.0.1'))
  answers[0]?.meter?.onQueued(300)
  assert.equal(memory.held, 700)
  memory.admit(MALLORY)
  for (const { meter } of answers) meter?.onQueued(0)
  assert.equal(memory.held, 0)
})

test('what was taken at once is not charged', () => {
  const memory = answerMemory(800)
  const answer = new Waiting(0)
  memory.chargeAnswer(answer, ALICE)
  assert.equal(answer.meter, undefined)
})
