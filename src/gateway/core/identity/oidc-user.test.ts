import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type Claims,
  checkAudienceAndTimes,
  isRefusedClaims,
  type OidcClaimOptions,
  type OidcRefusal,
  userFromClaims,
} from './oidc-user.ts'

const OPTIONS: OidcClaimOptions = {
  issuer: 'https://login.example.com',
  clientId: 'kubernetes',
  usernameClaim: 'sub',
  usernamePrefix: '',
  groupsClaim: 'groups',
  groupsPrefix: '',
  requiredClaims: {},
}
const NOW = 1_800_000_000

/** `name [groups]`, or why it is refused. */
function seen(claims: Claims, options: Partial<OidcClaimOptions> = {}): string {
  const user = userFromClaims(claims, { ...OPTIONS, ...options })
  return isRefusedClaims(user) ? user.refused : `${user.name} [${user.groups.join(' ')}]`
}

test('the name of a user has the issuer in front, as at a kube-apiserver', () => {
  assert.equal(seen({ sub: 'alice' }), 'https://login.example.com#alice []')
  assert.equal(seen({ sub: 'alice' }, { usernamePrefix: '-' }), 'alice []')
  assert.equal(seen({ sub: 'alice' }, { usernamePrefix: 'oidc:' }), 'oidc:alice []')
  assert.equal(seen({ email: 'a@example.com' }, { usernameClaim: 'email' }), 'a@example.com []')
  assert.equal(seen({ email: 'a@example.com' }, { usernameClaim: 'email', usernamePrefix: 'x:' }), 'x:a@example.com []')
})

test('an email address must not be unverified', () => {
  const email = { usernameClaim: 'email' }
  const claims = { sub: 'alice', email: 'a@example.com' }
  assert.equal(seen({ ...claims, email_verified: true }, email), 'a@example.com []')
  assert.equal(seen({ ...claims, email_verified: false }, email), 'claims')
  assert.equal(seen({ ...claims, email_verified: 'true' }, email), 'claims')
  // Only if the address is used as the name.
  assert.equal(seen({ ...claims, email_verified: false }, { usernamePrefix: '-' }), 'alice []')
})

test('groups are a text or a list of texts', () => {
  const plain = { usernamePrefix: '-' }
  assert.equal(seen({ sub: 'a', groups: 'sre' }, plain), 'a [sre]')
  assert.equal(seen({ sub: 'a', groups: ['sre', 'dev'] }, { ...plain, groupsPrefix: 'oidc:' }), 'a [oidc:sre oidc:dev]')
  assert.equal(seen({ sub: 'a', groups: null }, plain), 'a []')
  assert.equal(seen({ sub: 'a', groups: ['sre', 5] }, plain), 'claims')
  assert.equal(seen({ sub: 'a', groups: { sre: true } }, plain), 'claims')
  assert.equal(seen({ sub: 'a', groups: Array.from({ length: 1001 }, String) }, plain), 'claims')
  // No groups claim is configured: the provider's groups are ignored.
  assert.equal(seen({ sub: 'a', groups: ['sre'] }, { ...plain, groupsClaim: '' }), 'a []')
})

test('no user gets a reserved name from a provider', () => {
  const plain = { usernamePrefix: '-' }
  for (const sub of ['system:admin', 'system:serviceaccount:a:b', 'system:anonymous', 'portcullis:webhook:prod']) {
    assert.equal(seen({ sub }, plain), 'reserved-name', sub)
  }
  for (const group of ['system:masters', 'system:authenticated', 'portcullis:admins']) {
    assert.equal(seen({ sub: 'a', groups: ['sre', group] }, plain), 'reserved-name', group)
    assert.equal(seen({ sub: 'a', groups: [group] }, { ...plain, groupsPrefix: 'oidc:' }), `a [oidc:${group}]`)
  }
  assert.equal(seen({ sub: 'masters', groups: [] }, { usernamePrefix: 'system:' }), 'reserved-name')
})

test('a name that is missing, empty or no text is none', () => {
  for (const claims of [{}, { sub: '' }, { sub: 5 }, { sub: ['a'] }, { sub: null }])
    assert.equal(seen(claims), 'claims')
  assert.equal(seen(Object.create({ sub: 'inherited' })), 'claims')
})

test('required claims must be there with their value', () => {
  const options = { usernamePrefix: '-', requiredClaims: { hd: 'example.com', team: 'a=b' } }
  assert.equal(seen({ sub: 'a', hd: 'example.com', team: 'a=b' }, options), 'a []')
  assert.equal(seen({ sub: 'a', hd: 'example.com' }, options), 'claims')
  assert.equal(seen({ sub: 'a', hd: 'example.org', team: 'a=b' }, options), 'claims')
  assert.equal(seen({ sub: 'a', hd: ['example.com'], team: 'a=b' }, options), 'claims')
})

test('the id of a token is what it can be revoked by', () => {
  const user = userFromClaims({ sub: 'a', jti: 'x1' }, OPTIONS)
  assert.ok(!isRefusedClaims(user))
  assert.deepEqual(user.extra, { 'authentication.kubernetes.io/credential-id': ['JTI=x1'] })
})

const GOOD = { aud: 'kubernetes', exp: NOW + 60 }
const times: readonly [claims: Claims, refused: OidcRefusal | undefined][] = [
  [GOOD, undefined],
  [{ ...GOOD, aud: ['other', 'kubernetes'] }, undefined],
  [{ ...GOOD, aud: ['other'] }, 'audience'],
  [{ ...GOOD, aud: undefined }, 'audience'],
  [{ ...GOOD, aud: 'kubernetes2' }, 'audience'],
  [{ ...GOOD, exp: NOW }, 'expired'],
  [{ ...GOOD, exp: NOW + 1 }, undefined],
  [{ ...GOOD, exp: undefined }, 'claims'],
  [{ ...GOOD, exp: String(NOW + 60) }, 'claims'],
  [{ ...GOOD, nbf: NOW + 300 }, undefined],
  [{ ...GOOD, nbf: NOW + 301 }, 'not-yet-valid'],
  [{ ...GOOD, iat: NOW + 301 }, 'not-yet-valid'],
  [{ ...GOOD, nbf: 'soon' }, 'claims'],
]
for (const [claims, refused] of times) {
  test(`${JSON.stringify(claims)}: ${refused ?? 'valid'}`, () => {
    assert.equal(checkAudienceAndTimes(claims, OPTIONS, NOW)?.refused, refused)
  })
}
