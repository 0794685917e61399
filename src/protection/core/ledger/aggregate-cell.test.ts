import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import type { PodProtector, PodProtectorStatus } from '../../api/pod-protector.ts'
import type { PodFacts } from '../../api/protection.ts'
import type { HistoryLimits } from '../history/cell-history.ts'
import { formatMicros } from '../history/micro-time.ts'
import { aggregatePods, isAvailable } from '../quota/pod-facts.ts'
import { type AggregatedCell, aggregateCell } from './aggregate-cell.ts'
import type { CellSnapshot } from './prune-history.ts'

const LIMITS: HistoryLimits = { maxConcurrentLag: 0, compactThreshold: 100, aggregationRateMs: 0, staleAfterMs: 0 }
const NOW_MS = Date.parse('2026-01-01T00:00:00Z')
const time = (ms: number): string => formatMicros(ms * 1000)

function podOf(uid: string, more: Partial<PodFacts> = {}): PodFacts {
  const state = { terminating: false, scheduled: true, running: true, ready: true, readySinceMs: NOW_MS - 1000 }
  const times = { startedMs: 0, createdMs: 0, readyWrittenMs: 0 }
  const identity = { namespace: 'n', name: uid, uid, resourceVersion: '1', labels: {} }
  return { ...identity, forceDelete: false, criterion: 'Available', ...state, ...times, ...more }
}

function protectorOf(status?: PodProtectorStatus, minReadySeconds = 0): PodProtector {
  return {
    apiVersion: 'podseidon.kubewharf.io/v1alpha1',
    kind: 'PodProtector',
    metadata: { name: 'p', namespace: 'n' },
    spec: { minAvailable: 5, minReadySeconds, selector: {} },
    ...(status === undefined ? {} : { status }),
  }
}

interface Round {
  readonly limits?: Partial<HistoryLimits>
  readonly nowMs?: number
  readonly cell?: string
  readonly snapshot?: Partial<CellSnapshot>
}

function aggregate(protector: PodProtector, pods: readonly PodFacts[], round: Round = {}): AggregatedCell {
  const { limits = {}, nowMs = NOW_MS, cell = 'a' } = round
  const { minReadySeconds } = protector.spec
  const readyFor = ({ readySinceMs }: PodFacts): number => nowMs - readySinceMs
  const byUid = new Map(pods.map((pod) => [pod.uid, pod]))
  const snapshot: CellSnapshot = {
    resourceVersion: '100',
    streamTime: undefined,
    stateOf: (uid) => {
      const pod = byUid.get(uid)
      if (pod === undefined) return 'absent'
      if (pod.terminating) return 'terminating'
      return isAvailable(pod, minReadySeconds, readyFor) ? 'available' : 'alive'
    },
    ...round.snapshot,
  }
  const counts = aggregatePods(pods, minReadySeconds, readyFor)
  return aggregateCell(protector, cell, counts, snapshot, { ...LIMITS, ...limits }, 60_000, nowMs * 1000)
}

interface AggregationCase {
  readonly name: string
  readonly spec: { readonly minReadySeconds: number }
  readonly pods: readonly { readonly count: number; readonly deleted: boolean; readonly readyForSeconds: number }[]
  readonly expect: Readonly<Record<string, number>>
  readonly derivedActual: Readonly<Record<string, number>>
  readonly later?: { readonly advanceClockSeconds: number; readonly expect: Readonly<Record<string, number>> }
}

const { aggregation: table } = JSON.parse(
  readFileSync(new URL('../../../../test/data/podseidon-quota.json', import.meta.url), 'utf8'),
) as { readonly aggregation: readonly AggregationCase[] }

for (const { name, spec, pods, expect, derivedActual, later } of table) {
  test(name, () => {
    const facts = pods.flatMap(({ count, deleted, readyForSeconds }, group) =>
      Array.from({ length: count }, (_, index) =>
        podOf(`${group}-${index}`, { terminating: deleted, readySinceMs: NOW_MS - readyForSeconds * 1000 }),
      ),
    )
    const first = aggregate(protectorOf(undefined, spec.minReadySeconds), facts)
    assert.equal(first.changed, true)
    assert.deepEqual({ ...first.status.summary }, { ...expect, ...derivedActual })
    if (later === undefined) return
    const nowMs = NOW_MS + later.advanceClockSeconds * 1000
    const second = aggregate(protectorOf(first.status, spec.minReadySeconds), facts, { nowMs })
    assert.deepEqual({ ...second.status.summary }, { ...later.expect, ...derivedActual })
  })
}

