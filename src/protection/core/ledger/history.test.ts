import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AdmissionBucket, CellStatus, PodProtector } from '../../api/pod-protector.ts'
import type { HistoryLimits } from '../history/cell-history.ts'
import { formatMicros, parseMicros } from '../history/micro-time.ts'
import type { QuotaPod } from '../quota/quota.ts'
import { applyOperations, type HistoryOperation, type OperationResult, type ReserveOperation } from './history.ts'

const LIMITS: HistoryLimits = { maxConcurrentLag: 0, compactThreshold: 100, aggregationRateMs: 1000, staleAfterMs: 0 }
const NOW = parseMicros('2026-01-01T00:00:00Z')
const at = (seconds: number): string => formatMicros(NOW + seconds * 1_000_000)
const HEALTHY: QuotaPod = { criterion: 'Available', scheduled: true, running: true, ready: true, available: true }

function cellOf(available: number, buckets: readonly AdmissionBucket[] = [], cellID = 'a'): CellStatus {
  const counts = { totalReplicas: available, availableReplicas: available, readyReplicas: available }
  const others = { scheduledReplicas: available, runningReplicas: available, lastEventTime: at(-60) }
  return { cellID, aggregation: { ...counts, ...others }, admissionHistory: { buckets } }
}

function protectorOf(minAvailable: number, ...cells: readonly CellStatus[]): PodProtector {
  const summary = { totalReplicas: 0, aggregatedAvailableReplicas: 0, estimatedAvailableReplicas: 0 }
  return {
    apiVersion: 'podseidon.kubewharf.io/v1alpha1',
    kind: 'PodProtector',
    metadata: { name: 'p', namespace: 'n' },
    spec: { minAvailable, minReadySeconds: 0, selector: {} },
    status: { cells, summary },
  }
}

function reserve(uid: string, more: Partial<ReserveOperation> = {}): ReserveOperation {
  const place = { cell: 'a', uid, name: '', resourceVersion: '' }
  return { type: 'reserve', ...place, pod: HEALTHY, force: false, ...more }
}

function note(uid: string): HistoryOperation {
  return { type: 'record', cell: 'a', uid, name: 'pod', resourceVersion: '7' }
}

function release(uid: string, startTime: string): HistoryOperation {
  return { type: 'release', cell: 'a', uid, startTime }
}

function single(uid: string, start: number, more: Partial<AdmissionBucket> = {}): AdmissionBucket {
  return { startTime: at(start), podUID: uid, ...more }
}

interface Outcome {
  readonly results: readonly OperationResult['result'][]
  readonly details: readonly OperationResult[]
  readonly buckets: readonly AdmissionBucket[]
  readonly estimated: number
  readonly changed: boolean
  readonly protector: PodProtector
}

function apply(
  protector: PodProtector,
  operations: readonly HistoryOperation[],
  limits: Partial<HistoryLimits> = {},
  nowMicros: number = NOW,
): Outcome {
  const before = JSON.stringify(protector)
  const { status, changed, results } = applyOperations(protector, operations, { ...LIMITS, ...limits }, nowMicros)
  assert.equal(JSON.stringify(protector), before, 'what is given stays as it was')
  return {
    results: results.map(({ result }) => result),
    details: results,
    buckets: status.cells.find(({ cellID }) => cellID === 'a')?.admissionHistory?.buckets ?? [],
    estimated: status.summary.estimatedAvailableReplicas,
    changed,
    protector: { ...protector, status },
  }
}

test('a reservation is a bucket of its own, and its maker is told when', () => {
  const made = apply(protectorOf(5, cellOf(7)), [reserve('u', { name: 'pod', resourceVersion: '41' })])
  assert.deepEqual(made.buckets, [single('u', 0, { podName: 'pod', resourceVersion: '41' })])
  assert.deepEqual(made.details, [{ result: 'Ok', startTime: at(0), count: 7, lag: 0, required: 5 }])
  assert.equal(made.changed, true)
  assert.equal(made.estimated, 6)
})

test('the last that was submitted is evaluated first', () => {
  const { results, buckets } = apply(protectorOf(5, cellOf(6)), [reserve('u'), reserve('w')])
  assert.deepEqual(results, ['Denied', 'Ok'])
  assert.deepEqual(
    buckets.map(({ podUID }) => podUID),
    ['w'],
  )
})

test('refusals write nothing and have the numbers', () => {
  const { changed, details } = apply(protectorOf(5, cellOf(6, [single('x', -1)])), [
    reserve('u', { cell: 'unheard-of' }),
    reserve('w'),
  ])
  assert.equal(changed, false)
  assert.deepEqual(details[1], { result: 'Retry', startTime: '', count: 6, lag: 1, required: 5 })
})

