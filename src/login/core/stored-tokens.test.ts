// Stored tokens: read back as written, nothing else is read; when they are renewed, and what clients are told.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  clientExpiryMs,
  type StoredTokens,
  tokensOfClaims,
  tokensOfText,
  tokensText,
  usableUntilMs,
} from './stored-tokens.ts'

const TOKENS: StoredTokens = {
  issuer: 'https://login.example.com',
  clientId: 'kubernetes',
  idToken: 'a.b.c',
  refreshToken: '',
  subject: '42',
  name: 'alice',
  issuedAtMs: 1_000_000,
  expiresAtMs: 4_600_000,
}

test('they are read back as they were written; a missing field, or one of another type, gives none', () => {
  const text = tokensText(TOKENS)
  assert.deepEqual(tokensOfText(text), TOKENS)
  const { format, ...fields } = JSON.parse(text)
  for (const field of Object.keys(fields)) {
    assert.equal(tokensOfText(JSON.stringify({ format, ...fields, [field]: undefined })), undefined, field)
    assert.equal(tokensOfText(JSON.stringify({ format, ...fields, [field]: [] })), undefined, field)
  }
  for (const other of ['', '[]', 'null', '"x"', '{', JSON.stringify(fields)])
    assert.equal(tokensOfText(other), undefined)
})

test('a token is renewed half a minute before its end, or a tenth of its life', () => {
  assert.equal(usableUntilMs(TOKENS), 4_570_000)
  assert.equal(usableUntilMs({ ...TOKENS, expiresAtMs: 1_010_000 }), 1_009_000)
  assert.equal(usableUntilMs({ ...TOKENS, expiresAtMs: 0 }), 0)
  assert.equal(clientExpiryMs(TOKENS, 4_569_999), 4_570_000)
  // It was to be renewed, and the provider is away.
  assert.equal(clientExpiryMs(TOKENS, 4_570_000), 4_600_000)
})

test('a user is shown by the claim that people know; a token without an end has none', () => {
  const of = (claims: object): StoredTokens =>
    tokensOfClaims('a.b.c', { sub: '42', exp: 2, ...claims }, 'r', { issuer: 'i', clientId: 'c', nowMs: 1 })
  assert.equal(of({ name: 'Alice A', preferred_username: 'alice' }).name, 'alice')
  assert.equal(of({ email: 'a@example.com', preferred_username: 'alice' }).name, 'a@example.com')
  assert.equal(of({ email: 7 }).name, '42')
  assert.deepEqual([of({}).expiresAtMs, of({ exp: 'soon' }).expiresAtMs], [2000, 1])
})

test('an end that no date has is the last one that clients can read', () => {
  const last = Date.parse('9999-12-31T23:59:59Z')
  for (const exp of [9e15, 1e300, Number.POSITIVE_INFINITY]) {
    const { expiresAtMs } = tokensOfClaims('a.b.c', { sub: '42', exp }, '', { issuer: 'i', clientId: 'c', nowMs: 1 })
    assert.equal(expiresAtMs, last)
  }
  const { format, ...fields } = JSON.parse(tokensText(TOKENS))
  for (const expiresAtMs of [last + 1, -1])
    assert.equal(tokensOfText(JSON.stringify({ format, ...fields, expiresAtMs })), undefined)
})
