import assert from 'node:assert/strict'
import { test } from 'node:test'
import { prefixedNamespace } from '../../gateway/core/federation/names.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { federationOf, namespaceShownIn, placeIn } from './federated-members.ts'

const MEMBERS = [{ name: 'east' }, { name: 'west', cluster: 'west-1' }]

function objectOf(spec: JsonObject): JsonObject {
  return { metadata: { name: 'all' }, spec }
}

function place(namespace: string, federation: JsonObject = {}): string {
  const read = federationOf(objectOf({ members: MEMBERS, federation }))
  assert.ok(read !== undefined)
  try {
    const { member, namespace: own } = placeIn(read, namespace)
    assert.equal(namespaceShownIn(read, member, own), namespace)
    return `${member.cluster} ${own}`
  } catch (error) {
    assert.ok(error instanceof UserError)
    return `${error.message}; ${error.fix}`
  }
}

test('a namespace names a member, and the UpstreamCluster is the one of the member', () => {
  assert.equal(place('east--shop'), 'east shop')
  assert.equal(place('west--shop--x'), 'west-1 shop--x')
})

test('what names none says which there are', () => {
  assert.equal(
    place('shop'),
    'namespace "shop" of all names no member; write -n MEMBER--shop, with one of its members: east, west',
  )
  assert.equal(place('eas--shop'), 'all has no member "eas"; did you mean east? its members are east, west')
  // The name of the UpstreamCluster is not the one of the member.
  assert.match(place('west-1--shop'), /^all has no member "west-1"; .*its members are east, west$/)
  const long = prefixedNamespace('west', 'n'.repeat(63))
  assert.equal(
    place(long),
    `namespace ${long} of all stands for one with a longer name; give --cluster west-1, and with -n the name that it has there`,
  )
})

test('merged names are those of any member', () => {
  assert.equal(
    place('shop', { mode: 'merged' }),
    'a namespace of all does not say which member is meant: spec.federation.mode is merged; give --cluster with one of its members: east, west-1',
  )
})

test('a cluster with servers, and objects that no schema has seen', () => {
  for (const spec of [{}, { members: [] }, { members: null }, { members: 'east' }, { members: [null, 1, { name: 1 }] }])
    assert.equal(federationOf(objectOf(spec)), undefined)
  assert.deepEqual(federationOf(objectOf({ members: [{ name: 'a\u001b[2J', cluster: 1 }], federation: 'x' })), {
    name: 'all',
    mode: 'prefixed',
    members: [{ name: 'a\\x1b[2J', cluster: 'a\\x1b[2J' }],
  })
})
