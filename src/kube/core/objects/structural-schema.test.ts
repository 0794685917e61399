// Pruning, defaults and validation, compared with answers of a real kube-apiserver (test/data/object-validation.json).

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import type { JsonSchema } from '../../../kit/api/json/json-schema.ts'
import { causeOf, type StatusCause } from '../../api/status.ts'
import { shapeObject, validateShape } from './structural-schema.ts'

interface Row {
  readonly given: JsonObject
  readonly object?: JsonObject
  readonly causes?: readonly StatusCause[]
  /** The error of strict decoding. */
  readonly strict?: string
}

const DATA: { readonly schema: JsonSchema; readonly objects: readonly Row[] } = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../../../test/data/object-validation.json'), 'utf8'),
)
const { schema } = DATA

/**
 * Deliberate differences from kube-apiserver. It accepts any list as formatted text; and it reports a fraction in place of an integer
 * twice, or only the integer part of a fractional bound.
 */
const DIFFERENT: ReadonlySet<string> = new Set([
  '{"spec":{"data":[1]}}',
  '{"spec":{"count":1.5}}',
  '{"spec":{"ratio":1}}',
])

for (const row of DATA.objects) {
  const given = JSON.stringify(row.given)
  if (DIFFERENT.has(given)) continue
  test(`as kube-apiserver: ${given}`, () => {
    const { object, unknown } = shapeObject(schema, row.given)
    // Create drops status if there is a status subresource.
    const { status: _, ...main } = object
    const errors = validateShape(schema, main)
    assert.deepEqual(errors.map(causeOf).map(shownError).sort(), (row.causes ?? []).map(shownError).sort())
    if (row.object !== undefined) assert.deepEqual(main, row.object)
    assert.deepEqual(
      unknown.map((path) => `unknown field "${path}"`),
      unknownIn(row.strict),
    )
  })
}

function shownError({ reason, message, field }: StatusCause): string {
  return `${reason} ${field}: ${message}`
}

function unknownIn(message = ''): string[] {
  return message.match(/unknown field "[^"]*"/g) ?? []
}

test('a fraction is not an integer, a list is not a string, bounds are inclusive', () => {
  const messages = (spec: JsonObject): string[] => validateShape(schema, { spec }).map(({ message }) => message)
  assert.deepEqual(messages({ count: 1.5 }), [
    'Invalid value: "number": spec.count in body must be of type integer: "number"',
  ])
  assert.deepEqual(messages({ data: [1] }), ['Invalid value: "": spec.data in body must be of type byte: ""'])
  assert.deepEqual(messages({ ratio: 1 }), [])
})

test('what JavaScript objects inherit is not a field', () => {
  const object = JSON.parse('{"spec":{"__proto__":{"text":"aa"},"constructor":1,"toString":2,"map":{"__proto__":"x"}}}')
  const { object: shaped, unknown } = shapeObject(schema, object)
  assert.deepEqual(unknown, ['spec.__proto__', 'spec.constructor', 'spec.toString'])
  assert.equal(JSON.stringify(shaped), '{"spec":{"map":{"__proto__":"x"},"mode":"A"}}')
  assert.deepEqual(validateShape(schema, shaped), [])
})

test('the given object is not changed, and shaping twice changes nothing', () => {
  for (const { given } of DATA.objects) {
    const text = JSON.stringify(given)
    const once = shapeObject(schema, given)
    assert.equal(JSON.stringify(given), text)
    const twice = shapeObject(schema, once.object)
    assert.deepEqual(twice, { object: once.object, unknown: [] })
  }
})
