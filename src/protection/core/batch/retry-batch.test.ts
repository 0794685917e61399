import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import fc from 'fast-check'
import type { BatchAnswer, BatchOutcome, BatchPace, BatchRequest } from './request.ts'
import { RetryBatch } from './retry-batch.ts'

/** A fake clock. */
class VirtualTime {
  nowMs = 0
  #timers: { atMs: number; run: () => void }[] = []

  schedule(delayMs: number, run: () => void): () => void {
    const timer = { atMs: this.nowMs + delayMs, run }
    this.#timers.push(timer)
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer)
    }
  }

  get timers(): number {
    return this.#timers.length
  }

  async advance(ms: number): Promise<void> {
    const untilMs = this.nowMs + ms
    await settle()
    for (;;) {
      const next = this.#timers.reduce<{ atMs: number; run: () => void } | undefined>(
        (first, timer) => (first === undefined || timer.atMs < first.atMs ? timer : first),
        undefined,
      )
      if (next === undefined || next.atMs > untilMs) break
      this.#timers = this.#timers.filter((other) => other !== next)
      this.nowMs = next.atMs
      next.run()
      await settle()
    }
    this.nowMs = untilMs
  }
}

/** Lets all pending promises settle. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

interface Execution {
  readonly key: string
  readonly startMs: number
  readonly operations: readonly number[]
}

/** Script of one write: ends after `latencyMs`, or never. */
interface Script {
  readonly latencyMs: number
  readonly outcome: 'done' | 'conflict' | 'failed' | 'hangs'
}

const PACE: BatchPace = {
  coldStartDelayMs: 0,
  batchIntervalMs: 75,
  retryBackoffMs: 100,
  retryJitterMs: 100,
  writeTimeoutMs: 10_000,
  writesAtOnce: 100,
  idleMs: 1_000,
}

class Bench {
  readonly time = new VirtualTime()
  readonly executions: Execution[] = []
  readonly late: number[] = []
  /** `DURATION RETRIES` of each batch that has ended. */
  readonly batches: string[] = []
  readonly answers = new Map<number, BatchAnswer<string> & { readonly atMs: number }>()
  readonly batch: RetryBatch<number, string>
  random = 0.5
  readonly #scripts: Script[]
  began: (execution: Execution) => void = () => undefined
  over: (execution: Execution, script: Script) => void = () => undefined

  constructor(pace: Partial<BatchPace> = {}, scripts: readonly Script[] = []) {
    this.#scripts = [...scripts]
    this.batch = new RetryBatch<number, string>({
      pace: { ...PACE, ...pace },
      now: () => this.time.nowMs,
      random: () => this.random,
      schedule: (delayMs, run) => this.time.schedule(delayMs, run),
      execute: (key, operations) => this.#execute(key, operations),
      onLate: (_key, operation) => void this.late.push(operation),
      onBatch: (_key, durationMs, retries) => void this.batches.push(`${durationMs} ${retries}`),
    })
  }

  submit(key: string, operation: number, request: Partial<BatchRequest<number>> = {}): void {
    const deadlineMs = this.time.nowMs + 10_000
    const [answer] = this.batch.submit(key, [{ operation, deadlineMs, ...request }])
    void answer?.then((given) => {
      assert.ok(!this.answers.has(operation), `${operation} is answered twice`)
      this.answers.set(operation, { ...given, atMs: this.time.nowMs })
    })
  }

  answerOf(operation: number): string | undefined {
    return this.answers.get(operation)?.type
  }

  #execute(key: string, operations: readonly number[]): Promise<BatchOutcome<string>> {
    const script = this.#scripts.shift() ?? { latencyMs: 5, outcome: 'done' }
    const execution = { key, operations, startMs: this.time.nowMs }
    this.began(execution)
    this.executions.push(execution)
    return new Promise((resolve) => {
      if (script.outcome === 'hangs') return
      this.time.schedule(script.latencyMs, () => {
        this.over(execution, script)
        if (script.outcome === 'done') resolve({ type: 'done', results: operations.map((one) => `${one}`) })
        else if (script.outcome === 'conflict') resolve({ type: 'conflict' })
        else resolve({ type: 'failed', error: new Error('connect ECONNREFUSED') })
      })
    })
  }
}

