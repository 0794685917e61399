import assert from 'node:assert/strict'
import { mock, type TestContext, test } from 'node:test'
import fc from 'fast-check'
import type { Clock } from '../../../kit/api/ports.ts'
import { type ReconcileOutcome, type WorkPace, WorkQueue } from './work-queue.ts'

const PACE = { conflictMs: 10, firstBackoffMs: 100, longestBackoffMs: 60_000 }

function queueOf(
  reconcile: (key: string) => Promise<ReconcileOutcome>,
  clock: Clock,
  { limit = 4, random = 0, ...pace }: Partial<WorkPace> & { readonly limit?: number; readonly random?: number } = {},
): WorkQueue {
  return new WorkQueue({ reconcile, clock, random: () => random, limit, pace: { ...PACE, ...pace } })
}

function fakeTime(t: TestContext) {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.after(() => mock.timers.reset())
  const time = { ms: 0 }
  const pass = async (ms: number): Promise<void> => {
    for (let left = ms; left > 0; left--) {
      time.ms++
      mock.timers.tick(1)
      for (let i = 0; i < 6; i++) await Promise.resolve()
    }
  }
  return { clock: { now: () => time.ms, monotonic: () => time.ms }, pass, time }
}

test('the earliest time counts, and one turn covers all that was said before it', async (t) => {
  const { clock, pass, time } = fakeTime(t)
  const turns: string[] = []
  const turn = async (key: string): Promise<ReconcileOutcome> => {
    turns.push(`${key}@${time.ms}`)
    return 'done'
  }
  const queue = queueOf(turn, clock)
  assert.equal(queue.add('a', 50), true)
  assert.equal(queue.add('a', 80), false)
  assert.equal(queue.add('a', 20), false)
  queue.add('b', 30)
  queue.add('gone', 10)
  queue.forget('gone')
  await pass(100)
  assert.deepEqual([turns, queue.size], [['a@20', 'b@30'], 0])
  await queue.stop()
})

test('failures wait longer and longer, whatever is said meanwhile, and a success ends that', async (t) => {
  const { clock, pass, time } = fakeTime(t)
  const turns: number[] = []
  let outcome: ReconcileOutcome = 'failed'
  const turn = async (): Promise<ReconcileOutcome> => {
    turns.push(time.ms)
    return outcome
  }
  const queue = queueOf(turn, clock, { random: 0.999999 })
  queue.add('a', 1)
  const nag = async (ms: number): Promise<void> => {
    for (let i = 0; i < ms; i += 10) {
      queue.add('a', 5)
      await pass(10)
    }
  }
  await nag(720)
  assert.deepEqual(turns, [1, 101, 301, 701])
  outcome = 'conflict'
  await pass(800)
  assert.equal(turns[4], 1501)
  // Soon: the other client has written already.
  assert.ok((turns[5] ?? 0) - 1501 <= 15)
  outcome = 'done'
  await pass(100)
  outcome = 'failed'
  turns.length = 0
  const since = time.ms
  queue.add('a', 1)
  await pass(150)
  assert.deepEqual(turns, [since + 1, since + 101])
  await queue.stop()
})

test('never more at a time than may be, never one of them twice, and none is lost', async (t) => {
  const { clock, pass } = fakeTime(t)
  const step = fc.record({ key: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'), delayMs: fc.nat(30), passMs: fc.nat(8) })
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const running = new Set<string>()
      const seen = new Map<string, number>()
      const said = new Map<string, number>()
      let order = 0
      const turn = async (key: string): Promise<ReconcileOutcome> => {
        assert.ok(!running.has(key) && running.size < 2)
        running.add(key)
        seen.set(key, order++)
        await new Promise<void>((resolve) => setTimeout(resolve, 7))
        running.delete(key)
        return 'done'
      }
      const queue = queueOf(turn, clock, { limit: 2 })
      for (const { key, delayMs, passMs } of steps) {
        said.set(key, order++)
        queue.add(key, delayMs)
        await pass(passMs)
      }
      await pass(200)
      for (const [key, last] of said)
        assert.ok((seen.get(key) ?? -1) > last, `${key} was not counted after it was said`)
      assert.equal(queue.size, 0)
      await queue.stop()
    }),
    { numRuns: 60 },
  )
})

