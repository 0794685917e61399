// Identity survives the wire unchanged; client-sent impersonation is parsed and authorised as in kube-apiserver
// (apiserver/pkg/endpoints/filters/impersonation/impersonation_test.go).

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { isRefusal, type Refusal } from '../../../kit/core/refusal/refusal.ts'
import type { UserInfo } from '../../../kube/api/user.ts'
import { readRequestHead } from '../request/request-head.ts'
import {
  type AccessReviewAttributes,
  type ClientImpersonation,
  identityHeaders,
  identityProblem,
  impersonatedUser,
  impersonationForbiddenMessage,
  impersonationReviews,
  readImpersonation,
} from './impersonate.ts'

const MASTER: UserInfo = { name: 'u', uid: '', groups: ['g'], extra: {} }

/** What kube-apiserver makes of the fields, written like its Go code: bytes, not strings. */
function received(list: readonly string[]): UserInfo {
  const text = (value: string): string => Buffer.from(value, 'latin1').toString('utf8')
  const extra = new Map<string, string[]>()
  const user = { name: '', uid: '', groups: [] as string[] }
  for (let i = 0; i < list.length; i += 2) {
    const [name, value] = [list[i] ?? '', text(list[i + 1] ?? '')]
    if (name === 'impersonate-user') user.name = value
    else if (name === 'impersonate-uid') user.uid = value
    else if (name === 'impersonate-group') user.groups.push(value)
    else if (name.startsWith('impersonate-extra-')) {
      const key = decodeURIComponent(name.slice('impersonate-extra-'.length).toLowerCase())
      extra.set(key, [...(extra.get(key) ?? []), value])
    } else assert.fail(`unexpected field ${name}`)
  }
  return { ...user, extra: Object.fromEntries(extra) }
}

function wanted(list: string[]): ClientImpersonation {
  const result = readImpersonation(list)
  assert.ok(result !== undefined && !isRefusal(result), JSON.stringify(result))
  return result
}

function refused(list: string[]): Refusal {
  const result = readImpersonation(list)
  assert.ok(result !== undefined && isRefusal(result), JSON.stringify(result))
  assert.equal(result.refused, 'impersonation-invalid')
  return result
}

describe('identity on the wire', () => {
  it('is a flat list, one line for each group and value', () => {
    const extra = { 'authentication.kubernetes.io/pod-name': ['a', 'b'], Scopes: ['x'] }
    assert.deepEqual(identityHeaders({ name: 'jane', uid: '42', groups: ['a', 'b'], extra }), [
      'impersonate-user',
      'jane',
      'impersonate-group',
      'a',
      'impersonate-group',
      'b',
      'impersonate-uid',
      '42',
      'impersonate-extra-authentication.kubernetes.io%2fpod-name',
      'a',
      'impersonate-extra-authentication.kubernetes.io%2fpod-name',
      'b',
      'impersonate-extra-%53copes',
      'x',
    ])
  })

  it('arrives exactly, whatever Unicode it is made of', () => {
    const text = fc.string({ unit: 'binary', maxLength: 12 })
    const fields = {
      name: text,
      uid: text,
      groups: fc.array(text, { maxLength: 4 }),
      extra: fc.dictionary(text, fc.array(text, { minLength: 1, maxLength: 3 }), { noNullPrototype: true }),
    }
    const users = fc.record(fields, { noNullPrototype: true })
    let forwarded = 0
    fc.assert(
      fc.property(users, (user) => {
        if (identityProblem(user) !== '') return
        forwarded++
        const list = identityHeaders(user)
        assert.deepEqual(received(list), user)
        assert.equal(readRequestHead(list, '', false).problem, '')
        for (const text of list) assert.ok(!/^[ \t]|[ \t]$/.test(text))
      }),
      { numRuns: 2000 },
    )
    assert.ok(forwarded > 200)
  })

  it('keeps keys apart that differ in case, and keys that look escaped', () => {
    const extra = { a: ['1'], A: ['2'], '%41': ['3'], 'almost%zz': ['4'], ['__proto__']: ['5'], 'ä/ᛄ ': ['6'] }
    assert.deepEqual(received(identityHeaders({ ...MASTER, extra })), { ...MASTER, extra })
  })

  const rows: [string, Partial<UserInfo>, RegExp | ''][] = [
    ['a plain user', {}, ''],
    ['a tab inside', { name: 'a\tb' }, ''],
    ['an empty group', { groups: [''] }, ''],
    ['no name: upstream would see the gateway', { name: '' }, /no name/],
    ['no groups: upstream would fill some in', { groups: [] }, /no groups/],
    ['CR LF in the name', { name: 'a\r\nImpersonate-Group: system:masters' }, /name has a control/],
    ['NUL in a group', { groups: ['a', 'b\0'] }, /group has a control/],
    ['LF in an extra value', { extra: { k: ['a', 'b\nc'] } }, /extra "k" has a control/],
    ['DEL in the uid', { uid: 'a\x7f' }, /uid has a control/],
    ['leading space', { name: ' system:admin' }, /begins or ends/],
    ['trailing tab', { groups: ['system:masters\t'] }, /begins or ends/],
    ['only a space', { uid: ' ' }, /begins or ends/],
    ['half a character', { name: 'a\ud800' }, /Unicode/],
    ['half a character in a key', { extra: { '\udc00': ['x'] } }, /key is not valid Unicode/],
  ]
  for (const [name, part, want] of rows) {
    it(`${want === '' ? 'forwards' : 'does not forward'} ${name}`, () => {
      const problem = identityProblem({ ...MASTER, ...part })
      if (want === '') assert.equal(problem, '')
      else assert.match(problem, want)
    })
  }
})

