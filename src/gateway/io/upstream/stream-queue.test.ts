import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Charge, Stream, StreamEvents } from '../../../kit/api/stream.ts'
import { type SpareStreams, StreamQueue } from './stream-queue.ts'

const EVENTS = Object({ onReset: () => undefined, onDrained: () => undefined }) as StreamEvents

function chargeOf(user: number): Charge {
  return { source: `user ${user}`, weight: 1, known: true }
}

test('a spare stream that becomes free is given away at the same cost however many wait for one', () => {
  const looksFor = (waiting: number): number => {
    const queue = new StreamQueue(() => [])
    for (let user = 0; user < waiting; user++) queue.wait([], undefined, true, EVENTS, chargeOf(user))
    let [free, looks] = [1, 0]
    const spare: SpareStreams = {
      get hasRoom() {
        return free > 0
      },
      admits() {
        looks++
        return free > 0
      },
      open() {
        free--
        return Object({ reset: () => undefined }) as Stream
      },
    }
    queue.sendLight(spare)
    assert.deepEqual([free, queue.count], [0, waiting - 1])
    return looks
  }
  assert.equal(looksFor(4000), looksFor(10))
})
