// metadata, compared with answers of a real kube-apiserver (test/data/object-metadata.json).

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { isRecord } from '../../../kit/api/json/object-shape.ts'
import { causeOf, type StatusCause } from '../../api/status.ts'
import { shapeMetadata } from './metadata-shape.ts'

interface Row {
  readonly given: unknown
  readonly code: number
  readonly metadata?: JsonObject
  readonly message?: string
  readonly causes?: readonly StatusCause[]
  readonly strict?: string
}

const DATA: { readonly metadata: readonly Row[] } = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../../../test/data/object-metadata.json'), 'utf8'),
)
/** Set by the server, or left to the caller because it depends on the kind, the request, or the stored object. */
const OTHERS = [
  'managedFields',
  'uid',
  'creationTimestamp',
  'generation',
  'namespace',
  'selfLink',
  'deletionGracePeriodSeconds',
  'name',
]

for (const row of DATA.metadata) {
  // The generated name is refused, not the prefix.
  if (isRecord(row.given) && row.given['generateName'] === 'A-') continue
  test(`as kube-apiserver: ${JSON.stringify(row.given)}`, () => {
    const { metadata, unknown, errors, malformed } = shapeMetadata(row.given)
    if (row.code === 400) assert.ok(row.message?.endsWith(`: ${malformed}`), `${malformed} should be ${row.message}`)
    else assert.equal(malformed, undefined)
    if (row.code === 422) {
      const causes = (row.causes ?? []).filter(({ message }) => !isForCaller(message))
      assert.deepEqual(errors.map(causeOf), causes)
    }
    if (row.code === 201) {
      assert.deepEqual(
        errors.filter(({ path }) => path !== 'metadata.generation'),
        [],
      )
      assert.deepEqual(withoutOthers(metadata), withoutOthers(row.metadata))
    }
    assert.deepEqual(unknown.map((path) => `unknown field "${path}"`).sort(), unknownIn(row.strict))
  })
}

function isForCaller(message: string): boolean {
  return (
    message === 'Required value: name or generateName is required' || message === 'Forbidden: not allowed on this type'
  )
}

function withoutOthers(metadata: unknown): unknown {
  if (!isRecord(metadata)) return undefined
  return Object.fromEntries(Object.entries(metadata).filter(([key]) => !OTHERS.includes(key)))
}

function unknownIn(message = ''): string[] {
  return (message.match(/unknown field "[^"]*"/g) ?? []).sort()
}

test('times are kept to the second in UTC, and what is empty is left out', () => {
  const { metadata } = shapeMetadata({
    name: 'x',
    namespace: '',
    labels: {},
    finalizers: [],
    deletionGracePeriodSeconds: 0,
    generation: 0,
    creationTimestamp: '2020-01-01T01:30:00.9+02:00',
    ownerReferences: [{ apiVersion: 'v1', kind: 'A', name: 'a', uid: 'u', controller: false }],
  })
  assert.deepEqual(metadata, {
    name: 'x',
    deletionGracePeriodSeconds: 0,
    creationTimestamp: '2019-12-31T23:30:00Z',
    ownerReferences: [{ apiVersion: 'v1', kind: 'A', name: 'a', uid: 'u', controller: false }],
  })
})

test('annotations are 256 KiB at most, all together', () => {
  const half = 'x'.repeat(128 * 1024 - 1)
  assert.deepEqual(shapeMetadata({ annotations: { a: half, b: half } }).errors, [])
  assert.deepEqual(shapeMetadata({ annotations: { a: half, b: `${half}x` } }).errors.map(causeOf), [
    {
      reason: 'FieldValueTooLong',
      message: 'Too long: may not be more than 262144 bytes',
      field: 'metadata.annotations',
    },
  ])
})

test('what JavaScript objects inherit is not a field', () => {
  const { metadata, unknown } = shapeMetadata(JSON.parse('{"__proto__":{"name":"x"},"labels":{"__proto__":"y"}}'))
  assert.deepEqual(unknown, ['metadata.__proto__'])
  assert.equal(JSON.stringify(metadata), '{"labels":{"__proto__":"y"}}')
})
