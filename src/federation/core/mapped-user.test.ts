import assert from 'node:assert/strict'
import { test } from 'node:test'
import { userInMember } from './mapped-user.ts'

const extra = { 'scopes.example.com': ['read'] }

test('a user crosses into a member that trusts the users, with the groups that no cluster gives itself', () => {
  const alice = { name: 'alice', uid: 'u1', groups: ['dev', 'system:masters', 'system:authenticated'], extra }
  assert.deepEqual(userInMember(alice, true), {
    name: 'alice',
    uid: 'u1',
    groups: ['dev', 'system:authenticated'],
    extra,
  })
})

test('where users are not trusted, none is known', () => {
  assert.equal(userInMember({ name: 'alice', uid: '', groups: ['dev'], extra: {} }, false), undefined)
})

for (const name of [
  'system:serviceaccount:ns:x',
  'system:node:n1',
  'system:anonymous',
  'system:kube-scheduler',
  'system:',
  '',
]) {
  test(`"${name}" never crosses`, () => {
    assert.equal(userInMember({ name, uid: '', groups: ['dev'], extra: {} }, true), undefined)
  })
}

test('groups of service accounts and nodes do not cross either, whatever the name', () => {
  const groups = ['system:serviceaccounts', 'system:serviceaccounts:ns', 'system:nodes', 'system:unauthenticated']
  assert.deepEqual(userInMember({ name: 'odd', uid: '', groups, extra: {} }, true)?.groups, ['system:authenticated'])
})