test('D26: a cell without counts appears only with a deletion in it', () => {
  const denied = apply(protectorOf(6, cellOf(6)), [reserve('u', { cell: 'new' }), release('u', at(0)), note('w')])
  assert.deepEqual(
    denied.protector.status?.cells.map(({ cellID }) => cellID),
    ['a'],
  )
  const made = apply(protectorOf(5, cellOf(6)), [reserve('u', { cell: 'new' })])
  assert.deepEqual(
    made.protector.status?.cells.map(({ cellID }) => cellID),
    ['a', 'new'],
  )
  assert.equal(made.estimated, 5)
})

test('without a status nothing is available', () => {
  const { status: _, ...bare } = protectorOf(1)
  assert.deepEqual(apply(bare, [reserve('u')]).results, ['Denied'])
  assert.deepEqual(apply(bare, [note('u')]).estimated, 0)
})

test('D1: more deletions than are remembered singly are all deducted, in one batch and over many', () => {
  let protector = protectorOf(850, cellOf(1000))
  let admitted = 0
  for (let round = 0; round < 30; round += 1) {
    const operations = Array.from({ length: 7 }, (_, index) => reserve(`u${round}-${index}`))
    const outcome = apply(protector, operations, { compactThreshold: 10 }, NOW + round)
    admitted += outcome.results.filter((result) => result === 'Ok').length
    protector = outcome.protector
  }
  assert.equal(admitted, 150)
  assert.equal(protector.status?.summary.estimatedAvailableReplicas, 850)
})

test('D2: maxConcurrentLag holds within a batch, over batches and when it is exceeded', () => {
  const many = Array.from({ length: 20 }, (_, index) => reserve(`u${index}`))
  const first = apply(protectorOf(1, cellOf(100)), many, { maxConcurrentLag: 3 })
  assert.equal(first.results.filter((result) => result === 'Ok').length, 3)
  assert.equal(first.results.filter((result) => result === 'Retry').length, 17)
  const second = apply(first.protector, [reserve('v')], { maxConcurrentLag: 2 })
  assert.deepEqual([second.results, second.changed], [['Retry'], false])
  const again = apply(first.protector, [reserve('u19')], { maxConcurrentLag: 3 })
  assert.deepEqual(again.results, ['AlreadyHasBucket'])
})

test('maxConcurrentLag holds in a stale cell too, and its deletions do not stop other cells', () => {
  const stale = (id: string): CellStatus => ({ cellID: id, aggregation: { totalReplicas: 9, availableReplicas: 9 } })
  const limits = { staleAfterMs: 100_000, maxConcurrentLag: 1 }
  const outcome = apply(
    protectorOf(3, cellOf(6), stale('b')),
    [reserve('u', { cell: 'b' }), reserve('w', { cell: 'b' })],
    limits,
  )
  assert.deepEqual(outcome.results, ['Retry', 'Ok'])
  assert.equal(outcome.estimated, 6)
  assert.deepEqual(apply(outcome.protector, [reserve('x', { cell: 'b' })], limits).results, ['Retry'])
  assert.deepEqual(apply(outcome.protector, [reserve('x')], limits).results, ['Ok'])
})

test('D8: one pod twice in one batch is one deletion', () => {
  const outcome = apply(protectorOf(5, cellOf(6)), [reserve('u'), reserve('u'), reserve('u')])
  assert.deepEqual(outcome.results, ['AlreadyHasBucket', 'AlreadyHasBucket', 'Ok'])
  assert.equal(outcome.buckets.length, 1)
  assert.equal(outcome.estimated, 5)
  assert.deepEqual(
    outcome.details.map(({ startTime }) => startTime),
    ['', '', at(0)],
  )
  assert.notEqual(outcome.buckets[0]?.startTime, at(0), 'the first maker holds it no more')
})

test('D9: a pod that is asked for again is evaluated again, as though it had not been admitted', () => {
  const held = [single('u', -5), single('w', -4)]
  const passes = apply(protectorOf(5, cellOf(7, held)), [reserve('u')])
  assert.deepEqual(passes.results, ['AlreadyHasBucket'])
  assert.deepEqual(passes.buckets, [single('w', -4), single('u', 0)])
  const retries = apply(protectorOf(6, cellOf(7, held)), [reserve('u')])
  assert.deepEqual([retries.results, retries.changed], [['Retry'], false])
  const refused = apply(protectorOf(7, cellOf(7, held)), [reserve('u')])
  assert.deepEqual([refused.results, refused.changed], [['Denied'], false])
  assert.deepEqual(refused.buckets, held, 'what was admitted may still happen')
})

test('a bucket that is written again is newer even when the clock went back', () => {
  const { buckets } = apply(protectorOf(5, cellOf(7, [single('u', 9, { resourceVersion: '8' })])), [
    reserve('u', { resourceVersion: '11' }),
  ])
  assert.deepEqual(buckets, [{ startTime: '2026-01-01T00:00:09.000001Z', podUID: 'u', resourceVersion: '11' }])
})

