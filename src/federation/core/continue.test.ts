import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { encodeContinue, MAX_CONTINUE, parseContinue } from './continue.ts'
import { MAX_SLOTS } from './vectors.ts'

test('what is written is read', () => {
  const version = fc.bigInt({ min: 1n, max: 2n ** 128n - 1n }).map(String)
  fc.assert(
    fc.property(
      fc.nat(9999),
      fc.array(version, { maxLength: MAX_SLOTS }),
      fc.nat(MAX_SLOTS - 1),
      fc.string({ maxLength: 320, unit: 'grapheme' }),
      fc.string({ maxLength: 600 }),
      (epoch, versions, slot, token, next) => {
        const place = { vector: { epoch, versions }, slot, token, next }
        const text = encodeContinue(place)
        assert.match(text, /^[\w-]+$/)
        assert.deepEqual(parseContinue(text), place)
      },
    ),
  )
})

test('tokens of others are not read', () => {
  const token = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const good = { v: 'portcullis.io/v1', rv: '10001', slot: 0, token: '' }
  assert.notEqual(parseContinue(token(good)), undefined)
  const wrong: readonly unknown[] = [
    null,
    [],
    'a',
    // One of kube-apiserver's.
    { v: 'meta.k8s.io/v1', rv: 7, start: 'a/b\0' },
    { ...good, v: 'portcullis.io/v2' },
    { ...good, rv: 'abc' },
    { ...good, rv: 10_001 },
    ...[-1, MAX_SLOTS, 0.5, '0', null].map((slot) => ({ ...good, slot })),
    { ...good, token: 1 },
    { ...good, next: 1 },
  ]
  for (const value of wrong) assert.equal(parseContinue(token(value)), undefined, JSON.stringify(value))
  for (const text of ['', '*', 'e30', '{}', '\0', token(good).repeat(2)])
    assert.equal(parseContinue(text), undefined, text)
  assert.equal(parseContinue(token({ ...good, token: 'a'.repeat(MAX_CONTINUE) })), undefined)
  fc.assert(fc.property(fc.string(), (text) => void parseContinue(text)))
})
