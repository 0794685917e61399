import assert from 'node:assert/strict'
import { test } from 'node:test'
import { complete, defaultsTo, flag, integer, list, object, oneOf, type Schema, text } from './json-schema.ts'

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
const PROBE: Schema<Probe> = object<Probe>('A probe.', FIELDS, ['path'])

test('a schema does not compile unless it has each field of the type, of its type, and requires no optional one', () => {
  // @ts-expect-error: a number is not a string
  object<Probe>('', { ...FIELDS, seconds: text('') })
  // @ts-expect-error: of any text it is not known that it is one of two
  object<Probe>('', { ...FIELDS, mode: text('') })
  // @ts-expect-error: a value that the type does not have
  object<Probe>('', { ...FIELDS, mode: oneOf('', ['on', 'off', 'auto']) })
  // @ts-expect-error: a value is missing
  object<Probe>('', { ...FIELDS, mode: oneOf('', ['on']) })
  // @ts-expect-error: items of another type
  object<Probe>('', { ...FIELDS, hosts: list('', flag('')) })
  // @ts-expect-error: a field is missing
  object<Probe>('', { path: FIELDS.path })
  // @ts-expect-error: the type does without
  object<Probe>('', FIELDS, ['seconds'])
  // @ts-expect-error: a default of another type
  defaultsTo('5', integer('', 1))
  assert.equal(PROBE.required?.length, 1)
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
