// When clients are asked to reconnect.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { ServedConnection } from '../../gateway/io/listener/connections.ts'
import { ConnectionPlaces } from '../../gateway/state/connection-places.ts'
import { HeldConnections } from './held-connections.ts'

const AGE_MS = 240_000
const WINDOW_MS = 5_000

class FakeConnection implements ServedConnection {
  drained = 0
  begun = 0

  drain(): boolean {
    this.drained++
    return true
  }

  requests(): number {
    return this.begun
  }
}

function setUp(options: { maxAgeMs?: number; threads?: number; random?: () => number } = {}) {
  const { maxAgeMs = 0, threads = 1, random = Math.random } = options
  const places = new ConnectionPlaces(ConnectionPlaces.allocate(threads))
  for (let thread = 0; thread < threads; thread++) places.setOpen(thread, true)
  const reasons: string[] = []
  const held = new HeldConnections({ thread: 0, places, maxAgeMs, random, onDrained: (reason) => reasons.push(reason) })
  const startMs = performance.now()
  const connect = (): FakeConnection => {
    const connection = new FakeConnection()
    held.add(connection)
    return connection
  }
  return { held, places, reasons, connect, tick: (ms: number) => held.tick(startMs + ms) }
}

describe('age', () => {
  test('each client is asked once, a tenth before or after it, and those that came together not together', () => {
    const { connect, reasons, tick } = setUp({ maxAgeMs: AGE_MS })
    const connections = Array.from({ length: 1_000 }, connect)
    tick(0.899 * AGE_MS)
    assert.equal(reasons.length, 0)
    let before = 0
    let most = 0
    for (let ms = 0.9 * AGE_MS; ms <= 1.101 * AGE_MS; ms += 1_000) {
      tick(ms)
      most = Math.max(most, reasons.length - before)
      before = reasons.length
    }
    tick(1.101 * AGE_MS)
    tick(2 * AGE_MS)
    assert.ok(connections.every(({ drained }) => drained === 1))
    assert.deepEqual(new Set(reasons), new Set(['age']))
    // 1,000 over 48 seconds are 21 a second; all at once would be 1,000.
    assert.ok(most < 60, `${most} in one second`)
  })

  test('0: none is asked', () => {
    const { connect, reasons, tick } = setUp()
    const connection = connect()
    tick(1e9)
    assert.deepEqual([connection.drained, reasons], [0, []])
  })

  test('one that has closed is not asked', () => {
    const { held, connect, tick } = setUp({ maxAgeMs: AGE_MS })
    const connection = connect()
    held.delete(connection)
    tick(2 * AGE_MS)
    assert.equal(connection.drained, 0)
  })
})

describe('a thread with far more requests than the others', () => {
  function busy(threads: number, count: number, perSecond: number) {
    const set = setUp({ threads, random: () => 0 })
    const connections = Array.from({ length: count }, set.connect)
    for (let i = 0; i < count * threads; i++) set.places.take(0, () => true)
    let ms = 0
    const window = (): void => {
      ms += WINDOW_MS + 1
      for (const connection of connections) connection.begun += (perSecond * WINDOW_MS) / 1000
      set.tick(ms)
    }
    return { ...set, connections, window, asked: () => connections.filter(({ drained }) => drained > 0).length }
  }

  test('asks a few clients after a minute, and again later', () => {
    const { window, asked, reasons, places } = busy(2, 40, 100)
    for (let i = 0; i < 11; i++) window()
    assert.equal(asked(), 0, 'a burst moves no connection')
    assert.ok(places.load(0).requestRate > 3_500)
    window()
    assert.equal(asked(), 2)
    for (let i = 0; i < 12; i++) window()
    assert.equal(asked(), 3)
    assert.deepEqual(new Set(reasons), new Set(['balance']))
  })

  test('asks no client when the others have as many, or it is alone', () => {
    const even = busy(2, 40, 100)
    even.places.setRequestRate(1, 4_000)
    const alone = busy(1, 40, 100)
    for (const { window, asked } of [even, alone]) {
      for (let i = 0; i < 30; i++) window()
      assert.equal(asked(), 0)
    }
  })
})