test("Podseidon's TestSingleRetry: after a conflict the same argument is written again", async () => {
  const file = new URL('../../../../test/data/podseidon-retry-batch.json', import.meta.url)
  const { retryBatch } = JSON.parse(readFileSync(file, 'utf8')) as {
    retryBatch: {
      name: string
      coldStartDelay: number
      idleTimeout: number
      submit?: { key: string; arg: number; at: number }[]
      executions?: { startsAt: number; latency: number; argsLen: number; returns: 'admitted' | { needRetry: number } }[]
    }[]
  }
  const row = retryBatch.find(({ name }) => name === 'TestSingleRetry')
  assert.ok(row?.submit !== undefined && row.executions !== undefined)
  const backoff = row.executions.flatMap(({ returns }) => (returns === 'admitted' ? [] : [returns.needRetry]))[0] ?? 0
  const pace = {
    coldStartDelayMs: row.coldStartDelay * 1000,
    idleMs: row.idleTimeout * 1000,
    retryBackoffMs: backoff * 1000,
    retryJitterMs: 0,
  }
  const scripts = row.executions.map(
    ({ latency, returns }): Script => ({
      latencyMs: latency * 1000,
      outcome: returns === 'admitted' ? 'done' : 'conflict',
    }),
  )
  const bench = new Bench(pace, scripts)
  for (const { key, arg } of row.submit) bench.submit(key, arg, { deadlineMs: 60_000 })
  await bench.time.advance(12_999)
  assert.equal(bench.answerOf(1), undefined)
  await bench.time.advance(1)
  assert.deepEqual(bench.answers.get(1), { type: 'done', result: '1', retries: 1, atMs: 13_000 })
  assert.deepEqual(
    bench.executions.map(({ startMs, operations }) => [startMs / 1000, operations.length]),
    row.executions.map(({ startsAt, argsLen }) => [startsAt, argsLen]),
  )
})

test("Podseidon's TestBatchGoroutineAbortFuse: who comes as a key becomes idle is served like any other", async () => {
  const bench = new Bench({ coldStartDelayMs: 5_000, idleMs: 60_000 })
  bench.submit('key1', 1)
  await bench.time.advance(5_005)
  assert.equal(bench.answerOf(1), 'done')
  await bench.time.advance(60_000 - 1)
  assert.equal(bench.batch.size, 1)
  bench.submit('key1', 2)
  await bench.time.advance(1)
  bench.submit('key1', 3)
  await bench.time.advance(10_000)
  assert.deepEqual([bench.answerOf(2), bench.answerOf(3)], ['done', 'done'])
  await bench.time.advance(60_000)
  assert.deepEqual([bench.batch.size, bench.time.timers], [0, 0])
})

test('an idle key writes at once, a busy one keeps the interval, and what comes meanwhile goes together', async () => {
  const bench = new Bench()
  for (let i = 0; i < 100; i++) {
    bench.submit('a', i)
    await bench.time.advance(3)
  }
  await bench.time.advance(100)
  assert.deepEqual(
    bench.executions.map(({ startMs }) => startMs),
    [0, 75, 150, 225, 300],
  )
  assert.deepEqual(
    bench.executions.flatMap(({ operations }) => operations),
    Array.from({ length: 100 }, (_, i) => i),
  )
  assert.equal(bench.answers.size, 100)
})

test('the cold start delay is for the first write after idleness only', async () => {
  const bench = new Bench({ coldStartDelayMs: 50 })
  bench.submit('a', 1)
  await bench.time.advance(20)
  bench.submit('a', 2)
  await bench.time.advance(200)
  bench.submit('a', 3)
  await bench.time.advance(2_000)
  bench.submit('a', 4)
  await bench.time.advance(100)
  assert.deepEqual(
    bench.executions.map(({ startMs, operations }) => [startMs, operations]),
    [
      [50, [1, 2]],
      [220, [3]],
      [2_270, [4]],
    ],
  )
})

test('after a conflict: the base, less than the jitter more, and who has come meanwhile goes along behind', async () => {
  for (const [random, startMs] of [
    [0, 105],
    [0.99, 204],
  ] as const) {
    const bench = new Bench({}, [{ latencyMs: 5, outcome: 'conflict' }])
    bench.random = random
    bench.submit('a', 1)
    await bench.time.advance(50)
    bench.submit('a', 2)
    await bench.time.advance(300)
    assert.deepEqual(bench.executions[1], { key: 'a', operations: [1, 2], startMs })
    assert.equal(bench.answers.get(1)?.retries, 1)
    assert.equal(bench.answers.get(2)?.retries, 0)
  }
})

