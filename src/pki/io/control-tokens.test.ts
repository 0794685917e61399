import assert from 'node:assert/strict'
import { createHmac, createPrivateKey, createPublicKey, generateKeyPairSync, sign } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { CompactSign, jwtVerify, SignJWT } from 'jose'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { createTokenVerifier, generateTokenKey, issueControlToken } from './control-tokens.ts'

const KEY = generateTokenKey()
const NOW = Date.parse('2026-01-01T00:00:00Z')
const OPTIONS = { user: 'vera', groups: ['a', 'b'], ttlSeconds: 60, nowMs: NOW }
const verifier = createTokenVerifier(KEY)

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')

/** Signs arbitrary content with the right key. */
function forge(header: unknown, claims: unknown, keyPem = KEY): string {
  const signed = `${encode(header)}.${encode(claims)}`
  const key = createPrivateKey(keyPem)
  return `${signed}.${sign('sha256', Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`
}

const HEADER = { alg: 'ES256', typ: 'JWT' }
const SECONDS = NOW / 1000
const CLAIMS = { iss: 'portcullis-control', sub: 'vera', groups: [], iat: SECONDS, exp: SECONDS + 60 }

test('a token names its user until it ends', () => {
  const token = issueControlToken(KEY, OPTIONS)
  const user = verifier.verify(token, NOW)
  assert.equal(user?.name, 'vera')
  assert.deepEqual(user?.groups, ['a', 'b'])
  assert.match(user?.extra['authentication.kubernetes.io/credential-id']?.[0] ?? '', /^JTI=[0-9a-f-]{36}$/)
  assert.ok(verifier.verify(token, NOW + 59_999))
  assert.equal(verifier.verify(token, NOW + 60_000), undefined)
  // The verifier's clock may be slightly behind.
  assert.ok(verifier.verify(token, NOW - 60_000))
  assert.equal(verifier.verify(token, NOW - 61_000), undefined)
})

test('the forged ones that have to work, work: the table below proves something', () => {
  assert.equal(verifier.verify(forge(HEADER, CLAIMS), NOW)?.name, 'vera')
  assert.equal(verifier.verify(forge({ alg: 'ES256' }, CLAIMS), NOW)?.name, 'vera')
})

const refused: readonly [what: string, header: unknown, claims: unknown][] = [
  ['another algorithm', { alg: 'ES384', typ: 'JWT' }, CLAIMS],
  ['no algorithm', { typ: 'JWT' }, CLAIMS],
  ['alg none', { alg: 'none' }, CLAIMS],
  ['another type', { ...HEADER, typ: 'JWE' }, CLAIMS],
  ['critical extensions', { ...HEADER, crit: ['b64'] }, CLAIMS],
  ['a header that is a list', [HEADER], CLAIMS],
  ['another issuer', HEADER, { ...CLAIMS, iss: 'other' }],
  ['no issuer', HEADER, { ...CLAIMS, iss: undefined }],
  ['no user', HEADER, { ...CLAIMS, sub: '' }],
  ['a user that is not a string', HEADER, { ...CLAIMS, sub: 5 }],
  ['anonymous', HEADER, { ...CLAIMS, sub: 'system:anonymous' }],
  ['no groups', HEADER, { ...CLAIMS, groups: undefined }],
  ['groups that are not strings', HEADER, { ...CLAIMS, groups: ['a', 5] }],
  ['no end', HEADER, { ...CLAIMS, exp: undefined }],
  ['an end that is text', HEADER, { ...CLAIMS, exp: String(CLAIMS.exp) }],
  ['an end that is past', HEADER, { ...CLAIMS, exp: SECONDS }],
  ['a beginning in the future', HEADER, { ...CLAIMS, iat: SECONDS + 61 }],
  ['claims that are not an object', HEADER, 'vera'],
]

for (const [what, header, claims] of refused) {
  test(`refused: ${what}`, () => assert.equal(verifier.verify(forge(header, claims), NOW), undefined))
}

test('refused: other signatures, and other ways to write one', () => {
  const token = issueControlToken(KEY, OPTIONS)
  const [header = '', payload = '', signature = ''] = token.split('.')
  const publicPem = createPublicKey(KEY).export({ type: 'spki', format: 'pem' }).toString()
  const confused = `${encode({ alg: 'HS256', typ: 'JWT' })}.${payload}`
  const key = createPrivateKey(KEY)
  const bad = [
    '',
    'x',
    '..',
    `${header}.${payload}.`,
    `${header}.${payload}`,
    `${token}.`,
    `${token}=`,
    `${token}AA`,
    ` ${token}`,
    `${header}.${encode(CLAIMS)}.${signature}`,
    `${encode({ alg: 'none', typ: 'JWT' })}.${payload}.`,
    forge(HEADER, CLAIMS, generateTokenKey()),
    `${confused}.${createHmac('sha256', publicPem).update(confused).digest('base64url')}`,
    // The same signature in the other encoding (DER).
    `${header}.${payload}.${sign('sha256', Buffer.from(`${header}.${payload}`), key).toString('base64url')}`,
    `${header}.${payload}.${Buffer.alloc(64).toString('base64url')}`,
    `${header}.${'A'.repeat(20_000)}.${signature}`,
  ]
  for (const text of bad) assert.equal(verifier.verify(text, NOW), undefined, text.slice(0, 100))
})

