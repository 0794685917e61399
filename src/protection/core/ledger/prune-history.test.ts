import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import type { AdmissionBucket } from '../../api/pod-protector.ts'
import { FUTURE_MICROS, readBucket, writeBucket } from '../history/entry.ts'
import { formatMicros, parseMicros } from '../history/micro-time.ts'
import { type CellSnapshot, type PodState, pruneEntries } from './prune-history.ts'

const BASE = parseMicros('2026-01-01T00:00:00Z')
const micros = (seconds: number): number => BASE + Math.round(seconds * 1_000_000)
const at = (seconds: number): string => formatMicros(micros(seconds))
const TIMEOUT_MS = 60_000

function snapshot(pods: Readonly<Record<string, PodState>>, version: string, streamTime?: number): CellSnapshot {
  return {
    resourceVersion: version,
    streamTime: streamTime === undefined ? undefined : micros(streamTime),
    stateOf: (uid) => pods[uid] ?? 'absent',
  }
}

function single(uid: string, start: number, more: Partial<AdmissionBucket> = {}): AdmissionBucket {
  return { startTime: at(start), podUID: uid, ...more }
}

function prune(buckets: readonly AdmissionBucket[], shot: CellSnapshot) {
  // Without a clock, an unreadable time counts as one that has not come.
  const entries = buckets.map((bucket) => readBucket(bucket, Number.MAX_SAFE_INTEGER - FUTURE_MICROS))
  const pruned = pruneEntries(entries, shot, TIMEOUT_MS)
  const needsStreamTime = pruned.streamTimeFrom !== undefined
  return { buckets: pruned.entries.map(writeBucket), dropped: pruned.dropped, needsStreamTime }
}

test('a pod that is being terminated is not counted: its bucket goes, whatever the clocks say', () => {
  const { buckets, dropped, needsStreamTime } = prune([single('u', 99)], snapshot({ u: 'terminating' }, '5'))
  assert.deepEqual([buckets, dropped, needsStreamTime], [[], 1, false])
})

test('a pod that is not there goes when the snapshot is as new as the pod was', () => {
  const bucket = single('u', 10, { resourceVersion: '100' })
  assert.equal(prune([bucket], snapshot({}, '100')).dropped, 1)
  const kept = prune([bucket], snapshot({}, '99', 60))
  assert.deepEqual(kept.buckets, [{ ...bucket, counter: 0 }], 'it was not counted, and must not become so')
  assert.equal(kept.needsStreamTime, true)
})

test('without a resourceVersion it goes when stream time has passed its admission', () => {
  for (const shot of [snapshot({}, '100', 10), snapshot({}, '100'), snapshot({}, '', 9)]) {
    const { buckets, needsStreamTime } = prune([single('u', 10)], shot)
    assert.deepEqual([buckets.length, needsStreamTime], [1, true])
  }
  assert.equal(prune([single('u', 10)], snapshot({}, '100', 10.000001)).dropped, 1)
  assert.equal(prune([single('u', 10, { resourceVersion: '7' })], snapshot({}, '', 10.000001)).dropped, 1)
})

test('an etcd that was restored to older resourceVersions holds nothing for ever', () => {
  const bucket = single('u', 10, { resourceVersion: '999999999999999999999' })
  assert.equal(prune([bucket], snapshot({}, '5', 70)).dropped, 0)
  assert.equal(prune([bucket], snapshot({}, '5', 70.000001)).dropped, 1)
})

test('a pod that lives keeps its bucket until upstream cannot do it any more', () => {
  const live = (state: PodState, streamTime?: number) =>
    prune([single('u', 10)], snapshot({ u: state }, '5', streamTime))
  assert.deepEqual(live('available').buckets, [single('u', 10)])
  assert.deepEqual(live('alive', 70).buckets, [single('u', 10, { counter: 0 })])
  assert.equal(live('available', 70).needsStreamTime, true)
  assert.equal(live('available', 70.000001).dropped, 1)
  const recorded = prune([single('u', 10, { counter: 0 })], snapshot({ u: 'available' }, '5'))
  assert.deepEqual(recorded.buckets, [single('u', 10)], 'it has become available: it is deducted')
})