test('a request is answered at its deadline; what its write does later is told', async () => {
  const bench = new Bench({}, [{ latencyMs: 500, outcome: 'done' }])
  bench.submit('a', 1, { deadlineMs: 200 })
  bench.submit('a', 2, { deadlineMs: 300 })
  await bench.time.advance(250)
  assert.deepEqual(bench.answers.get(1), { type: 'expired', retries: 0, atMs: 200 })
  await bench.time.advance(5_000)
  assert.deepEqual(bench.answers.get(2)?.type, 'done')
  assert.deepEqual(bench.late, [1])
})

test('what is over its deadline is not executed', async () => {
  const bench = new Bench({}, [{ latencyMs: 5, outcome: 'conflict' }])
  bench.submit('a', 1)
  bench.submit('a', 2, { deadlineMs: 60 })
  await bench.time.advance(1_000)
  assert.equal(bench.answerOf(2), 'expired')
  assert.deepEqual(
    bench.executions.map(({ operations }) => operations),
    [[1], [1]],
  )
})

test('a write that hangs is given up when no request waits for it, and the key goes on', async () => {
  const bench = new Bench({}, [{ latencyMs: 0, outcome: 'hangs' }])
  bench.submit('a', 1, { deadlineMs: 400 })
  await bench.time.advance(100)
  bench.submit('a', 2)
  await bench.time.advance(400)
  assert.equal(bench.answerOf(1), 'expired')
  assert.equal(bench.answerOf(2), 'done')
})

test('a write that hangs is given up after its timeout; who has time tries again, and the late success is told', async () => {
  const bench = new Bench({ writeTimeoutMs: 1_000 }, [{ latencyMs: 3_000, outcome: 'done' }])
  bench.submit('a', 1, { deadlineMs: 20_000 })
  await bench.time.advance(1_100)
  assert.deepEqual(bench.answers.get(1), { type: 'done', result: '1', retries: 1, atMs: 1_005 })
  assert.deepEqual(bench.late, [])
  await bench.time.advance(2_000)
  assert.deepEqual(bench.late, [1])
})

test('a failure is reported at once; persistent requests retry, later and later, and hold up no other request', async () => {
  const failing: Script = { latencyMs: 0, outcome: 'failed' }
  const bench = new Bench({ retryJitterMs: 0 }, [failing, failing, failing])
  bench.submit('a', 1, { persistent: true, deadlineMs: 60_000 })
  await bench.time.advance(0)
  bench.submit('a', 2)
  await bench.time.advance(80)
  assert.equal(bench.answerOf(2), 'failed')
  await bench.time.advance(2_000)
  assert.equal(bench.answerOf(1), 'done')
  assert.deepEqual(
    bench.executions.map(({ startMs, operations }) => [startMs, operations]),
    [
      [0, [1]],
      [75, [1, 2]],
      [275, [1]],
      [675, [1]],
    ],
  )
})

test('who can wait goes with the next write, or alone in the end', async () => {
  const bench = new Bench()
  bench.submit('a', 1, { waitMs: 500 })
  await bench.time.advance(200)
  assert.equal(bench.executions.length, 0)
  bench.submit('a', 2)
  bench.submit('b', 3, { waitMs: 500 })
  await bench.time.advance(500)
  assert.deepEqual(
    bench.executions.map(({ key, startMs, operations }) => [key, startMs, operations]),
    [
      ['a', 200, [1, 2]],
      ['b', 700, [3]],
    ],
  )
})

test('shutdown answers everybody and leaves nothing behind', async () => {
  const bench = new Bench({}, [{ latencyMs: 100, outcome: 'done' }])
  bench.submit('a', 1)
  bench.submit('a', 2)
  bench.submit('b', 3, { waitMs: 500 })
  await bench.time.advance(50)
  bench.batch.stop()
  bench.submit('a', 4)
  await settle()
  assert.deepEqual(
    [1, 2, 3, 4].map((operation) => bench.answerOf(operation)),
    ['stopped', 'stopped', 'stopped', 'stopped'],
  )
  assert.equal(bench.batch.size, 0)
  await bench.time.advance(100)
  assert.deepEqual([bench.late, bench.time.timers], [[1], 0])
})

