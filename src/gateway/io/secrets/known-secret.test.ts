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

test('secrets of any lengths are compared in turns, and none with what another one was compared with', () => {
  const texts = ['', 'a', 'b', 'ab', 'Bearer x', `Bearer ${'y'.repeat(1_000)}`, 'z'.repeat(80_000), 'Z'.repeat(80_000)]
  const secrets = texts.map((text) => new KnownSecret(text))
  for (const [i, secret] of secrets.entries()) {
    for (const [j, text] of texts.entries()) assert.equal(secret.is(text), i === j, `${i} ${j}`)
    for (const text of texts) assert.equal(secret.is(`${text} `), false)
  }
})
