import assert from 'node:assert/strict'
import { mock, type TestContext, test } from 'node:test'
import fc from 'fast-check'
import { AggregationQueue, type CountOutcome } from './queue.ts'

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
  const count = async (key: string): Promise<CountOutcome> => {
    turns.push(`${key}@${time.ms}`)
    return 'done'
  }
  const queue = new AggregationQueue({ count, clock, random: () => 0, limit: 4 })
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
  let outcome: CountOutcome = 'failed'
  const count = async (): Promise<CountOutcome> => {
    turns.push(time.ms)
    return outcome
  }
  const queue = new AggregationQueue({ count, clock, random: () => 0.999999, limit: 4 })
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
  // Soon: the other one has written already.
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
      const count = async (key: string): Promise<CountOutcome> => {
        assert.ok(!running.has(key) && running.size < 2)
        running.add(key)
        seen.set(key, order++)
        await new Promise<void>((resolve) => setTimeout(resolve, 7))
        running.delete(key)
        return 'done'
      }
      const queue = new AggregationQueue({ count, clock, random: () => 0, limit: 2 })
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
  const count = (): Promise<CountOutcome> => new Promise((resolve) => ends.push(() => resolve('failed')))
  const queue = new AggregationQueue({ count, clock, random: () => 0, limit: 4 })
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
  // Nothing to write: no answer is waited for.
  const count = async (): Promise<CountOutcome> => {
    nowMs += 3
    if (++counted === keys.length) finish()
    return 'done'
  }
  const queue = new AggregationQueue({
    count,
    clock: { now: () => nowMs, monotonic: () => nowMs },
    random: () => 0,
    limit: 4,
  })
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
