import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import type { Charge } from '../../../kit/api/stream.ts'
import { OWED_PAUSE_MS, QUANTUM_MS } from '../../core/thread-time/fair-queue.ts'
import { LONG_SLICE_MS, PacedReader, threadScheduler } from './thread-scheduler.ts'

class TestReader extends PacedReader {
  readonly resume: () => void

  constructor(resume: () => void) {
    super()
    this.resume = resume
  }
}

test('what endpoints send has a slice of each turn, and what is more waits for the next ones, in its order', async () => {
  const nowMs = performance.now()
  assert.equal(threadScheduler.beginShared(nowMs), true)
  threadScheduler.sharedDone(nowMs - LONG_SLICE_MS, nowMs)
  assert.equal(threadScheduler.beginShared(nowMs), false, 'the slice is over')
  const done: string[] = []
  const waiter = (name: string, pieces: number): { work(): boolean } => {
    let left = pieces
    return {
      work: () => {
        done.push(name)
        left--
        return left > 0
      },
    }
  }
  threadScheduler.waitShared(waiter('a', 2))
  threadScheduler.waitShared(waiter('b', 1))
  while (threadScheduler.waiting > 0) await yieldToEventLoop()
  assert.deepEqual(done, ['a', 'b', 'a'])
  assert.equal(threadScheduler.beginShared(performance.now()), true)
})

test('what endpoints send in bulk waits behind the rest of it, and has a quarter of its time', async (t) => {
  const nowMs = Math.ceil(performance.now())
  t.mock.method(performance, 'now', () => nowMs)
  const begun: { readonly name: string; readonly sliceMs: number }[] = []
  const waiter = (name: string) => ({
    work: (untilMs: number) => {
      begun.push({ name, sliceMs: untilMs - nowMs })
      return false
    },
  })
  threadScheduler.waitShared(waiter('bulk'), true)
  assert.equal(threadScheduler.beginShared(nowMs, true), false, 'some of it waits already')
  threadScheduler.waitShared(waiter('other'))
  while (threadScheduler.waiting > 0) await yieldToEventLoop()
  assert.deepEqual(
    begun.map(({ name }) => name),
    ['other', 'bulk'],
  )
  const [other, bulk] = begun
  assert.equal(bulk?.sliceMs, Number(other?.sliceMs) / 4)
  // Immediately, if nothing waits.
  const slices = [false, true].map(
    (isBulk) => threadScheduler.beginShared(nowMs, isBulk) && threadScheduler.untilMs - nowMs,
  )
  assert.deepEqual(slices, [other?.sliceMs, bulk.sliceMs])
})

test('what endpoints send has a quarter of its time while output waits, and bulk has none', async (t) => {
  const nowMs = Math.ceil(performance.now())
  t.mock.method(performance, 'now', () => nowMs)
  let turns = 0
  // Answers of the gateway's own, such as the read cache's, whose clients take as much as they are given.
  threadScheduler.setOutputs({ flush: () => ++turns < 10 })
  t.after(() => threadScheduler.setOutputs({ flush: () => false }))
  const begun: { readonly name: string; readonly turn: number; readonly sliceMs: number }[] = []
  const waiter = (name: string) => ({
    work: (untilMs: number) => {
      begun.push({ name, turn: turns, sliceMs: untilMs - nowMs })
      return false
    },
  })
  threadScheduler.waitShared(waiter('bulk'), true)
  threadScheduler.waitShared(waiter('other'))
  while (turns < 2) await yieldToEventLoop()
  // Immediately, too.
  assert.equal(threadScheduler.beginShared(nowMs, true), false)
  assert.equal(threadScheduler.beginShared(nowMs) && threadScheduler.untilMs - nowMs, begun[0]?.sliceMs)
  while (threadScheduler.waiting > 0) await yieldToEventLoop()
  const [other, bulk] = begun
  assert.deepEqual([other?.name, other?.turn], ['other', 1])
  assert.deepEqual([bulk?.name, bulk?.turn], ['bulk', 10])
  // The quarter of bulk, when no output waits.
  assert.equal(other?.sliceMs, bulk?.sliceMs)
})

test('a source that has had its slice waits, and is served behind the turn', async () => {
  const nowMs = performance.now()
  const account = threadScheduler.accountOf({ source: 'heavy', weight: 1, known: true }, nowMs)
  threadScheduler.accountOf({ source: 'light', weight: 1, known: true }, nowMs)
  assert.equal(threadScheduler.begin(account, nowMs), true)
  threadScheduler.charge(account, nowMs - LONG_SLICE_MS, nowMs)
  assert.equal(threadScheduler.begin(account, nowMs), false)
  let worked = 0
  threadScheduler.wait(account, { work: () => ++worked < 3 })
  const light = threadScheduler.accountOf({ source: 'light', weight: 1, known: true }, nowMs)
  assert.equal(threadScheduler.begin(light, nowMs), true, 'others go on at once')
  assert.equal(worked, 0)
  while (threadScheduler.waiting > 0) await yieldToEventLoop()
  assert.equal(worked, 3)
})

