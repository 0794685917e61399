import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isMemberName, MAX_MEMBER_NAME } from '../../api/upstream-cluster/federation/member-names.ts'
import { originalNames, prefixedName, prefixedNamespace, splitName, splitNamespace } from './names.ts'

const LABEL = fc.stringMatching(/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/)
const MEMBER = LABEL.map((label) => label.replace(/-+/g, '-').slice(0, MAX_MEMBER_NAME).replace(/-$/, ''))

test('a member is in front of the name, behind it two hyphens', () => {
  assert.equal(prefixedNamespace('east', 'default'), 'east--default')
  assert.deepEqual(splitNamespace('east--default'), { member: 'east', name: 'default', hashed: false })
  assert.deepEqual(splitName('east--system:node--x'), { member: 'east', name: 'system:node--x', hashed: false })
  assert.deepEqual(splitName('east---x'), { member: 'east', name: '-x', hashed: false })
})

test('the names of objects that must not change', () => {
  assert.equal(
    prefixedNamespace('east', 'a'.repeat(63)),
    'east--aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-2wzchhqhf7kk4czlz4i6',
  )
  assert.equal(prefixedName('east', 'n'.repeat(253)).slice(-21), '-rq2ydle6jfujccs6sxmy')
})

test('what names no member', () => {
  for (const name of ['', 'default', '--x', 'east--', 'East--x', 'a.b--x', '-a--x', `${'m'.repeat(33)}--x`])
    assert.equal(splitNamespace(name), undefined, name)
  assert.equal(splitNamespace(`east--${'x'.repeat(60)}`), undefined)
})

test('which members may be called what', () => {
  for (const name of ['a', 'east', 'east-1', '1', 'm'.repeat(MAX_MEMBER_NAME)]) assert.equal(isMemberName(name), true)
  for (const name of ['', 'a--b', '-a', 'a-', 'A', 'a.b', 'a/b', 'm'.repeat(MAX_MEMBER_NAME + 1), 'a\n'])
    assert.equal(isMemberName(name), false, name)
})

test('a namespace is found again, hashed or not, and has a length that Kubernetes allows', () => {
  fc.assert(
    fc.property(MEMBER, LABEL, fc.array(LABEL), (member, namespace, others) => {
      const prefixed = prefixedNamespace(member, namespace)
      assert.match(prefixed, /^[a-z0-9][a-z0-9-]*[a-z0-9]$/)
      assert.ok(prefixed.length <= 63)
      const read = splitNamespace(prefixed)
      assert.equal(read?.member, member)
      assert.equal(read?.hashed, member.length + 2 + namespace.length >= 63)
      const all = [...new Set([...others, namespace])]
      assert.deepEqual(read && originalNames(read, all), [namespace])
    }),
  )
})

test('an object of any name is found again', () => {
  const name = fc.string({ minLength: 1, maxLength: 400, unit: 'binary' })
  fc.assert(
    fc.property(MEMBER, name, fc.array(name), (member, own, others) => {
      const prefixed = prefixedName(member, own)
      assert.ok(prefixed.isWellFormed() || !own.isWellFormed())
      const read = splitName(prefixed)
      assert.deepEqual(read && originalNames(read, new Set([...others, own])), [own])
    }),
  )
})

test('two names of all members never have one prefixed name, even if one is chosen to look like the hash of another', () => {
  const hashed = prefixedNamespace('east', `a${'b'.repeat(60)}`)
  const chosen = hashed.slice('east--'.length)
  assert.notEqual(prefixedNamespace('east', chosen), hashed)
  const read = splitNamespace(hashed)
  assert.deepEqual(read && originalNames(read, [chosen, `a${'b'.repeat(60)}`]), [`a${'b'.repeat(60)}`])
  fc.assert(
    fc.property(MEMBER, LABEL, MEMBER, LABEL, (member, namespace, otherMember, other) => {
      if (member === otherMember && namespace === other) return
      assert.notEqual(prefixedNamespace(member, namespace), prefixedNamespace(otherMember, other))
    }),
  )
})

test('half of a character is not left over', () => {
  const name = `${'x'.repeat(228)}\u{1f600}${'y'.repeat(100)}`
  const prefixed = prefixedName('e', name)
  assert.ok(prefixed.isWellFormed())
  assert.equal(prefixed.length, 253)
  const read = splitName(prefixed)
  assert.deepEqual(read && originalNames(read, [name]), [name])
})
