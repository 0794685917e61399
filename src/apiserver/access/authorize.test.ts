import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import type { KindRole } from '../../kube/api/kind-role.ts'
import { GROUP_AUTHENTICATED, type UserInfo } from '../../kube/api/user.ts'
import { type Attributes, accessForbidden, createAuthorizer, kindRolesOf, roleBindings, roleOf } from './authorize.ts'

function user(name: string, ...groups: readonly string[]): UserInfo {
  return { name, uid: '', groups: [...groups, GROUP_AUTHENTICATED], extra: {} }
}

function on(verb: string, resource: string, group = '', more: Partial<Attributes> = {}): Attributes {
  return { verb, group, resource, subresource: '', namespace: '', name: '', ...more }
}

const bindings = roleBindings(['user:alice'], ['group:ops', 'user:bob:with:colons'])
const allowed = createAuthorizer(bindings)

const ADMIN = user('root', 'portcullis:admins')
const ALICE = user('alice')
const VIEWER = user('vera', 'portcullis:viewers')
const OPS = user('otto', 'ops')
const BOB = user('bob:with:colons')
const NO_ROLE = user('nobody')
const MASTER = user('master', 'system:masters')
const FAKE_ANONYMOUS: UserInfo = { name: 'system:anonymous', uid: '', groups: ['portcullis:admins'], extra: {} }

const UC = 'upstreamclusters'
const GROUP = 'proxy.kubegateway.io'
const get = (path: string): Attributes => ({ verb: 'get', path })

/** Users of the above that are allowed. */
const cases: readonly [attributes: Attributes, who: string][] = [
  [on('get', UC, GROUP), 'admin alice viewer ops bob'],
  [on('list', UC, GROUP), 'admin alice viewer ops bob'],
  [on('watch', 'events'), 'admin alice viewer ops bob'],
  [on('get', UC, GROUP, { subresource: 'status' }), 'admin alice viewer ops bob'],
  [on('patch', UC, GROUP), 'admin alice'],
  [on('delete', UC, GROUP), 'admin alice'],
  [on('deletecollection', UC, GROUP), 'admin alice'],
  [on('update', UC, GROUP, { subresource: 'status' }), 'admin alice'],
  [on('', UC, GROUP), 'admin alice'],
  [on('*', UC, GROUP), 'admin alice'],
  [on('get', 'secrets'), 'admin alice'],
  [on('list', 'secrets'), 'admin alice'],
  [on('watch', 'secrets', '', { namespace: 'default' }), 'admin alice'],
  // What `kubectl auth can-i get '*'` asks: everything, Secrets included.
  [on('get', '*'), 'admin alice'],
  [on('get', 'pods', '*'), 'admin alice'],
  [on('create', 'selfsubjectreviews', 'authentication.k8s.io'), 'admin alice viewer ops bob nobody master'],
  [on('create', 'selfsubjectaccessreviews', 'authorization.k8s.io'), 'admin alice viewer ops bob nobody master'],
  [on('create', 'selfsubjectrulesreviews', 'authorization.k8s.io'), 'admin alice viewer ops bob nobody master'],
  [on('create', 'selfsubjectreviews', ''), 'admin alice'],
  [on('create', 'tokenreviews', 'authentication.k8s.io'), 'admin alice'],
  [get('/api'), 'admin alice viewer ops bob nobody master'],
  [get('/apis/proxy.kubegateway.io/v1alpha1'), 'admin alice viewer ops bob nobody master'],
  [get('/openapi/v3/api/v1'), 'admin alice viewer ops bob nobody master'],
  [get('/healthz'), 'admin alice viewer ops bob nobody master anonymous fake'],
  [get('/livez'), 'admin alice viewer ops bob nobody master anonymous fake'],
  [get('/readyz/store'), 'admin alice viewer ops bob nobody master anonymous fake'],
  [get('/version'), 'admin alice viewer ops bob nobody master anonymous fake'],
  [{ verb: 'head', path: '/healthz' }, 'admin alice viewer ops bob nobody master anonymous fake'],
  [{ verb: 'post', path: '/healthz' }, 'admin alice'],
  [get('/healthzz'), 'admin alice'],
  [get('/apisx'), 'admin alice'],
  [get('/metrics'), 'admin alice'],
  [get('/'), 'admin alice'],
]

const people: readonly [name: string, user: UserInfo | 'anonymous'][] = [
  ['admin', ADMIN],
  ['alice', ALICE],
  ['viewer', VIEWER],
  ['ops', OPS],
  ['bob', BOB],
  ['nobody', NO_ROLE],
  ['master', MASTER],
  ['anonymous', 'anonymous'],
  ['fake', FAKE_ANONYMOUS],
]

