// Subjects and the users they name, as expected by apiserver/pkg/authentication/request/x509/x509_test.go.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { CREDENTIAL_ID_KEY, UID_OID, userFromCertificate, withAuthenticatedGroup } from './user-from-cert.ts'

const DIGEST = 'AB:CD:01'
const EXTRA = { [CREDENTIAL_ID_KEY]: ['X509SHA256=abcd01'] }

function subject(...attributes: [string, string][]): { attributes: { type: string; value: string }[] } {
  return { attributes: attributes.map(([type, value]) => ({ type, value })) }
}

describe('user from certificate', () => {
  const rows: { name: string; subject: [string, string][]; want: unknown }[] = [
    {
      name: 'common name and organizations in order',
      subject: [
        ['O', 'b'],
        ['CN', 'jane'],
        ['O', 'a'],
        ['O', 'b'],
      ],
      want: { name: 'jane', uid: '', groups: ['b', 'a', 'b', 'system:authenticated'], extra: EXTRA },
    },
    {
      name: 'no organization',
      subject: [['CN', 'jane']],
      want: { name: 'jane', uid: '', groups: ['system:authenticated'], extra: EXTRA },
    },
    { name: 'no common name: no opinion', subject: [['O', 'system:masters']], want: undefined },
    {
      name: 'empty common name: no opinion',
      subject: [
        ['CN', ''],
        ['O', 'a'],
      ],
      want: undefined,
    },
    { name: 'no opinion comes before a wrong uid', subject: [[UID_OID, '']], want: undefined },
    {
      name: 'the last common name counts',
      subject: [
        ['CN', 'admin'],
        ['CN', 'jane'],
      ],
      want: { name: 'jane', uid: '', groups: ['system:authenticated'], extra: EXTRA },
    },
    {
      name: 'uid',
      subject: [
        ['CN', 'jane'],
        [UID_OID, '42-x'],
      ],
      want: { name: 'jane', uid: '42-x', groups: ['system:authenticated'], extra: EXTRA },
    },
    {
      name: 'two uids',
      subject: [
        ['CN', 'jane'],
        [UID_OID, 'a'],
        [UID_OID, 'b'],
      ],
      want: { error: 'expected 1 UID, but found multiple: [a b]' },
    },
    {
      name: 'empty uid',
      subject: [
        ['CN', 'jane'],
        [UID_OID, ''],
      ],
      want: { error: 'UID cannot be an empty string' },
    },
    {
      name: 'userId of LDAP is not the uid, and other attributes do not matter',
      subject: [
        ['UID', 'x'],
        ['0.9.2342.19200300.100.1.1', 'y'],
        ['OU', 'o'],
        ['C', 'DE'],
        ['CN', 'jane'],
      ],
      want: { name: 'jane', uid: '', groups: ['system:authenticated'], extra: EXTRA },
    },
    {
      name: 'UTF-8, commas, slashes, percent signs',
      subject: [
        ['CN', 'Jörg, 100% /CN=admin'],
        ['O', 'a,b/c'],
      ],
      want: { name: 'Jörg, 100% /CN=admin', uid: '', groups: ['a,b/c', 'system:authenticated'], extra: EXTRA },
    },
    {
      name: 'empty organization stays a group',
      subject: [
        ['CN', 'jane'],
        ['O', ''],
      ],
      want: { name: 'jane', uid: '', groups: ['', 'system:authenticated'], extra: EXTRA },
    },
    {
      name: 'a certificate for anonymous gets nothing added',
      subject: [
        ['CN', 'system:anonymous'],
        ['O', 'a'],
      ],
      want: { name: 'system:anonymous', uid: '', groups: ['a'], extra: EXTRA },
    },
  ]
  for (const row of rows) {
    it(row.name, () => assert.deepEqual(userFromCertificate(subject(...row.subject), DIGEST), row.want))
  }
})

describe('system:authenticated', () => {
  const user = { name: 'jane', uid: '', groups: ['a'], extra: {} }
  it('is added once', () => {
    const once = withAuthenticatedGroup(user)
    assert.deepEqual(once.groups, ['a', 'system:authenticated'])
    assert.equal(withAuthenticatedGroup(once), once)
    assert.deepEqual(user.groups, ['a'])
  })
  it('is not added to the unauthenticated', () => {
    const stranger = { ...user, groups: ['system:unauthenticated'] }
    assert.equal(withAuthenticatedGroup(stranger), stranger)
    const anonymous = { ...user, name: 'system:anonymous' }
    assert.equal(withAuthenticatedGroup(anonymous), anonymous)
  })
})
