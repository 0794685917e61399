import assert from 'node:assert/strict'
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { test } from 'node:test'
import type { Logger } from '../../../kit/api/ports.ts'
import type { PublicJwk } from '../../../pki/io/id-tokens/signing-keys.ts'
import type { CompiledIssuer } from '../../core/cluster/compiled-cluster.ts'
import { createIssuerTokens, sourceOf } from './issuer-tokens.ts'

const NOW_MS = Date.parse('2027-01-01T00:00:00Z')
const QUIET: Logger = { debug() {}, info() {}, warn() {}, error() {} }

interface Pair {
  readonly privateKey: KeyObject
  readonly jwk: PublicJwk
}

function pair(kid: string): Pair {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  return { privateKey, jwk: { ...(publicKey.export({ format: 'jwk' }) as Record<string, string>), kid } }
}

const ONE = pair('k1')
const TWO = pair('k2')

function issuer(url = 'https://login.test'): CompiledIssuer {
  const rules = {
    issuer: url,
    audiences: ['a'],
    username: { claim: 'sub', prefix: '' },
    groups: undefined,
    uidClaim: '',
    requiredClaims: {},
  }
  return { rules, keys: url, discoveryUrl: '', ca: '' }
}

function token(by: Pair = ONE, claims: object = {}): string {
  const payload = { iss: 'https://login.test', aud: 'a', sub: 'alice', exp: NOW_MS / 1000 + 60, ...claims }
  const text = [{ alg: 'RS256', kid: by.jwk['kid'] }, payload]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.')
  return `${text}.${sign('sha256', Buffer.from(text), by.privateKey).toString('base64url')}`
}

function world() {
  const self = { nowMs: 0, results: [] as string[], asked: 0, answer: () => Promise.resolve() as Promise<unknown> }
  const tokens = createIssuerTokens({
    clock: { now: () => NOW_MS, monotonic: () => self.nowMs },
    log: QUIET,
    readKeys() {
      self.asked++
      return self.answer()
    },
    onToken: (_, result) => void self.results.push(result),
  })
  return Object.assign(self, {
    tokens,
    vouch: (text: string, list = [issuer()]) => tokens.vouch('prod', () => list, text),
  })
}

test('known keys: in the same turn, until the token ends', () => {
  const one = world()
  one.tokens.setKeys({ source: 'https://login.test', keys: [ONE.jwk] })
  const user = { name: 'alice', uid: '', groups: [], extra: {} }
  const vouched = one.vouch(token())
  assert.ok(vouched !== undefined && !(vouched instanceof Promise))
  const { origin, ...rest } = vouched
  assert.deepEqual(rest, { user, forMs: 60_000 })
  assert.equal(origin.by, 'https://login.test')
  assert.deepEqual(one.results, ['accepted'])
})

test('tokens of issuers that are not listed are not looked at', () => {
  const one = world()
  for (const text of [
    'opaque',
    token(ONE, { iss: 'https://other.test' }),
    token(ONE, { iss: ['https://login.test'] }),
  ]) {
    assert.equal(one.vouch(text), undefined)
  }
  assert.equal(one.vouch(token(), []), undefined)
  assert.deepEqual([one.results, one.asked], [[], 0])
})

test('the keys of one issuer do not count for another one', async () => {
  const one = world()
  one.tokens.setKeys({ source: 'https://other.test', keys: [ONE.jwk] })
  one.tokens.setKeys({ source: 'https://login.test', keys: [TWO.jwk] })
  assert.equal(await one.vouch(token(), [issuer(), issuer('https://other.test')]), undefined)
  assert.deepEqual(one.results, ['unknown-key'])
})

test('Google has two names', () => {
  const one = world()
  one.tokens.setKeys({ source: 'https://accounts.google.com', keys: [ONE.jwk] })
  const google = issuer('https://accounts.google.com')
  for (const iss of ['accounts.google.com', 'https://accounts.google.com']) {
    assert.ok(one.vouch(token(ONE, { iss }), [google]))
  }
})

test('an unknown key: asked for once in five seconds, and only for a token that could be good', async () => {
  const one = world()
  one.tokens.setKeys({ source: 'https://login.test', keys: [ONE.jwk] })
  for (const claims of [{ exp: 1 }, { aud: 'b' }, { nbf: NOW_MS }])
    assert.equal(one.vouch(token(TWO, claims)), undefined)
  assert.equal(one.asked, 0)
  const { promise, resolve } = Promise.withResolvers<void>()
  one.answer = () => promise
  const waiting = [one.vouch(token(TWO)), one.vouch(token(TWO))]
  assert.equal(one.asked, 1)
  one.tokens.setKeys({ source: 'https://login.test', keys: [TWO.jwk] })
  resolve()
  for (const vouched of await Promise.all(waiting)) assert.equal(vouched?.user.name, 'alice')
  // The key before is withdrawn: too early to ask again.
  one.nowMs = 4_999
  assert.equal(one.vouch(token(ONE)), undefined)
  one.nowMs = 5_000
  one.answer = () => Promise.reject(new Error('busy'))
  assert.equal(await one.vouch(token(ONE)), undefined)
  assert.equal(one.asked, 2)
})

test('an issuer that no cluster names any more has no keys', async () => {
  const one = world()
  one.tokens.setKeys({ source: 'https://login.test', keys: [ONE.jwk] })
  one.tokens.setKeys({ source: 'https://login.test', keys: undefined })
  assert.equal(await one.vouch(token()), undefined)
})

test('issuers that change while keys are waited for: those that are in force then decide', async () => {
  const { rules, ...other } = issuer()
  const changed: readonly (readonly CompiledIssuer[])[] = [
    [],
    [{ ...other, rules: { ...rules, audiences: ['b'] } }],
    [{ rules, ...other, keys: 'another source' }],
  ]
  for (const after of changed) {
    const one = world()
    const { promise, resolve } = Promise.withResolvers<void>()
    one.answer = () => promise
    let issuers: readonly CompiledIssuer[] = [issuer()]
    const vouched = one.tokens.vouch('prod', () => issuers, token())
    one.tokens.setKeys({ source: 'https://login.test', keys: [ONE.jwk] })
    issuers = after
    resolve()
    assert.equal(await vouched, undefined)
  }
})

test('an issuer that tells of logouts: the session of the token is known, and no token is accepted that has none', () => {
  const one = world()
  one.tokens.setKeys({ source: 'https://login.test', keys: [ONE.jwk] })
  const telling = { ...issuer(), endsSessions: true }
  const iat = NOW_MS / 1000
  const vouched = one.vouch(token(ONE, { iat, sid: 's1' }), [telling])
  assert.ok(vouched !== undefined && !(vouched instanceof Promise))
  assert.deepEqual(vouched.origin.session, {
    source: sourceOf(telling),
    audiences: ['a'],
    sid: 's1',
    sub: 'alice',
    issuedSeconds: iat,
  })
  assert.equal(one.vouch(token(), [telling]), undefined)
  assert.equal(one.vouch(token(ONE, { iat, sub: undefined }), [telling]), undefined)
  assert.deepEqual(one.results, ['accepted', 'claims', 'claims'])
})
