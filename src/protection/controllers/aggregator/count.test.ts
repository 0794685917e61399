import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { HistoryEntry } from '../../core/history/entry.ts'
import { AdmissionTimes } from './count.ts'

function entry(uid: string, end: number, uids: readonly string[] = []): HistoryEntry {
  return { start: end, end, uid, name: '', version: '', counter: 1, uids: new Set(uids) }
}

test('a deletion is known since it was first seen, whatever time it bears itself', () => {
  const times = new AdmissionTimes()
  assert.equal(times.of('p', 1000)(entry('a', 5)), 1000)
  const second = times.of('p', 2000)
  assert.deepEqual([second(entry('a', 5)), second(entry('b', 9_999_999))], [1000, 2000])
  // Admitted again: its time restarts. And another protector's entries don't count for this one.
  assert.equal(times.of('p', 3000)(entry('a', 6)), 3000)
  assert.equal(times.of('q', 3000)(entry('a', 5)), 3000)
  times.forget('p')
  assert.equal(times.of('p', 4000)(entry('a', 6)), 4000)
})

test('several that were joined are known since the last of them was', () => {
  const times = new AdmissionTimes()
  const first = times.of('p', 1000)
  first(entry('a', 5))
  first(entry('b', 6))
  const second = times.of('p', 2000)
  assert.deepEqual([second(entry('', 6, ['a', 'b'])), second(entry('c', 7))], [1000, 2000])
  assert.equal(times.of('p', 3000)(entry('', 8, ['a', 'b', 'c', 'd'])), 3000)
})

test('an aggregation that asks for nothing forgets nothing', () => {
  const times = new AdmissionTimes()
  times.of('p', 1000)(entry('a', 5))
  times.of('p', 2000)
  assert.equal(times.of('p', 3000)(entry('a', 5)), 1000)
})