test('what says nothing new is not written, however much time and how many versions have passed', () => {
  const pods = [podOf('u'), podOf('w')]
  const { status } = aggregate(protectorOf(), pods)
  assert.deepEqual(status.cells[0]?.aggregation, {
    totalReplicas: 2,
    availableReplicas: 2,
    readyReplicas: 2,
    scheduledReplicas: 2,
    runningReplicas: 2,
    lastEventTime: time(NOW_MS),
    resourceVersion: '100',
  })
  const later = { nowMs: NOW_MS + 3_600_000, snapshot: { resourceVersion: '200', heardAt: (NOW_MS + 1) * 1000 } }
  assert.equal(aggregate(protectorOf(status), pods, later).changed, false)
  assert.equal(aggregate(protectorOf(status), [podOf('u')], later).changed, true)
})

test('one snapshot for counts and history: nothing is deducted twice', () => {
  const { status } = aggregate(protectorOf(), [podOf('u'), podOf('w'), podOf('x')])
  const buckets = ['u', 'w', 'y'].map((podUID) => ({ startTime: time(NOW_MS), podUID, resourceVersion: '101' }))
  const [cell] = status.cells
  assert.ok(cell)
  const reserved = protectorOf({ ...status, cells: [{ ...cell, admissionHistory: { buckets } }] })
  const pods = [podOf('u', { terminating: true }), podOf('w', { ready: false, readySinceMs: 0 }), podOf('x')]
  const after = aggregate(reserved, pods)
  assert.deepEqual([after.changed, after.kept, after.needsStreamTime], [true, 2, true])
  assert.equal(after.streamTimeFrom, (NOW_MS + 60_000) * 1000)
  assert.equal(after.status.summary.aggregatedAvailableReplicas, 1)
  assert.equal(after.status.summary.estimatedAvailableReplicas, 1)
  const back = aggregate(protectorOf(after.status), [podOf('w'), podOf('x')], { snapshot: { resourceVersion: '102' } })
  assert.equal(back.status.summary.aggregatedAvailableReplicas, 2)
  assert.equal(back.status.summary.estimatedAvailableReplicas, 1, 'it is deducted as soon as it counts')
  assert.equal(back.kept, 1)
})

test('a snapshot that is older than what was counted changes nothing', () => {
  const { status } = aggregate(protectorOf(), [podOf('u')])
  const old = aggregate(protectorOf(status), [podOf('u'), podOf('w')], { snapshot: { resourceVersion: '99' } })
  assert.deepEqual([old.outdated, old.changed, old.status], [true, false, status])
  const restored = { resourceVersion: '99', restored: true }
  const again = aggregate(protectorOf(status), [podOf('u')], { snapshot: restored })
  assert.deepEqual([again.outdated, again.changed], [false, true])
  assert.equal(again.status.cells[0]?.aggregation?.resourceVersion, '99')
})

test('with staleAfter, others are told that the cell is alive as long as it is heard of', () => {
  const limits = { staleAfterMs: 30_000 }
  const { status } = aggregate(protectorOf(), [podOf('u')], { limits })
  const round = (nowMs: number, heardMs: number) =>
    aggregate(protectorOf(status), [podOf('u')], { limits, nowMs, snapshot: { heardAt: heardMs * 1000 } })
  assert.equal(round(NOW_MS + 10_000, NOW_MS + 10_000).changed, false)
  const refreshed = round(NOW_MS + 10_001, NOW_MS + 9000)
  assert.equal(refreshed.changed, true)
  assert.equal(refreshed.status.cells[0]?.aggregation?.lastEventTime, time(NOW_MS + 9000))
  assert.equal(round(NOW_MS + 20_000, NOW_MS).changed, false, 'a stream that is silent is not alive')
  const silent = round(NOW_MS + 30_001, NOW_MS)
  assert.deepEqual([silent.changed, silent.status.cells[0]?.stale], [true, true])
  assert.equal(silent.status.summary.aggregatedAvailableReplicas, 0)
})

test('other cells stay as they are', () => {
  const { status } = aggregate(protectorOf(), [podOf('u')])
  const both = aggregate(protectorOf(status), [podOf('w'), podOf('x')], { cell: 'b' })
  assert.deepEqual(both.status.cells[0], status.cells[0])
  assert.equal(both.status.summary.totalReplicas, 3)
})

test('a status that cannot be read is replaced', () => {
  const odd = {
    cells: [{ cellID: 'a', aggregation: { availableReplicas: 'x' } }, null],
  } as unknown as PodProtectorStatus
  const { changed, status } = aggregate(protectorOf(odd), [podOf('u')])
  assert.equal(changed, true)
  assert.equal(status.summary.estimatedAvailableReplicas, 1)
  assert.equal(aggregate(protectorOf(status), [podOf('u')]).changed, false)
})
