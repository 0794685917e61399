import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StatusError } from '../../kube/api/status.ts'
import { GROUP_AUTHENTICATED, type UserInfo } from '../../kube/api/user.ts'
import { createAuthorizer, effectiveUser, roleBindings } from './authorize.ts'

const authorize = createAuthorizer(roleBindings([], []))

function user(name: string, group: string): UserInfo {
  return { name, uid: '', groups: [group, GROUP_AUTHENTICATED], extra: {} }
}

const ADMIN = user('root', 'portcullis:admins')
const VIEWER = user('vera', 'portcullis:viewers')
const AS_VIEWER = ['impersonate-user', 'x', 'impersonate-group', 'portcullis:viewers']

test('without impersonation headers the user is the caller', () => {
  assert.equal(effectiveUser(VIEWER, [':method', 'GET'], authorize), VIEWER)
  assert.equal(effectiveUser('anonymous', [], authorize), 'anonymous')
})

test('an administrator becomes exactly the user it asks for, and keeps no rights of its own', () => {
  const other = effectiveUser(ADMIN, AS_VIEWER, authorize) as UserInfo
  assert.deepEqual(other, {
    name: 'x',
    uid: '',
    groups: ['portcullis:viewers', GROUP_AUTHENTICATED],
    extra: {},
  })
  const attributes = { verb: 'delete', group: '', resource: 'secrets', subresource: '', namespace: 'a', name: 'b' }
  assert.equal(authorize(ADMIN, attributes), true)
  assert.equal(authorize(other, attributes), false)
  assert.equal(effectiveUser(ADMIN, ['impersonate-user', 'system:anonymous'], authorize), 'anonymous')
})

test('other users are refused, and so are inconsistent headers', () => {
  const code = (caller: UserInfo | 'anonymous', head: string[]): number => {
    try {
      effectiveUser(caller, head, authorize)
      return 200
    } catch (error) {
      assert.ok(error instanceof StatusError)
      return error.code
    }
  }
  assert.equal(code(VIEWER, AS_VIEWER), 403)
  assert.equal(code(VIEWER, ['Impersonate-User', 'root']), 403)
  assert.equal(code('anonymous', ['impersonate-user', 'root', 'impersonate-group', 'portcullis:admins']), 403)
  assert.equal(code(ADMIN, ['impersonate-group', 'portcullis:viewers']), 400)
  assert.equal(code(ADMIN, AS_VIEWER), 200)
})
