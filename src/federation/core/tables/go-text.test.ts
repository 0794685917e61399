import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MAX_JSON_DEPTH } from '../../../cache/core/bytes/skip-json.ts'
import { goText, MOST_CELL } from './go-text.ts'

test('values as client-go prints them', () => {
  const rows: readonly (readonly [value: unknown, text: string])[] = [
    ['a <b>', 'a <b>'],
    ['', ''],
    [true, 'true'],
    [null, '<no value>'],
    [7, '7'],
    [-0.5, '-0.5'],
    [123456789012, '123456789012'],
    [1e6, '1000000'],
    [1234567.5, '1.2345675e+06'],
    [123456.5, '123456.5'],
    [0.0001, '0.0001'],
    [0.00001, '1e-05'],
    [1e-7, '1e-07'],
    [1e20, '1e+20'],
    [1e100, '1e+100'],
    [[], '[]'],
    [['a', 1, null], '["a",1,null]'],
    [{ b: 1, a: { c: [1e-7] } }, '{"a":{"c":[1e-7]},"b":1}'],
    [{ 9: 2, 10: 1 }, '{"10":1,"9":2}'],
    [{ a: '<&>\u2028' }, '{"a":"\\u003c\\u0026\\u003e\\u2028"}'],
  ]
  for (const [value, text] of rows) assert.equal(goText(value), text, JSON.stringify(value))
})

test('as deep as an object may be', () => {
  const text = `${'['.repeat(MAX_JSON_DEPTH)}${']'.repeat(MAX_JSON_DEPTH)}`
  assert.equal(goText(JSON.parse(text)), text)
})

test('long values are cut, and no more of them is written', () => {
  const part = { a: 'x'.repeat(1000) }
  const whole = JSON.stringify(Array(200).fill(part))
  assert.equal(goText(Array(200).fill(part)), whole.slice(0, MOST_CELL))
  assert.equal(goText({ a: 'x'.repeat(2 * MOST_CELL), b: 1 }).length, MOST_CELL)
  assert.equal(goText('x'.repeat(2 * MOST_CELL)).length, MOST_CELL)
  let read = 0
  const items = Array.from({ length: MOST_CELL }, () => ({
    get a() {
      read++
      return 'x'.repeat(100)
    },
  }))
  goText(items)
  assert.ok(read < MOST_CELL / 50, `${read} items`)
})