describe('impersonation asked for by a client', () => {
  it('is nothing without its headers', () => {
    assert.equal(readImpersonation(['user-agent', 'kubectl', 'if-match', 'x', 'impersonation', 'x']), undefined)
    assert.equal(readImpersonation(['impersonate-user', '']), undefined)
    assert.equal(readImpersonation(['impersonate-user', '', 'impersonate-uid', '']), undefined)
  })

  it('reads any case, several values, the first user and uid', () => {
    const list = [
      'Impersonate-User',
      'a',
      'IMPERSONATE-GROUP',
      'g1',
      'impersonate-user',
      'b',
      'impersonate-group',
      'g2',
    ]
    list.push(
      'Impersonate-Uid',
      '1',
      'impersonate-uid',
      '2',
      'Impersonate-Extra-Scopes',
      'x',
      'impersonate-extra-scopes',
      'y',
    )
    assert.deepEqual(wanted(list), { name: 'a', uid: '1', groups: ['g1', 'g2'], extra: { scopes: ['x', 'y'] } })
  })

  it('reads values as UTF-8', () => {
    const list = ['impersonate-user', 'J\xc3\xb6rg', 'impersonate-group', '\xe1\x9b\x84']
    assert.deepEqual(wanted(list), { name: 'Jörg', uid: '', groups: ['ᛄ'], extra: {} })
    assert.match(refused(['impersonate-user', 'J\xf6rg']).message, /UTF-8/)
    assert.match(refused(['impersonate-user', 'a', 'impersonate-extra-%ff', 'x']).message, /UTF-8/)
  })

  const keys: [string, string][] = [
    ['Example.com%2Fescaped%E1%9B%84Scopes', 'example.com/escapedᛄscopes'],
    ['example.com%2fescaped%e1%9b%84scopes', 'example.com/escapedᛄscopes'],
    ['almost%zzpercent%xxencoded', 'almost%zzpercent%xxencoded'],
    ['%41%zz', '%41%zz'],
    ['%4', '%4'],
    ['%41bc', 'Abc'],
    ['a+b', 'a+b'],
    ['__proto__', '__proto__'],
    ['', ''],
  ]
  for (const [suffix, key] of keys) {
    it(`reads the extra key ${JSON.stringify(suffix)}`, () => {
      const { extra } = wanted(['impersonate-user', 'a', `impersonate-extra-${suffix}`, 'v'])
      assert.deepEqual(Object.entries(extra), [[key, ['v']]])
    })
  }

  const invalid: [string, string[]][] = [
    ['a group without a user', ['impersonate-group', 'g']],
    ['an empty group without a user', ['impersonate-group', '']],
    ['extra without a user', ['impersonate-extra-scopes', 'a']],
    ['a uid without a user', ['impersonate-uid', '1']],
    ['a group with an empty user', ['impersonate-user', '', 'impersonate-group', 'g']],
    ['a group with a second, full user', ['impersonate-user', '', 'impersonate-user', 'a', 'impersonate-group', 'g']],
    ['a user that HTTP would trim', ['impersonate-user', ' admin']],
    ['a control character', ['impersonate-user', 'a', 'impersonate-uid', 'a\x01']],
    [
      'more than the gateway would ask for',
      [
        'impersonate-user',
        'a',
        ...Array.from({ length: 512 }, (_, i) => (i % 2 === 0 ? 'impersonate-group' : `g${i}`)),
      ],
    ],
    ['more bytes than are read', ['impersonate-user', 'a', 'impersonate-extra-a', 'v'.repeat(64 * 1024)]],
  ]
  for (const [name, list] of invalid) it(`refuses ${name}`, () => assert.ok(refused(list).message.length > 0))

  it('asks for each thing once: users, groups, userextras, uids', () => {
    const list = ['impersonate-user', 'bob', 'impersonate-group', 'g', 'impersonate-group', 'g', 'impersonate-uid', '7']
    list.push('impersonate-extra-a%2fb', 'x', 'impersonate-extra-a%2fb', 'y')
    const rest = { verb: 'impersonate', namespace: '', subresource: '', group: '' }
    const authentication = { ...rest, group: 'authentication.k8s.io' }
    assert.deepEqual(impersonationReviews(wanted(list)), [
      { ...rest, resource: 'users', name: 'bob' },
      { ...rest, resource: 'groups', name: 'g' },
      { ...authentication, resource: 'userextras', subresource: 'a/b', name: 'x' },
      { ...authentication, resource: 'userextras', subresource: 'a/b', name: 'y' },
      { ...authentication, resource: 'uids', name: '7' },
    ])
  })

  const accounts: [string, string][] = [
    ['system:serviceaccount:foo:default', 'serviceaccounts foo/default'],
    ['system:serviceaccount:foo:a.b-c', 'serviceaccounts foo/a.b-c'],
    ['system:serviceaccount:foo:bar:baz', 'users system:serviceaccount:foo:bar:baz'],
    ['system:serviceaccount:foo', 'users system:serviceaccount:foo'],
    ['system:serviceaccount::default', 'users system:serviceaccount::default'],
    ['system:serviceaccount:foo:', 'users system:serviceaccount:foo:'],
    ['system:serviceaccount:Foo:default', 'users system:serviceaccount:Foo:default'],
    ['system:serviceaccount:a.b:default', 'users system:serviceaccount:a.b:default'],
    ['system:serviceaccount:foo:-a', 'users system:serviceaccount:foo:-a'],
    [`system:serviceaccount:${'n'.repeat(64)}:a`, `users system:serviceaccount:${'n'.repeat(64)}:a`],
    ['system:serviceaccountx:foo:default', 'users system:serviceaccountx:foo:default'],
  ]
  for (const [name, want] of accounts) {
    it(`${name} is one of ${want.split(' ')[0]}`, () => {
      const [review] = impersonationReviews(wanted(['impersonate-user', name]))
      const subject = review?.namespace === '' ? review.name : `${review?.namespace}/${review?.name}`
      assert.equal(`${review?.resource} ${subject}`, want)
      const groups = impersonatedUser(wanted(['impersonate-user', name])).groups
      assert.equal(groups.includes('system:serviceaccounts'), want.startsWith('serviceaccounts'))
    })
  }

  it('says what is forbidden as kube-apiserver does', () => {
    const originalUser = { ...MASTER, name: 'dev<1>' }
    const [user, group] = impersonationReviews(wanted(['impersonate-user', 'bob', 'impersonate-group', 'g']))
    const [account] = impersonationReviews(wanted(['impersonate-user', 'system:serviceaccount:foo:default']))
    const extra = impersonationReviews(wanted(['impersonate-user', 'bob', 'impersonate-extra-scopes', 'a']))[1]
    const say = (attributes: AccessReviewAttributes | undefined, reason = ''): string =>
      attributes === undefined ? '' : impersonationForbiddenMessage(originalUser, attributes, reason)
    assert.equal(
      say(user, 'no <rule>'),
      'users "bob" is forbidden: User "dev&lt;1&gt;" cannot impersonate resource "users" in API group "" at the cluster scope: no <rule>',
    )
    assert.equal(
      say(group),
      'groups "g" is forbidden: User "dev&lt;1&gt;" cannot impersonate resource "groups" in API group "" at the cluster scope',
    )
    assert.equal(
      say(account),
      'serviceaccounts "default" is forbidden: User "dev&lt;1&gt;" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "foo"',
    )
    assert.equal(
      say(extra),
      'userextras.authentication.k8s.io "a" is forbidden: User "dev&lt;1&gt;" cannot impersonate resource "userextras/scopes" in API group "authentication.k8s.io" at the cluster scope',
    )
  })
})

