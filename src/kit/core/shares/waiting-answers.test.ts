import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import '../../../../test/harness/property-seed.ts'
import type { Charge, QueueMeter, Stream } from '../../api/stream.ts'
import { SharedResource } from './shared-resource.ts'
import { type AnswerOwner, SHORT_PART, WaitingAnswers } from './waiting-answers.ts'

const KIB = 1024
const CAPACITY = 1024 * KIB
const PIECE = 2 * KIB

class Answer implements Stream, AnswerOwner {
  queued = 0
  meter: QueueMeter | undefined = undefined
  dropped = false
  readonly client: Stream = this
  onDrop: (charge: Charge) => void = () => undefined
  readonly charge: Charge
  readonly #all: WaitingAnswers

  constructor(all: WaitingAnswers, source: string, weight = 1, known = true) {
    this.#all = all
    this.charge = { source, weight, known }
  }

  /** Sets how many bytes wait. */
  set(queued: number): void {
    if (this.dropped) return
    this.queued = queued
    if (this.meter !== undefined) this.meter.onQueued(this.memory)
    else if (queued > 0) this.#all.add(this)
  }

  /** In chunks, as in http2/chunk-queue.ts. */
  get memory(): number {
    return Math.ceil(this.queued / PIECE) * PIECE
  }

  dropAnswer(): void {
    this.onDrop(this.charge)
    this.set(0)
    this.dropped = true
  }

  headers(): void {}
  body(): void {}
  trailers(): void {}
  credit(): void {}
  reset(): void {}
}

function setUp(capacity = CAPACITY) {
  const shared = new SharedResource('buffered-bytes', capacity)
  const calls: (() => void)[] = []
  const all = new WaitingAnswers(shared, (call) => calls.push(call))
  const settle = (): void => {
    for (const call of calls.splice(0)) call()
  }
  let charges = 0
  const charge = all.charge.bind(all)
  all.charge = (...args) => {
    charges++
    charge(...args)
  }
  return { shared, all, settle, charges: () => charges }
}

test('memory is charged to the source that asked, as long as it waits', () => {
  const { shared, all, charges } = setUp()
  const answer = new Answer(all, 'a')
  for (const [queued, charged] of [
    [16 * KIB, 16 * KIB],
    [33 * KIB + 1, 34 * KIB],
    [5, 2 * KIB],
    [0, 0],
    [5, 2 * KIB],
    [40 * KIB, 40 * KIB],
    [0, 0],
  ] as const) {
    answer.set(queued)
    assert.equal(shared.known.heldBy('a'), charged)
  }
  assert.equal(charges(), 1)
})

test('short answers are not charged for waiting a moment', () => {
  const { shared, all, charges } = setUp()
  const waiting: Answer[] = []
  for (let i = 0; i < 10_000; i++) {
    const answer = new Answer(all, 'a')
    answer.set(1000)
    waiting.push(answer)
    // As many as are written in one turn: less than may stay uncharged.
    if (waiting.length === 7) for (const one of waiting.splice(0)) one.set(0)
  }
  assert.equal(charges(), 0)
  assert.equal(shared.known.held, 0)
})

test('where many short ones stay, all that stay are charged', () => {
  const { shared, all } = setUp()
  const answers = Array.from({ length: 300 }, () => new Answer(all, 'a'))
  for (const answer of answers) answer.set(1000)
  assert.ok(shared.known.heldBy('a') >= 300 * PIECE - CAPACITY / SHORT_PART)
  for (const answer of answers) answer.set(0)
  assert.equal(shared.known.held, 0)
})

test('what comes in one turn is bounded as well', () => {
  const { shared, all } = setUp()
  const answers = Array.from({ length: 100 }, () => new Answer(all, 'hog'))
  for (const answer of answers) answer.set(64 * KIB)
  new Answer(all, 'victim').set(64 * KIB)
  assert.ok(shared.known.held <= CAPACITY + shared.known.reserve)
  assert.equal(shared.known.heldBy('victim'), 64 * KIB)
  assert.ok(answers.some(({ dropped }) => !dropped))
})

test('who has a share is over it when nothing is left, and others are not', () => {
  const { all, settle } = setUp()
  const hog = { source: 'hog', weight: 1, known: true }
  for (let i = 0; i < 16; i++) new Answer(all, 'hog').set(64 * KIB)
  settle()
  assert.equal(all.isOver(hog), true)
  assert.equal(all.isOver({ source: 'victim', weight: 1, known: true }), false)
  assert.equal(all.isOver({ source: 'hog', weight: 1, known: false }), false)
})

test('what its clients have not touched for longest is given up first', () => {
  const { all, settle } = setUp()
  const answers = Array.from({ length: 16 }, () => new Answer(all, 'hog'))
  for (const answer of answers) answer.set(64 * KIB)
  // The oldest makes progress.
  answers[0]?.set(32 * KIB)
  answers[0]?.set(64 * KIB)
  const victim = new Answer(all, 'victim')
  victim.set(100 * KIB)
  settle()
  assert.deepEqual(
    answers.map(({ dropped }) => dropped),
    answers.map((_, i) => i === 1),
  )
  assert.equal(victim.dropped, false)
})

test('long ones are given up before short ones', () => {
  const { all, settle } = setUp()
  const short = Array.from({ length: 40 }, () => new Answer(all, 'hog'))
  for (const one of short) one.set(1000)
  const long = Array.from({ length: 16 }, () => new Answer(all, 'hog'))
  for (const one of long) one.set(64 * KIB)
  new Answer(all, 'victim').set(100 * KIB)
  settle()
  assert.ok(short.every(({ dropped }) => !dropped))
  assert.ok(short.some(({ meter }) => meter !== undefined))
  assert.ok(long.some(({ dropped }) => dropped))
})

test('0: unlimited, nothing is counted', () => {
  const { all } = setUp(0)
  const answer = new Answer(all, 'a')
  answer.set(1e9)
  assert.equal(answer.meter, undefined)
  assert.equal(all.isOver(answer.charge), false)
})

test('the sum is bounded, only who is above a share loses something, and at the end nothing is held', () => {
  const step = fc.record({
    answer: fc.integer({ min: 0, max: 39 }),
    kib: fc.integer({ min: 0, max: 300 }),
    settles: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
      const { shared, all, settle } = setUp()
      const answers = Array.from({ length: 40 }, (_, i) => new Answer(all, `${i % 7}`, 1 + ((i % 7) % 3), i % 7 < 5))
      for (const one of answers) {
        one.onDrop = ({ source, weight }) => {
          const shares = shared.of(one.charge)
          assert.ok(shares.heldBy(source) > shares.shareOf(source, weight))
        }
      }
      for (const { answer, kib, settles } of steps) {
        answers[answer]?.set(kib * KIB)
        if (settles) settle()
        for (const { held, capacity, reserve } of [shared.known, shared.unknown]) {
          assert.ok(held <= capacity + (settles ? reserve / 2 : reserve))
        }
      }
      for (const answer of answers) answer.set(0)
      assert.equal(shared.known.held + shared.unknown.held, 0)
    }),
  )
})
