import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { createSchemaCheck } from '../../../kit/api/validation/schema-errors.ts'
import type { AdmissionBucket, CellStatus } from '../../api/pod-protector.ts'
import { POD_PROTECTOR_SCHEMA } from '../../api/schema.ts'
import { type HistoryLimits, summarize } from './cell-history.ts'
import { MAX_JOINED_UIDS } from './entry.ts'
import { formatMicros, parseMicros } from './micro-time.ts'

const LIMITS: HistoryLimits = { maxConcurrentLag: 0, compactThreshold: 100, aggregationRateMs: 1000, staleAfterMs: 0 }
const NOW = parseMicros('2026-01-01T00:00:00Z')
const at = (seconds: number): string => formatMicros(NOW - 3_600_000_000 + seconds * 1_000_000)

interface TableBucket {
  readonly start: number
  readonly end?: number
  readonly counter?: number
  readonly uid?: string
}
interface SummarizeCase {
  readonly name: string
  readonly cellsInput: readonly {
    readonly cellID: string
    readonly aggregation: Record<string, number>
    readonly buckets: readonly TableBucket[] | { readonly count: number }
  }[]
  readonly compactThreshold: number
  readonly intendedResult: Readonly<Record<string, number>>
  readonly intendedBucketsAfter?: readonly { readonly count: number; readonly first: TableBucket }[]
}

const { summarize: table } = JSON.parse(
  readFileSync(new URL('../../../../test/data/podseidon-quota.json', import.meta.url), 'utf8'),
) as { readonly summarize: readonly SummarizeCase[] }

function single(start: number, uid: string, more: Partial<AdmissionBucket> = {}): AdmissionBucket {
  return { startTime: at(start), podUID: uid, ...more }
}

function cellOf(available: number, buckets: readonly AdmissionBucket[], cellID = 'a'): CellStatus {
  const aggregation = { totalReplicas: available, availableReplicas: available, lastEventTime: at(0) }
  return { cellID, aggregation, admissionHistory: { buckets } }
}

function bucketsOf(status: { readonly cells: readonly CellStatus[] }): readonly AdmissionBucket[] {
  return status.cells[0]?.admissionHistory?.buckets ?? []
}

for (const { name, cellsInput, compactThreshold, intendedResult, intendedBucketsAfter } of table) {
  test(`table: ${name}`, () => {
    const cells = cellsInput.map(({ cellID, aggregation, buckets }): CellStatus => {
      const { lastEventTime = 0, totalReplicas = 0, availableReplicas = 0, ...others } = aggregation
      const list = Array.isArray(buckets)
        ? buckets.map(({ start, uid }: TableBucket) => single(start, uid ?? ''))
        : Array.from({ length: (buckets as { count: number }).count }, (_, index) => single(index + 1, `u${index}`))
      const counts = { totalReplicas, availableReplicas, ...others, lastEventTime: at(lastEventTime) }
      return { cellID, aggregation: counts, admissionHistory: { buckets: list } }
    })
    const status = summarize(cells, { ...LIMITS, compactThreshold }, NOW)
    assert.deepEqual({ ...status.summary }, intendedResult)
    for (const expected of intendedBucketsAfter ?? []) {
      const [first] = bucketsOf(status)
      assert.equal(bucketsOf(status).length, expected.count)
      assert.equal(first?.counter, expected.first.counter)
      assert.deepEqual([first?.startTime, first?.endTime], [at(expected.first.start), at(expected.first.end ?? 0)])
    }
  })
}

test('D1: joining again and again loses no count, and keeps the names', () => {
  let cells: readonly CellStatus[] = [cellOf(1000, [])]
  for (let index = 0; index < 40; index += 1) {
    const buckets = [...bucketsOf({ cells }), single(index, `u${index}`, { resourceVersion: `${index + 90}` })]
    cells = summarize([cellOf(1000, buckets)], { ...LIMITS, compactThreshold: 3 }, NOW).cells
  }
  const [first, ...others] = bucketsOf({ cells })
  assert.equal(others.length, 2)
  assert.equal(first?.counter, 38)
  assert.equal(first?.podUIDs?.length, 38)
  assert.equal(first?.resourceVersion, '127')
  assert.equal(summarize(cells, LIMITS, NOW).summary.estimatedAvailableReplicas, 960)
})

