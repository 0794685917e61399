import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UniqueCount } from './unique-count.ts'

test('different names count once, within 5 %', () => {
  for (const total of [0, 1, 2, 10, 100, 1_000, 9_000, 30_000, 200_000]) {
    const unique = new UniqueCount()
    for (let i = 0; i < total; i++) {
      unique.add(`namespace-${i % 7}/pod-${i}`)
      if (i % 3 === 0) unique.add(`namespace-${i % 7}/pod-${i}`)
    }
    const count = unique.count()
    assert.ok(Math.abs(count - total) <= total * 0.05, `${count} of ${total}`)
    unique.reset()
    assert.equal(unique.count(), 0)
  }
})

test('the same names give the same number', () => {
  const [one, other] = [new UniqueCount(), new UniqueCount()]
  for (let i = 0; i < 5_000; i++) one.add(`${i}`)
  for (let i = 4_999; i >= 0; i--) other.add(`${i}`)
  assert.equal(one.count(), other.count())
})
