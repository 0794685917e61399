// A gateway thread's calls to the ledger, with a main thread that answers late or never.

import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it, mock } from 'node:test'
import { ThreadQuestions } from '../../kit/core/topics/questions.ts'
import { type TopicChannel, TopicSubscribers } from '../../kit/core/topics/topics.ts'
import { Calls } from '../../program/threads/calls.ts'
import type { FromThread } from '../../program/threads/messages.ts'
import type { GatewayCalls, MainCalls } from '../../program/threads/thread-calls.ts'
import type {
  ProtectionRequest,
  ProtectionVerdict,
  Reservation,
  ScaleDownAnswer,
  ScaleDownQuestion,
} from '../api/protection.ts'
import { ThreadProtection } from './thread-ledger.ts'
import { DELETIONS, PROTECTED_NAMESPACES, RELEASED_RESERVATIONS, SCALE_DOWN } from './topics.ts'

function requestOf(pod: object): ProtectionRequest {
  return { timeoutMs: 2_000, shadow: false, pod: { ready: true, criterion: 'Available', ...pod } } as ProtectionRequest
}

const REQUEST = requestOf({})
const RESERVATION: Reservation = { cell: 'one', uid: 'u', holds: [] }
const ADMITTED = { status: 'AdmittedAll', admitted: true, reservation: RESERVATION } as unknown as ProtectionVerdict

function setUp() {
  const said: FromThread[] = []
  const calls: Calls<GatewayCalls, MainCalls> = new Calls<GatewayCalls, MainCalls>({
    post: (message) => said.push(message),
    handlers: Object(),
    onUnclaimed: (late) => {
      if (late.name === 'ask') questions.late(late.answer)
    },
  })
  const questions = new ThreadQuestions((asked, timeoutMs) => calls.call('ask', asked, { timeoutMs }))
  const subscribers = new TopicSubscribers()
  const topics: TopicChannel = {
    publish: (topic, payload) => void said.push(topic.message(payload)),
    subscribe: (topic, listener) => subscribers.subscribe(topic, listener),
  }
  const protection = new ThreadProtection({ topics, questions })
  const cover = (namespaces: readonly string[] | undefined): void =>
    subscribers.deliver(PROTECTED_NAMESPACES.message(namespaces && new Set(namespaces)))
  const settle = (id: number, answer: readonly ProtectionVerdict[]): void =>
    calls.receive({ type: 'answer', id, name: 'ask', answer: DELETIONS.answered(answer) })
  return { said, calls, protection, cover, settle }
}

beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }))
afterEach(() => mock.timers.reset())

describe('protection in a gateway thread', () => {
  it('covers all namespaces until it knows which are protected', () => {
    const { protection, cover } = setUp()
    assert.equal(protection.covers('a'), true)
    cover(['b'])
    assert.deepEqual([protection.covers('a'), protection.covers('b')], [false, true])
    cover(undefined)
    assert.equal(protection.covers('a'), true)
  })

  it('gives each question its own answer', async () => {
    const { said, protection, settle } = setUp()
    const first = protection.review([REQUEST])
    const second = protection.review([REQUEST, REQUEST])
    assert.deepEqual(said, [
      { type: 'call', id: 1, name: 'ask', argument: DELETIONS.asked([REQUEST]) },
      { type: 'call', id: 2, name: 'ask', argument: DELETIONS.asked([REQUEST, REQUEST]) },
    ])
    settle(2, [ADMITTED, ADMITTED])
    settle(1, [ADMITTED])
    assert.deepEqual([(await first).length, (await second).length], [1, 2])
    mock.timers.tick(60_000)
    assert.equal(said.length, 2)
  })

  it('a main thread that does not answer is an error, and reservations of a late answer are released', async () => {
    const { said, protection, settle } = setUp()
    const asked = protection.review([REQUEST, REQUEST])
    mock.timers.tick(2_499)
    mock.timers.tick(1)
    const verdicts = await asked
    assert.deepEqual(
      verdicts.map(({ status, admitted, reservation }) => [status, admitted, reservation]),
      [
        ['Error', false, undefined],
        ['Error', false, undefined],
      ],
    )
    assert.match(verdicts[0]?.message ?? '', /did not answer within 2000 ms/)
    settle(1, [ADMITTED, { ...ADMITTED, reservation: undefined }])
    assert.deepEqual(said.slice(1), [RELEASED_RESERVATIONS.message([RESERVATION])])
  })

  it('deletions that cannot be refused do not need the main thread', async () => {
    const { protection } = setUp()
    const asked = protection.review([requestOf({ ready: false }), requestOf({ forceDelete: true }), REQUEST])
    mock.timers.tick(2_500)
    assert.deepEqual(
      (await asked).map(({ status, admitted, overridden, freePass }) => [status, admitted, overridden, freePass]),
      [
        // Only while it stays unready.
        ['AlreadyUnready', true, '', true],
        ['Error', false, 'force-delete', false],
        ['Error', false, '', false],
      ],
    )
  })

  it('answers open requests when it ends', async () => {
    const { calls, protection } = setUp()
    const asked = protection.review([REQUEST])
    calls.end('the gateway is shutting down')
    assert.equal((await asked)[0]?.status, 'Error')
  })

  it('scale-downs: its own answer, none in time, and the end of the thread', async () => {
    const { said, calls, protection } = setUp()
    const settle = (id: number, answer: ScaleDownAnswer): void =>
      calls.receive({ type: 'answer', id, name: 'ask', answer: SCALE_DOWN.answered(answer) })
    const question = { timeoutMs: 1_000 } as ScaleDownQuestion
    const [answered, late, ended] = [1, 2, 3].map(() => protection.reviewScaleDown(question))
    assert.deepEqual(said[1], { type: 'call', id: 2, name: 'ask', argument: SCALE_DOWN.asked(question) })
    const answer = { protectors: [], unknown: '' }
    settle(1, answer)
    assert.equal(await answered, answer)
    mock.timers.tick(1_000)
    assert.match((await late)?.unknown ?? '', /did not answer within 1000 ms/)
    assert.match((await ended)?.unknown ?? '', /did not answer/)
    settle(2, answer)
    const last = protection.reviewScaleDown(question)
    calls.end('the gateway is shutting down')
    assert.match((await last).unknown, /is shutting down/)
  })
})
