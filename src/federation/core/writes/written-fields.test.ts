import assert from 'node:assert/strict'
import { test } from 'node:test'
import { prefixedNamespace } from '../../../gateway/core/federation/names.ts'
import { UnreadableBody } from '../../../gateway/core/request/write-envelope.ts'
import { federationEpoch } from '../federation-epoch.ts'
import { encodeVector } from '../vectors.ts'
import { changeFor, memberOfNew, StaleVersion, type WrittenTo } from './written-fields.ts'

const members = ['east', 'west'].map((name) => ({ name, cluster: name }))
const epoch = federationEpoch(members)
const POD: WrittenTo = {
  members,
  slot: 1,
  shown: { namespace: 'west--default', name: 'web' },
  inMember: { namespace: 'default', name: 'web' },
  resource: { isNamespaces: false, isNamespaced: true },
}
const node = (shown: string, name: string): WrittenTo => ({
  ...POD,
  shown: { namespace: '', name: shown },
  inMember: { namespace: '', name },
  resource: { isNamespaces: false, isNamespaced: false },
})
const namespace = (shown: string, name: string): WrittenTo => ({
  ...POD,
  shown: { namespace: shown, name: shown },
  inMember: { namespace: name, name },
  resource: { isNamespaces: true, isNamespaced: false },
})
const vector = (...versions: string[]): string => encodeVector({ epoch, versions })

test('what is in a namespace keeps its name; its namespace is that of the path', () => {
  const change = changeFor(POD)
  assert.equal(change('name', 'web'), 'web')
  assert.equal(change('generateName', 'west--x'), 'west--x')
  assert.equal(change('namespace', 'west--default'), 'default')
  assert.equal(change('namespace', ''), '')
  for (const other of ['default', 'east--default', 'west--kube-system', 'WEST--default', 'west--default '])
    assert.throws(() => change('namespace', other), UnreadableBody, other)
})

test('what is in none has the name of the path, and a new one that of its member', () => {
  const change = changeFor(node('west--n1', 'n1'))
  assert.equal(change('name', 'west--n1'), 'n1')
  assert.equal(change('generateName', 'n'), 'n')
  assert.equal(change('namespace', 'x'), 'x')
  for (const other of ['n1', 'east--n1', 'west--n2']) assert.throws(() => change('name', other), UnreadableBody, other)
  const isNew = changeFor(node('', ''))
  assert.equal(isNew('name', 'west--n2'), 'n2')
  assert.equal(isNew('generateName', 'west--n-'), 'n-')
  for (const other of ['n2', 'east--n2', 'west--', `west--${'n'.repeat(247)}`])
    assert.throws(() => isNew('name', other), UnreadableBody, other)
})

test('namespaces', () => {
  assert.equal(changeFor(namespace('west--a', 'a'))('name', 'west--a'), 'a')
  const hashed = prefixedNamespace('west', 'n'.repeat(60))
  assert.equal(changeFor(namespace(hashed, 'n'.repeat(60)))('name', hashed), 'n'.repeat(60))
  const isNew = changeFor(namespace('', ''))
  assert.equal(isNew('name', 'west--b'), 'b')
  assert.throws(() => isNew('name', hashed), UnreadableBody)
})

test('a version is that of the member', () => {
  const change = changeFor(POD)
  assert.equal(change('resourceVersion', vector('', '734')), '734')
  assert.equal(change('resourceVersion', vector('12', '9'.repeat(39))), '9'.repeat(39))
  for (const any of ['', '0']) assert.equal(change('resourceVersion', any), any)
  for (const malformed of ['734', 'abc', '00', ' ', `${vector('1', '2')} `, '1'.repeat(10_000)])
    assert.throws(() => change('resourceVersion', malformed), UnreadableBody, malformed.slice(0, 20))
  const other = encodeVector({ epoch: (epoch + 1) % 10_000, versions: ['1', '2'] })
  for (const stale of [vector('12', ''), vector('12'), vector('1', '2', '3'), other])
    assert.throws(() => change('resourceVersion', stale), StaleVersion, stale)
})

test('the member of a new object follows from its name', () => {
  const { resource } = node('', '')
  assert.equal(memberOfNew('west--n1', resource), 'west')
  assert.equal(memberOfNew('west--a--b', resource), 'west')
  for (const none of ['', 'n1', '--n1', 'west--', `west--${'n'.repeat(247)}`])
    assert.equal(memberOfNew(none, resource), undefined, none)
  assert.equal(memberOfNew(prefixedNamespace('west', 'n'.repeat(60)), namespace('', '').resource), undefined)
})

test('a long text of the body is not repeated in the refusal', () => {
  const long = 'x'.repeat(100_000)
  for (const [field, to] of [
    ['name', node('west--n1', 'n1')],
    ['name', node('', '')],
    ['generateName', node('', '')],
    ['resourceVersion', POD],
  ] as const)
    assert.throws(
      () => changeFor(to)(field, long),
      (error) => error instanceof UnreadableBody && error.message.length < 500,
    )
})