test('stop waits for what runs, and begins nothing', async (t) => {
  const { clock, pass } = fakeTime(t)
  const ends: (() => void)[] = []
  const turn = (): Promise<ReconcileOutcome> => new Promise((resolve) => ends.push(() => resolve('failed')))
  const queue = queueOf(turn, clock)
  queue.add('a', 0)
  queue.add('b', 20)
  await pass(5)
  let stopped = false
  const stopping = queue.stop().then(() => {
    stopped = true
  })
  await pass(100)
  assert.deepEqual([stopped, ends.length], [false, 1])
  ends[0]?.()
  await stopping
  assert.equal(queue.add('c', 0), false)
  await pass(1000)
  assert.equal(ends.length, 1)
})

test('very many that are due at once let others run in between', async () => {
  let nowMs = 0
  let counted = 0
  const keys = Array.from({ length: 200 }, (_, i) => `p${i}`)
  const { promise: done, resolve: finish } = Promise.withResolvers<void>()
  // Nothing to write: awaits no answer.
  const turn = async (): Promise<ReconcileOutcome> => {
    nowMs += 3
    if (++counted === keys.length) finish()
    return 'done'
  }
  const queue = queueOf(turn, { now: () => nowMs, monotonic: () => nowMs })
  for (const key of keys) queue.add(key, 0)
  const seen: number[] = []
  const look = (): void => {
    seen.push(counted)
    if (counted < keys.length) setImmediate(look)
  }
  setImmediate(look)
  await done
  assert.ok(new Set(seen).size > 20, `seen at ${seen}`)
  await queue.stop()
})

test('a turn that throws is told, tried again, and holds up no other', async (t) => {
  const { clock, pass } = fakeTime(t)
  const errors: string[] = []
  const turns: string[] = []
  const queue = new WorkQueue({
    reconcile: async (key) => {
      turns.push(key)
      if (key === 'odd' && errors.length === 0) throw new Error('odd')
      return 'done'
    },
    onError: (key) => void errors.push(key),
    clock,
    random: () => 0,
    limit: 1,
    pace: PACE,
  })
  queue.add('odd')
  queue.add('even')
  await pass(2)
  assert.deepEqual([turns, errors], [['odd', 'even'], ['odd']])
  await pass(60)
  assert.deepEqual(turns, ['odd', 'even', 'odd'])
  await queue.stop()
})

test('writes of one key keep the spacing, and a turn that wrote nothing does not count', async (t) => {
  const { clock, pass, time } = fakeTime(t)
  const turns: string[] = []
  let outcome: ReconcileOutcome = 'written'
  const turn = async (key: string): Promise<ReconcileOutcome> => {
    turns.push(`${key}@${time.ms}`)
    return outcome
  }
  const queue = queueOf(turn, clock, { spacingMs: 100 })
  queue.add('a', 1)
  await pass(10)
  queue.add('a')
  queue.add('b', 5)
  outcome = 'done'
  await pass(100)
  queue.add('a')
  await pass(5)
  assert.deepEqual(turns, ['a@1', 'b@15', 'a@101', 'a@111'])
  await queue.stop()
})

test('when the cause of failures is gone they are tried at once', async (t) => {
  const { clock, pass, time } = fakeTime(t)
  const turns: number[] = []
  let outcome: ReconcileOutcome = 'failed'
  const queue = queueOf(async () => {
    turns.push(time.ms)
    return outcome
  }, clock)
  queue.add('a', 1)
  await pass(20)
  outcome = 'done'
  queue.retry()
  await pass(200)
  assert.deepEqual([turns.length, (turns[1] ?? 99) <= 22, queue.size], [2, true, 0])
  await queue.stop()
})

test('a key that is forgotten while its turn runs is not tried again, unless it is asked for, and then after that turn', async (t) => {
  const { clock, pass } = fakeTime(t)
  const ends: (() => void)[] = []
  const queue = queueOf(() => new Promise((resolve) => ends.push(() => resolve('failed'))), clock)
  queue.add('a')
  await pass(2)
  queue.forget('a')
  queue.add('a')
  await pass(2)
  assert.equal(ends.length, 1)
  ends[0]?.()
  await pass(2)
  assert.equal(ends.length, 2)
  queue.forget('a')
  ends[1]?.()
  await pass(1_000)
  assert.deepEqual([ends.length, queue.size], [2, 0])
  await queue.stop()
})