test('small pieces of work cause no further rounds of the event loop', async (t) => {
  const charge = { source: 'small', weight: 1, known: true }
  const small = (): void => {
    const nowMs = performance.now()
    threadScheduler.charge(threadScheduler.accountOf(charge, nowMs), nowMs - 0.01, nowMs)
    threadScheduler.sharedDone(nowMs - 0.01, nowMs)
  }
  const rounds = async (): Promise<void> => {
    for (let i = 0; i < 5; i++) await yieldToEventLoop()
  }
  await rounds()
  let ends = 0
  t.after(() => threadScheduler.setOutputs({ flush: () => false }))
  threadScheduler.setOutputs({
    flush: () => {
      ends++
      // Writes are charged, too.
      small()
      return false
    },
  })
  threadScheduler.schedule()
  await rounds()
  assert.equal(ends, 1)
  small()
  await rounds()
  assert.equal(ends, 1)
  // But many together end the turn.
  for (let i = 0; i < 20; i++) small()
  await rounds()
  assert.equal(ends, 2)
})

test('who reads in bulk goes on at once when alone, else a few in a turn, sources in turns', async () => {
  threadScheduler.tick(performance.now() + 10_000)
  const done: string[] = []
  const reader = (name: string): PacedReader => new TestReader(() => void done.push(name))
  const charge = (source: string): Charge => ({ source, weight: 1, known: true })
  threadScheduler.readOn(charge('a'), reader('alone'))
  assert.deepEqual(done, ['alone'])
  for (const source of ['a', 'b']) {
    const nowMs = performance.now()
    threadScheduler.charge(threadScheduler.accountOf(charge(source), nowMs), nowMs - 1, nowMs)
  }
  for (let i = 0; i < 4; i++) threadScheduler.readOn(charge('a'), reader(`a${i}`))
  threadScheduler.readOn(charge('b'), reader('b'))
  assert.deepEqual(done, ['alone'])
  await yieldToEventLoop()
  assert.equal(done.length, 3)
  while (threadScheduler.waiting > 0) await yieldToEventLoop()
  assert.deepEqual(done, ['alone', 'a0', 'b', 'a1', 'a2', 'a3'])
})

test('a reader that asks twice for its turn has one, and then nothing waits', async () => {
  threadScheduler.tick(performance.now() + 10_000)
  let resumed = 0
  const reader = new TestReader(() => void resumed++)
  const charge: Charge = { source: 'a', weight: 1, known: true }
  const nowMs = performance.now()
  for (const source of ['a', 'b'])
    threadScheduler.charge(threadScheduler.accountOf({ ...charge, source }, nowMs), nowMs - 1, nowMs)
  threadScheduler.readOn(charge, reader)
  threadScheduler.readOn(charge, reader)
  for (let i = 0; i < 5; i++) await yieldToEventLoop()
  assert.deepEqual([resumed, threadScheduler.waiting], [1, 0])
})

test('answers that come outside of a slice, as over HTTP/1.1, are charged at once', () => {
  threadScheduler.tick(performance.now() + 10_000)
  threadScheduler.chargeAnswer({ source: 'http1', weight: 1, known: true }, 4 * 1024 * 1024)
  assert.equal(threadScheduler.report()[0]?.largest[0]?.source, 'http1')
  threadScheduler.tick(performance.now() + 10_000)
})

test('a source with many requests in flight is read on at a pace while others are there', async (t) => {
  t.after(() => threadScheduler.setInFlight(() => 0))
  threadScheduler.setInFlight(({ source }) => (source === 'owed' ? 1_000 : 0))
  const startMs = performance.now()
  const account = threadScheduler.accountOf({ source: 'owed', weight: 1, known: true }, startMs)
  const otherUser = (): void => {
    const nowMs = performance.now()
    threadScheduler.charge(
      threadScheduler.accountOf({ source: 'light', weight: 1, known: true }, nowMs),
      nowMs - 0.1,
      nowMs,
    )
  }
  otherUser()
  const PIECES = 6
  let worked = 0
  const waiter = {
    work: () => {
      for (const sinceMs = performance.now(); performance.now() - sinceMs < QUANTUM_MS; );
      return ++worked < PIECES
    },
  }
  threadScheduler.wait(account, waiter)
  while (threadScheduler.waiting > 0) {
    await new Promise((resolve) => setTimeout(resolve, 1))
    otherUser()
  }
  assert.equal(worked, PIECES)
  const pauses = (performance.now() - startMs) / OWED_PAUSE_MS
  assert.ok(worked <= pauses + 2, `${worked} pieces in ${pauses} pauses`)
})