for (const [attributes, who] of cases) {
  test(`${JSON.stringify(attributes)}: ${who}`, () => {
    const may = people.filter(([, person]) => allowed(person, attributes)).map(([name]) => name)
    assert.equal(may.join(' '), who)
  })
}

test('messages are those of kube-apiserver', () => {
  const message = (who: UserInfo | 'anonymous', what: Attributes): string => accessForbidden(who, what).message ?? ''
  assert.equal(
    message(NO_ROLE, on('list', UC, GROUP)),
    `upstreamclusters.proxy.kubegateway.io is forbidden: User "nobody" cannot list resource "upstreamclusters" in API group "proxy.kubegateway.io" at the cluster scope`,
  )
  assert.equal(
    message(VIEWER, on('get', 'secrets', '', { namespace: 'default', name: 's' })),
    `secrets "s" is forbidden: User "vera" cannot get resource "secrets" in API group "" in the namespace "default"`,
  )
  assert.equal(
    message(VIEWER, on('patch', UC, GROUP, { subresource: 'status', name: 'a' })),
    `upstreamclusters.proxy.kubegateway.io "a" is forbidden: User "vera" cannot patch resource "upstreamclusters/status" in API group "proxy.kubegateway.io" at the cluster scope`,
  )
  assert.equal(message('anonymous', get('/api')), 'forbidden: User "system:anonymous" cannot get path "/api"')
  assert.equal(message(user('<b>&'), get('/x')), 'forbidden: User "&lt;b&gt;&amp;" cannot get path "/x"')
  const status = accessForbidden(VIEWER, on('delete', UC, GROUP, { name: 'a' }))
  assert.deepEqual([status.code, status.reason], [403, 'Forbidden'])
  assert.deepEqual(status.details, { name: 'a', group: GROUP, kind: UC })
})

test('roles, and flags that are none', () => {
  assert.equal(roleOf(bindings, user('x', 'portcullis:viewers', 'portcullis:admins')), 'admin')
  assert.equal(roleOf(bindings, VIEWER), 'view')
  assert.equal(roleOf(bindings, NO_ROLE), undefined)
  for (const bad of ['alice', 'user:', ':x', 'role:x', '', 'user:system:anonymous']) {
    assert.throws(() => roleBindings([bad], []), UserError, bad)
    assert.throws(() => roleBindings([], [bad]), UserError, bad)
  }
})

const ASKER: KindRole = {
  name: 'asker',
  group: 'portcullis:askers',
  rules: [
    { verbs: ['create', 'get'], group: 'portcullis.io', resources: ['things'] },
    { verbs: ['create'], group: 'portcullis.io', resources: ['things/end'] },
  ],
}

test('a role of some kinds alone gives what its rules say, beside the role that a user has', () => {
  const bound = roleBindings(['user:alice'], ['group:ops'], [{ role: ASKER, given: ['user:bob', 'group:team'] }])
  const allows = createAuthorizer(bound)
  const asked: readonly [attributes: Attributes, allowed: boolean][] = [
    [on('create', 'things', 'portcullis.io'), true],
    [on('get', 'things', 'portcullis.io', { name: 'one' }), true],
    [on('create', 'things', 'portcullis.io', { subresource: 'end' }), true],
    [on('get', 'things', 'portcullis.io', { subresource: 'end' }), false],
    [on('create', 'things', 'portcullis.io', { subresource: 'approval' }), false],
    [on('update', 'things', 'portcullis.io'), false],
    [on('create', 'things'), false],
    [on('*', '*', '*'), false],
    [on('impersonate', 'users'), false],
    [{ verb: 'create', path: '/things' }, false],
  ]
  for (const who of [user('bob'), user('x', 'team'), user('x', 'portcullis:askers')]) {
    for (const [attributes, expected] of asked) {
      assert.equal(allows(who, attributes), expected, `${who.name} ${JSON.stringify(attributes)}`)
    }
    assert.equal(roleOf(bound, who), undefined)
    assert.deepEqual(kindRolesOf(bound, who), [ASKER])
  }
  const create = on('create', 'things', 'portcullis.io')
  for (const who of [user('team'), user('x', 'bob'), user('otto', 'ops'), 'anonymous' as const]) {
    assert.equal(allows(who, create), false)
  }
  assert.equal(allows({ ...user('system:anonymous', 'team') }, create), false)
  assert.equal(allows(user('otto', 'ops', 'team'), create), true)
  assert.equal(allows(user('otto', 'ops', 'team'), on('get', UC, GROUP)), true)
})
