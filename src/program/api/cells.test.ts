import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { EVENTS } from '../../kube/api/kinds/event-kind.ts'
import { NAMESPACES } from '../../kube/api/kinds/namespace-kind.ts'
import { SECRETS } from '../../kube/api/kinds/secret-kind.ts'
import type { ResourceKind } from '../../kube/api/resource-kind.ts'

function cellsOf(kind: ResourceKind, object: JsonObject): Record<string, unknown> {
  const cells = kind.columns.flatMap(({ name, cell }) => (cell === undefined ? [] : [[name, cell(object)]]))
  return Object.fromEntries(cells)
}

test('a secret shows how many keys it has', () => {
  assert.deepEqual(cellsOf(SECRETS, { data: { a: '', b: '' } }), { Data: 2 })
  assert.deepEqual(cellsOf(SECRETS, {}), { Data: 0 })
})

test('an event shows its object, its source and its newest time', () => {
  const event = {
    involvedObject: { kind: 'UpstreamCluster', name: 'prod' },
    source: { component: 'portcullis', host: 'a' },
    message: ' served \n',
    firstTimestamp: '2026-01-01T00:00:00Z',
    lastTimestamp: '2026-01-01T00:01:00Z',
    count: 3,
  }
  assert.deepEqual(cellsOf(EVENTS, event), {
    'Last Seen': '2026-01-01T00:01:00Z',
    Object: 'upstreamcluster/prod',
    Source: 'portcullis, a',
    Message: 'served',
    'First Seen': '2026-01-01T00:00:00Z',
    Count: 3,
  })
})

test('an event of the newer kind has its times elsewhere', () => {
  const event = {
    involvedObject: { kind: 'Node' },
    eventTime: '2026-01-01T00:00:00.000000Z',
    series: { count: 7, lastObservedTime: '2026-01-01T00:02:00.000000Z' },
    reportingComponent: 'kubelet',
  }
  assert.deepEqual(cellsOf(EVENTS, event), {
    'Last Seen': '2026-01-01T00:02:00.000000Z',
    Object: 'node',
    Source: 'kubelet',
    Message: '',
    'First Seen': '2026-01-01T00:00:00.000000Z',
    Count: 7,
  })
  assert.equal(cellsOf(EVENTS, {})['Count'], 1)
  assert.equal(cellsOf(EVENTS, {})['Last Seen'], null)
})

test('other columns are read by their path', () => {
  assert.deepEqual(cellsOf(NAMESPACES, {}), {})
})
