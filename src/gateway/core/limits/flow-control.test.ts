// Limits are exact, for every kind of slot and with threads that share a counter. Token buckets have a test of their own.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, it } from 'node:test'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import fc from 'fast-check'
import type { CompiledSchema } from '../cluster/compiled-cluster.ts'
import {
  isIdle,
  refund,
  release,
  resize,
  retryAfterSeconds,
  seatsTaken,
  tokensLeft,
  tryAcquire,
} from './flow-control.ts'
import { createFlowMemory, FlowCounter, type FlowMemory, lockCounter, releaseThread } from './flow-counter.ts'
import { closeWatch, openWatches, requestsInFlight, tryOpenWatch } from './in-flight.ts'
import { tryLock } from './shared-lock.ts'

/** A counter without history: bucket full, nothing in flight. */
function createFlowCounter(memory: FlowMemory = createFlowMemory(1), index = 0, thread = 0): FlowCounter {
  return new FlowCounter(memory, index, thread)
}

const THREADS = 3
const NONE = {
  qps: 0,
  burst: 0,
  max: 0,
  perUser: false,
  cost: false,
  maxWatches: 0,
  shadow: false,
  strategy: '',
  shared: undefined,
}

function bucket(qps: number, burst: number): CompiledSchema {
  return { ...NONE, name: 'b', kind: 'tokenBucket', qps, burst }
}

function inflight(max: number): CompiledSchema {
  return { ...NONE, name: 'i', kind: 'maxRequestsInflight', max }
}

function take(schema: CompiledSchema, counter: FlowCounter, nowMs: number, wanted: number): number {
  let taken = 0
  for (let i = 0; i < wanted; i++) if (tryAcquire(schema, counter, nowMs)) taken++
  return taken
}

if (isMainThread) {
  describe('limits by their kind', () => kindTests())
  describe('requests in flight and watches', () => counterTests())
  describe('threads that share a counter', () => threadTests())
} else {
  hammer()
}

function kindTests(): void {
  it('says in whole seconds when to come again', () => {
    const slow = bucket(1, 1)
    const counter = createFlowCounter()
    assert.equal(retryAfterSeconds(slow, createFlowCounter(), 5), 1)
    take(slow, counter, 1000, 1)
    assert.equal(retryAfterSeconds(slow, counter, 1000), 1)
    assert.equal(retryAfterSeconds(slow, counter, 1999), 1)
    assert.equal(retryAfterSeconds({ ...slow, qps: 0.25 }, counter, 1000), 4)
    assert.equal(retryAfterSeconds({ ...slow, qps: 0.001 }, counter, 1000), 60)
    assert.equal(retryAfterSeconds(inflight(0), counter, 1000), 1)
  })

  it('takes as many tokens or slots as a request has seats, never in parts, and gives them back', () => {
    fc.assert(
      fc.property(
        fc.boolean(),
        fc.integer({ min: 1, max: 50 }),
        fc.array(fc.tuple(fc.integer({ min: 1, max: 100 }), fc.boolean())),
        (slots, size, requests) => {
          const schema = slots ? inflight(size) : bucket(1, size)
          const counter = createFlowCounter()
          const held: number[] = []
          let free = size
          for (const [wanted, returned] of requests) {
            const seats = seatsTaken(schema, counter, wanted)
            assert.equal(seats, Math.min(wanted, size))
            const admitted = tryAcquire(schema, counter, 0, seats)
            assert.equal(admitted, seats <= free)
            if (admitted) {
              held.push(seats)
              free -= seats
            }
            const back = returned ? held.shift() : undefined
            if (back === undefined) continue
            refund(schema, counter, back)
            free += back
          }
          assert.equal(take(schema, counter, 0, size + 1), free)
        },
      ),
    )
  })

  it('says when all tokens of a list are there', () => {
    const slow = bucket(2, 10)
    const counter = createFlowCounter()
    take(slow, counter, 1000, 10)
    assert.equal(retryAfterSeconds(slow, counter, 1000, 10), 5)
    assert.ok(!tryAcquire(slow, counter, 5999, 10))
    assert.ok(tryAcquire(slow, counter, 6000, 10))
  })

  it('always admits when exempt', () => {
    const exempt: CompiledSchema = { ...NONE, name: 'e', kind: 'exempt' }
    assert.equal(take(exempt, createFlowCounter(), 0, 100), 100)
  })
}

