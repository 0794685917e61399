import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Ramp } from '../cluster/compiled-cluster.ts'
import { createFlowMemory, FlowCounter } from './flow-counter.ts'
import { rateAt, secondsToRamped, takeRamped } from './ramped-bucket.ts'

const SINCE = Date.parse('2030-01-01T00:00:00Z')
const RAMP: Ramp = { startQps: 1, endQps: 20, overMs: 300_000, sinceMs: SINCE }

function counters(threads = 1): FlowCounter[] {
  const memory = createFlowMemory(1, threads)
  return Array.from({ length: threads }, (_, thread) => new FlowCounter(memory, 0, thread))
}

/** How many requests pass at maximum demand, one attempt every `stepMs`. */
function passing(ramp: Ramp, fromMs: number, untilMs: number, stepMs = 10, asking = counters()): number {
  let passed = 0
  for (let at = fromMs; at <= untilMs; at += stepMs)
    for (const counter of asking) while (takeRamped(ramp, counter, SINCE + at)) passed++
  return passed
}

test('the rate grows from the moment on that the mode was set', () => {
  const rates = [0, 150_000, 300_000, 900_000].map((at) => rateAt(RAMP, SINCE + at))
  assert.deepEqual(rates, [1, 10.5, 20, 20])
  assert.equal(rateAt(RAMP, SINCE - 60_000), 1, 'a clock that is behind')
  assert.equal(rateAt({ ...RAMP, overMs: 0 }, SINCE), 20)
  assert.equal(rateAt({ ...RAMP, sinceMs: 0 }, SINCE), 1, 'it is not known since when')
})

test('as many pass as the area below the rate, and at first one', () => {
  assert.equal(passing(RAMP, 0, 0), 1)
  assert.equal(passing(RAMP, 0, 300_000), 1 + (300 * (1 + 20)) / 2)
  assert.equal(passing(RAMP, 0, 600_000), 1 + (300 * (1 + 20)) / 2 + 300 * 20)
  assert.equal(passing({ ...RAMP, sinceMs: 0 }, 0, 60_000), 61)
  assert.equal(passing({ ...RAMP, startQps: 20, endQps: 1 }, 0, 300_000), 20 + (300 * 21) / 2, 'downwards')
})

test('unused tokens are saved up for a second at most', () => {
  const asking = counters()
  passing(RAMP, 0, 0, 10, asking)
  assert.equal(passing(RAMP, 600_000, 600_000, 10, asking), 20)
})

test('threads share it', () => {
  assert.equal(passing(RAMP, 0, 300_000, 10, counters(4)), passing(RAMP, 0, 300_000))
})

test('another ramp, and a clock that was set back by an hour, begin again; one that is a moment behind does not', () => {
  const asking = counters()
  passing(RAMP, 3_600_000, 3_660_000, 10, asking)
  assert.equal(passing(RAMP, 3_659_900, 3_659_900, 10, asking), 0)
  assert.equal(passing(RAMP, 60_000, 60_000, 10, asking), Math.floor(rateAt(RAMP, SINCE + 60_000)))
  assert.equal(passing({ ...RAMP, sinceMs: SINCE + 60_000 }, 60_000, 60_000, 10, asking), 1)
})

test('no window admits more than what came in during it and a second of it', () => {
  const qps = fc.integer({ min: 1, max: 50 })
  const ramp = fc.record({
    startQps: qps,
    endQps: qps,
    overMs: fc.integer({ min: 0, max: 20_000 }),
    sinceMs: fc.constant(SINCE),
  })
  const steps = fc.array(fc.integer({ min: 0, max: 3_000 }), { maxLength: 200 })
  fc.assert(
    fc.property(ramp, steps, (one, pauses) => {
      const [counter = assert.fail()] = counters()
      const highest = Math.max(one.startQps, one.endQps)
      const taken: number[] = []
      let now = SINCE
      for (const pause of pauses) {
        now += pause
        if (takeRamped(one, counter, now)) taken.push(now)
      }
      for (const [i, from] of taken.entries()) {
        for (const [j, until] of taken.slice(i).entries()) {
          assert.ok(j + 1 <= highest + (highest * (until - from)) / 1000 + 1e-6, `${j + 1} in ${until - from} ms`)
        }
      }
    }),
    { numRuns: 200 },
  )
})

test('who is refused is told how long one takes', () => {
  assert.equal(secondsToRamped(RAMP, SINCE), 1)
  assert.equal(secondsToRamped({ ...RAMP, startQps: 0.2 }, SINCE), 5)
})