test('D14: the event of one pod prunes only its own bucket', () => {
  const buckets = [single('x', 0), single('y', 1)]
  const pruned = prune(buckets, snapshot({ x: 'terminating', y: 'available', z: 'available' }, '50', 2))
  assert.deepEqual(pruned.buckets, [single('y', 1)])
  const hundred = Array.from({ length: 100 }, (_, index) => single(`u${index}`, 0))
  const pods = Object.fromEntries(
    hundred.map((_, index) => [`u${index}`, index === 0 ? 'terminating' : 'available'] as const),
  )
  assert.equal(prune(hundred, snapshot(pods, '50', 2)).buckets.length, 99)
})

test('D15: a snapshot that still shows the pod keeps its bucket, though an event came since', () => {
  const { buckets } = prune([single('x', 10, { resourceVersion: '7' })], snapshot({ x: 'available' }, '9', 10.101))
  assert.deepEqual(buckets, [single('x', 10, { resourceVersion: '7' })])
})

test('D18: clocks 3 s apart neither prune what is to come nor keep what has happened', () => {
  const behind = single('u', 7, { resourceVersion: '7' })
  assert.equal(prune([behind], snapshot({ u: 'available' }, '8', 10)).dropped, 0)
  assert.equal(prune([behind], snapshot({}, '6', 10)).dropped, 0, 'not created yet as the snapshot sees it')
  const ahead = single('u', 13, { resourceVersion: '7' })
  assert.equal(prune([ahead], snapshot({ u: 'terminating' }, '8', 10)).dropped, 1)
  assert.equal(prune([ahead], snapshot({}, '8', 10)).dropped, 1)
})

test('D20: everything that is kept waits for stream time, also at equal times and within a joined bucket', () => {
  const joined = { startTime: at(8), endTime: at(10), counter: 3 }
  for (const bucket of [joined, single('u', 9)]) {
    const { buckets, needsStreamTime } = prune([bucket], snapshot({}, '', 9))
    assert.deepEqual([buckets.length, needsStreamTime], [1, true])
  }
  assert.equal(prune([], snapshot({}, '', 9)).needsStreamTime, false)
})

interface PruneCase {
  readonly case: string
  readonly bucket: {
    readonly startTime: number
    readonly endTime?: number
    readonly counter?: number
    readonly podUID?: string
  }
  readonly lastEventTime?: number
  readonly kept: boolean
}

const { pruneBuckets } = JSON.parse(
  readFileSync(new URL('../../../../test/data/podseidon-quota.json', import.meta.url), 'utf8'),
) as { readonly pruneBuckets: readonly PruneCase[] }

// The cases for several shards have no single time, and we have no shards.
for (const { case: name, bucket, lastEventTime, kept } of pruneBuckets) {
  if (lastEventTime === undefined) continue
  test(`table, of pods that are not there: ${name}`, () => {
    const { startTime, endTime, ...others } = bucket
    const stored = { startTime: at(startTime), ...others, ...(endTime === undefined ? {} : { endTime: at(endTime) }) }
    const { buckets, needsStreamTime } = prune([stored], snapshot({}, '', lastEventTime))
    assert.deepEqual([buckets.length === 1, needsStreamTime], [kept, kept])
  })
}

test('joined pods go one by one, the nameless rest by time', () => {
  const joined = {
    startTime: at(0),
    endTime: at(10),
    counter: 5,
    podUIDs: ['t', 'gone', 'new', 'live'],
    resourceVersion: '50',
  }
  const pods: Record<string, PodState> = { t: 'terminating', live: 'available', new: 'alive' }
  const first = prune([joined], snapshot(pods, '50'))
  assert.deepEqual([first.dropped, first.buckets], [2, [{ ...joined, counter: 3, podUIDs: ['new', 'live'] }]])
  const early = prune(first.buckets, snapshot(pods, '49', 70))
  assert.deepEqual([early.dropped, early.needsStreamTime], [0, true])
  const late = prune(first.buckets, snapshot(pods, '49', 70.000001))
  assert.deepEqual([late.dropped, late.buckets, late.needsStreamTime], [3, [], false])
})

test('a bucket that cannot be read is not forgotten', () => {
  const odd = [null, { startTime: 'x' }, { startTime: '', podUID: 'u' }] as unknown as AdmissionBucket[]
  assert.equal(prune(odd, snapshot({ u: 'available' }, '5', 1e6)).buckets.length, 3)
})
