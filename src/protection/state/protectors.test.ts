import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import type { PodProtector } from '../api/pod-protector.ts'
import { ProtectorTable } from './protectors.ts'

interface Given {
  readonly namespace?: string
  readonly name?: string
  readonly uid?: string
  readonly version?: string
  readonly spec?: Partial<PodProtector['spec']> | Record<string, unknown>
}

function protectorOf({ namespace = 'default', name = 'web', uid = 'u1', version = '5', spec = {} }: Given): JsonObject {
  return {
    apiVersion: 'podseidon.kubewharf.io/v1alpha1',
    kind: 'PodProtector',
    metadata: { namespace, name, uid, resourceVersion: version },
    spec: { minAvailable: 1, minReadySeconds: 0, selector: { matchLabels: { app: 'web' } }, ...spec },
  }
}

const keysOf = (found: readonly { key: string }[]): string[] => found.map(({ key }) => key)

test('pods are protected by selector and counted by aggregationSelector', () => {
  const table = new ProtectorTable()
  const stable = { matchLabels: { app: 'web', track: 'stable' } }
  table.put(
    protectorOf({ name: 'b', spec: { selector: stable, aggregationSelector: { matchLabels: { app: 'web' } } } }),
  )
  table.put(protectorOf({ name: 'a' }))
  const canary = { app: 'web', track: 'canary' }
  assert.deepEqual(keysOf(table.matching('default', canary)), ['default/a'])
  assert.deepEqual(keysOf(table.aggregating('default', canary)), ['default/a', 'default/b'])
  assert.deepEqual(keysOf(table.matching('other', canary)), [])
  // A change of the spec moves it in both.
  table.put(protectorOf({ name: 'b', version: '6' }))
  assert.deepEqual(keysOf(table.matching('default', canary)), ['default/a', 'default/b'])
  table.remove('default', 'b')
  assert.deepEqual(keysOf(table.aggregating('default', canary)), ['default/a'])
})

test('older versions of the same object are ignored; another uid replaces it; a list replaces everything', () => {
  const table = new ProtectorTable()
  const received: string[] = []
  table.onChange(({ key, protector }, gone) => void received.push(`${key} ${protector.spec.minAvailable} ${gone}`))
  table.put(protectorOf({ version: '10', spec: { minAvailable: 2 } }))
  table.put(protectorOf({ version: '9', spec: { minAvailable: 3 } }))
  table.put(protectorOf({ version: '10', spec: { minAvailable: 3 } }))
  assert.equal(table.get('default/web')?.protector.spec.minAvailable, 2)
  table.put(protectorOf({ version: '3', uid: 'u2', spec: { minAvailable: 4 } }))
  assert.equal(table.synced, false)
  table.replace([protectorOf({ version: '2', uid: 'u2', spec: { minAvailable: 5 } })])
  assert.equal(table.synced, true)
  table.replace([])
  assert.deepEqual(received, [
    'default/web 2 false',
    'default/web 4 false',
    'default/web 5 false',
    'default/web 5 true',
  ])
  assert.equal(table.size, 0)
})

test('namespaces are those that have one, and another set only when they change', () => {
  const table = new ProtectorTable()
  table.put(protectorOf({ name: 'a' }))
  const one = table.namespaces()
  table.put(protectorOf({ name: 'b' }))
  table.remove('default', 'a')
  assert.equal(table.namespaces(), one)
  table.put(protectorOf({ name: 'c', namespace: 'other' }))
  table.remove('default', 'b')
  assert.deepEqual([...table.namespaces()], ['other'])
})

test('unreadable fields are reported and keep their previous value; nothing throws', () => {
  const table = new ProtectorTable()
  const bad: unknown[] = [
    {},
    { metadata: null },
    { metadata: { name: 'x' } },
    { metadata: { name: 'x', namespace: 7 } },
    { metadata: { name: 7, namespace: 'x' } },
  ]
  for (const object of bad) assert.equal(table.put(object as JsonObject), undefined)
  const odd = { metadata: { name: 'odd', namespace: 'default', uid: 'u' }, spec: [], status: { cells: 'x' } }
  assert.match(table.put(odd)?.fault ?? '', /^spec.minAvailable is not a whole number: no available pod can be deleted/)
  assert.deepEqual(table.matching('default', {}), [])
  table.put(protectorOf({ version: '1', spec: { minAvailable: 3 } }))
  const live = table.put(protectorOf({ version: '2', spec: { minAvailable: '3', selector: { matchLabels: 'x' } } }))
  assert.match(live?.fault ?? '', /spec.minAvailable .*stays in force; spec.selector cannot be read: .*stays in force$/)
  assert.equal(live?.protector.spec.minAvailable, 3)
  assert.deepEqual(keysOf(table.matching('default', { app: 'web' })), ['default/web'])
  assert.equal(table.put(protectorOf({ version: '3' }))?.fault, '')
  const polluted = JSON.parse('{"matchLabels":{"__proto__":"x"}}') as Record<string, unknown>
  table.put(protectorOf({ name: '__proto__', namespace: '__proto__', spec: { selector: polluted } }))
  assert.equal((Object.prototype as Record<string, unknown>)['x'], undefined)
})
