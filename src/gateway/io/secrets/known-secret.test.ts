import assert from 'node:assert/strict'
import { test } from 'node:test'
import { KnownSecret } from './known-secret.ts'

test('a secret is recognised, and nothing else is taken for it', () => {
  const known = new KnownSecret('Bearer abc\xe4')
  for (let i = 0; i < 2; i++) {
    assert.equal(known.is('Bearer abc\xe4'), true)
    for (const other of ['', 'Bearer abc', 'Bearer abd\xe4', 'bearer abc\xe4', 'Bearer abc\xe4 ', 'Bearer abc\xc3']) {
      assert.equal(known.is(other), false, other)
    }
  }
})
