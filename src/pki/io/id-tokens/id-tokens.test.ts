import assert from 'node:assert/strict'
import { createHmac, generateKeyPairSync, type JsonWebKey, type KeyObject, sign } from 'node:crypto'
import { test } from 'node:test'
import { SignJWT } from 'jose'
import type { Logger } from '../../../kit/api/ports.ts'
import { SIGNING_ALGS, type SigningAlg } from '../../core/signing-algs.ts'
import { createIdTokens, type IdTokens, type IdTokensOptions } from './id-tokens.ts'
import { readKeySet, type SigningKey } from './signing-keys.ts'

const ISSUER = 'https://login.example.com'
const NOW_MS = Date.parse('2027-01-01T00:00:00Z')
const CLAIMS = { iss: ISSUER, aud: 'kubernetes', sub: 'alice', exp: NOW_MS / 1000 + 60 }
const QUIET: Logger = { debug() {}, info() {}, warn() {}, error() {} }

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const small = generateKeyPairSync('rsa', { modulusLength: 1024 })
const curves = { ES256: 'P-256', ES384: 'P-384', ES512: 'P-521' } as const
const pairOf = (alg: SigningAlg) =>
  alg in curves ? generateKeyPairSync('ec', { namedCurve: curves[alg as keyof typeof curves] }) : rsa

function jwk(key: KeyObject, more: JsonWebKey = {}): JsonWebKey {
  return { ...key.export({ format: 'jwk' }), kid: 'k1', ...more }
}

function keysOf(...jwks: readonly JsonWebKey[]): readonly SigningKey[] {
  return readKeySet({ keys: jwks }) ?? []
}

interface Tokens extends IdTokens {
  readonly results: readonly string[]
  readonly source: { keys: readonly SigningKey[]; fetches: number }
}

function tokensWith(keys: readonly SigningKey[], options: Partial<IdTokensOptions> = {}): Tokens {
  const results: string[] = []
  const source = {
    keys,
    fetches: 0,
    refetch() {
      this.fetches++
      return Promise.resolve()
    },
  }
  const tokens = createIdTokens({
    rules: {
      issuer: ISSUER,
      audiences: ['kubernetes'],
      username: { claim: 'sub', prefix: '' },
      groups: { claim: 'groups', prefix: '' },
      uidClaim: '',
      requiredClaims: {},
    },
    algs: ['RS256'],
    keys: source,
    log: QUIET,
    onToken: (result) => void results.push(result),
    ...options,
  })
  return {
    verify: (token, nowMs) => tokens.verify(token, nowMs),
    waitFor: (token, nowMs) => tokens.waitFor(token, nowMs),
    results,
    source,
  }
}

function signed(claims: object = CLAIMS, header: object = {}, key: KeyObject = rsa.privateKey): Promise<string> {
  return new SignJWT({ ...claims }).setProtectedHeader({ alg: 'RS256', kid: 'k1', ...header }).sign(key)
}

for (const alg of SIGNING_ALGS) {
  test(`${alg}: what jose signs is accepted, where it is allowed; what another key signs is not`, async () => {
    const { privateKey, publicKey } = pairOf(alg)
    const token = await signed(CLAIMS, { alg }, privateKey)
    assert.equal(tokensWith(keysOf(jwk(publicKey)), { algs: [alg] }).verify(token, NOW_MS)?.name, 'alice')
    const others = SIGNING_ALGS.filter((other) => other !== alg)
    const strict = tokensWith(keysOf(jwk(publicKey)), { algs: others })
    assert.equal(strict.verify(token, NOW_MS), undefined)
    const other = tokensWith(keysOf(jwk(generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey)), {
      algs: [alg],
    })
    assert.equal(other.verify(token, NOW_MS), undefined)
    assert.deepEqual([strict.results, other.results], [['algorithm'], ['unknown-key']])
  })
}

test('neither none nor a key that everybody knows signs a token', async () => {
  const tokens = tokensWith(keysOf(jwk(rsa.publicKey)))
  const [, payload = ''] = (await signed()).split('.')
  const none = Buffer.from(JSON.stringify({ alg: 'none', kid: 'k1' })).toString('base64url')
  for (const end of ['', 'AA']) assert.equal(tokens.verify(`${none}.${payload}.${end}`, NOW_MS), undefined)
  const header = Buffer.from(JSON.stringify({ alg: 'HS256', kid: 'k1' })).toString('base64url')
  const pem = rsa.publicKey.export({ type: 'spki', format: 'pem' })
  const mac = createHmac('sha256', pem).update(`${header}.${payload}`).digest('base64url')
  assert.equal(tokens.verify(`${header}.${payload}.${mac}`, NOW_MS), undefined)
  assert.equal(tokens.source.fetches, 0)
})

