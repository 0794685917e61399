// Both ends of calls between two threads, with messages passed on by the test.

import assert from 'node:assert/strict'
import { describe, it, mock, type TestContext } from 'node:test'
import fc from 'fast-check'
import { CallError, type CallFailure } from '../../kit/core/topics/call-error.ts'
import { type AnswerMessage, type CallHandlers, type CallMessage, Calls } from './calls.ts'

interface Here {
  readonly double: { readonly argument: number; readonly answer: number }
}
interface There {
  readonly length: { readonly argument: string; readonly answer: number }
}
type ToThere = CallMessage<Here> | AnswerMessage<There>
type ToHere = CallMessage<There> | AnswerMessage<Here>

/** No test waits for it: a busy machine may take long for what is at once. */
const IN_TIME = { timeoutMs: 60_000 }
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

function setUp(handlers: Partial<CallHandlers<Here> & CallHandlers<There>> = {}) {
  const unclaimed: unknown[] = []
  /** Messages from here that have not arrived. */
  const held: ToThere[] = []
  const here: Calls<Here, There> = new Calls<Here, There>({
    post: (message) => held.push(structuredClone(message)),
    handlers: { length: (text) => text.length, ...handlers },
    onUnclaimed: ({ name, answer }) => unclaimed.push([name, answer]),
  })
  const there = new Calls<There, Here>({
    post: (message: ToHere) => here.receive(structuredClone(message)),
    handlers: { double: (number) => 2 * number, ...handlers },
  })
  const deliver = async (): Promise<void> => {
    for (const message of held.splice(0)) there.receive(message)
    await turn()
  }
  return { here, there, held, deliver, unclaimed }
}

function failing(failure: CallFailure, message: RegExp) {
  return (error: unknown): boolean =>
    error instanceof CallError && error.failure === failure && message.test(error.message)
}

function mockTimers(context: TestContext): void {
  mock.timers.enable({ apis: ['setTimeout'] })
  context.after(() => mock.timers.reset())
}

describe('calls', () => {
  it('have the answer of the other end, in both directions, under ids of their own', async () => {
    const { here, there, deliver } = setUp()
    const calls = [
      here.call('double', 2, IN_TIME),
      here.call('double', 3, IN_TIME),
      there.call('length', 'four', IN_TIME),
    ]
    await deliver()
    await deliver()
    assert.deepEqual(await Promise.all(calls), [4, 6, 4])
  })

  it('have the error of a handler, of an answer and of an argument that cannot be cloned', async () => {
    const { here, deliver } = setUp({
      double: (number) => {
        if (number === 0) throw new Error('out of luck')
        return Object(() => number)
      },
    })
    const [thrown, uncloned] = [here.call('double', 0, IN_TIME), here.call('double', 1, IN_TIME)]
    const checks = [
      assert.rejects(thrown, failing('failed', /out of luck/)),
      assert.rejects(uncloned, failing('failed', /could not be cloned/)),
      assert.rejects(
        here.call(
          'double',
          Object(() => 1),
          IN_TIME,
        ),
        failing('failed', /could not be cloned/),
      ),
    ]
    await deliver()
    await Promise.all(checks)
  })

  it('fail at their deadline and when they are aborted; an answer that comes then is unclaimed', async (context) => {
    mockTimers(context)
    const { here, deliver, unclaimed } = setUp()
    const controller = new AbortController()
    const [late, aborted] = [
      here.call('double', 2, IN_TIME),
      here.call('double', 3, { ...IN_TIME, signal: controller.signal }),
    ]
    const checks = [
      assert.rejects(late, failing('late', /within 60000 ms/)),
      assert.rejects(aborted, failing('aborted', /aborted/)),
    ]
    controller.abort()
    mock.timers.tick(60_000)
    await Promise.all(checks)
    await assert.rejects(
      here.call('double', 4, { ...IN_TIME, signal: controller.signal }),
      failing('aborted', /aborted/),
    )
    await deliver()
    assert.deepEqual(unclaimed, [
      ['double', 4],
      ['double', 6],
    ])
  })

  it('fail when the other end has ended, which gets no answer any more', async () => {
    const answers: ((length: number) => void)[] = []
    const { here, there, held, unclaimed } = setUp({
      length: () => new Promise((resolve) => answers.push(resolve)),
    })
    const waiting = assert.rejects(here.call('double', 2, IN_TIME), failing('ended', /is gone/))
    const unanswered = assert.rejects(there.call('length', 'x', IN_TIME), failing('ended', /by itself/))
    here.end('it is gone')
    await assert.rejects(here.call('double', 4, IN_TIME), failing('ended', /is gone/))
    answers[0]?.(1)
    await turn()
    assert.deepEqual(unclaimed, [['length', 1]])
    assert.deepEqual(
      held.map(({ type }) => type),
      ['call'],
    )
    there.end('by itself')
    await Promise.all([waiting, unanswered])
  })

  it('settle once each, as what comes first says, whatever the order of answers, deadlines, aborts and the end', async (context) => {
    mockTimers(context)
    const step = fc.record({ kind: fc.constantFrom('call', 'answer', 'fail', 'tick', 'abort', 'end'), n: fc.nat(20) })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const posted: CallMessage<Here>[] = []
        const unclaimed: number[] = []
        const calls = new Calls<Here, There>({
          post: (message) => {
            if (message.type === 'call') posted.push(message)
          },
          handlers: { length: () => 0 },
          onUnclaimed: ({ answer }) => unclaimed.push(answer),
        })
        const settled: string[] = []
        // The model: the outcome of each call, and its deadline.
        const expected: string[] = []
        const expectedUnclaimed: number[] = []
        const open = new Map<number, { readonly endsAt: number; readonly abort: AbortController }>()
        let now = 0
        let made = 0
        let ended = false
        const settle = (call: number, result: string): void => {
          if (open.delete(call)) expected[call] = result
        }
        for (const { kind, n } of steps) {
          const message = posted[n % Math.max(1, posted.length)]
          if (kind === 'call') {
            const call = made++
            const abort = new AbortController()
            const timeoutMs = 10 * (n + 1)
            void calls.call('double', call, { timeoutMs, signal: abort.signal }).then(
              (answer) => {
                settled[call] = String(answer)
              },
              (error: CallError) => {
                settled[call] = error.failure
              },
            )
            if (ended) expected[call] = 'ended'
            else open.set(call, { endsAt: now + timeoutMs, abort })
          } else if (kind === 'answer' && message !== undefined) {
            calls.receive({ type: 'answer', id: message.id, name: 'double', answer: n })
            if (open.has(message.argument)) settle(message.argument, String(n))
            else expectedUnclaimed.push(n)
          } else if (kind === 'fail' && message !== undefined) {
            calls.receive({ type: 'failure', id: message.id, message: 'no' })
            settle(message.argument, 'failed')
          } else if (kind === 'tick') {
            now += n
            mock.timers.tick(n)
            for (const [call, { endsAt }] of [...open]) if (endsAt <= now) settle(call, 'late')
          } else if (kind === 'abort' && message !== undefined) {
            open.get(message.argument)?.abort.abort()
            settle(message.argument, 'aborted')
          } else if (kind === 'end') {
            ended = true
            calls.end('ended')
            for (const call of [...open.keys()]) settle(call, 'ended')
          }
          await turn()
          assert.deepEqual([settled, unclaimed], [expected, expectedUnclaimed])
        }
        calls.end('the trace is over')
      }),
      { numRuns: 200 },
    )
  })
})
