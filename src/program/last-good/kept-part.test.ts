import assert from 'node:assert/strict'
import { test } from 'node:test'
import { keptPart } from './kept-part.ts'

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