test('a pod in a joined bucket is not charged again, and gets a bucket of its own', () => {
  const joined = { startTime: at(-9), endTime: at(-5), counter: 4, podUIDs: ['u', 'w'], resourceVersion: '50' }
  const outcome = apply(protectorOf(5, cellOf(10, [joined])), [reserve('u', { resourceVersion: '60' })])
  assert.deepEqual(outcome.results, ['AlreadyHasBucket'])
  assert.deepEqual(outcome.buckets, [
    { ...joined, counter: 3, podUIDs: ['w'] },
    single('u', 0, { resourceVersion: '60' }),
  ])
  assert.equal(outcome.estimated, 6)
  const alone = { startTime: at(-9), endTime: at(-5), counter: 1, podUIDs: ['u'] }
  assert.deepEqual(apply(protectorOf(5, cellOf(10, [alone])), [reserve('u')]).buckets, [single('u', 0)])
})

test('a pod that was recorded and is available now is deducted', () => {
  const outcome = apply(protectorOf(5, cellOf(6, [single('u', -1, { counter: 0 })])), [reserve('w'), reserve('u')])
  assert.deepEqual(outcome.results, ['Retry', 'AlreadyHasBucket'])
  assert.equal(outcome.estimated, 5)
})

test('notes deduct nothing, and change nothing that is known', () => {
  const outcome = apply(protectorOf(5, cellOf(6)), [note('u'), note('u'), reserve('w')])
  assert.deepEqual(outcome.results, ['Done', 'Done', 'Ok'])
  assert.deepEqual(outcome.buckets[0], single('u', 0, { podName: 'pod', counter: 0, resourceVersion: '7' }))
  assert.equal(outcome.estimated, 5)
  assert.equal(apply(outcome.protector, [note('u'), note('w')]).changed, false)
})

test('by another criterion every deletion counts, also one that took nothing', () => {
  const ready: QuotaPod = { ...HEALTHY, criterion: 'Ready', available: false }
  const recorded = protectorOf(5, cellOf(7, [single('x', -1, { counter: 0 })]))
  const outcome = apply(recorded, [reserve('u', { pod: ready }), reserve('w', { pod: ready })])
  assert.deepEqual(outcome.results, ['Retry', 'Ok'])
  assert.deepEqual(outcome.buckets[1], single('w', 0, { counter: 0 }))
})

test('only who made a bucket takes it back, and only as long as it is as it was', () => {
  const made = apply(protectorOf(5, cellOf(7)), [reserve('u')])
  const hold = made.details[0]?.startTime ?? ''
  const released = apply(made.protector, [release('u', hold)])
  assert.deepEqual([released.results, released.buckets, released.changed], [['Done'], [], true])
  const renewed = apply(made.protector, [reserve('u')], {}, NOW + 1)
  const kept = apply(renewed.protector, [release('u', hold)])
  assert.deepEqual([kept.buckets.length, kept.changed], [1, false])
  assert.equal(apply(made.protector, [release('other', hold)]).changed, false)
  assert.equal(apply(made.protector, [{ ...release('u', hold), cell: 'b' }]).changed, false)
  assert.equal(apply(made.protector, [release('u', 'never')]).changed, false)
  const joined = apply(apply(made.protector, [reserve('w')]).protector, [release('u', hold)], { compactThreshold: 1 })
  assert.equal(joined.estimated, 6)
})

test('a release in a batch makes room for the reservations of the same batch', () => {
  const outcome = apply(protectorOf(5, cellOf(6, [single('u', -1)])), [reserve('w'), release('u', at(-1))])
  assert.deepEqual(outcome.results, ['Ok', 'Done'])
})

test('D11: what is forced is recorded whatever the result, and counts before the others', () => {
  const force = true
  const outcome = apply(protectorOf(5, cellOf(6)), [reserve('f', { force }), reserve('g', { force }), reserve('u')])
  assert.deepEqual(outcome.results, ['Denied', 'Ok', 'Denied'])
  assert.equal(outcome.estimated, 4)
  assert.deepEqual(
    outcome.details.map(({ startTime }) => startTime !== ''),
    [true, true, false],
  )
  const again = apply(outcome.protector, [reserve('f', { force })], {}, NOW + 5)
  assert.deepEqual([again.results, again.estimated, again.details[0]?.startTime], [['Retry'], 4, ''])
  assert.equal(again.changed, true)
})

test('a cell that went silent is marked even when everything is refused, once', () => {
  const limits = { staleAfterMs: 30_000 }
  const outcome = apply(protectorOf(5, cellOf(9)), [reserve('u')], limits)
  assert.deepEqual([outcome.results, outcome.changed, outcome.estimated], [['Denied'], true, 0])
  assert.equal(apply(outcome.protector, [reserve('u')], limits).changed, false)
})

test('a spec without a number keeps everything', () => {
  const odd = { ...protectorOf(0, cellOf(9)), spec: {} } as unknown as PodProtector
  assert.deepEqual(apply(odd, [reserve('u')]).results, ['Denied'])
})
