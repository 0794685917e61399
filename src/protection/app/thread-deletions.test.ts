// What the main thread answers to gateway threads that ask about deletions, with ledgers that are slow, missing or broken.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { SILENT } from '../../kit/api/ports.ts'
import { Answers } from '../../kit/core/topics/questions.ts'
import { type TopicChannel, TopicSubscribers } from '../../kit/core/topics/topics.ts'
import type {
  ProtectionGate,
  ProtectionRequest,
  ProtectionVerdict,
  Reservation,
  ScaleDownAnswer,
  ScaleDownQuestion,
} from '../api/protection.ts'
import { ThreadDeletions } from './thread-ledger.ts'
import { DELETIONS, RELEASED_RESERVATIONS, SCALE_DOWN } from './topics.ts'

const REQUESTS = [{ cell: 'one', pod: { ready: true, criterion: 'Available' } } as ProtectionRequest]
const RESERVATION: Reservation = { cell: 'one', uid: 'u', holds: [] }
const VERDICTS = [{ status: 'AdmittedAll', admitted: true, reservation: RESERVATION } as unknown as ProtectionVerdict]
const SCALE_DOWN_ANSWER: ScaleDownAnswer = { protectors: [], unknown: '' }
const SCALE_DOWN_QUESTION = { cell: 'one', replicas: 1, timeoutMs: 1 } as ScaleDownQuestion

/** The ledger answers at once, unless `over` says otherwise; null = there is none. */
function setUp(over: Partial<ProtectionGate> | null = {}) {
  const released: Reservation[] = []
  const gate: ProtectionGate = {
    covers: () => true,
    review: () => Promise.resolve(VERDICTS),
    reviewScaleDown: () => Promise.resolve(SCALE_DOWN_ANSWER),
    release: (reservations) => void released.push(...reservations),
    ...over,
  }
  const questions = new Answers()
  const subscribers = new TopicSubscribers()
  const topics: TopicChannel = {
    publish: () => assert.fail('nothing is told'),
    subscribe: (topic, listener) => subscribers.subscribe(topic, listener),
  }
  const known = { gate: over === null ? undefined : gate }
  new ThreadDeletions({ gate: () => known.gate, topics, questions, log: SILENT }).start()
  const review = async (): Promise<readonly ProtectionVerdict[]> => {
    const answered = await questions.of(DELETIONS.asked(REQUESTS))
    return DELETIONS.isAnswered(answered) ? answered.answer : assert.fail()
  }
  const scaleDown = async (): Promise<ScaleDownAnswer> => {
    const answered = await questions.of(SCALE_DOWN.asked(SCALE_DOWN_QUESTION))
    return SCALE_DOWN.isAnswered(answered) ? answered.answer : assert.fail()
  }
  return { released, known, gate, questions, subscribers, review, scaleDown }
}

describe('pod protection for the threads', () => {
  it('answers deletions and scale-downs, and releases what a thread gives back', async () => {
    const { released, subscribers, review, scaleDown } = setUp()
    assert.equal(await review(), VERDICTS)
    assert.equal(await scaleDown(), SCALE_DOWN_ANSWER)
    subscribers.deliver(RELEASED_RESERVATIONS.message([RESERVATION]))
    assert.deepEqual(released, [RESERVATION])
  })

  it('without a ledger deletions are an error, scale-downs unknown, and nothing is released; the ledger may come later', async () => {
    const { known, gate, subscribers, review, scaleDown } = setUp(null)
    const verdicts = await review()
    assert.deepEqual([verdicts.length, verdicts[0]?.status, verdicts[0]?.admitted], [1, 'Error', false])
    assert.notEqual((await scaleDown()).unknown, '')
    subscribers.deliver(RELEASED_RESERVATIONS.message([RESERVATION]))
    known.gate = gate
    assert.equal(await review(), VERDICTS)
  })

  it('a ledger that fails is an error of what was asked alone', async () => {
    const broken = (): Promise<never> => Promise.reject(new Error('a bug'))
    const { review, scaleDown } = setUp({ review: broken, reviewScaleDown: broken })
    assert.deepEqual(
      (await review()).map(({ status }) => status),
      ['Error'],
    )
    assert.match((await scaleDown()).unknown, /internal error/)
  })

  it('releases what was reserved for a thread that has died by then', () => {
    const { released, questions } = setUp()
    questions.unclaimed(
      DELETIONS.answered([...VERDICTS, { ...VERDICTS[0], reservation: undefined } as ProtectionVerdict]),
    )
    questions.unclaimed(SCALE_DOWN.answered(SCALE_DOWN_ANSWER))
    assert.deepEqual(released, [RESERVATION])
  })
})
