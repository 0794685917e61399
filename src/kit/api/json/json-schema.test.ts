import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  atomic,
  byKey,
  complete,
  defaultsTo,
  flag,
  integer,
  list,
  object,
  oneOf,
  open,
  type Schema,
  text,
  type ValueOf,
} from './json-schema.ts'

interface Probe {
  readonly path: string
  readonly seconds?: number
  readonly mode?: 'on' | 'off'
  readonly hosts?: readonly string[]
}

const FIELDS = {
  path: text('Where.'),
  seconds: defaultsTo(5, integer('How often.', 1)),
  mode: defaultsTo('on', oneOf<'on' | 'off'>('Whether; {default} by default.', ['on', 'off'])),
  hosts: list('Hosts.', text('A host.')),
}
const PROBE = object('A probe.', FIELDS, ['path'])

/** Both types are the same. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false

test('the type of the values follows from the schema', () => {
  const same: Same<ValueOf<typeof PROBE>, Probe> = true
  const always: Same<ValueOf<Schema<{ readonly n: number; readonly of?: readonly boolean[] }>>, Always> = true
  type Always = ValueOf<typeof ALWAYS>
  const ALWAYS = object('', { n: integer('', 0), of: list('', flag('')) }, [], ['n'])
  assert.deepEqual([same, always, PROBE.required, ALWAYS.required], [true, true, ['path'], undefined])
})

test('keywords that are added leave the type as it is', () => {
  const OBJECTS = byKey('path', list('', open(atomic(PROBE))))
  const same: Same<ValueOf<typeof OBJECTS>, readonly Probe[]> = true
  assert.ok(same)
  assert.deepEqual(OBJECTS['x-kubernetes-list-map-keys'], ['path'])
  assert.equal(OBJECTS.items?.['x-kubernetes-map-type'], 'atomic')
  assert.equal(atomic(list('', text('')))['x-kubernetes-list-type'], 'atomic')
})

test('what does not fit does not compile', () => {
  // @ts-expect-error: an unknown field cannot be required
  object('', FIELDS, ['nothing'])
  // @ts-expect-error: a default of the wrong type
  defaultsTo('5', integer('', 1))
  // @ts-expect-error: a default that is not one of the words
  defaultsTo('auto', FIELDS.mode)
  assert.equal(PROBE.type, 'object')
})

test('a default is in the description, and fills in what is absent; nothing else is published of it', () => {
  assert.equal(FIELDS.seconds.description, 'How often. Default 5.')
  assert.equal(FIELDS.mode.description, 'Whether; on by default.')
  assert.equal(defaultsTo('off', FIELDS.mode).description, 'Whether; off by default.')
  assert.deepEqual(JSON.parse(JSON.stringify(FIELDS.seconds)), {
    type: 'integer',
    description: 'How often. Default 5.',
    minimum: 1,
    maximum: 2_147_483_647,
  })
  assert.deepEqual(complete(PROBE, { path: '/x' }), { path: '/x', seconds: 5, mode: 'on', hosts: undefined })
  assert.deepEqual(complete(PROBE, { path: '', seconds: 7, mode: 'off', hosts: [] }), {
    path: '',
    seconds: 7,
    mode: 'off',
    hosts: [],
  })
})
