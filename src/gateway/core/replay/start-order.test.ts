import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { TimeQueue } from '../../../kit/core/queues/time-queue.ts'
import { type LogEntry, parseLogEntry } from './log-entry.ts'
import { isLong, type Ordered, StartOrder, WINDOW_MS } from './start-order.ts'

function entry(startMs: number, latencyMs: number): LogEntry {
  const time = new Date(startMs).toISOString()
  const parsed = parseLogEntry(JSON.stringify({ time, method: 'GET', target: '/', latencyMs }))
  assert.ok(!('error' in parsed))
  return parsed
}

/** In the gateway's order: by end. */
function inLogOrder(entries: readonly LogEntry[]): LogEntry[] {
  return entries.toSorted((a, b) => a.startMs + a.latencyMs - b.startMs - b.latencyMs)
}

function* ordered(order: StartOrder, entries: readonly LogEntry[]): Generator<Ordered> {
  for (const one of entries) yield* order.add(one)
  yield* order.end()
}

const short = fc.tuple(fc.integer({ min: 0, max: 400_000 }), fc.integer({ min: 0, max: WINDOW_MS }))
const long = fc.tuple(fc.integer({ min: 0, max: 400_000 }), fc.integer({ min: WINDOW_MS + 1, max: 3_000_000 }))
const logs = fc.array(fc.oneof({ weight: 5, arbitrary: short }, { weight: 1, arbitrary: long }), { maxLength: 200 })

test('requests come out in the order of their beginnings, long ones too where they are known beforehand', () => {
  fc.assert(
    fc.property(logs, (parts) => {
      const entries = parts.map(([start, latency]) => entry(start, latency))
      const longOnes = entries.filter(isLong)
      const found = [...ordered(new StartOrder(longOnes), inLogOrder(entries))]
      assert.deepEqual(
        found.map(({ entry: { startMs } }) => startMs),
        entries.map(({ startMs }) => startMs).toSorted((a, b) => a - b),
      )
      assert.ok(found.every(({ late }) => !late))
    }),
  )
})

test('without that, only long ones come late, and all others in order', () => {
  fc.assert(
    fc.property(logs, (parts) => {
      const entries = parts.map(([start, latency]) => entry(start, latency))
      const found = [...ordered(new StartOrder(undefined), inLogOrder(entries))]
      assert.equal(found.length, entries.length)
      assert.ok(found.every(({ late, entry: one }) => !late || isLong(one)))
      const starts = found.filter(({ late }) => !late).map(({ entry: { startMs } }) => startMs)
      assert.deepEqual(
        starts,
        starts.toSorted((a, b) => a - b),
      )
    }),
  )
})

test('no more requests are kept than the limit', () => {
  const order = new StartOrder([], 10)
  let out = 0
  for (let i = 0; i < 1000; i++) {
    out += [...order.add(entry(i, 0))].length
    assert.ok(i + 1 - out <= 10)
  }
})

test('a queue by time gives what sorting gives', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 20 })), (times) => {
      const queue = new TimeQueue<number>()
      for (const [i, at] of times.entries()) queue.add(at, i)
      const sorted = times.map((at, i) => ({ at, i })).toSorted((a, b) => a.at - b.at || a.i - b.i)
      for (const { at, i } of sorted) {
        assert.equal(queue.firstMs, at)
        assert.equal(queue.takeFirst(), i)
      }
      assert.equal(queue.takeFirst(), undefined)
      assert.equal(queue.firstMs, Number.POSITIVE_INFINITY)
    }),
  )
})