test('a batch lasts from its first write until none of its requests waits, whatever the outcome', async () => {
  const conflict = { latencyMs: 5, outcome: 'conflict' } as const
  const bench = new Bench({ retryJitterMs: 0 }, [conflict, conflict])
  bench.submit('a', 1)
  await bench.time.advance(500)
  assert.deepEqual(bench.batches, ['215 2'])
  const failing = new Bench({}, [{ latencyMs: 7, outcome: 'failed' }, conflict, { latencyMs: 0, outcome: 'hangs' }])
  failing.submit('a', 1)
  await failing.time.advance(200)
  assert.deepEqual(failing.batches, ['7 0'])
  // Expires before its second write, and after that.
  failing.submit('a', 2, { deadlineMs: failing.time.nowMs + 50 })
  await failing.time.advance(100)
  assert.deepEqual(failing.batches, ['7 0', '50 1'])
  failing.submit('a', 3, { deadlineMs: failing.time.nowMs + 400 })
  await failing.time.advance(1_000)
  assert.equal(failing.batches.length, 3)
})

test('so many keys write at once; the others come in order, with all that has come meanwhile', async () => {
  const slow = { latencyMs: 50, outcome: 'done' } as const
  const bench = new Bench({ writesAtOnce: 1 }, [slow, slow, slow])
  bench.submit('a', 1)
  bench.submit('b', 2)
  bench.submit('c', 3)
  await bench.time.advance(30)
  bench.submit('c', 4)
  bench.submit('b', 5)
  bench.submit('a', 6)
  await bench.time.advance(500)
  assert.deepEqual(
    bench.executions.map(({ key, startMs, operations }) => `${key} ${startMs} ${operations}`),
    // By then the interval of `a` is over, but the others were in line before.
    ['a 0 1', 'b 50 2,5', 'c 100 3,4', 'a 150 6'],
  )
})

test('who is in line has its deadline, and then takes no slot', async () => {
  const slow = { latencyMs: 50, outcome: 'done' } as const
  const bench = new Bench({ writesAtOnce: 1 }, [slow])
  bench.submit('a', 1)
  bench.submit('b', 2, { deadlineMs: 20 })
  bench.submit('c', 3)
  await bench.time.advance(500)
  assert.equal(bench.answers.get(2)?.type, 'expired')
  assert.equal(bench.answers.get(2)?.atMs, 20)
  assert.deepEqual(
    bench.executions.map(({ key, startMs }) => `${key} ${startMs}`),
    ['a 0', 'c 50'],
  )
})

test('who was in line and is forgotten is called no more', async () => {
  const slow = { latencyMs: 5_000, outcome: 'done' } as const
  const bench = new Bench({ writesAtOnce: 1 }, [slow, { latencyMs: 50, outcome: 'done' }])
  bench.submit('a', 1)
  bench.submit('b', 2, { deadlineMs: 20 })
  // Idle for long enough: `b` is a new key now.
  await bench.time.advance(2_000)
  bench.submit('b', 3)
  await bench.time.advance(3_010)
  bench.submit('b', 4)
  await bench.time.advance(500)
  assert.deepEqual(
    bench.executions.map(({ key, startMs, operations }) => `${key} ${startMs} ${operations}`),
    ['a 0 1', 'b 5000 3', 'b 5075 4'],
  )
})

test('a write that hangs gives its slot back when it is given up; shutdown begins nothing', async () => {
  const hangs = { latencyMs: 0, outcome: 'hangs' } as const
  const bench = new Bench({ writesAtOnce: 1, writeTimeoutMs: 100 }, [hangs, hangs])
  bench.submit('a', 1, { deadlineMs: 150 })
  bench.submit('b', 2, { deadlineMs: 1_000 })
  await bench.time.advance(110)
  assert.deepEqual(
    bench.executions.map(({ key, startMs }) => `${key} ${startMs}`),
    ['a 0', 'b 100'],
  )
  bench.submit('c', 3)
  bench.batch.stop()
  await bench.time.advance(500)
  assert.equal(bench.executions.length, 2)
  assert.deepEqual([bench.answerOf(2), bench.answerOf(3), bench.time.timers], ['stopped', 'stopped', 0])
})

