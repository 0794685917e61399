// The work queue gives the turns that the two queues before it gave, on the same random traces.

import assert from 'node:assert/strict'
import { mock, type TestContext, test } from 'node:test'
import fc from 'fast-check'
import { AggregationQueue } from '../aggregator/queue.ts'
import { StatusQueue } from '../status/queue.ts'
import { type TurnOutcome, WorkQueue } from './work-queue.ts'

interface Queue {
  add(key: string, delayMs?: number): unknown
  forget(key: string): void
  retry?(): void
  stop(): Promise<void>
}

/** What a turn of a key comes to. */
interface Step {
  readonly outcome: TurnOutcome
  /** How long it takes; 0 = no time. */
  readonly lastsMs: number
  /** It asks for another one; 0 = it does not. */
  readonly againMs: number
}

interface Said {
  readonly what: 'add' | 'retry' | 'forget'
  readonly key: string
  readonly delayMs: number
  readonly passMs: number
}

type Make = (turn: (key: string) => Promise<TurnOutcome>, clock: { now(): number; monotonic(): number }) => Queue

/** All times of a trace are multiples of it: a timer of 0 ms, and what runs after another, may take a few milliseconds. */
const GRID = 50

async function turnsOf(make: Make, said: readonly Said[], steps: readonly Step[]): Promise<string[]> {
  const time = { ms: 0 }
  const turns: string[] = []
  const running = new Set<string>()
  const nth = new Map<string, number>()
  let queue: Queue | undefined
  const turn = async (key: string): Promise<TurnOutcome> => {
    assert.ok(!running.has(key))
    running.add(key)
    turns.push(`${Math.floor(time.ms / GRID)} ${key}`)
    const n = nth.get(key) ?? 0
    nth.set(key, n + 1)
    const { outcome, lastsMs, againMs } = steps[(n + key.charCodeAt(0)) % steps.length] ?? assert.fail()
    if (againMs > 0) queue?.add(key, againMs)
    if (lastsMs > 0) await new Promise<void>((resolve) => setTimeout(resolve, lastsMs))
    running.delete(key)
    return outcome
  }
  queue = make(turn, { now: () => time.ms, monotonic: () => time.ms })
  const pass = async (ms: number): Promise<void> => {
    for (let left = ms; left > 0; left--) {
      time.ms++
      mock.timers.tick(1)
      for (let i = 0; i < 8; i++) await Promise.resolve()
    }
  }
  for (const { what, key, delayMs, passMs } of said) {
    if (what === 'retry') queue.retry?.()
    else if (what === 'forget') {
      if (!running.has(key)) queue.forget(key)
    } else queue.add(key, delayMs)
    await pass(passMs)
    await pass((GRID - (time.ms % GRID)) % GRID)
  }
  await pass(1_500)
  for (const key of ['a', 'b', 'c', 'd']) if (!running.has(key)) queue.forget(key)
  const stopping = queue.stop()
  await pass(1_000)
  await stopping
  return turns
}

/** In one grid cell the order may differ. */
function sorted(turns: readonly string[]): string[] {
  return turns.toSorted((x, y) => Number.parseInt(x, 10) - Number.parseInt(y, 10) || (x < y ? -1 : 1))
}

function faked(t: TestContext): void {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.after(() => mock.timers.reset())
}

const key = fc.constantFrom('a', 'b', 'c', 'd')
const passMs = fc.nat(12).map((n) => n * GRID)

/** A limit of turns that is never reached: which one waits where several are due in one cell is chance. */
const LIMIT = 4

test('as the queue of statuses', async (t) => {
  faked(t)
  // A turn asks for more time than the spacing: otherwise the old one counted the spacing from a turn that wrote nothing.
  const step: fc.Arbitrary<Step> = fc.oneof(
    fc.record({
      outcome: fc.constantFrom<TurnOutcome>('written', 'failed', 'conflict'),
      lastsMs: fc.nat(4).map((n) => n * GRID),
      againMs: fc.constant(0),
    }),
    fc.record({
      outcome: fc.constant<TurnOutcome>('done'),
      lastsMs: fc.nat(4).map((n) => n * GRID),
      againMs: fc.constantFrom(0, 8 * GRID),
    }),
  )
  const said = fc.record({
    what: fc.constantFrom('add', 'add', 'add', 'retry', 'forget'),
    key,
    delayMs: fc.constant(0),
    passMs,
  }) as fc.Arbitrary<Said>
  const spacingMs = 6 * GRID
  const OLD = { done: 'nothing', written: 'written', conflict: 'again', failed: 'failed' } as const
  const old: Make = (turn, clock) =>
    new StatusQueue({
      turn: async (one) => OLD[await turn(one)],
      clock,
      random: () => 0.75,
      limit: LIMIT,
      spacingMs,
    })
  // 200 ms (0.25 + 0.75) are 160 ms (0.5 + 0.75).
  const pace = { spacingMs, conflictMs: 160 }
  const made: Make = (turn, clock) => new WorkQueue({ turn, clock, random: () => 0.75, limit: LIMIT, pace })
  await fc.assert(
    fc.asyncProperty(
      fc.array(said, { minLength: 1, maxLength: 25 }),
      fc.array(step, { minLength: 1, maxLength: 6 }),
      async (all, steps) => {
        assert.deepEqual(sorted(await turnsOf(made, all, steps)), sorted(await turnsOf(old, all, steps)))
      },
    ),
    { numRuns: 40 },
  )
})

test('as the queue of the aggregator', async (t) => {
  faked(t)
  // A conflict comes at once: what is said during a turn with a conflict may come 15 ms earlier in the old one.
  const step: fc.Arbitrary<Step> = fc.oneof(
    fc.record({
      outcome: fc.constantFrom<TurnOutcome>('done', 'failed'),
      lastsMs: fc.nat(4).map((n) => n * GRID),
      againMs: fc.nat(6).map((n) => n * GRID),
    }),
    fc.record({
      outcome: fc.constant<TurnOutcome>('conflict'),
      lastsMs: fc.constant(0),
      againMs: fc.constant(0),
    }),
  )
  const said = fc.record({
    what: fc.constantFrom('add', 'add', 'add', 'forget'),
    key,
    delayMs: fc.nat(8).map((n) => n * GRID),
    passMs,
  }) as fc.Arbitrary<Said>
  const OLD = { done: 'done', written: 'done', conflict: 'conflict', failed: 'failed' } as const
  const old: Make = (turn, clock) => {
    const queue = new AggregationQueue({
      count: async (one) => OLD[await turn(one)],
      clock,
      random: () => 0,
      limit: LIMIT,
    })
    return { add: (one, ms = 0) => queue.add(one, ms), forget: (one) => queue.forget(one), stop: () => queue.stop() }
  }
  const pace = { conflictMs: 10, firstBackoffMs: 100, longestBackoffMs: 60_000 }
  const made: Make = (turn, clock) => new WorkQueue({ turn, clock, random: () => 0, limit: LIMIT, pace })
  await fc.assert(
    fc.asyncProperty(
      fc.array(said, { minLength: 1, maxLength: 25 }),
      fc.array(step, { minLength: 1, maxLength: 6 }),
      async (all, steps) => {
        assert.deepEqual(sorted(await turnsOf(made, all, steps)), sorted(await turnsOf(old, all, steps)))
      },
    ),
    { numRuns: 40 },
  )
})
