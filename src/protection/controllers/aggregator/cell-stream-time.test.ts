import assert from 'node:assert/strict'
import { mock, type TestContext, test } from 'node:test'
import type { CompiledAggregation } from '../../../gateway/core/cluster/compiled-cluster.ts'
import type { Logger } from '../../../kit/api/ports.ts'
import { parseMicros } from '../../core/history/micro-time.ts'
import { annotationTime, CellStreamTime, statusTime } from './cell-stream-time.ts'

const quiet = (): void => undefined
const log: Logger = { debug: quiet, info: quiet, warn: quiet, error: quiet }

function start(t: TestContext, mode: CompiledAggregation['syncTime'], annotation = '') {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.after(() => mock.timers.reset())
  const world = { ms: 1_000_000, newest: '10', reads: 0, moved: 0, away: false }
  const time = new CellStreamTime({
    mode,
    annotation,
    clock: { now: () => world.ms, monotonic: () => world.ms },
    log,
    readVersion: async () => {
      world.reads++
      if (world.away) throw new Error('away')
      return world.newest
    },
    onMoved: () => world.moved++,
  })
  t.after(() => time.stop())
  const pass = async (ms: number): Promise<void> => {
    world.ms += ms
    mock.timers.tick(ms)
    for (let i = 0; i < 6; i++) await Promise.resolve()
  }
  return { world, time, pass }
}

test('by resourceVersion: only when asked for, and when the stream has come to where the cell was', async (t) => {
  const { world, time, pass } = start(t, 'ResourceVersion')
  time.replaced([])
  time.reached('9')
  await pass(60_000)
  assert.deepEqual([time.time, world.reads], [undefined, 0])
  time.need(world.ms * 1000 - 1_000_000)
  await pass(1)
  const asked = world.ms
  time.reached('9')
  assert.equal(time.time, undefined)
  await pass(10)
  // Compared as a number, whatever its length.
  time.reached('100')
  assert.equal(time.time, asked * 1000)
  assert.equal(world.reads, 1)
})

test('by resourceVersion: at most one read in five seconds, and one more for a caller that comes later', async (t) => {
  const { world, time, pass } = start(t, 'ResourceVersion')
  for (let i = 0; i < 99; i++) {
    time.need(world.ms * 1000 - 1_000_000)
    await pass(100)
  }
  assert.equal(world.reads, 2)
  await pass(5_000)
  assert.equal(world.reads, 3)
  await pass(60_000)
  assert.equal(world.reads, 3)
})

test('by resourceVersion: a stream that was there already moves the time at once; an answer that failed is asked for again', async (t) => {
  const { world, time, pass } = start(t, 'ResourceVersion')
  time.reached('10')
  world.away = true
  time.need(world.ms * 1000 - 1_000_000)
  await pass(1)
  assert.deepEqual([time.time, world.moved, world.reads], [undefined, 0, 1])
  world.away = false
  await pass(5_000)
  assert.deepEqual([time.time, world.moved, world.reads], [world.ms * 1000, 1, 2])
})

test('by resourceVersion: versions that are not numbers prove nothing', async (t) => {
  const { world, time, pass } = start(t, 'ResourceVersion')
  world.newest = 'opaque'
  time.reached('opaque')
  time.need(world.ms * 1000 - 1_000_000)
  await pass(1)
  assert.deepEqual([time.time, world.moved], [undefined, 0])
})

test('by resourceVersion: nothing is read before it is of use, and nothing that is waited for already', async (t) => {
  const { world, time, pass } = start(t, 'ResourceVersion')
  const moment = (world.ms + 60_000) * 1000
  time.need(moment)
  await pass(60_000)
  assert.equal(world.reads, 0)
  await pass(100)
  assert.equal(world.reads, 1)
  time.need(moment)
  await pass(60_000)
  assert.equal(world.reads, 1)
  time.reached('10')
  assert.ok((time.time ?? 0) > moment)
})

test('by the clock: when something was heard', async (t) => {
  const { world, time, pass } = start(t, 'Clock')
  time.replaced([])
  assert.equal(time.time, undefined)
  time.reached('10')
  const heard = world.ms * 1000
  await pass(60_000)
  time.need(world.ms * 1000 - 1_000_000)
  assert.deepEqual([time.time, world.reads], [heard, 0])
  time.reached('11')
  assert.equal(time.time, world.ms * 1000)
})

test('by status and by annotation: never back; an empty cell begins now', (t) => {
  const { world, time } = start(t, 'Annotation', 'seen')
  const pod = (ms: number) => ({ metadata: { annotations: { seen: new Date(ms).toISOString() } } })
  time.replaced([])
  assert.equal(time.time, world.ms * 1000)
  world.ms += 50_000
  time.observed(pod(world.ms - 10_000))
  time.observed(pod(world.ms - 20_000))
  time.observed({})
  assert.equal(time.time, (world.ms - 10_000) * 1000)
  const other = new CellStreamTime({
    mode: 'Status',
    annotation: '',
    clock: { now: () => world.ms, monotonic: () => world.ms },
    log,
    readVersion: () => assert.fail('no read'),
    onMoved: quiet,
  })
  other.replaced([{ metadata: { creationTimestamp: new Date(7_000).toISOString() } }])
  assert.equal(other.time, 7_000_000)
})

const NOW = parseMicros('2026-01-02T04:00:00Z')

const at = (text: string): number => parseMicros(`2026-01-02T03:${text}Z`)

const iso = (text: string): string => `2026-01-02T03:${text}Z`

test('the latest of what a pod tells: creation, trigger, conditions', () => {
  const created = { creationTimestamp: iso('00:00') }
  const conditions = [{ lastProbeTime: null, lastTransitionTime: iso('02:00') }, { lastProbeTime: iso('01:00') }]
  const annotations = { 'podseidon.kubewharf.io/update-trigger-time': iso('03:00.000001') }
  assert.equal(statusTime({ metadata: created }, NOW), at('00:00'))
  assert.equal(statusTime({ metadata: created, status: { conditions } }, NOW), at('02:00'))
  assert.equal(statusTime({ metadata: { ...created, annotations }, status: { conditions } }, NOW), at('03:00.000001'))
})

test('a deletion counts from when it was asked for, not from when it is to end', () => {
  const metadata = { creationTimestamp: iso('00:00'), deletionTimestamp: iso('05:30'), deletionGracePeriodSeconds: 30 }
  assert.equal(statusTime({ metadata }, NOW), at('05:00'))
  const hour = { ...metadata, deletionTimestamp: '2026-01-02T04:30:00Z', deletionGracePeriodSeconds: 3600 }
  assert.equal(statusTime({ metadata: hour }, NOW), at('30:00'))
})

test('nothing is believed to be later than now', () => {
  const metadata = { creationTimestamp: '2027-01-01T00:00:00Z' }
  assert.equal(statusTime({ metadata }, NOW), NOW)
  assert.equal(annotationTime({ metadata: { annotations: { seen: '2027-01-01T00:00:00Z' } } }, 'seen', NOW), NOW)
})

test('an invalid or missing time tells nothing', () => {
  for (const pod of [
    {},
    { metadata: 7 },
    { metadata: { creationTimestamp: 'yesterday' }, status: { conditions: [3] } },
  ]) {
    assert.equal(statusTime(pod, NOW), undefined)
    assert.equal(annotationTime(pod, 'seen', NOW), undefined)
  }
  assert.equal(annotationTime({ metadata: { annotations: {} } }, '__proto__', NOW), undefined)
  assert.equal(annotationTime({ metadata: { annotations: { seen: iso('01:00') } } }, 'seen', NOW), at('01:00'))
})
