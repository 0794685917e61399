import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { compareResourceVersions } from './resource-version.ts'

test('resourceVersions of any length are ordered as numbers', () => {
  const version = fc.bigInt({ min: 0n, max: 2n ** 200n })
  fc.assert(
    fc.property(version, version, (a, b) => {
      const expected = a === b ? 0 : a < b ? -1 : 1
      assert.equal(Math.sign(compareResourceVersions(String(a), String(b)) ?? Number.NaN), expected)
    }),
  )
  assert.equal(compareResourceVersions('007', '7'), 0)
  assert.equal(compareResourceVersions('0', '00'), 0)
})

test('what is not a decimal number has no order', () => {
  for (const text of ['', 'abc', '-1', '1.5', '1e3', ' 1', '1\n', '０']) {
    assert.equal(compareResourceVersions(text, '1'), undefined, JSON.stringify(text))
    assert.equal(compareResourceVersions('1', text), undefined, JSON.stringify(text))
  }
})