function counterTests(): void {
  it('never exceeds the maximum, whatever the order of events', () => {
    fc.assert(
      fc.property(fc.nat({ max: 5 }), fc.array(fc.boolean()), (max, events) => {
        const counter = createFlowCounter()
        let held = 0
        for (const begins of events) {
          if (begins) {
            const admitted = tryAcquire(inflight(max), counter, 0)
            assert.equal(admitted, held < max)
            if (admitted) held++
          } else if (held > 0) {
            release(inflight(max), counter)
            held--
          }
          assert.equal(requestsInFlight(counter), held)
        }
      }),
    )
  })

  it('refuses everything when the maximum is 0', () => assert.equal(take(inflight(0), createFlowCounter(), 0, 5), 0))

  it('never falls below zero', () => {
    const counter = createFlowCounter()
    release(inflight(1), counter)
    closeWatch(counter)
    assert.equal(requestsInFlight(counter), 0)
    assert.equal(take(inflight(1), counter, 0, 2), 1)
    assert.equal(openWatches(counter), 0)
  })

  it('counts watches without a cap, and refuses once there is one', () => {
    const counter = createFlowCounter()
    const free = inflight(1)
    const capped = { ...free, maxWatches: 2 }
    for (let i = 0; i < 3; i++) assert.ok(tryOpenWatch(free, counter))
    assert.ok(!tryOpenWatch(capped, counter))
    closeWatch(counter)
    assert.ok(!tryOpenWatch(capped, counter))
    closeWatch(counter)
    assert.ok(tryOpenWatch(capped, counter))
    assert.equal(openWatches(counter), 2)
    assert.equal(requestsInFlight(counter), 0)
  })

  it('is idle exactly when a new counter would admit the same', () => {
    const schema = bucket(10, 10)
    const counter = createFlowCounter()
    assert.ok(isIdle(schema, counter, 0))
    take(schema, counter, 0, 1)
    assert.ok(!isIdle(schema, counter, 99))
    assert.ok(isIdle(schema, counter, 100))
    tryOpenWatch(schema, counter)
    assert.ok(!isIdle(schema, counter, 100))
    const held = createFlowCounter()
    take(inflight(2), held, 0, 1)
    assert.ok(!isIdle(inflight(2), held, 1e9))
  })

  it('a smaller maximum lets requests end, and admits below it only', () => {
    const counter = createFlowCounter()
    take(inflight(5), counter, 0, 5)
    resize(inflight(5), inflight(2), counter, 0)
    for (let i = 0; i < 3; i++) release(inflight(5), counter)
    assert.ok(!tryAcquire(inflight(2), counter, 0))
    release(inflight(5), counter)
    assert.ok(tryAcquire(inflight(2), counter, 0))
  })

  it('keeps counters of one memory apart', () => {
    const memory = createFlowMemory(2)
    const [a, b] = [createFlowCounter(memory, 0), createFlowCounter(memory, 1)]
    assert.equal(take(bucket(5, 5), a, 0, 9), 5)
    assert.equal(take(bucket(5, 5), b, 0, 9), 5)
    tryAcquire(inflight(1), a, 0)
    assert.equal(requestsInFlight(b), 0)
  })
}

function threadTests(): void {
  it('admits exactly the burst together, and loses no slot', async () => {
    const memory = createFlowMemory(2, THREADS)
    const tokens = createFlowCounter(memory, 0)
    const slots = createFlowCounter(memory, 1)
    const workers = Array.from(
      { length: THREADS },
      (_, thread) => new Worker(new URL(import.meta.url), { workerData: { memory, thread } }),
    )
    const results = await Promise.all(workers.map(async (worker) => (await once(worker, 'message'))[0]))
    await Promise.all(workers.map((worker) => worker.terminate()))
    const sum = results.reduce((total: number, result: { taken: number }) => total + result.taken, 0)
    assert.equal(sum, 50_000)
    assert.ok(results.every((result: { most: number }) => result.most <= 2))
    assert.equal(requestsInFlight(slots), 0)
    assert.equal(tokensLeft(bucket(1, 50_000), tokens, 1000), 0)
  })

  it('admits exactly the maximum together, and gives back what a thread that died held', () => {
    const memory = createFlowMemory(1, 2)
    const [a, b] = [createFlowCounter(memory, 0, 0), createFlowCounter(memory, 0, 1)]
    const schema = { ...inflight(5), maxWatches: 3 }
    assert.equal(take(schema, a, 0, 3), 3)
    assert.equal(take(schema, b, 0, 9), 2)
    assert.ok(tryOpenWatch(schema, a))
    assert.ok(tryOpenWatch(schema, b))
    releaseThread(memory, 0)
    assert.deepEqual([requestsInFlight(b), openWatches(b)], [2, 1])
    assert.equal(take(schema, b, 0, 9), 3)
    release(schema, b)
    assert.equal(requestsInFlight(a), 4)
  })

  it('goes on after a thread died inside the lock', () => {
    const memory = createFlowMemory(1, 2)
    lockCounter(createFlowCounter(memory, 0, 1))
    releaseThread(memory, 0)
    assert.ok(!tryLock(memory.words, 0, 0), 'it is the lock of thread 1')
    releaseThread(memory, 1)
    assert.equal(take(bucket(5, 5), createFlowCounter(memory, 0, 0), 0, 9), 5)
  })
}

/** In a worker: takes tokens and slots as fast as it can. */
function hammer(): void {
  const { memory, thread }: { memory: FlowMemory; thread: number } = workerData
  const tokens = createFlowCounter(memory, 0, thread)
  const slots = createFlowCounter(memory, 1, thread)
  let taken = 0
  let most = 0
  for (let i = 0; i < 40_000; i++) {
    if (tryAcquire(bucket(1, 50_000), tokens, 1000)) taken++
    if (!tryAcquire(inflight(2), slots, 1000)) continue
    most = Math.max(most, requestsInFlight(slots))
    release(inflight(2), slots)
  }
  parentPort?.postMessage({ taken, most })
}