test('keys and users that will not do', () => {
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
  const p384 = generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey
  for (const key of ['', 'x', ...[rsa, p384].map((k) => k.export({ type: 'pkcs8', format: 'pem' }).toString())]) {
    assert.throws(() => createTokenVerifier(key), UserError)
    assert.throws(() => issueControlToken(key, OPTIONS), UserError)
  }
  for (const user of ['', 'system:anonymous']) {
    assert.throws(() => issueControlToken(KEY, { ...OPTIONS, user }), UserError)
  }
  assert.throws(() => issueControlToken(KEY, { ...OPTIONS, ttlSeconds: 0 }), UserError)
  assert.throws(() => issueControlToken(KEY, { ...OPTIONS, ttlSeconds: Number.NaN }), UserError)
})

const JOSE_RULES = {
  algorithms: ['ES256'],
  issuer: 'portcullis-control',
  typ: 'JWT',
  requiredClaims: ['sub', 'iat', 'exp'],
  currentDate: new Date(NOW),
}

test('jose accepts the tokens that are issued here, and its tokens are accepted', async () => {
  const { payload, protectedHeader } = await jwtVerify(
    issueControlToken(KEY, OPTIONS),
    createPublicKey(KEY),
    JOSE_RULES,
  )
  const { jti, ...claims } = payload
  assert.deepEqual(protectedHeader, HEADER)
  assert.deepEqual(claims, {
    iss: 'portcullis-control',
    sub: 'vera',
    groups: ['a', 'b'],
    iat: SECONDS,
    exp: SECONDS + 60,
  })
  assert.match(jti ?? '', /^[0-9a-f-]{36}$/)
  const theirs = await new SignJWT({ groups: ['a'] })
    .setProtectedHeader(HEADER)
    .setIssuer('portcullis-control')
    .setSubject('vera')
    .setIssuedAt(SECONDS)
    .setExpirationTime(SECONDS + 60)
    .setJti('1')
    .sign(createPrivateKey(KEY))
  const extra = { 'authentication.kubernetes.io/credential-id': ['JTI=1'] }
  assert.deepEqual(verifier.verify(theirs, NOW), { name: 'vera', uid: '', groups: ['a'], extra })
})

test('what is accepted here, jose accepts: whatever the claims', async () => {
  const time = fc.oneof(
    fc.integer({ min: SECONDS - 90, max: SECONDS + 90 }),
    fc.constantFrom(String(SECONDS + 60), null),
  )
  const claims = fc.record(
    {
      iss: fc.constantFrom<unknown>('portcullis-control', 'portcullis-control', 'other', ['portcullis-control'], null),
      sub: fc.constantFrom<unknown>('vera', 'vera', '', 5),
      groups: fc.constant([]),
      iat: time,
      exp: time,
    },
    { requiredKeys: ['groups'] },
  )
  const key = createPrivateKey(KEY)
  const verdicts = new Set<boolean>()
  await fc.assert(
    fc.asyncProperty(claims, async (payload) => {
      const bytes = new TextEncoder().encode(JSON.stringify(payload))
      const token = await new CompactSign(bytes).setProtectedHeader(HEADER).sign(key)
      const taken = verifier.verify(token, NOW) !== undefined
      verdicts.add(taken)
      if (taken) await jwtVerify(token, createPublicKey(KEY), JOSE_RULES)
    }),
    { numRuns: 500 },
  )
  assert.deepEqual([...verdicts].sort(), [false, true], 'the property has seen both')
})

test('stricter than jose: a token can be written in one way only, since revocations go by its hash', async () => {
  const token = issueControlToken(KEY, OPTIONS)
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  // 64 bytes leave four bits of the last character unused.
  const others = [
    `${token.slice(0, -1)}${alphabet[alphabet.indexOf(token.at(-1) ?? '') ^ 1]}`,
    `${token}==`,
    `${token} `,
  ]
  for (const other of others) {
    await jwtVerify(other, createPublicKey(KEY), JOSE_RULES)
    assert.equal(verifier.verify(other, NOW), undefined, JSON.stringify(other))
  }
})
