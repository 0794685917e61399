import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, mock, test } from 'node:test'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import {
  AddressFailures,
  type Block,
  type FailureOptions,
  MAX_COUNTED,
  MAX_KNOWN,
  QUIET_MS,
} from './address-failures.ts'

const START_MS = 1_000_000
const LONGEST_MS = 300_000

beforeEach(() => mock.timers.enable({ apis: ['Date', 'setTimeout'], now: START_MS }))
afterEach(() => mock.timers.reset())

function create(options: Partial<FailureOptions> = {}): { failures: AddressFailures; blocks: Block[] } {
  const failures = new AddressFailures({ free: 10, longestBlockMs: LONGEST_MS, nowMs: () => Date.now(), ...options })
  const blocks: Block[] = []
  failures.onBlocked((some) => blocks.push(...some))
  return { failures, blocks }
}

async function fail(failures: AddressFailures, source: string, times: number): Promise<void> {
  for (let i = 0; i < times; i++) await failures.failed(source)
}

describe('failures of an address', () => {
  test('ten in a minute are free; then this address is blocked, and no other', async () => {
    const { failures, blocks } = create()
    await fail(failures, 'a', 10)
    assert.deepEqual(blocks, [])
    await failures.failed('a')
    assert.deepEqual(blocks, [{ source: 'a', forMs: 1_000 }])
    assert.ok(failures.blockedMs('a') > 0)
    assert.equal(failures.blockedMs('b'), 0)
    mock.timers.tick(1_000)
    assert.equal(failures.blockedMs('a'), 0)
  })

  test('each time for twice as long, up to the longest', async () => {
    const { failures, blocks } = create()
    await fail(failures, 'a', 10)
    for (let i = 0; i < 12; i++) {
      await failures.failed('a')
      mock.timers.tick(failures.blockedMs('a'))
    }
    assert.deepEqual(
      blocks.map(({ forMs }) => forMs / 1000),
      [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300],
    )
  })

  test('after a quiet time it is as new', async () => {
    const { failures, blocks } = create()
    await fail(failures, 'a', 11)
    mock.timers.tick(QUIET_MS + 2_000)
    await fail(failures, 'a', 10)
    assert.equal(blocks.length, 1)
    await failures.failed('a')
    assert.deepEqual(blocks.at(-1), { source: 'a', forMs: 1_000 })
  })

  test('in the next minute there are free ones again', async () => {
    const { failures, blocks } = create()
    for (let minute = 0; minute < 5; minute++) {
      await fail(failures, 'a', 10)
      mock.timers.tick(61_000)
    }
    assert.deepEqual(blocks, [])
  })

  test('many at once are counted, and are one reason to block', async () => {
    const { failures, blocks } = create()
    await Promise.all(Array.from({ length: 100 }, () => failures.failed('a')))
    assert.deepEqual(blocks, [{ source: 'a', forMs: 1_000 }])
    await failures.failed('b', 100)
    assert.equal(failures.blockedMs('b') > 0, true)
  })

  test('what fails while it is blocked does not make it longer', async () => {
    const { failures, blocks } = create()
    await fail(failures, 'a', 50)
    assert.equal(blocks.length, 1)
    mock.timers.tick(1_000)
    await failures.failed('a')
    assert.equal(blocks.length, 2, 'but what fails afterwards counts')
  })

  test('a block of another replica holds here from the first failure on, for as long as it does there, and counts once', async () => {
    const counters = new Map<string, RateLimiterMemory>()
    const shared: FailureOptions['shared'] = (keyPrefix, points, duration) => {
      const counter = counters.get(keyPrefix) ?? new RateLimiterMemory({ keyPrefix, points, duration })
      counters.set(keyPrefix, counter)
      return () => counter
    }
    const [here, there] = [create({ shared }), create({ shared })]
    await fail(here.failures, 'a', 11)
    mock.timers.tick(400)
    await fail(there.failures, 'a', 5)
    assert.deepEqual(there.blocks, [{ source: 'a', forMs: 600 }])
    mock.timers.tick(600)
    await there.failures.failed('a')
    assert.deepEqual(there.blocks.at(-1), { source: 'a', forMs: 2_000 })
  })

  test('0 counts nothing', async () => {
    const { failures, blocks } = create({ free: 0 })
    await fail(failures, 'a', 50)
    assert.deepEqual(blocks, [])
  })

  test('no more addresses are counted than there is memory for', async () => {
    const { failures, blocks } = create({ free: 1 })
    for (let i = 0; i < MAX_COUNTED; i++) await failures.failed(`a${i}`)
    await fail(failures, 'one more', 5)
    assert.deepEqual(blocks, [])
    mock.timers.tick(61_000)
    await fail(failures, 'one more', 2)
    assert.equal(blocks.length, 1)
  })

  test('no more blocks are remembered than there is memory for; each block of any other address is as short as the first', async () => {
    const known = new Set<string>()
    const shared: FailureOptions['shared'] = (keyPrefix, points, duration) => {
      const counter = new RateLimiterMemory({ keyPrefix, points, duration })
      const set = counter.set.bind(counter)
      counter.set = (key, ...rest) => {
        known.add(String(key))
        return set(key, ...rest)
      }
      return () => counter
    }
    const { failures, blocks } = create({ free: 1, shared })
    for (let i = 0; i < MAX_KNOWN; i++) await failures.failed(`a${i}`, 2)
    assert.deepEqual([blocks.length, known.size], [MAX_KNOWN, MAX_KNOWN])
    mock.timers.tick(61_000)
    for (let i = 0; i < 3; i++) {
      await failures.failed('one more', 2)
      mock.timers.tick(1_000)
    }
    await failures.failed('a7', 2)
    assert.deepEqual(
      blocks.slice(MAX_KNOWN).map(({ forMs }) => forMs),
      [1_000, 1_000, 1_000, 2_000],
    )
    assert.equal(known.size, MAX_KNOWN)
    mock.timers.tick(2 * QUIET_MS)
    await failures.failed('one more', 2)
    mock.timers.tick(1_000)
    await failures.failed('one more', 2)
    assert.deepEqual(
      blocks.slice(-2).map(({ forMs }) => forMs),
      [1_000, 2_000],
    )
  })

  test('counters that fail block no address, and are logged', async () => {
    const told: string[] = []
    const broken = { consume: unavailable, get: unavailable, set: unavailable }
    const { failures, blocks } = create({ shared: () => () => broken, onError: (message) => told.push(message) })
    await fail(failures, 'a', 20)
    assert.deepEqual([blocks, told.length, told[0]], [[], 20, 'away'])
  })
})

function unavailable(): Promise<never> {
  return Promise.reject(new Error('away'))
}