test('a deletion that took nothing counts when it is joined; one without resourceVersion hides those of the others', () => {
  const buckets = [single(1, 'a', { counter: 0, resourceVersion: '5' }), single(2, 'b'), single(3, 'c')]
  const status = summarize([cellOf(10, buckets)], { ...LIMITS, compactThreshold: 1 }, NOW)
  assert.deepEqual(bucketsOf(status), [{ startTime: at(1), endTime: at(3), counter: 3, podUIDs: ['a', 'b', 'c'] }])
})

test('D23: latency is that of the newest deletion, also where it is joined', () => {
  const buckets = [single(1, 'a'), single(20, 'b')]
  const latency = (compactThreshold: number): number | undefined =>
    summarize([cellOf(10, buckets)], { ...LIMITS, compactThreshold }, NOW).summary.maxLatencyMillis
  assert.deepEqual([latency(1), latency(2)], [latency(2), latency(100)])
})

test('D3a: a threshold of 0 breaks nothing', () => {
  const status = summarize([cellOf(10, [single(1, 'a'), single(2, 'b')])], { ...LIMITS, compactThreshold: 0 }, NOW)
  assert.equal(status.summary.estimatedAvailableReplicas, 8)
  assert.equal(bucketsOf(status).length, 1)
})

test('D3c: a bucket with neither podUID nor endTime is a deletion of a pod that is not known', () => {
  const status = summarize([cellOf(10, [{ startTime: at(4) }])], LIMITS, NOW)
  assert.equal(status.summary.estimatedAvailableReplicas, 9)
  assert.deepEqual(bucketsOf(status), [{ startTime: at(4), endTime: at(4), counter: 1 }])
})

test('deletions that lie minutes apart are not joined, or the bucket would never become old', () => {
  const buckets = Array.from({ length: 400 }, (_, index) => single(index, `u${index}`))
  const status = summarize([cellOf(1000, buckets)], { ...LIMITS, compactThreshold: 100 }, NOW)
  const joined = bucketsOf(status).filter(({ counter }) => counter !== undefined)
  assert.deepEqual(
    joined.map(({ counter }) => counter),
    [61, 61, 61, 61, 57],
  )
  assert.equal(bucketsOf(status).length, 5 + 99)
  assert.equal(status.summary.estimatedAvailableReplicas, 600)
  const again = summarize(status.cells, { ...LIMITS, compactThreshold: 100 }, NOW)
  assert.deepEqual(again, status)
})

test('names in a joined bucket are bounded, its count is not', () => {
  const buckets = Array.from({ length: MAX_JOINED_UIDS + 500 }, (_, index) => single(1, `u${index}`))
  const [joined] = bucketsOf(summarize([cellOf(0, buckets)], { ...LIMITS, compactThreshold: 1 }, NOW))
  assert.equal(joined?.counter, MAX_JOINED_UIDS + 500)
  assert.equal(joined?.podUIDs?.length, MAX_JOINED_UIDS)
  assert.equal(joined?.podUIDs?.includes(`u${MAX_JOINED_UIDS + 499}`), true)
})

test('a stale cell counts nothing, nor do deletions in it', () => {
  const limits = { ...LIMITS, staleAfterMs: 60_000 }
  const fresh = { totalReplicas: 5, availableReplicas: 5, lastEventTime: formatMicros(NOW - 60_000_000) }
  const old = { ...fresh, lastEventTime: formatMicros(NOW - 60_000_001) }
  const history = { buckets: [single(1, 'x')] }
  const status = summarize(
    [
      { cellID: 'a', aggregation: fresh },
      { cellID: 'b', aggregation: old, admissionHistory: history },
      { cellID: 'c', aggregation: { totalReplicas: 5, availableReplicas: 5 } },
      { cellID: 'd', aggregation: { ...fresh, lastEventTime: '2200-01-01T00:00:00Z' } },
    ],
    limits,
    NOW,
  )
  assert.deepEqual(
    status.cells.map(({ stale }) => stale),
    [undefined, true, true, true],
  )
  assert.equal(status.summary.estimatedAvailableReplicas, 5)
  assert.equal(status.summary.totalReplicas, 5)
  const awake = summarize(status.cells, LIMITS, NOW)
  assert.equal(awake.summary.estimatedAvailableReplicas, 19)
  assert.equal(JSON.stringify(awake).includes('stale'), false)
})

