import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { BatchSender, type BatchSenderOptions, type Delivery } from './batch-sender.ts'

const TAKEN: Delivery = { kind: 'taken' }
const AGAIN: Delivery = { kind: 'again', afterMs: 0, message: 'busy' }
const REFUSED: Delivery = { kind: 'refused', message: 'no' }
/** Longer than any test. */
const LONG_MS = 600_000

interface Scene {
  readonly sender: BatchSender<number, readonly number[]>
  /** Batches of each attempt. */
  readonly attempts: (readonly number[])[]
  readonly lost: string[]
}

function scene(
  answer: (batch: readonly number[], signal: AbortSignal) => Delivery | Promise<Delivery>,
  given: Partial<BatchSenderOptions<number, readonly number[]>> = {},
): Scene {
  const attempts: (readonly number[])[] = []
  const lost: string[] = []
  const sender = new BatchSender<number, readonly number[]>({
    maxWaiting: 10,
    maxBatch: 2,
    maxUnderway: 1,
    maxAttempts: 3,
    waitMs: LONG_MS,
    encode: (batch) => batch,
    deliver: async (payload, batch, signal) => {
      assert.deepEqual(payload, batch)
      attempts.push(batch)
      return answer(batch, signal)
    },
    delayMs: () => 0,
    onUndelivered: (batch, result, why) => void lost.push(`${batch} ${result}: ${why}`),
    ...given,
  })
  return { sender, attempts, lost }
}

test('a full batch leaves at once, the rest when it has waited, or with flush, as often as it is called', async () => {
  const { sender, attempts } = scene(() => TAKEN)
  for (const item of [1, 2, 3]) sender.add(item)
  await sender.flush()
  sender.add(4)
  assert.equal(sender.waiting, 1)
  await sender.flush()
  assert.deepEqual(attempts, [[1, 2], [3], [4]])
  const sent = Promise.withResolvers<void>()
  const answer = (): Delivery => {
    sent.resolve()
    return TAKEN
  }
  const alive = setInterval(() => undefined, 1_000)
  scene(answer, { waitMs: 1 }).sender.add(5)
  await sent.promise
  clearInterval(alive)
})

test('what is busy is asked again up to the last attempt, what refuses is not, and a bug costs its batch alone', async () => {
  const { sender, attempts, lost } = scene(
    ([first]) => (first === 1 ? AGAIN : first === 3 ? REFUSED : first === 5 ? Promise.reject(new Error('bug')) : TAKEN),
    { maxBatch: 1 },
  )
  for (const item of [1, 3, 5, 7]) sender.add(item)
  await sender.flush()
  assert.deepEqual(attempts.flat(), [1, 1, 1, 3, 5, 7])
  assert.deepEqual(lost, ['1 failed: busy', '3 refused: no', '5 failed: bug'])
})

test('it waits as long as it is told to, and no longer than until the stop, with one last attempt', async () => {
  for (const [delay, afterMs] of [
    [LONG_MS, 0],
    [0, LONG_MS],
  ] as const) {
    const retried = Promise.withResolvers<void>()
    const { sender, attempts, lost } = scene(() => ({ ...AGAIN, afterMs }), {
      delayMs: () => delay,
      onRetry: () => retried.resolve(),
    })
    for (const item of [1, 2, 3]) sender.add(item)
    await retried.promise
    assert.deepEqual(attempts, [[1, 2]])
    await sender.stop(LONG_MS)
    assert.deepEqual(attempts, [[1, 2], [1, 2], [3]])
    assert.deepEqual(lost, ['1,2 failed: busy', '3 failed: busy'])
    assert.equal(sender.hasRoom(), false)
  }
})

test('the stop ends what hangs, and counts what still waits', async () => {
  const { sender, attempts, lost } = scene(
    (_, signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve(AGAIN))),
  )
  for (const item of [1, 2, 3]) sender.add(item)
  await sender.stop(1)
  assert.deepEqual(attempts, [[1, 2]])
  assert.deepEqual(
    new Set(lost),
    new Set(['1,2 failed: busy', '3 failed: they were not taken before the gateway stopped']),
  )
})

test('each item is delivered or lost, once and within the bounds, whatever the other side answers', async () => {
  const outcomes = fc.constantFrom<Delivery | 'bug'>(TAKEN, AGAIN, REFUSED, 'bug')
  const bounds = fc.record({
    maxWaiting: fc.integer({ min: 1, max: 9 }),
    maxHeld: fc.integer({ min: 5, max: 60 }),
    maxBatch: fc.integer({ min: 1, max: 4 }),
    maxBatchBytes: fc.integer({ min: 1, max: 12 }),
    maxUnderway: fc.integer({ min: 1, max: 3 }),
  })
  const sizes = fc.array(fc.integer({ min: 1, max: 9 }), { maxLength: 30 })
  await fc.assert(
    fc.asyncProperty(
      bounds,
      sizes,
      fc.array(outcomes, { minLength: 1 }),
      fc.boolean(),
      async (given, items, answers, stop) => {
        let [attempts, underway, held, lost, taken, full] = [0, 0, 0, 0, 0, 0]
        const sumOf = (batch: readonly number[]): number => batch.reduce((sum, size) => sum + size, 0)
        const { sender } = scene(
          async (batch) => {
            assert.ok(++underway <= given.maxUnderway)
            assert.ok(batch.length >= 1 && batch.length <= given.maxBatch)
            assert.ok(batch.length === 1 || sumOf(batch) <= given.maxBatchBytes)
            const answer = answers[attempts++ % answers.length] ?? TAKEN
            await new Promise((resolve) => setImmediate(resolve))
            underway--
            if (answer === 'bug') throw new Error(answer)
            if (answer === TAKEN) {
              taken += batch.length
              held -= sumOf(batch)
            }
            return answer
          },
          {
            ...given,
            sizeOf: (size) => size,
            bytesOf: (size) => size,
            onUndelivered: (batch) => {
              lost += batch.length
              held -= sumOf(batch)
            },
          },
        )
        for (const size of items) {
          if (sender.hasRoom(size)) {
            sender.add(size)
            held += size
            assert.ok(held <= given.maxHeld && sender.waiting <= given.maxWaiting)
          } else full++
          if (size % 3 === 0) await new Promise((resolve) => setImmediate(resolve))
        }
        await (stop ? sender.stop(LONG_MS) : sender.flush())
        assert.deepEqual([taken + lost + full, held, sender.waiting], [items.length, 0, 0])
      },
    ),
  )
})