/** The authorizer of impersonation_test.go. */
function allowed(originalUser: UserInfo, { group, resource, subresource, name }: AccessReviewAttributes): boolean {
  if (originalUser.name === 'system:admin') return true
  if (originalUser.name === 'tester' || originalUser.name === 'deny-me') return false
  const [first, second] = originalUser.groups
  if (group === '' && resource === 'users') return first === 'wheel' || first === 'regular-impersonater'
  if (group === '' && resource === 'serviceaccounts') return first === 'sa-impersonater'
  if (group === '' && resource === 'groups') return second === 'group-impersonater'
  if (group !== 'authentication.k8s.io' || resource !== 'userextras') return false
  if (subresource === 'scopes' && second === 'extra-setter-scopes') return true
  if (subresource === 'scopes' && second === 'extra-setter-particular-scopes') return name === 'scope-a'
  if (subresource === 'project' && second === 'extra-setter-project') return true
  if (subresource === 'example.com/escapedᛄscopes' && second === 'escaped-scopes') return true
  return subresource === 'almost%zzpercent%xxencoded' && second === 'almost-escaped-scopes'
}

interface Row {
  readonly name: string
  readonly originalUser: { readonly name?: string; readonly groups?: readonly string[] }
  readonly asks: readonly string[]
  readonly want: number | { name: string; groups: string[]; extra?: Record<string, string[]> }
}