test('settled resolves when all is written', async () => {
  const bench = new Bench({}, [{ latencyMs: 30, outcome: 'conflict' }])
  let settled = false
  bench.submit('a', 1)
  bench.submit('b', 2)
  void bench.batch.settled().then(() => {
    settled = true
  })
  await bench.time.advance(100)
  assert.equal(settled, false)
  await bench.time.advance(200)
  assert.equal(settled, true)
})

const requests = fc.array(
  fc.record({
    afterMs: fc.integer({ min: 0, max: 120 }),
    key: fc.constantFrom('a', 'b'),
    deadlineInMs: fc.integer({ min: 1, max: 900 }),
    waitMs: fc.constantFrom(0, 0, 0, 300),
    persistent: fc.boolean(),
  }),
  { minLength: 1, maxLength: 30 },
)
const scripts = fc.array(
  fc.record<Script>({
    latencyMs: fc.constantFrom(0, 5, 60, 200, 700),
    outcome: fc.constantFrom('done', 'done', 'done', 'conflict', 'failed', 'hangs'),
  }),
  { maxLength: 30 },
)

test('whatever happens: one answer each, in time; one writer for a key; nothing admitted unwritten, nothing written forgotten', async () => {
  await fc.assert(
    fc.asyncProperty(requests, scripts, fc.constantFrom(1, 2, 100), async (submitted, script, writesAtOnce) => {
      const bench = new Bench({ writeTimeoutMs: 400, writesAtOnce }, script)
      const running = new Set<Execution>()
      const written = new Map<number, number>()
      const deadlines = new Map<number, number>()
      bench.over = (execution, { outcome }) => {
        running.delete(execution)
        if (outcome !== 'done') return
        for (const operation of execution.operations) written.set(operation, (written.get(operation) ?? 0) + 1)
      }
      // An adapter that throws has failed; errors are reported at the end.
      const wrong: unknown[] = []
      bench.began = (execution) => {
        try {
          checkExecution(execution, bench.executions, submitted, deadlines, running)
        } catch (error) {
          wrong.push(error)
        }
      }
      for (const [index, { afterMs, key, deadlineInMs, waitMs, persistent }] of submitted.entries()) {
        await bench.time.advance(afterMs)
        const deadlineMs = bench.time.nowMs + deadlineInMs
        deadlines.set(index, deadlineMs)
        bench.submit(key, index, { deadlineMs, waitMs, persistent })
      }
      await bench.time.advance(5_000)
      assert.deepEqual(wrong, [])
      assert.equal(bench.batch.size, 0, 'a key is never idle')
      assert.equal(bench.time.timers, 0)
      for (const index of submitted.keys()) {
        const answer = bench.answers.get(index)
        assert.ok(answer !== undefined && answer.atMs <= (deadlines.get(index) ?? 0), `${index} has no answer in time`)
        const successes = written.get(index) ?? 0
        const late = bench.late.filter((operation) => operation === index).length
        if (answer.type === 'done') assert.equal(answer.result, `${index}`)
        assert.equal(successes, late + (answer.type === 'done' ? 1 : 0), `${index}: ${answer.type}`)
      }
    }),
    { numRuns: 300 },
  )
})

function checkExecution(
  execution: Execution,
  earlier: readonly Execution[],
  submitted: readonly { readonly persistent: boolean }[],
  deadlines: ReadonlyMap<number, number>,
  running: Set<Execution>,
): void {
  const { key, startMs, operations } = execution
  const before = earlier.findLast((other) => other.key === key)
  if (before !== undefined) {
    assert.ok(startMs - before.startMs >= PACE.batchIntervalMs, 'two writes of a key begin too close together')
    // Persistent requests are not waited for.
    const waited = before.operations.filter((operation) => submitted[operation]?.persistent === false)
    const longestMs = Math.max(...waited.map((operation) => deadlines.get(operation) ?? 0))
    const givenUp = startMs >= before.startMs + 400 || (waited.length > 0 && startMs >= longestMs)
    assert.ok(givenUp || !running.has(before), 'two writes of a key at once')
  }
  for (const operation of operations)
    assert.ok(startMs < (deadlines.get(operation) ?? 0), 'executed after its deadline')
  assert.deepEqual(
    operations,
    operations.toSorted((a, b) => a - b),
  )
  running.add(execution)
}
