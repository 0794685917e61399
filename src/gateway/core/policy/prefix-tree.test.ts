import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { PrefixTree } from './prefix-tree.ts'

test('finds each prefix that a text begins with, and no other', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', 'é', '😀'), maxLength: 8 })
  fc.assert(
    fc.property(fc.uniqueArray(text.filter((one) => one !== '')), text, (prefixes, asked) => {
      const tree = new PrefixTree<string>()
      for (const prefix of prefixes) tree.set(prefix, prefix)
      const found: string[] = []
      assert.equal(tree.collect(asked, found, 0), found.length)
      const expected = prefixes.filter((prefix) => asked.startsWith(prefix))
      assert.equal(found.length, expected.length)
      assert.deepEqual(new Set(found), new Set(expected))
    }),
    { numRuns: 2000 },
  )
})

test('a second value of a prefix replaces the first', () => {
  const tree = new PrefixTree<number>()
  tree.set('team-', 1)
  tree.set('team-a', 2)
  tree.set('team-', 3)
  const found: number[] = []
  assert.equal(tree.collect('team-abc', found, 0), 2)
  assert.equal(tree.collect('team-b', found, 2), 3)
  assert.deepEqual(found, [3, 2, 3])
})
