import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NameHash } from '../../../kit/core/text/name-hash.ts'
import { countDistinct, DISTINCT_WORDS, distinctInLastMinute } from './distinct-window.ts'

const NOW = Date.parse('2030-01-01T00:00:00Z')
const AT = 3

function memory(): Int32Array<SharedArrayBuffer> {
  return new Int32Array(new SharedArrayBuffer((AT + DISTINCT_WORDS) * Int32Array.BYTES_PER_ELEMENT))
}

function hashOf(text: string): number {
  const hash = new NameHash([1, 2])
  hash.hash(text)
  return hash.low
}

test('what comes again is one; few are counted exactly, many about right', () => {
  for (const [count, off] of [
    [0, 0],
    [1, 0],
    [5, 0],
    [200, 0.05],
    [3_000, 0.1],
  ] as const) {
    const words = memory()
    for (let again = 0; again < 3; again++)
      for (let i = 0; i < count; i++) countDistinct(words, AT, hashOf(`alice delete pods ${i}`), NOW + again * 9_000)
    const counted = distinctInLastMinute(words, AT, NOW + 27_000)
    assert.ok(Math.abs(counted - count) <= count * off, `${counted} of ${count}`)
  }
})

test('it is forgotten after a minute, and not before', () => {
  const words = memory()
  for (let i = 0; i < 5; i++) countDistinct(words, AT, hashOf(`old ${i}`), NOW)
  countDistinct(words, AT, hashOf('new'), NOW + 65_000)
  const counts = [0, 59_000, 65_000, 70_000, 124_000, 130_000].map((at) => distinctInLastMinute(words, AT, NOW + at))
  assert.deepEqual(counts, [5, 5, 6, 1, 1, 0])
})

test('very many are a large number', () => {
  const words = memory()
  for (let i = 0; i < 200_000; i++) countDistinct(words, AT, hashOf(String(i)), NOW)
  assert.equal(distinctInLastMinute(words, AT, NOW), 15_615)
  assert.ok(words.slice(0, AT).every((word) => word === 0))
})
