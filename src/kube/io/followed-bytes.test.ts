import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { keptBytes } from './followed-bytes.ts'

test('everything in an object counts: each string by its length, each part with what is around it', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6 }), fc.jsonValue({ maxDepth: 6 }), fc.string(), (one, other, name) => {
      assert.ok(keptBytes([one, other]) > keptBytes(one) + keptBytes(other))
      assert.ok(keptBytes({ a: one, b: other }) > keptBytes(one) + keptBytes(other))
      assert.ok(keptBytes({ [`${name}x`]: one }) > keptBytes(one))
      assert.ok(keptBytes(`${name}${'x'.repeat(100)}`) >= name.length + 100)
      assert.ok(keptBytes({ [`x${name.repeat(50)}`]: 1 }) >= name.length * 50)
    }),
  )
})

test('levels cost no stack', () => {
  let deep: unknown = 'end'
  for (let i = 0; i < 1_000_000; i++) deep = [deep]
  assert.ok(keptBytes(deep) > 1_000_000)
})
