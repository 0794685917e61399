import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MAX_SESSION_ID_LENGTH } from '../../api/ended-session-kind.ts'
import type { EndedSession, TokenSession } from '../../api/token-session.ts'
import {
  forgottenAtMs,
  hasEnded,
  LOGOUT_EVENT,
  MAX_TOKEN_LIFE_MS,
  readLogoutClaims,
  sessionOf,
} from './token-session.ts'

const AUDIENCES = ['a', 'b']
const CLAIMS = { sub: 'alice', sid: 's1', aud: ['x', 'b'], iat: 1000, exp: 4600 }
const SESSION: TokenSession = { source: 'source', audiences: ['b'], sid: 's1', sub: 'alice', issuedSeconds: 1000 }
const ENDED: EndedSession = {
  issuer: 'https://login.test',
  source: 'source',
  audiences: ['b'],
  sid: 's1',
  sub: 'alice',
  endedSeconds: 2000,
}

test('the session of a token', () => {
  assert.deepEqual(sessionOf(CLAIMS, AUDIENCES, 'source'), SESSION)
  const { sid: _, ...without } = CLAIMS
  assert.deepEqual(sessionOf(without, AUDIENCES, 'source'), { ...SESSION, sid: '' })
})

test('a token that no logout could end is not accepted', () => {
  const refused: Readonly<Record<string, object>> = {
    'no user': { sub: undefined },
    'a user that is not a text': { sub: 1 },
    'a session that is not a text': { sid: 1 },
    'a long user': { sub: 'x'.repeat(MAX_SESSION_ID_LENGTH + 1) },
    'a long session': { sid: 'x'.repeat(MAX_SESSION_ID_LENGTH + 1) },
    'no iat': { iat: undefined },
    'a long life': { exp: 1001 + MAX_TOKEN_LIFE_MS / 1000 },
    'a logout token': { events: { [LOGOUT_EVENT]: {} } },
  }
  for (const [what, claims] of Object.entries(refused)) {
    assert.ok('refused' in sessionOf({ ...CLAIMS, ...claims }, AUDIENCES, 'source'), what)
  }
  assert.ok(!('refused' in sessionOf({ ...CLAIMS, exp: 1000 + MAX_TOKEN_LIFE_MS / 1000 }, AUDIENCES, 'source')))
})

const WITHOUT_SID = { ...SESSION, sid: '' }
const CASES: readonly (readonly [string, TokenSession, EndedSession, boolean])[] = [
  ['the same session', SESSION, ENDED, true],
  ['the same session, with a token from after the logout', { ...SESSION, issuedSeconds: 3000 }, ENDED, true],
  ['another session of the user', { ...SESSION, sid: 's2' }, ENDED, false],
  ['the sid of another user', { ...SESSION, sub: 'bob' }, ENDED, false],
  ['a sid without its user', SESSION, { ...ENDED, sub: '' }, true],
  ['a user without a sid', SESSION, { ...ENDED, sid: '' }, true],
  ['a user who has logged in again', { ...SESSION, issuedSeconds: 2001 }, { ...ENDED, sid: '' }, false],
  [
    'a user who has logged in again in the same second',
    { ...SESSION, issuedSeconds: 2000 },
    { ...ENDED, sid: '' },
    true,
  ],
  ['a token that does not name its session', WITHOUT_SID, ENDED, true],
  ['a token from afterwards that does not name its session', { ...WITHOUT_SID, issuedSeconds: 2001 }, ENDED, false],
  ['neither of them names the user', WITHOUT_SID, { ...ENDED, sub: '' }, false],
  ['another audience', { ...SESSION, audiences: ['a'] }, ENDED, false],
  ['one audience of several', { ...SESSION, audiences: ['a', 'b'] }, ENDED, true],
  ['another source of keys', { ...SESSION, source: 'other' }, ENDED, false],
]
for (const [what, session, ended, expected] of CASES) {
  test(`${what}: ${expected ? 'ended' : 'goes on'}`, () => assert.equal(hasEnded(session, ended), expected))
}

test('a logout is remembered until every token from before it has expired', () => {
  assert.equal(forgottenAtMs(ENDED), 2000 * 1000 + MAX_TOKEN_LIFE_MS)
})

const GOOD = { sub: 'alice', sid: 's1', jti: 'j1', iat: 1000, events: { [LOGOUT_EVENT]: {} } }

function read(claims: object = {}, header: object = {}): unknown {
  const given = Object.entries({ ...GOOD, ...claims }).filter(([, value]) => value !== undefined)
  return readLogoutClaims({ alg: 'RS256', ...header }, Object.fromEntries(given))
}

test('who was logged out, by session, by user, or by both', () => {
  assert.deepEqual(read(), { sid: 's1', sub: 'alice', endedSeconds: 1000 })
  assert.deepEqual(read({ sid: undefined }), { sid: '', sub: 'alice', endedSeconds: 1000 })
  assert.deepEqual(read({ sub: undefined }), { sid: 's1', sub: '', endedSeconds: 1000 })
  for (const typ of ['logout+jwt', 'JWT', 'application/logout+jwt']) assert.ok('sid' in (read({}, { typ }) as object))
  assert.ok('sid' in (read({ events: { [LOGOUT_EVENT]: {}, other: {} } }) as object))
})

const DEFECTS: Readonly<Record<string, { claims?: object; header?: object; fault: RegExp }>> = {
  'an access token': { header: { typ: 'at+jwt' }, fault: /typ/ },
  'a type that is not a text': { header: { typ: 1 }, fault: /typ/ },
  'an ID token': { claims: { events: undefined }, fault: /events/ },
  'another event': { claims: { events: { 'https://schemas.openid.net/secevent/risc': {} } }, fault: /events/ },
  'an event without an object': { claims: { events: { [LOGOUT_EVENT]: true } }, fault: /events/ },
  'an event that is a list': { claims: { events: { [LOGOUT_EVENT]: [] } }, fault: /events/ },
  'a list of events': { claims: { events: [LOGOUT_EVENT] }, fault: /events/ },
  'a nonce': { claims: { nonce: 'n' }, fault: /nonce/ },
  'a nonce that is null': { claims: { nonce: null }, fault: /nonce/ },
  'no jti': { claims: { jti: undefined }, fault: /jti/ },
  'a jti that is not a text': { claims: { jti: 1 }, fault: /jti/ },
  'no iat': { claims: { iat: undefined }, fault: /iat/ },
  'an iat that is not a number': { claims: { iat: '1000' }, fault: /iat/ },
  'no session and no user': { claims: { sid: undefined, sub: undefined }, fault: /neither/ },
  'an empty session, and no user': { claims: { sid: '', sub: undefined }, fault: /neither/ },
  'a session that is not a text': { claims: { sid: 1 }, fault: /sid or sub/ },
  'a user that is not a text': { claims: { sub: ['alice'] }, fault: /sid or sub/ },
  'a session of any length': { claims: { sid: 's'.repeat(MAX_SESSION_ID_LENGTH + 1) }, fault: /more than/ },
}
for (const [what, { claims, header, fault }] of Object.entries(DEFECTS)) {
  test(`no logout token: ${what}`, () => {
    const found = read(claims, header) as { fault?: string }
    assert.match(found.fault ?? '', fault)
  })
}
