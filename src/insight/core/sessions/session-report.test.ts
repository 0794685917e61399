import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { IdentitySeen } from '../../../gateway/api/identity-seen.ts'
import { isSessionAnswer, readSessionQuery, sessionLines, sumOfSessions } from './session-report.ts'

const ALICE: IdentitySeen = {
  cluster: 'prod',
  user: 'oidc:alice',
  by: 'https://login.example.com',
  sinceMs: 10_000,
  lastMs: 50_000,
  expiresMs: 200_000,
  open: 2,
}

test('one user of several threads or replicas is one row', () => {
  const again = { ...ALICE, sinceMs: 5_000, lastMs: 40_000, expiresMs: 0, open: 1 }
  const bob = { ...ALICE, user: 'oidc:bob', lastMs: 60_000 }
  const elsewhere = { ...ALICE, cluster: 'dev', lastMs: 1 }
  const report = sumOfSessions([[ALICE, elsewhere], [again, bob], []], 10, false, (cluster) => cluster === 'prod')
  assert.deepEqual(report, { sessions: [bob, { ...ALICE, sinceMs: 5_000, open: 3 }], more: false })
  assert.ok(isSessionAnswer(JSON.parse(JSON.stringify(report))))
  assert.deepEqual(sumOfSessions([[ALICE, bob]], 1, false), { sessions: [bob], more: true })
  assert.equal(sumOfSessions([[ALICE]], 1, true).more, true)
})

test('for people: times as they are said, and nothing that could move the cursor', () => {
  const reviewed = { ...ALICE, user: 'a\u001b[2J', by: 'cluster', expiresMs: 0, open: 0, lastMs: 100_000 }
  const lines = sessionLines({ sessions: [reviewed, ALICE], more: true, missing: ['gateway-2'] }, 100_000)
  assert.match(lines[0] ?? '', /^no answer from gateway-2/)
  assert.match(lines[1] ?? '', /^LAST SEEN +SINCE +EXPIRES +OPEN +CLUSTER +LOGIN +USER$/)
  assert.match(lines[2] ?? '', /^now +1m30s ago +- +0 +prod +cluster +a/)
  assert.match(lines[3] ?? '', /^50s ago +1m30s ago +in 1m40s +2 +prod +https:\/\/login\.example\.com +oidc:alice$/)
  assert.match(lines.at(-1) ?? '', /^there are more/)
  assert.ok(!lines.join('').includes('\u001b'))
  assert.deepEqual(sessionLines({ sessions: [], more: false }, 0), ['no sessions'])
})

test('parameters that are wrong are said in a line', () => {
  const read = (text: string): ReturnType<typeof readSessionQuery> => readSessionQuery(new URLSearchParams(text))
  assert.deepEqual(read(''), { user: '', limit: 100, cluster: '', choice: undefined })
  for (const text of ['limit=0', 'limit=1001', 'limit=x', 'selector=a=b=c']) assert.ok('problem' in read(text), text)
})

test('answers of other programs are none', () => {
  for (const value of [
    null,
    [],
    {},
    { more: false, sessions: [{}] },
    { more: false, sessions: [{ ...ALICE, open: '1' }] },
  ]) {
    assert.equal(isSessionAnswer(value), false)
  }
})
