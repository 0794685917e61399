import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type AskedScope, type NamedResource, scopeInMember } from './member-scope.ts'

const PODS: NamedResource = { isNamespaces: false, isNamespaced: true }
const PREFIXED_PODS = { ...PODS, mode: 'prefixed' } as const
const NODES: NamedResource = { isNamespaces: false, isNamespaced: false }
const NAMESPACES: NamedResource = { isNamespaces: true, isNamespaced: false }

interface Row {
  readonly title: string
  readonly resource?: NamedResource
  readonly asked: Partial<AskedScope>
  /** Absent = nothing of east. */
  readonly east?: Partial<AskedScope>
}

const ROWS: readonly Row[] = [
  { title: 'everything', asked: {}, east: {} },
  { title: 'a namespace of its own', asked: { namespace: 'east--a' }, east: { namespace: 'a' } },
  {
    title: 'a namespace with the separator in its name',
    asked: { namespace: 'east--a--b' },
    east: { namespace: 'a--b' },
  },
  { title: 'a namespace of another member', asked: { namespace: 'west--a' } },
  { title: 'a namespace of none', asked: { namespace: 'default' } },
  {
    title: 'a name in a namespace stays',
    asked: { namespace: 'east--a', name: 'x' },
    east: { namespace: 'a', name: 'x' },
  },
  { title: 'a node', resource: NODES, asked: { name: 'east--n1' }, east: { name: 'n1' } },
  { title: 'a node of another member', resource: NODES, asked: { name: 'west--n1' } },
  {
    title: 'a namespace itself, which has its name for a namespace',
    resource: NAMESPACES,
    asked: { namespace: 'east--a', name: 'east--a' },
    east: { name: 'a' },
  },
  {
    title: 'a selector of a namespace',
    asked: { fieldSelector: 'metadata.namespace=east--a,status.phase!=Running' },
    east: { fieldSelector: 'metadata.namespace=a,status.phase!=Running' },
  },
  { title: 'a selector of the namespace of another', asked: { fieldSelector: 'metadata.namespace=west--a' } },
  {
    title: 'a selector of all namespaces but one of another',
    asked: { fieldSelector: 'metadata.namespace!=west--a,spec.nodeName=n1' },
    east: { fieldSelector: 'spec.nodeName=n1' },
  },
  {
    title: 'values that have to be escaped',
    asked: { fieldSelector: 'spec.x=a\\,b\\=c\\\\' },
    east: { fieldSelector: 'spec.x=a\\,b\\=c\\\\' },
  },
]

for (const { title, resource = PODS, asked, east } of ROWS) {
  test(title, () => {
    const none = { namespace: '', name: '', fieldSelector: '' }
    const scope = scopeInMember('east', { ...none, ...asked }, { ...resource, mode: 'prefixed' }, () => undefined)
    assert.deepEqual(scope, east && { ...none, ...east })
  })
}

test('a hash stands for the name that the member has; if it has none, rights are asked for a name that nothing has', () => {
  const hashed = `east--${'a'.repeat(36)}-${'b'.repeat(20)}`
  assert.equal(hashed.length, 63)
  const asked = { namespace: hashed, name: '', fieldSelector: '' }
  assert.equal(scopeInMember('east', asked, PREFIXED_PODS, () => undefined)?.namespace, '..')
  assert.equal(
    scopeInMember('west', asked, PREFIXED_PODS, () => 'found'),
    undefined,
  )
  assert.equal(scopeInMember('east', asked, PREFIXED_PODS, () => 'found')?.namespace, 'found')
})

test('what cannot be read is a SyntaxError', () => {
  assert.throws(
    () => scopeInMember('east', { namespace: '', name: '', fieldSelector: 'a' }, PREFIXED_PODS, () => undefined),
    SyntaxError,
  )
})

test('merged names are those of every member', () => {
  const asked = { namespace: 'a', name: 'x', fieldSelector: 'metadata.namespace=a' }
  assert.deepEqual(
    scopeInMember('east', asked, { ...PODS, mode: 'merged' }, () => undefined),
    asked,
  )
})
