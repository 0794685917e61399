import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isSecretName, REDACTED, redact, redactText } from './redact.ts'

const PEM = '-----BEGIN EC PRIVATE KEY-----\nMHcCAQEE\n-----END EC PRIVATE KEY-----'

test('secrets go by the name of their field, at any depth', () => {
  const shown = redact({
    clusters: new Map([
      ['prod', { client: { bearerToken: 'abc', key: 'k', cert: 'public', qps: 5 }, serving: { key: '' } }],
    ]),
    headers: { Authorization: 'Bearer x', Cookie: 'c', 'X-Api-Token': 't', accept: 'json' },
    list: [{ password: 'p' }, { keyData: Buffer.from('x') }],
  })
  assert.deepEqual(shown, {
    clusters: {
      prod: { client: { bearerToken: REDACTED, key: REDACTED, cert: 'public', qps: 5 }, serving: { key: '' } },
    },
    headers: { Authorization: REDACTED, Cookie: REDACTED, 'X-Api-Token': REDACTED, accept: 'json' },
    list: [{ password: REDACTED }, { keyData: REDACTED }],
  })
})

test('ordinary names stay', () => {
  for (const name of ['keyFile', 'tokenReviews', 'cert', 'endpoint', 'tokenBucket', 'keys', 'monkey', 'auditID']) {
    assert.equal(isSecretName(name), false, name)
  }
  assert.deepEqual(redact({ tokenBucket: { qps: 1 }, hasToken: true, maxTokens: 3 }), {
    tokenBucket: { qps: 1 },
    hasToken: true,
    maxTokens: 3,
  })
})

test('secrets inside a text go by their form', () => {
  assert.equal(redactText(`cannot use ${PEM} here`), `cannot use ${REDACTED} here`)
  assert.equal(
    redactText('sent Authorization: Bearer abcdef0123456789.x-y_z= to'),
    `sent Authorization: Bearer ${REDACTED} to`,
  )
  assert.equal(redactText('token eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2ln'), `token ${REDACTED}`)
  assert.equal(redactText('the bearer of this'), 'the bearer of this')
})

test('what JSON cannot hold becomes plain', () => {
  const cyclic: Record<string, unknown> = {}
  cyclic['self'] = cyclic
  assert.match(JSON.stringify(redact(cyclic)), /too deep/)
  assert.deepEqual(
    redact({ set: new Set(['a']), bytes: Buffer.alloc(3), big: 10n, error: new Error('no'), f: () => 1 }),
    {
      set: ['a'],
      bytes: '[3 bytes]',
      big: '10',
      error: 'no',
      f: undefined,
    },
  )
})

test('JSON web tokens are found wherever they stand in a text', () => {
  const jwt = `eyJhbGciOiJIUzI1NiJ9.${'a'.repeat(9)}.b-_c`
  for (const [text, expected] of [
    [`${jwt}`, '[redacted]'],
    [`x ${jwt}, y`, 'x [redacted], y'],
    [`token-${jwt}`, 'token-[redacted]'],
    [`host.example.${jwt}.more`, 'host.example.[redacted].more'],
    [`${jwt} ${jwt}`, '[redacted] [redacted]'],
    ['eyJhbGciOiJIUzI1NiJ9.a.', '[redacted]'],
    ['eyJhbGciOiJIUzI1NiJ9.a', 'eyJhbGciOiJIUzI1NiJ9.a'],
    ['eyJhbGciOiJIUzI1NiJ9..b', 'eyJhbGciOiJIUzI1NiJ9..b'],
    ['keyJhbGciOiJIUzI1NiJ9.a.b', 'keyJhbGciOiJIUzI1NiJ9.a.b'],
    ['1.2.3 a..b .', '1.2.3 a..b .'],
  ] as const) {
    assert.equal(redactText(text), expected)
  }
})

test('what a client writes is read in linear time', () => {
  // In quadratic time each of these would take half an hour.
  for (const text of [
    '-eyJ',
    '-eyJaaaaaaaa',
    'eyJaaaaaaaaa.',
    'Bearer ',
    '-----BEGIN A',
    '-----BEGIN PRIVATE KEY-----',
    '://a',
    '?token',
  ]) {
    assert.ok(redactText(text.repeat(1_000_000 / text.length)).length > 0)
  }
})
