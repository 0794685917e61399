import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MAX_SESSION_ID_LENGTH } from '../../api/ended-session-kind.ts'
import { readLogoutClaims } from './logout-token.ts'
import { LOGOUT_EVENT } from './token-session.ts'

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
