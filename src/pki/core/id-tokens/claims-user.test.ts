import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Claims, checkAudienceAndTimes, isRefusedClaims, type TokenFault, userFromClaims } from './claims-user.ts'
import type { IssuerExpressions, IssuerRules } from './issuer-rules.ts'

const SUB = { claim: 'sub', prefix: '' }
const RULES: IssuerRules = {
  issuer: 'https://login.example.com',
  audiences: ['kubernetes'],
  username: SUB,
  groups: { claim: 'groups', prefix: '' },
  uidClaim: '',
  requiredClaims: {},
}
const NOW = 1_800_000_000

/** `name [groups]`, or why it is refused. */
function seen(claims: Claims, rules: Partial<IssuerRules> = {}): string {
  const user = userFromClaims(claims, { ...RULES, ...rules })
  return isRefusedClaims(user) ? user.refused : `${user.name} [${user.groups.join(' ')}]`
}

test('the name of a user has its prefix in front', () => {
  assert.equal(seen({ sub: 'alice' }), 'alice []')
  assert.equal(seen({ sub: 'alice' }, { username: { claim: 'sub', prefix: 'oidc:' } }), 'oidc:alice []')
  assert.equal(seen({ email: 'a@example.com' }, { username: { claim: 'email', prefix: 'x:' } }), 'x:a@example.com []')
})

test('an email address must not be unverified', () => {
  const email = { username: { claim: 'email', prefix: '' } }
  const claims = { sub: 'alice', email: 'a@example.com' }
  assert.equal(seen({ ...claims, email_verified: true }, email), 'a@example.com []')
  assert.equal(seen({ ...claims, email_verified: false }, email), 'claims')
  assert.equal(seen({ ...claims, email_verified: 'true' }, email), 'claims')
  // Only if the address is used as the name.
  assert.equal(seen({ ...claims, email_verified: false }), 'alice []')
})

test('groups are a text or a list of texts', () => {
  const prefixed = { groups: { claim: 'groups', prefix: 'oidc:' } }
  assert.equal(seen({ sub: 'a', groups: 'sre' }), 'a [sre]')
  assert.equal(seen({ sub: 'a', groups: ['sre', 'dev'] }, prefixed), 'a [oidc:sre oidc:dev]')
  assert.equal(seen({ sub: 'a', groups: null }), 'a []')
  assert.equal(seen({ sub: 'a', groups: ['sre', 5] }), 'claims')
  assert.equal(seen({ sub: 'a', groups: { sre: true } }), 'claims')
  assert.equal(seen({ sub: 'a', groups: Array.from({ length: 1001 }, String) }), 'claims')
  // No groups claim is configured: the provider's groups are ignored.
  assert.equal(seen({ sub: 'a', groups: ['sre'] }, { groups: undefined }), 'a []')
})

test('no user gets a reserved name from a provider', () => {
  for (const sub of ['system:admin', 'system:serviceaccount:a:b', 'system:anonymous', 'portcullis:webhook:prod']) {
    assert.equal(seen({ sub }), 'reserved-name', sub)
  }
  for (const group of ['system:masters', 'system:authenticated', 'portcullis:admins']) {
    assert.equal(seen({ sub: 'a', groups: ['sre', group] }), 'reserved-name', group)
    assert.equal(
      seen({ sub: 'a', groups: [group] }, { groups: { claim: 'groups', prefix: 'oidc:' } }),
      `a [oidc:${group}]`,
    )
  }
  assert.equal(seen({ sub: 'masters', groups: [] }, { username: { claim: 'sub', prefix: 'system:' } }), 'reserved-name')
})

test('a name that is missing, empty or no text is none', () => {
  for (const claims of [{}, { sub: '' }, { sub: 5 }, { sub: ['a'] }, { sub: null }])
    assert.equal(seen(claims), 'claims')
  assert.equal(seen(Object.create({ sub: 'inherited' })), 'claims')
})

test('required claims must be there with their value', () => {
  const options = { requiredClaims: { hd: 'example.com', team: 'a=b' } }
  assert.equal(seen({ sub: 'a', hd: 'example.com', team: 'a=b' }, options), 'a []')
  assert.equal(seen({ sub: 'a', hd: 'example.com' }, options), 'claims')
  assert.equal(seen({ sub: 'a', hd: 'example.org', team: 'a=b' }, options), 'claims')
  assert.equal(seen({ sub: 'a', hd: ['example.com'], team: 'a=b' }, options), 'claims')
})

test('the uid is the text of its claim', () => {
  const user = userFromClaims({ sub: 'a', oid: 'u1' }, { ...RULES, uidClaim: 'oid' })
  assert.ok(!isRefusedClaims(user))
  assert.equal(user.uid, 'u1')
  for (const oid of [undefined, 5, null, ['u1']]) assert.equal(seen({ sub: 'a', oid }, { uidClaim: 'oid' }), 'claims')
})

