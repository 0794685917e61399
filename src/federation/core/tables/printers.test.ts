import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TABLE_CREATED, TABLE_NOW, TABLE_OBJECTS } from '../../../../test/harness/federation/table-objects.ts'
import { MAX_JSON_DEPTH } from '../../../cache/core/bytes/skip-json.ts'
import { parseRequestInfo } from '../../../gateway/core/request/request-info.ts'
import { recordOf } from '../../../kit/api/json/object-shape.ts'
import { builtInPrinter, customPrinter, goText, MOST_CELL, MOST_COLUMNS, PLAIN_PRINTER } from './printers.ts'

for (const { path, object, status, cells } of TABLE_OBJECTS) {
  const metadata = recordOf(object['metadata'])
  test(`${path}/${metadata['name']}`, () => {
    const info = parseRequestInfo('GET', path)
    assert.ok(!('failure' in info))
    const printer = builtInPrinter({ group: info.apiGroup, resource: info.resource }) ?? PLAIN_PRINTER
    const kept = { ...object, metadata: { ...metadata, creationTimestamp: TABLE_CREATED }, status }
    assert.deepEqual(printer.cells(kept, Date.parse(TABLE_NOW)), cells)
    assert.equal(printer.columns.length, cells.length)
  })
}

test('events of events.k8s.io have the same cells under other names', () => {
  const event = {
    metadata: { name: 'e', creationTimestamp: TABLE_CREATED },
    regarding: { kind: 'Pod', name: 'web' },
    note: 'it fails',
    reason: 'BackOff',
    type: 'Warning',
    reportingController: 'kubelet',
    deprecatedCount: 4,
    deprecatedFirstTimestamp: TABLE_CREATED,
    deprecatedLastTimestamp: TABLE_NOW,
    deprecatedSource: { host: 'n1' },
  }
  const printer = builtInPrinter({ group: 'events.k8s.io', resource: 'events' })
  assert.deepEqual(printer?.cells(event, Date.parse(TABLE_NOW)), [
    '0s',
    'Warning',
    'BackOff',
    'pod/web',
    '',
    'kubelet, n1',
    'it fails',
    '5m',
    4,
    'e',
  ])
})

test('an HPA of version 1 has its target of CPU in a field of its own', () => {
  const printer = builtInPrinter({ group: 'autoscaling', resource: 'horizontalpodautoscalers' })
  const hpa = {
    metadata: { name: 'h', creationTimestamp: TABLE_CREATED },
    spec: {
      scaleTargetRef: { kind: 'Deployment', name: 'web' },
      maxReplicas: 3,
      targetCPUUtilizationPercentage: 80,
    },
    status: { currentReplicas: 2, currentCPUUtilizationPercentage: 55 },
  }
  const cells = ['h', 'Deployment/web', 'cpu: 55%/80%', '<unset>', 3, 2, '5m']
  assert.deepEqual(printer?.cells(hpa, Date.parse(TABLE_NOW)), cells)
})

test('completed pods say so', () => {
  const printer = builtInPrinter({ group: '', resource: 'pods' })
  assert.deepEqual(
    ['Running', 'Failed', 'Succeeded'].map((phase) => printer?.conditions?.({ status: { phase } })),
    [
      undefined,
      [{ type: 'Completed', status: 'True', reason: 'Failed', message: 'The pod failed.' }],
      [
        {
          type: 'Completed',
          status: 'True',
          reason: 'Succeeded',
          message: 'The pod has completed successfully.',
        },
      ],
    ],
  )
})

test('no part of an object has to have the shape that Kubernetes gives it', () => {
  for (const { path, object, status } of TABLE_OBJECTS) {
    const info = parseRequestInfo('GET', path)
    assert.ok(!('failure' in info))
    const printer = builtInPrinter({ group: info.apiGroup, resource: info.resource }) ?? PLAIN_PRINTER
    for (const odd of [null, 7, 'x', true, [], [null], [7], {}, { a: null }])
      for (const changed of withOdd({ ...object, status }, odd)) {
        const cells = printer.cells(recordOf(changed), 0)
        assert.equal(cells.length, printer.columns.length)
        JSON.stringify([cells, printer.conditions?.(recordOf(changed))])
      }
  }
})

/** The value with each of its parts in turn replaced. */
function* withOdd(value: unknown, odd: unknown): Generator<unknown, undefined> {
  yield odd
  if (typeof value !== 'object' || value === null) return
  for (const [key, part] of Object.entries(value))
    for (const changed of withOdd(part, odd)) {
      yield Array.isArray(value) ? value.with(Number(key), changed) : { ...value, [key]: changed }
    }
}

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
