import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StatusError } from '../../api/kube/status.ts'
import type { QueueMeter, Stream } from '../../api/ports/stream.ts'
import { addressCharge, ownUserCharge } from '../../core/shares/charge.ts'
import { AnswerMemory } from './answer-memory.ts'

const ALICE = ownUserCharge('alice')
const MALLORY = ownUserCharge('mallory')

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

test('who has all of it unread gets no more until it is read, and others do', () => {
  const memory = new AnswerMemory(800)
  const answers = [new Waiting(500), new Waiting(400)]
  for (const answer of answers) {
    memory.admit(MALLORY)
    memory.charge(answer, MALLORY)
  }
  assert.throws(
    () => memory.admit(MALLORY),
    tooMany(
      /^user "mallory" of the control plane has not read 900 of 800 bytes .*its share .* is 800; come back in 1 s$/,
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
  const memory = new AnswerMemory(800)
  const answer = new Waiting(0)
  memory.charge(answer, ALICE)
  assert.equal(answer.meter, undefined)
})
