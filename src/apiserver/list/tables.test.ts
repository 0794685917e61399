import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UPSTREAM_CLUSTERS } from '../../gateway/api/upstream-cluster-kind.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { EVENTS } from '../../kube/api/kinds/event-kind.ts'
import { LEASES } from '../../kube/api/kinds/lease-kind.ts'
import { NAMESPACES } from '../../kube/api/kinds/namespace-kind.ts'
import { SECRETS } from '../../kube/api/kinds/secret-kind.ts'
import type { ResourceKind } from '../../kube/api/resource-kind.ts'
import { SCHEME } from '../../program/api/scheme.ts'
import { partialListOf, partialOf, tableBookmark, tableEventOf, tableOf } from './tables.ts'

const NOW = Date.parse('2026-01-01T00:05:00Z')
const CREATED = '2026-01-01T00:00:00Z'

interface Table {
  readonly columnDefinitions: readonly { readonly name: string; readonly priority: number }[] | null
  readonly rows: readonly { readonly cells: readonly unknown[]; readonly object: JsonObject | null }[]
  readonly metadata: JsonObject
}

function table(kind: ResourceKind, items: readonly JsonObject[]): Table {
  return tableOf(kind, items, { resourceVersion: '9' }, 'Metadata', NOW) as unknown as Table
}

/** Column -> cell of the only row. */
function row(kind: ResourceKind, item: JsonObject): Record<string, unknown> {
  const { columnDefinitions, rows } = table(kind, [item])
  return Object.fromEntries((columnDefinitions ?? []).map(({ name }, i) => [name, rows[0]?.cells[i]]))
}

test('a Secret, a Namespace, a Lease and an Event look as in a real cluster', () => {
  const metadata = { name: 'x', namespace: 'default', creationTimestamp: CREATED }
  assert.deepEqual(row(SECRETS, { metadata, type: 'Opaque', data: { a: '', b: '' } }), {
    Name: 'x',
    Type: 'Opaque',
    Data: '2',
    Age: '5m',
  })
  assert.deepEqual(row(NAMESPACES, { metadata, status: { phase: 'Active' } }), {
    Name: 'x',
    Status: 'Active',
    Age: '5m',
  })
  assert.deepEqual(row(LEASES, { metadata, spec: { holderIdentity: 'me' } }), { Name: 'x', Holder: 'me', Age: '5m' })
  const event = {
    metadata,
    involvedObject: { kind: 'UpstreamCluster', name: 'prod' },
    reason: 'Degraded',
    message: ' it happened\n',
    type: 'Normal',
    firstTimestamp: CREATED,
    lastTimestamp: '2026-01-01T00:04:30Z',
    count: 3,
    source: { component: 'portcullis' },
  }
  const { columnDefinitions } = table(EVENTS, [])
  const narrow = columnDefinitions?.filter(({ priority }) => priority === 0).map(({ name }) => name)
  assert.deepEqual(narrow, ['Last Seen', 'Type', 'Reason', 'Object', 'Message'])
  const shown = row(EVENTS, event)
  assert.equal(shown['Last Seen'], '30s')
  assert.equal(shown['First Seen'], '5m')
  assert.equal(shown['Object'], 'upstreamcluster/prod')
  assert.equal(shown['Message'], 'it happened')
  assert.equal(shown['Source'], 'portcullis')
  assert.equal(String(shown['Count']), '3')
  assert.equal(shown['Name'], 'x')
})

test('an UpstreamCluster shows its conditions; missing ones are empty', () => {
  const conditions = [
    { type: 'Other', status: 'False' },
    { type: 'Ready', status: 'True' },
  ]
  const status = { conditions, endpoints: { ready: 2, total: 3 } }
  const full = row(UPSTREAM_CLUSTERS, { metadata: { name: 'prod', creationTimestamp: CREATED }, status })
  assert.equal(full['Name'], 'prod')
  assert.equal(full['Ready'], 'True')
  assert.equal(full['Endpoints'], 2)
  assert.equal(full['Age'], '5m')
  assert.equal(row(UPSTREAM_CLUSTERS, { metadata: { name: 'new' } })['Ready'], null)
})

test('cells of a wrong type are empty, never an error', () => {
  const columns = (['string', 'integer', 'number', 'boolean', 'date'] as const).map((type) => ({
    name: type,
    type,
    jsonPath: '.value',
  }))
  const kind = { ...UPSTREAM_CLUSTERS, columns }
  const cells = (value: unknown): unknown[] => Object.values(row(kind, { metadata: { name: 'x' }, value })).slice(1)
  assert.deepEqual(cells('text'), ['text', null, null, null, '<invalid>'])
  assert.deepEqual(cells(2.5), ['2.5', 2, 2.5, null, null])
  assert.deepEqual(cells(true), ['true', null, null, true, null])
  assert.deepEqual(cells(null), [null, null, null, null, null])
  assert.deepEqual(cells({ a: 1 }), ['{"a":1}', null, null, null, null])
  assert.deepEqual(cells(CREATED), [CREATED, null, null, null, '5m'])
})

test('a row carries its metadata, its object, or nothing', () => {
  const item = { metadata: { name: 'x', uid: 'u' }, spec: { a: 1 } }
  const object = (include: 'None' | 'Metadata' | 'Object'): unknown =>
    (tableOf(SECRETS, [item], {}, include, NOW) as unknown as Table).rows[0]?.object
  assert.equal(object('None'), null)
  assert.equal(object('Object'), item)
  assert.deepEqual(object('Metadata'), {
    kind: 'PartialObjectMetadata',
    apiVersion: 'meta.k8s.io/v1',
    metadata: item.metadata,
  })
})

test('a watch brings the columns once', () => {
  const item = { metadata: { name: 'x', resourceVersion: '7' } }
  const first = tableEventOf(SECRETS, item, 'Metadata', NOW, true) as unknown as Table
  const later = tableEventOf(SECRETS, item, 'Metadata', NOW, false) as unknown as Table
  assert.equal(first.columnDefinitions?.[0]?.name, 'Name')
  assert.equal(later.columnDefinitions, null)
  assert.deepEqual(later.metadata, { resourceVersion: '7' })
  const bookmark = tableBookmark(SECRETS, { resourceVersion: '8' }, false) as unknown as Table
  assert.deepEqual([bookmark.rows.length, bookmark.metadata], [0, { resourceVersion: '8' }])
})

test('metadata alone', () => {
  const item = { metadata: { name: 'x' }, data: { secret: 'c2VjcmV0' } }
  assert.deepEqual(Object.keys(partialOf(SECRETS, item)), ['kind', 'apiVersion', 'metadata'])
  const list = partialListOf(SECRETS, [item], { resourceVersion: '4' })
  assert.equal(list['kind'], 'PartialObjectMetadataList')
  assert.doesNotMatch(JSON.stringify(list), /c2VjcmV0/)
})

test('the columns of every kind can be read', () => {
  for (const kind of SCHEME) assert.ok((table(kind, [{}]).rows[0]?.cells.length ?? 0) > 1, kind.kind)
})