test('a key verifies only what it is for', async () => {
  const refused = [
    jwk(rsa.publicKey, { use: 'enc' }),
    jwk(rsa.publicKey, { alg: 'PS256' }),
    jwk(rsa.publicKey, { kid: 'k2' }),
    { kty: 'oct', k: 'AAAA', kid: 'k1' },
    { kty: 'RSA', n: '!', e: 5, kid: 'k1' } as unknown as JsonWebKey,
  ]
  const token = await signed()
  for (const one of refused) assert.equal(tokensWith(keysOf(one)).verify(token, NOW_MS), undefined, JSON.stringify(one))
  // RFC 7518 section 3.3; jose does not even sign with it.
  const parts = [{ alg: 'RS256', kid: 'k1' }, CLAIMS].map((part) =>
    Buffer.from(JSON.stringify(part)).toString('base64url'),
  )
  for (const { privateKey, publicKey } of [small, rsa]) {
    const forged = `${parts.join('.')}.${sign('sha256', Buffer.from(parts.join('.')), privateKey).toString('base64url')}`
    const user = tokensWith(keysOf(jwk(publicKey))).verify(forged, NOW_MS)
    assert.equal(user?.name, publicKey === small.publicKey ? undefined : 'alice')
  }
  const large = jwk(rsa.publicKey, { kid: 'x'.repeat(10_000) })
  const exponent = jwk(rsa.publicKey, { e: Buffer.from('0100000001', 'hex').toString('base64url') })
  assert.deepEqual(keysOf(large, exponent), [])
  // Without a key id, all keys are tried.
  const plain = await signed(CLAIMS, { kid: undefined })
  assert.ok(tokensWith(keysOf(jwk(small.publicKey), jwk(rsa.publicKey, { kid: 'k2' }))).verify(plain, NOW_MS))
})

test('tokens of others are not looked at', async () => {
  const tokens = tokensWith(keysOf(jwk(rsa.publicKey)))
  for (const token of ['', 'abc', 'a.b.c', await signed({ ...CLAIMS, iss: `${ISSUER}/` }), `${await signed()} `]) {
    assert.equal(tokens.verify(token, NOW_MS), undefined)
    assert.equal(tokens.waitFor(token, NOW_MS), undefined)
  }
  // Larger than any real credential: not even parsed.
  assert.equal(tokens.verify(await signed({ ...CLAIMS, more: 'x'.repeat(20_000) }), NOW_MS), undefined)
  assert.deepEqual(tokens.results, [])
})

test('what the user is, is remembered until the token ends, or its key is withdrawn', async () => {
  const tokens = tokensWith(keysOf(jwk(rsa.publicKey)))
  const token = await signed()
  assert.equal(tokens.verify(token, NOW_MS), tokens.verify(token, NOW_MS + 59_999))
  assert.deepEqual(tokens.results, ['accepted'])
  assert.equal(tokens.verify(token, NOW_MS + 60_000), undefined)
  assert.ok(tokens.verify(token, NOW_MS))
  tokens.source.keys = keysOf(jwk(rsa.publicKey, { kid: 'k2' }))
  assert.equal(tokens.verify(token, NOW_MS), undefined)
  assert.deepEqual(tokens.results, ['accepted', 'expired', 'unknown-key'])
})

test('only a token that could be good waits for newer keys', async () => {
  const tokens = tokensWith(keysOf(jwk(rsa.publicKey)))
  const rotated = { kid: 'k2' }
  const hopeless = [
    await signed(),
    await signed({ ...CLAIMS, exp: NOW_MS / 1000 }, rotated),
    await signed({ ...CLAIMS, aud: 'other' }, rotated),
    await signed(CLAIMS, { ...rotated, alg: 'PS256' }),
    await signed(CLAIMS, { ...rotated, crit: ['b64'], b64: true }),
  ]
  for (const token of hopeless) assert.equal(tokens.waitFor(token, NOW_MS), undefined)
  assert.equal(tokens.source.fetches, 0)
  await tokens.waitFor(await signed(CLAIMS, rotated), NOW_MS)
  assert.equal(tokens.source.fetches, 1)
})