test('the id of a token is what it can be revoked by', () => {
  const user = userFromClaims({ sub: 'a', jti: 'x1' }, RULES)
  assert.ok(!isRefusedClaims(user))
  assert.deepEqual(user.extra, { 'authentication.kubernetes.io/credential-id': ['JTI=x1'] })
})

const NO_EXPRESSIONS: IssuerExpressions = {
  username: '',
  groups: '',
  uid: '',
  extra: [],
  claimRules: [],
  userRules: [],
}
const byExpressions = (more: Partial<IssuerExpressions>) => ({ expressions: { ...NO_EXPRESSIONS, ...more } })

test('expressions name the user, in the place of claims or beside them', () => {
  const extra = [
    { key: 'example.com/team', expression: 'claims.team' },
    { key: 'example.com/none', expression: "claims.?none.orValue('')" },
  ]
  const rules = { ...RULES, ...byExpressions({ username: "'oidc:' + claims.email", uid: 'claims.oid', extra }) }
  const user = userFromClaims({ email: 'a@b', oid: 'u', team: ['x', ''], groups: 'g', jti: 'j' }, rules)
  assert.deepEqual(user, {
    name: 'oidc:a@b',
    uid: 'u',
    groups: ['g'],
    extra: { 'authentication.kubernetes.io/credential-id': ['JTI=j'], 'example.com/team': ['x'] },
  })
})

test('an expression without a value, of another type, or a rule that does not hold: no user', () => {
  const refused: readonly Partial<IssuerExpressions>[] = [
    { username: 'claims.absent' },
    { username: '5' },
    { username: "''" },
    { groups: '[1]' },
    { groups: 'claims.absent' },
    { uid: 'null' },
    { extra: [{ key: 'a.b/c', expression: '1' }] },
    { claimRules: [{ expression: 'claims.sub == "b"', message: '' }] },
    { claimRules: [{ expression: 'claims.absent == "b"', message: '' }] },
    { userRules: [{ expression: 'user.username != "a"', message: '' }] },
    // Not what an object may hold: it refuses every token.
    { userRules: [{ expression: 'user.name', message: '' }] },
  ]
  for (const one of refused) assert.equal(seen({ sub: 'a' }, byExpressions(one)), 'expression', JSON.stringify(one))
  const message = userFromClaims(
    { sub: 'a' },
    { ...RULES, ...byExpressions({ userRules: [{ expression: 'false', message: 'staff only' }] }) },
  )
  assert.ok('message' in message && message.message.includes('staff only'))
})

test('no expression gives a reserved name', () => {
  assert.equal(seen({ sub: 'a' }, byExpressions({ username: "'system:' + claims.sub" })), 'reserved-name')
  assert.equal(seen({ sub: 'a' }, byExpressions({ groups: "['x', 'system:masters']" })), 'reserved-name')
  const many = { groups: "dyn(claims.l).map(x, 'g')" }
  assert.equal(seen({ sub: 'a', l: Array.from({ length: 1001 }, () => 0) }, byExpressions(many)), 'claims')
})

test('expressions of one token share what they may cost', () => {
  const costly = { expression: 'dyn(claims.l).all(x, dyn(claims.l).exists(y, x == y))', message: '' }
  const l = Array.from({ length: 150 }, (_, n) => n)
  assert.equal(seen({ sub: 'a', l }, byExpressions({ claimRules: [costly] })), 'a []')
  assert.equal(
    seen(
      { sub: 'a', l },
      byExpressions({
        claimRules: [
          costly,
          { ...costly, expression: `${costly.expression} ` },
          { ...costly, expression: ` ${costly.expression}` },
        ],
      }),
    ),
    'expression',
  )
})

const GOOD = { aud: 'kubernetes', exp: NOW + 60 }
const times: readonly [claims: Claims, refused: TokenFault | undefined][] = [
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
    assert.equal(checkAudienceAndTimes(claims, RULES, NOW)?.refused, refused)
  })
}

test('a name with what is not Unicode is refused: Go reads it in another way', () => {
  const cut = Buffer.from([0x61, 0xe2, 0x82]).toString()
  for (const text of ['\ud800', 'a\udc00', cut]) {
    assert.equal(seen({ sub: text }), 'claims')
    assert.equal(seen({ sub: 'alice', groups: ['sre', text] }), 'claims')
    assert.equal(seen({ sub: 'alice', id: text }, { uidClaim: 'id' }), 'claims')
    assert.equal(seen({ sub: 'alice', jti: text }), 'claims')
  }
  assert.equal(seen({ sub: 'ali\ud83d\ude00' }), 'ali\u{1f600} []')
})
