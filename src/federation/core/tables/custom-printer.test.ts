import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MAX_JSON_DEPTH } from '../../../cache/core/bytes/skip-json.ts'
import { customPrinter, goText, MOST_CELL, MOST_COLUMNS } from './custom-printer.ts'

const NOW = Date.parse('2026-01-01T00:05:00Z')
const COLUMNS = [
  { name: 'Color', type: 'string', jsonPath: '.spec.color', description: 'what it looks like' },
  { name: 'Size', type: 'integer', jsonPath: '.spec.size', priority: 1, format: 'int32' },
  { name: 'Ratio', type: 'number', jsonPath: '.spec.ratio' },
  { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
  { name: 'Since', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  { name: 'On', type: 'boolean', jsonPath: '.spec.on' },
]

function definition(versions: unknown): Buffer {
  return Buffer.from(JSON.stringify({ kind: 'CustomResourceDefinition', spec: { group: 'example.com', versions } }))
}

const WIDGETS = definition([
  { name: 'v1alpha1', schema: { openAPIV3Schema: { type: 'object' } } },
  { name: 'v1', schema: { openAPIV3Schema: { type: 'object', properties: {} } }, additionalPrinterColumns: COLUMNS },
  { name: 'v2', additionalPrinterColumns: [{ name: 'Bad', type: 'string', jsonPath: '.spec[' }] },
  { name: 'v4', additionalPrinterColumns: [{ name: 'Long', type: 'string', jsonPath: '.spec'.padEnd(2000, '.a') }] },
  { name: 'v3', additionalPrinterColumns: Array(MOST_COLUMNS + 1).fill(COLUMNS[0]) },
])

test('columns of the version, and their cells', () => {
  const printer = customPrinter(WIDGETS, 'v1')
  assert.deepEqual(
    printer?.columns.map(({ name, type, format, priority }) => [name, type, format, priority]),
    [
      ['Name', 'string', 'name', 0],
      ['Color', 'string', '', 0],
      ['Size', 'integer', 'int32', 1],
      ['Ratio', 'number', '', 0],
      ['Ready', 'string', '', 0],
      ['Since', 'date', '', 0],
      ['On', 'boolean', '', 0],
    ],
  )
  const metadata = { name: 'w', creationTimestamp: '2026-01-01T00:00:00Z' }
  const status = { conditions: [{ type: 'Ready', status: 'True' }] }
  const spec = { color: 'red', size: 2, ratio: 0.5, on: true }
  assert.deepEqual(printer.cells({ metadata, spec, status }, NOW), ['w', 'red', 2, 0.5, 'True', '5m', true])
  assert.deepEqual(printer.cells({ metadata: { name: 'w' } }, NOW), ['w', null, null, null, null, null, null])
})

test('a version without columns, or that is not there, has none', () => {
  assert.equal(customPrinter(WIDGETS, 'v1alpha1'), undefined)
  assert.equal(customPrinter(WIDGETS, 'v9'), undefined)
  assert.equal(customPrinter(Buffer.from('{"spec":{}}'), 'v1'), undefined)
  assert.equal(customPrinter(Buffer.from('{}'), 'v1'), undefined)
})

test('a path that cannot be read, or is very long, leaves its column empty', () => {
  assert.deepEqual(customPrinter(WIDGETS, 'v2')?.cells({ metadata: { name: 'w' }, spec: [1] }, NOW), ['w', null])
  assert.deepEqual(customPrinter(WIDGETS, 'v4')?.cells({ metadata: { name: 'w' } }, NOW), ['w', null])
})

test('columns are limited: each may show the whole object', () => {
  assert.equal(customPrinter(WIDGETS, 'v3')?.columns.length, 1 + MOST_COLUMNS)
})

test('parts of a wrong shape are refused', () => {
  assert.throws(() => customPrinter(definition({}), 'v1'), { name: 'MalformedError' })
  assert.throws(() => customPrinter(definition([1]), 'v1'), { name: 'MalformedError' })
})

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
