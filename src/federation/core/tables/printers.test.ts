import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TABLE_CREATED, TABLE_NOW, TABLE_OBJECTS } from '../../../../test/harness/federation/table-objects.ts'
import { parseRequestInfo } from '../../../gateway/core/request/request-info.ts'
import { recordOf } from '../../../kit/api/json/object-shape.ts'
import { builtInPrinter, PLAIN_PRINTER } from './printers.ts'

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
