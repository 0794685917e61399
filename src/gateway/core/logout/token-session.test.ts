import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MAX_SESSION_ID_LENGTH } from '../../api/ended-session-kind.ts'
import type { EndedSession, TokenSession } from '../../api/token-session.ts'
import { forgottenAtMs, hasEnded, LOGOUT_EVENT, MAX_TOKEN_LIFE_MS, sessionOf } from './token-session.ts'

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