const AUTHENTICATED = 'system:authenticated'
const UNAUTHENTICATED = 'system:unauthenticated'
const user = (name: string, ...groups: string[]): string[] => [
  'impersonate-user',
  name,
  ...groups.flatMap((group) => ['impersonate-group', group]),
]
const extra = (key: string, ...values: string[]): string[] =>
  values.flatMap((value) => [`impersonate-extra-${key}`, value])

const ROWS: readonly Row[] = [
  { name: 'not-impersonating', originalUser: { name: 'tester' }, asks: [], want: 200 },
  { name: 'impersonating-error', originalUser: { name: 'tester' }, asks: user('anyone'), want: 403 },
  {
    name: 'group-without-user',
    originalUser: { name: 'tester' },
    asks: ['impersonate-group', 'some-group'],
    want: 400,
  },
  { name: 'extra-without-user', originalUser: { name: 'tester' }, asks: extra('scopes', 'scope-a'), want: 400 },
  {
    name: 'disallowed-group',
    originalUser: { groups: ['wheel'] },
    asks: user('system:admin', 'some-group'),
    want: 403,
  },
  {
    name: 'allowed-group',
    originalUser: { groups: ['wheel', 'group-impersonater'] },
    asks: user('system:admin', 'some-group'),
    want: { name: 'system:admin', groups: ['some-group', AUTHENTICATED] },
  },
  {
    name: 'disallowed-userextra-1',
    originalUser: { groups: ['wheel'] },
    asks: [...user('system:admin'), ...extra('scopes', 'scope-a')],
    want: 403,
  },
  {
    name: 'disallowed-userextra-2',
    originalUser: { groups: ['wheel', 'extra-setter-project'] },
    asks: [...user('system:admin'), ...extra('scopes', 'scope-a')],
    want: 403,
  },
  {
    name: 'disallowed-userextra-3',
    originalUser: { groups: ['wheel', 'extra-setter-particular-scopes'] },
    asks: [...user('system:admin'), ...extra('scopes', 'scope-a', 'scope-b')],
    want: 403,
  },
  {
    name: 'allowed-userextras',
    originalUser: { groups: ['wheel', 'extra-setter-scopes'] },
    asks: [...user('system:admin'), ...extra('scopes', 'scope-a', 'scope-b')],
    want: { name: 'system:admin', groups: [AUTHENTICATED], extra: { scopes: ['scope-a', 'scope-b'] } },
  },
  {
    name: 'percent-escaped-userextras',
    originalUser: { groups: ['wheel', 'escaped-scopes'] },
    asks: [...user('system:admin'), ...extra('example.com%2fescaped%e1%9b%84scopes', 'a', 'b')],
    want: { name: 'system:admin', groups: [AUTHENTICATED], extra: { 'example.com/escapedᛄscopes': ['a', 'b'] } },
  },
  {
    name: 'almost-percent-escaped-userextras',
    originalUser: { groups: ['wheel', 'almost-escaped-scopes'] },
    asks: [...user('system:admin'), ...extra('almost%zzpercent%xxencoded', 'a')],
    want: { name: 'system:admin', groups: [AUTHENTICATED], extra: { 'almost%zzpercent%xxencoded': ['a'] } },
  },
  {
    name: 'allowed-users-impersonation',
    originalUser: { groups: ['regular-impersonater'] },
    asks: user('tester'),
    want: { name: 'tester', groups: [AUTHENTICATED] },
  },
  { name: 'disallowed-impersonating', originalUser: { groups: ['sa-impersonater'] }, asks: user('tester'), want: 403 },
  {
    name: 'allowed-sa-impersonating',
    originalUser: { groups: ['sa-impersonater'] },
    asks: user('system:serviceaccount:foo:default'),
    want: {
      name: 'system:serviceaccount:foo:default',
      groups: ['system:serviceaccounts', 'system:serviceaccounts:foo', AUTHENTICATED],
    },
  },
  {
    name: 'a service account with groups named has these only',
    originalUser: { name: 'system:admin' },
    asks: user('system:serviceaccount:foo:default', 'some-group'),
    want: { name: 'system:serviceaccount:foo:default', groups: ['some-group', AUTHENTICATED] },
  },
  {
    name: 'anonymous',
    originalUser: { name: 'system:admin' },
    asks: user('system:anonymous'),
    want: { name: 'system:anonymous', groups: [UNAUTHENTICATED] },
  },
  {
    name: 'unauthenticated group',
    originalUser: { name: 'system:admin' },
    asks: user('unknown', UNAUTHENTICATED),
    want: { name: 'unknown', groups: [UNAUTHENTICATED] },
  },
  {
    name: 'authenticated group is not doubled',
    originalUser: { name: 'system:admin' },
    asks: user('unknown', AUTHENTICATED),
    want: { name: 'unknown', groups: [AUTHENTICATED] },
  },
  {
    name: 'specified authenticated is not doubled',
    originalUser: { groups: ['wheel', 'group-impersonater'] },
    asks: user('system:admin', 'some-group', AUTHENTICATED),
    want: { name: 'system:admin', groups: ['some-group', AUTHENTICATED] },
  },
  {
    name: 'anonymous and unauthenticated is not doubled',
    originalUser: { name: 'system:admin' },
    asks: user('system:anonymous', UNAUTHENTICATED),
    want: { name: 'system:anonymous', groups: [UNAUTHENTICATED] },
  },
]

describe('the impersonation table of kube-apiserver', () => {
  for (const { name, originalUser, asks, want } of ROWS) {
    it(name, () => {
      const who: UserInfo = { name: 'dev', uid: '', groups: [], extra: {}, ...originalUser }
      const asked = readImpersonation([...asks])
      if (asked === undefined) return assert.equal(want, 200)
      if (isRefusal(asked)) return assert.equal(want, 400)
      if (!impersonationReviews(asked).every((review) => allowed(who, review))) return assert.equal(want, 403)
      assert.ok(typeof want === 'object', `allowed, but wanted ${want}`)
      assert.deepEqual(impersonatedUser(asked), { uid: '', extra: {}, ...want })
      assert.equal(identityProblem(impersonatedUser(asked)), '')
    })
  }
})
