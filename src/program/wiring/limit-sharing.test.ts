import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Logger } from '../../kit/api/ports.ts'
import { createFailures, keptPart } from './limit-sharing.ts'

test('a part is restored only from a record that has one', () => {
  const served: number[] = []
  const restored = (...records: unknown[]): unknown =>
    keptPart({
      restore: () => ({ records, timeMs: 7, source: 'redis.example:6379' }),
      serves: (timeMs) => void served.push(timeMs),
      put: () => undefined,
      current: () => undefined,
    }).restore()
  for (const other of [{}, { replicas: 3 }, { replicas: '3', rank: 0 }, { replicas: -1, rank: 0 }, [], 3, undefined]) {
    assert.equal(restored(other), undefined, JSON.stringify(other))
  }
  assert.equal(restored(), undefined)
  assert.deepEqual(served, [])
  assert.deepEqual(restored({ replicas: 3, rank: 2, members: [] }), { replicas: 3, rank: 2 })
  assert.deepEqual(served, [7])
})

test('that an address is blocked is logged, also when failures could not be counted a moment ago', async () => {
  const lines: string[] = []
  const note = (message: string): void => void lines.push(message)
  const log: Logger = { debug: note, info: note, warn: note, error: note }
  const clock = { now: () => 0, monotonic: () => 0 }
  let isAway = true
  const answer = <T>(value: T): Promise<T> => (isAway ? Promise.reject(new Error('away')) : Promise.resolve(value))
  // A source that was blocked once, but is not now: its next failure blocks it again.
  const before = Object({ consumedPoints: 1, msBeforeNext: 0 })
  const shared = () => () => ({
    consume: () => answer(before),
    get: () => answer(before),
    set: () => answer(before),
  })
  const settings = { maxAuthenticationFailures: 1, authenticationFailureBlockMs: 300_000 }
  const failures = createFailures(settings, shared, clock, log)
  await failures.failed('a')
  isAway = false
  await failures.failed('a')
  await failures.failed('b')
  assert.deepEqual(lines.length, 2, lines.join())
  assert.match(lines[0] ?? '', /could not be counted/)
  assert.match(lines[1] ?? '', /is blocked/)
})
