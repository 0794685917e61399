import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FieldErrors } from './field-errors.ts'
import { createSchemaCheck } from './schema-errors.ts'

const MOST = 1_000
const MANY = 5_000

test('1,000 errors and 1,000 warnings are kept, and the others counted', () => {
  const errors = new FieldErrors()
  for (let i = 0; i < MANY; i++) {
    errors.invalid(`a[${i}]`, 'is wrong', '')
    errors.warning(`a[${i}]`, 'is odd', '')
  }
  assert.deepEqual([errors.found.length, errors.more], [2 * MOST, { error: MANY - MOST, warning: MANY - MOST }])
})

test('behind 1,000 violations of a schema no more are looked for; unknown fields do not end it', () => {
  const check = createSchemaCheck({
    type: 'object',
    properties: { list: { type: 'array', items: { type: 'integer' } }, last: { type: 'integer' } },
  })
  const wrong = check({ list: new Array<string>(MANY).fill('a'), last: 'a' }, '')
  assert.deepEqual([wrong.ended, wrong.paths.size, wrong.mistyped.has('last')], [true, MOST, false])
  const unknown = Object.fromEntries(Array.from({ length: MANY }, (_, i) => [`k${i}`, 1]))
  const odd = check({ ...unknown, last: 'a' }, '')
  assert.deepEqual([odd.ended, odd.paths.size, odd.mistyped.has('last')], [false, MANY + 1, true])
})