const MALFORMED: readonly unknown[] = [
  null,
  'x',
  {},
  [null, 7, { cellID: 4 }, {}],
  [{ cellID: 'a', aggregation: null, admissionHistory: { buckets: null } }],
  [{ cellID: 'a', aggregation: { availableReplicas: -4, totalReplicas: 'x', lastEventTime: null } }],
  [{ cellID: '__proto__', aggregation: { availableReplicas: 1.5, totalReplicas: 1e300 } }],
  [{ cellID: 'a', admissionHistory: { buckets: [null, {}, { startTime: 'NaN' }, { podUID: 'u' }, { podUIDs: [1] }] } }],
  [{ cellID: 'a', admissionHistory: { buckets: [{ startTime: at(1), counter: -7, endTime: 'x' }] } }],
  [{ cellID: 'a', admissionHistory: { buckets: [{ startTime: '9998-01-01T00:00:00Z', podUID: 'u', counter: 1e99 }] } }],
  [{ cellID: 'a', admissionHistory: { buckets: [{ startTime: at(2), endTime: at(1), counter: 0 }] } }],
]

const check = createSchemaCheck(POD_PROTECTOR_SCHEMA)

for (const [index, cells] of MALFORMED.entries()) {
  test(`malformed status ${index} is read, and what is written is valid`, () => {
    const status = summarize(cells as readonly CellStatus[], LIMITS, NOW)
    const spec = { minAvailable: 1, minReadySeconds: 0, selector: {} }
    const object = { apiVersion: 'podseidon.kubewharf.io/v1alpha1', kind: 'PodProtector', metadata: {}, spec, status }
    assert.deepEqual(check(JSON.parse(JSON.stringify(object)), '').problems, [])
    for (const bucket of status.cells.flatMap((cell) => cell.admissionHistory?.buckets ?? [])) {
      assert.equal(Number.isNaN(parseMicros(bucket.startTime)), false)
      assert.ok(parseMicros(bucket.startTime) <= NOW)
    }
    const { totalReplicas, aggregatedAvailableReplicas, estimatedAvailableReplicas } = status.summary
    for (const sum of [totalReplicas, aggregatedAvailableReplicas, estimatedAvailableReplicas]) {
      assert.equal(Number.isInteger(sum), true)
    }
  })
}

test('what cannot be read in a bucket still counts', () => {
  const buckets = [null, {}, { podUID: 'u', counter: -3 }, { counter: Number.NaN }] as unknown as AdmissionBucket[]
  assert.equal(summarize([cellOf(10, buckets)], LIMITS, NOW).summary.estimatedAvailableReplicas, 6)
})

test('one pod written down twice is one deletion', () => {
  const joined = { startTime: at(0), endTime: at(1), counter: 3, podUIDs: ['u', 'w'] }
  const status = summarize([cellOf(10, [single(1, 'u', { counter: 0 }), single(5, 'u'), joined])], LIMITS, NOW)
  assert.deepEqual(bucketsOf(status), [{ ...joined, counter: 2, podUIDs: ['w'] }, single(5, 'u')])
})

test('among cells that share an id the one with fewest pods counts, and the deletions of both', () => {
  const status = summarize([cellOf(9, [single(1, 'u')]), cellOf(5, [single(2, 'w')])], LIMITS, NOW)
  assert.equal(status.cells.length, 1)
  assert.equal(status.summary.estimatedAvailableReplicas, 3)
})

test('the cells that are given stay as they were, and 100,000 buckets are only work', () => {
  const buckets = Array.from({ length: 100_000 }, (_, index) => single(index % 3000, `u${index % 99_000}`))
  const cells = [cellOf(200_000, buckets)]
  const before = JSON.stringify(cells)
  const status = summarize(cells, LIMITS, NOW)
  assert.equal(JSON.stringify(cells), before)
  assert.equal(status.summary.estimatedAvailableReplicas, 200_000 - 99_000)
  assert.ok(bucketsOf(status).length <= 107)
})
