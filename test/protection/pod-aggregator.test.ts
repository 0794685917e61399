// The aggregator of a cell: a worker and a core in memory, real time but short rates; times that matter are arguments.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { type TestContext, test } from 'node:test'
import type { CompiledAggregation } from '../../src/gateway/core/cluster/compiled-cluster.ts'
import type { JsonObject } from '../../src/kit/api/json/json-object.ts'
import type { Logger } from '../../src/kit/api/ports.ts'
import { systemClock } from '../../src/kit/io/world/clock.ts'
import { PODS } from '../../src/kube/api/kinds/foreign-kinds.ts'
import { LEASES } from '../../src/kube/api/kinds/lease-kind.ts'
import { statusError } from '../../src/kube/api/status.ts'
import { DEFAULT_PROTECTION_SETTINGS, type ProtectionSettings } from '../../src/process/api/protection-settings.ts'
import type {
  AdmissionBucket,
  CellStatus,
  PodProtector,
  PodProtectorSpec,
} from '../../src/protection/api/pod-protector.ts'
import { POD_PROTECTORS } from '../../src/protection/api/pod-protector-kind.ts'
import type { PodAggregatorDeps } from '../../src/protection/controllers/aggregator/deps.ts'
import { type CellMember, startPodAggregator } from '../../src/protection/controllers/aggregator/pod-aggregator.ts'
import { startStaleCellSweeper } from '../../src/protection/controllers/aggregator/stale-cell-sweeper.ts'
import { formatMicros } from '../../src/protection/core/history/micro-time.ts'
import type { AggregatorEvents } from '../../src/protection/core/requests/protection-events.ts'
import { ProtectorTable } from '../../src/protection/state/protectors.ts'
import { Election } from '../harness/election.ts'
import { agreeingClocks } from '../harness/objects/cell-clocks.ts'
import { NO_AGGREGATOR_EVENTS } from '../harness/objects/ignored-events.ts'
import { MemoryObjects } from '../harness/objects/memory-objects.ts'
import { waitFor } from '../harness/wait.ts'

const RATE_MS = 20

interface Options {
  readonly settings?: Partial<ProtectionSettings>
  readonly aggregation?: Partial<CompiledAggregation>
  readonly clock?: PodAggregatorDeps['clock']
  readonly core?: MemoryObjects
  readonly worker?: MemoryObjects
  readonly cell?: string
  /** More clusters of the cell, by name. */
  readonly others?: ReadonlyMap<string, MemoryObjects>
}

/** What the process around an aggregator is. */
function start(t: TestContext, options: Options = {}) {
  const { core = new MemoryObjects(), worker = new MemoryObjects(), cell = 'worker-1' } = options
  const lines: string[] = []
  const note = (message: string, fields?: Record<string, unknown>): void => {
    lines.push(`${message} ${JSON.stringify(fields ?? {})}`)
  }
  const log: Logger = { debug: () => undefined, info: note, warn: note, error: note }
  const reconciled: string[] = []
  const enqueued: string[] = []
  const events: AggregatorEvents = {
    ...NO_AGGREGATOR_EVENTS,
    reconciled: (namespace, error) => void reconciled.push(`${namespace} ${error}`),
    enqueued: (_, kind) => void enqueued.push(kind),
    trigger: (event, error) => void enqueued.push(`trigger ${event} ${error}`),
  }
  const aggregation: CompiledAggregation = {
    enabled: true,
    syncTime: 'ResourceVersion',
    syncTimeAnnotation: '',
    podSelector: undefined,
    updateTrigger: undefined,
    ...options.aggregation,
  }
  const state = { aggregation: aggregation as CompiledAggregation }
  const election = new Election()
  const others = options.others ?? new Map<string, MemoryObjects>()
  const members = (): CellMember[] =>
    [['first', worker] as const, ...others].map(([name, client]) => ({ name, client, aggregation: state.aggregation }))
  const settings = { ...DEFAULT_PROTECTION_SETTINGS, aggregationRateMs: RATE_MS, ...options.settings }
  const protectors = new ProtectorTable()
  const following = core.follow(POD_PROTECTORS, '', {
    onReplace: (objects) => protectors.replace(objects),
    onChange: (type, object) => {
      const { namespace = '', name } = (object as unknown as PodProtector).metadata
      if (type === 'DELETED') protectors.remove(namespace, name)
      else protectors.put(object)
    },
    onState: () => undefined,
  })
  const clock = options.clock ?? systemClock
  const clocks = agreeingClocks(clock, cell)
  const shared = { core, protectors, settings, clock, clocks, log, leadership: election.leadership }
  const aggregator = startPodAggregator({
    ...shared,
    cell,
    members,
    random: Math.random,
    events,
  })
  t.after(async () => {
    await aggregator.stop()
    await following.stop()
  })
  return { core, worker, aggregator, protectors, lines, reconciled, enqueued, state, election, shared }
}

function protector(spec: Partial<PodProtectorSpec> = {}, cells?: readonly CellStatus[], name = 'web'): JsonObject {
  const summary = { totalReplicas: 0, aggregatedAvailableReplicas: 0, estimatedAvailableReplicas: 0 }
  return {
    apiVersion: 'podseidon.kubewharf.io/v1alpha1',
    kind: 'PodProtector',
    metadata: { name, namespace: 'default' },
    spec: { minAvailable: 1, minReadySeconds: 0, selector: { matchLabels: { app: 'web' } }, ...spec },
    ...(cells !== undefined && { status: { cells, summary } }),
  }
}

interface PodOptions {
  readonly ready?: boolean
  readonly readySince?: number
  readonly labels?: Record<string, string>
  readonly terminating?: boolean
}

function pod(name: string, options: PodOptions = {}): JsonObject {
  const { ready = true, readySince = Date.now() - 60_000, labels = { app: 'web' }, terminating = false } = options
  const since = { lastTransitionTime: new Date(readySince).toISOString() }
  // Written in the second before: what was cut off counts against it.
  const fieldsV1 = { 'f:status': { 'f:conditions': { 'k:{"type":"Ready"}': {} } } }
  const managedFields = [{ manager: 'kubelet', time: new Date(readySince - 1000).toISOString(), fieldsV1 }]
  const deletion = { deletionTimestamp: new Date().toISOString(), deletionGracePeriodSeconds: 30 }
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: 'default',
      uid: `uid-of-${name}`,
      labels,
      managedFields,
      ...(terminating && deletion),
    },
    spec: { containers: [{ name: 'main', image: 'x'.repeat(1000) }] },
    status: {
      phase: 'Running',
      conditions: [
        { type: 'PodScheduled', status: 'True' },
        { type: 'Ready', status: String(ready).replace(/^./, (c) => c.toUpperCase()), ...since },
      ],
    },
  }
}

function stored(core: MemoryObjects, name = 'web'): PodProtector {
  return core.find(POD_PROTECTORS, name, 'default') as unknown as PodProtector
}

function cellOf(core: MemoryObjects, cell = 'worker-1', name = 'web'): CellStatus | undefined {
  return stored(core, name).status?.cells.find(({ cellID }) => cellID === cell)
}

function bucketsOf(core: MemoryObjects, cell = 'worker-1'): readonly AdmissionBucket[] {
  return cellOf(core, cell)?.admissionHistory?.buckets ?? []
}

/** total, available, estimated */
function sums(core: MemoryObjects): readonly (number | undefined)[] {
  const { summary } = stored(core).status ?? {}
  return [summary?.totalReplicas, summary?.aggregatedAvailableReplicas, summary?.estimatedAvailableReplicas]
}

function summed(core: MemoryObjects, ...expected: number[]): Promise<true> {
  return waitFor(`the sums ${expected.join(' ')}`, () => expected.join() === sums(core).join() || undefined, {
    intervalMs: 5,
  }).catch((error: unknown) => assert.deepEqual(sums(core), expected, String(error))) as Promise<true>
}

/** As the ledger does, in one CAS. */
async function admit(core: MemoryObjects, cell: string, buckets: readonly AdmissionBucket[]): Promise<void> {
  for (;;) {
    const object = stored(core)
    const cells = (object.status?.cells ?? []).map((one) =>
      one.cellID === cell
        ? { ...one, admissionHistory: { buckets: [...(one.admissionHistory?.buckets ?? []), ...buckets] } }
        : one,
    )
    const status = { ...object.status, cells }
    try {
      await core.update(POD_PROTECTORS, { ...(object as unknown as JsonObject), status }, 'status')
      return
    } catch {
      // The aggregator was faster.
    }
  }
}

function bucket(uid: string, more: Partial<AdmissionBucket> = {}): AdmissionBucket {
  return { startTime: formatMicros(Date.now() * 1000), podUID: uid, counter: 1, ...more }
}

/** Enough turns of the loop, and rates, for everything that would happen. */
async function quiet(seen: { readonly length: number }): Promise<void> {
  for (let calm = 0, last = -1; calm < 5; ) {
    await new Promise((resolve) => setTimeout(resolve, RATE_MS))
    calm = seen.length === last ? calm + 1 : 0
    last = seen.length
  }
}

// === Podseidon's table ===

interface Case {
  readonly name: string
  readonly spec: {
    readonly minAvailable: number
    readonly minReadySeconds: number
    readonly selector: Record<string, string>
    readonly aggregationSelector: Record<string, string>
  }
  readonly pods: readonly {
    readonly count: number
    readonly deleted: boolean
    readonly aggregateOnly: boolean
    readonly readyForSeconds: number
  }[]
  readonly expectSummaryAsserted: Record<string, number>
  readonly derivedActual: Record<string, number>
  readonly later?: { readonly advanceClockSeconds: number; readonly expectSummaryAsserted: Record<string, number> }
}

const CASES = JSON.parse(
  readFileSync(new URL('../data/pod-aggregator-cases.json', import.meta.url), 'utf8'),
) as readonly Case[]

for (const { name, spec, pods, expectSummaryAsserted, derivedActual, later } of CASES) {
  test(`Podseidon's ${name}`, async (t) => {
    const now = Math.ceil(Date.now() / 1000) * 1000
    const wall = { ms: now }
    const clock = { now: () => wall.ms, monotonic: () => systemClock.monotonic() + wall.ms - now }
    const { minAvailable, minReadySeconds } = spec
    const core = new MemoryObjects()
    const worker = new MemoryObjects()
    const selector = { matchLabels: spec.selector }
    const aggregationSelector = { matchLabels: spec.aggregationSelector }
    core.put(POD_PROTECTORS, protector({ minAvailable, minReadySeconds, selector, aggregationSelector }))
    for (const [index, { count, deleted, aggregateOnly, readyForSeconds }] of pods.entries()) {
      const labels = { test: 'true', triggersWebhook: String(!aggregateOnly) }
      const readySince = now - readyForSeconds * 1000
      for (let i = 0; i < count; i++)
        worker.put(PODS, pod(`p-${index}-${i}`, { labels, readySince, terminating: deleted }))
    }
    const { aggregator } = start(t, { core, worker, clock, settings: { aggregationRateMs: 0, clockSkewMs: 0 } })
    const summary = (): Record<string, unknown> => ({ ...stored(core).status?.summary })
    const expected = { ...expectSummaryAsserted, ...derivedActual }
    await waitFor('the summary', () => core.writes.length > 0)
    assert.deepEqual(summary(), expected)
    if (later === undefined) return
    await waitFor('it waits for a pod to become available', () => aggregator.describe().queued === 1)
    wall.ms += later.advanceClockSeconds * 1000
    await waitFor('the pods that became available', () => core.writes.length > 1)
    assert.deepEqual(summary(), { ...expected, ...later.expectSummaryAsserted })
  })
}

// === counting ===

test('pods come, change, and go', async (t) => {
  const { core, worker, lines } = start(t)
  core.put(POD_PROTECTORS, protector())
  await summed(core, 0, 0, 0)
  for (let i = 0; i < 5; i++) worker.put(PODS, pod(`p${i}`, { ready: i > 0 }))
  worker.put(PODS, pod('other', { labels: { app: 'other' } }))
  await summed(core, 5, 4, 4)
  worker.put(PODS, pod('p0'))
  await summed(core, 5, 5, 5)
  worker.put(PODS, pod('p1', { terminating: true }))
  await summed(core, 4, 4, 4)
  worker.remove(PODS, 'p1', 'default')
  worker.remove(PODS, 'p2', 'default')
  await summed(core, 3, 3, 3)
  const { aggregation } = cellOf(core) ?? {}
  assert.deepEqual(
    [aggregation?.readyReplicas, aggregation?.runningReplicas, aggregation?.scheduledReplicas],
    [3, 3, 3],
  )
  assert.ok(lines.every((line) => !line.includes('could not')))
})

test('pods that are labelled away, or back, are no longer counted, or again', async (t) => {
  const { core, worker } = start(t)
  core.put(POD_PROTECTORS, protector({}, undefined, 'web'))
  for (let i = 0; i < 10; i++) worker.put(PODS, pod(`p${i}`))
  await summed(core, 10, 10, 10)
  for (let i = 0; i < 5; i++) worker.put(PODS, pod(`p${i}`, { labels: { app: 'stray' } }))
  await summed(core, 5, 5, 5)
  worker.put(PODS, pod('p0', { labels: { app: 'web', extra: 'yes' } }))
  await summed(core, 6, 6, 6)
})

test('a selector that changes, and a protector that is new, are counted without an event of a pod', async (t) => {
  const { core, worker } = start(t)
  worker.put(PODS, pod('a'))
  worker.put(PODS, pod('b', { labels: { app: 'blue' } }))
  worker.put(PODS, pod('c', { labels: { app: 'blue' } }))
  core.put(POD_PROTECTORS, protector())
  await summed(core, 1, 1, 1)
  core.put(POD_PROTECTORS, protector({ selector: { matchLabels: { app: 'blue' } } }))
  await summed(core, 2, 2, 2)
})

test('a pod is counted when it has been ready long enough, without an event', async (t) => {
  const wall = { ms: Date.now() }
  const { core, worker } = start(t, { clock: { now: () => wall.ms, monotonic: systemClock.monotonic } })
  core.put(POD_PROTECTORS, protector({ minReadySeconds: 1 }))
  worker.put(PODS, pod('a', { readySince: wall.ms }))
  await summed(core, 1, 0, 0)
  wall.ms += 2_000
  await summed(core, 1, 1, 1)
})

test('nothing is written while nothing changes', async (t) => {
  const { core, worker, reconciled } = start(t)
  core.put(POD_PROTECTORS, protector())
  worker.put(PODS, pod('a'))
  await summed(core, 1, 1, 1)
  await quiet(reconciled)
  const writes = core.writes.length
  for (let i = 0; i < 20; i++) worker.put(PODS, { ...pod('a'), annotated: i })
  worker.bookmark(PODS)
  // Another client writes the protector: it is looked at, and left alone.
  core.put(POD_PROTECTORS, { ...protector(), metadata: { name: 'web', namespace: 'default', labels: { a: 'b' } } })
  await quiet(reconciled)
  assert.equal(core.writes.length, writes)
})

test('a burst of events is one aggregation', async (t) => {
  const { core, worker, reconciled } = start(t, { settings: { aggregationRateMs: 200 } })
  core.put(POD_PROTECTORS, protector())
  await summed(core, 0, 0, 0)
  await quiet(reconciled)
  reconciled.length = 0
  for (let i = 0; i < 500; i++) worker.put(PODS, pod(`p${i}`))
  await summed(core, 500, 500, 500)
  assert.equal(reconciled.length, 1)
})

// === several clusters of one cell ===

test('two clusters of one cell: their pods are counted together, and deletions go by the cluster of the pod', async (t) => {
  const other = new MemoryObjects()
  const { core, worker, aggregator, reconciled } = start(t, { others: new Map([['second', other]]) })
  core.put(POD_PROTECTORS, protector())
  // Names are of a cluster; and this one is far ahead.
  for (let i = 0; i < 50; i++) worker.put(PODS, pod('a'))
  other.put(PODS, { ...pod('a'), metadata: { ...(pod('a')['metadata'] as object), uid: 'uid-of-other-a' } })
  other.put(PODS, pod('b'))
  await summed(core, 3, 3, 3)
  const known = aggregator.describe()
  assert.deepEqual([known.active, known.pods, known.clusters], [true, 3, ['first', 'second']])
  assert.match(cellOf(core)?.aggregation?.resourceVersion ?? '', /^first=[0-9]+;second=[0-9]+$/)
  other.stall()
  const version = String(Object(other.find(PODS, 'b', 'default')?.['metadata']).resourceVersion)
  await admit(core, 'worker-1', [bucket('uid-of-b', { resourceVersion: version })])
  other.remove(PODS, 'b', 'default')
  // What the first cluster says is nothing to a pod of the second one.
  worker.put(PODS, pod('c'))
  await summed(core, 4, 4, 3)
  await quiet(reconciled)
  assert.deepEqual([sums(core), bucketsOf(core).length], [[4, 4, 3], 1])
  other.resume()
  await summed(core, 3, 3, 3)
  await waitFor('the history to be empty', () => bucketsOf(core).length === 0, { intervalMs: 5 })
})

test('one cluster by two UpstreamClusters: a pod counts once, and a deleted one does not reappear through the slower one', async (t) => {
  const late = new MemoryObjects()
  const { core, worker, reconciled } = start(t, { others: new Map([['late', late]]) })
  core.put(POD_PROTECTORS, protector())
  const both = [worker, late]
  for (const name of ['a', 'b', 'c', 'd']) for (const one of both) one.put(PODS, pod(name))
  await summed(core, 4, 4, 4)
  late.stall()
  for (const one of both) {
    one.put(PODS, pod('a', { terminating: true }))
    one.remove(PODS, 'a', 'default')
    one.put(PODS, pod('b', { terminating: true }))
    one.put(PODS, pod('c', { ready: false }))
    one.put(PODS, pod('e'))
    one.remove(PODS, 'e', 'default')
  }
  await summed(core, 2, 1, 1)
  await quiet(reconciled)
  assert.deepEqual(sums(core), [2, 1, 1])
  late.resume()
  await quiet(reconciled)
  assert.deepEqual(sums(core), [2, 1, 1])
})

test('one cluster by two UpstreamClusters: a pod whose labels leave the selection and return is counted again', async (t) => {
  const second = new MemoryObjects()
  const podSelector = { matchLabels: { app: 'web' } }
  const { core, worker, reconciled } = start(t, { others: new Map([['second', second]]), aggregation: { podSelector } })
  core.put(POD_PROTECTORS, protector())
  const both = [worker, second]
  const labelled = (app: string): void => {
    for (const one of both) one.put(PODS, pod('a', { labels: { app } }))
  }
  for (const name of ['a', 'b']) for (const one of both) one.put(PODS, pod(name))
  await summed(core, 2, 2, 2)
  // One of them hears nothing of it.
  second.stall()
  labelled('other')
  await summed(core, 1, 1, 1)
  labelled('web')
  await summed(core, 2, 2, 2)
  second.resume()
  await quiet(reconciled)
  assert.deepEqual(sums(core), [2, 2, 2])
  // Neither knows it, and then both.
  labelled('other')
  await summed(core, 1, 1, 1)
  labelled('web')
  await summed(core, 2, 2, 2)
})

// === admission histories ===

test('deletions of pods that are not there vanish with the update trigger alone', async (t) => {
  const updateTrigger = { namespace: 'default', name: 'trigger', intervalMs: 20 }
  const { core, worker, enqueued } = start(t, { aggregation: { updateTrigger } })
  for (let i = 0; i < 4; i++) worker.put(PODS, pod(`p${i}`))
  core.put(POD_PROTECTORS, protector())
  await summed(core, 4, 4, 4)
  // From a webhook that did not say which resourceVersion it saw.
  await admit(core, 'worker-1', [bucket('unknown-1'), bucket('unknown-2')])
  assert.equal(bucketsOf(core).length, 2)
  await waitFor('the history to be empty', () => bucketsOf(core).length === 0, { intervalMs: 5 })
  await summed(core, 4, 4, 4)
  assert.ok(enqueued.includes('trigger create ') && enqueued.includes('trigger update '))
})

test('without any event, a bookmark does it', async (t) => {
  const { core, worker, aggregator } = start(t)
  core.put(POD_PROTECTORS, protector())
  await summed(core, 0, 0, 0)
  // Time goes on in the cell, but not for its pods.
  worker.put(LEASES, { metadata: { name: 'other', namespace: 'default' } })
  await admit(core, 'worker-1', [bucket('unknown')])
  await waitFor('it waits for the stream', () => aggregator.describe().waiting === 1 && worker.reads.length === 1)
  assert.equal(bucketsOf(core).length, 1)
  worker.bookmark(PODS)
  await waitFor('the history to be empty', () => bucketsOf(core).length === 0, { intervalMs: 5 })
})

test('a stalled watch keeps all reservations, however long; events then release them', async (t) => {
  const wall = { ms: Date.now() }
  const begin = wall.ms
  const clock = { now: () => wall.ms, monotonic: () => systemClock.monotonic() + (wall.ms - begin) }
  const { core, worker, reconciled } = start(t, { clock })
  for (let i = 0; i < 110; i++) worker.put(PODS, pod(`p${i}`))
  core.put(POD_PROTECTORS, protector({ admissionHistoryConfig: { compactThreshold: 40 } }))
  await summed(core, 110, 110, 110)
  worker.stall()
  for (let i = 0; i < 100; i++) {
    const version = String(Object(worker.find(PODS, `p${i}`, 'default')?.['metadata']).resourceVersion)
    await admit(core, 'worker-1', [bucket(`uid-of-p${i}`, { resourceVersion: version })])
    worker.remove(PODS, `p${i}`, 'default')
  }
  for (let i = 0; i < 12; i++) {
    wall.ms += 10_000
    // The aggregator looks, and cannot know.
    core.put(POD_PROTECTORS, {
      ...protector({ admissionHistoryConfig: { compactThreshold: 40 } }),
      metadata: { name: 'web', namespace: 'default', labels: { turn: String(i) } },
    })
    await quiet(reconciled)
  }
  assert.deepEqual(sums(core), [110, 110, 10])
  worker.resume()
  await summed(core, 10, 10, 10)
  await waitFor('the history to be empty', () => bucketsOf(core).length === 0, { intervalMs: 5 })
})

test('a list takes the place of everything at once', async (t) => {
  const { core, worker, enqueued, reconciled } = start(t)
  for (let i = 0; i < 50; i++) worker.put(PODS, pod(`p${i}`))
  core.put(POD_PROTECTORS, protector())
  await summed(core, 50, 50, 50)
  worker.away = true
  const buckets = Array.from({ length: 30 }, (_, i) => bucket(`uid-of-p${i}`, { resourceVersion: '3' }))
  await admit(core, 'worker-1', buckets)
  for (let i = 0; i < 30; i++) worker.remove(PODS, `p${i}`, 'default')
  for (let i = 50; i < 55; i++) worker.put(PODS, pod(`p${i}`))
  await quiet(reconciled)
  assert.deepEqual(sums(core), [50, 50, 20])
  const written: string[] = []
  const watching = core.follow(POD_PROTECTORS, '', {
    onReplace: () => undefined,
    onChange: () => void written.push(sums(core).join(' ')),
    onState: () => undefined,
  })
  await Promise.resolve()
  worker.comeBack()
  await summed(core, 25, 25, 25)
  await watching.stop()
  assert.deepEqual(written, ['25 25 25'])
  assert.ok(enqueued.includes('List'))
})

test('an admitted pod that is alive keeps its reservation; a refused deletion ends after the timeout by the cell itself', async (t) => {
  const wall = { ms: Date.now() }
  const begin = wall.ms
  const clock = { now: () => wall.ms, monotonic: () => systemClock.monotonic() + (wall.ms - begin) }
  const { core, worker, reconciled } = start(t, { clock })
  for (let i = 0; i < 3; i++) worker.put(PODS, pod(`p${i}`))
  core.put(POD_PROTECTORS, protector())
  await summed(core, 3, 3, 3)
  await admit(core, 'worker-1', [bucket('uid-of-p0', { resourceVersion: '2' })])
  worker.put(PODS, pod('p1', { ready: false }))
  await summed(core, 3, 2, 1)
  wall.ms += 60_000
  worker.put(PODS, pod('p2', { labels: { app: 'web', touched: 'yes' } }))
  await quiet(reconciled)
  assert.equal(bucketsOf(core).length, 1)
  // Time goes on in the cell, but its pods say nothing.
  worker.put(LEASES, { metadata: { name: 'other', namespace: 'default' } })
  wall.ms += 10_000
  await quiet(reconciled)
  assert.equal(bucketsOf(core).length, 1)
  for (let i = 0; i < 100 && bucketsOf(core).length > 0; i++) {
    worker.bookmark(PODS)
    wall.ms += 1_000
    await quiet(reconciled)
  }
  await summed(core, 3, 2, 2)
})

// === trouble ===

test('a conflict is resolved with the newest object; an unreachable core is retried', async (t) => {
  const { core, worker, reconciled } = start(t)
  core.put(POD_PROTECTORS, protector())
  worker.put(PODS, pod('a'))
  await summed(core, 1, 1, 1)
  core.beforeUpdate = () => {
    core.put(POD_PROTECTORS, protector({ minAvailable: 7 }))
  }
  worker.put(PODS, pod('b'))
  await summed(core, 2, 2, 2)
  assert.equal(stored(core).spec.minAvailable, 7)
  assert.ok(reconciled.includes('default Conflict'))
  core.away = true
  worker.put(PODS, pod('c'))
  await waitFor('three attempts', () => reconciled.filter((one) => one === 'default NoAnswer').length === 3)
  core.away = false
  await summed(core, 3, 3, 3)
})

test('one protector that cannot be written does not hold up others', async (t) => {
  const { core, worker } = start(t)
  const { update } = core
  core.update = async (kind, object, subresource) => {
    if (Object(object['metadata']).name === 'odd') throw statusError('Invalid', 'no')
    return await update.call(core, kind, object, subresource)
  }
  core.put(POD_PROTECTORS, protector({}, undefined, 'odd'))
  core.put(POD_PROTECTORS, protector())
  core.put(
    POD_PROTECTORS,
    protector({ selector: { matchExpressions: [{ key: 'a', operator: 'in' as 'In' }] } }, undefined, 'bad'),
  )
  for (let i = 0; i < 4; i++) worker.put(PODS, pod(`p${i}`))
  worker.put(PODS, { metadata: 3 } as unknown as JsonObject & { metadata: object })
  await summed(core, 4, 4, 4)
})

test('a replica that is not leader holds nothing and writes nothing; it begins when it becomes leader', async (t) => {
  const { core, worker, aggregator, election, reconciled } = start(t)
  core.put(POD_PROTECTORS, protector())
  worker.put(PODS, pod('a'))
  await summed(core, 1, 1, 1)
  election.lapse()
  // Before a watch has told it.
  worker.put(PODS, pod('b'))
  await quiet(reconciled)
  assert.deepEqual(sums(core), [1, 1, 1])
  election.leads = false
  await waitFor('the watch to end', () => worker.followers(PODS) === 0)
  assert.deepEqual([aggregator.describe().active, aggregator.describe().pods], [false, 0])
  worker.put(PODS, pod('c'))
  election.leads = true
  await summed(core, 3, 3, 3)
  assert.equal(worker.followers(PODS), 1)
  await aggregator.stop()
  assert.equal(worker.followers(PODS), 0)
  const writes = core.writes.length
  worker.put(PODS, pod('d'))
  aggregator.update()
  await quiet(reconciled)
  assert.deepEqual([core.writes.length, worker.followers(PODS)], [writes, 0])
})

test('only pods that the cell selects are read, and another selector lists again', async (t) => {
  const podSelector = { matchLabels: { tier: 'one' } }
  const { core, worker, aggregator, state } = start(t, { aggregation: { podSelector } })
  core.put(POD_PROTECTORS, protector())
  worker.put(PODS, pod('a', { labels: { app: 'web', tier: 'one' } }))
  worker.put(PODS, pod('b', { labels: { app: 'web', tier: 'two' } }))
  await summed(core, 1, 1, 1)
  assert.equal(aggregator.describe().pods, 1)
  state.aggregation = { ...state.aggregation, podSelector: undefined }
  aggregator.update()
  await summed(core, 2, 2, 2)
})

test('a cell that has gone back in time is counted again; one whose watch is late is not', async (t) => {
  const { core, worker, reconciled, lines } = start(t)
  worker.put(PODS, pod('a'))
  const aggregation = {
    totalReplicas: 9,
    availableReplicas: 9,
    lastEventTime: formatMicros(Date.now() * 1000),
    resourceVersion: '900',
  }
  let newest = '1000'
  worker.currentVersion = async () => newest
  core.put(POD_PROTECTORS, protector({}, [{ cellID: 'worker-1', aggregation }]))
  await waitFor('a look', () => reconciled.length > 0)
  await quiet(reconciled)
  assert.equal(cellOf(core)?.aggregation?.totalReplicas, 9)
  newest = '20'
  await waitFor('a warning', () => {
    worker.bookmark(PODS)
    return lines.some((line) => line.includes('gone back'))
  })
  await summed(core, 1, 1, 1)
})

// === cells that went silent ===

test('a cell with events stays fresh; a silent one is marked, and unmarked at its next event', async (t) => {
  const { core, worker, shared, reconciled } = start(t, { settings: { staleAfterMs: 900 } })
  const sweeper = startStaleCellSweeper(shared)
  t.after(() => sweeper.stop())
  core.put(POD_PROTECTORS, protector())
  worker.put(PODS, pod('a'))
  await summed(core, 1, 1, 1)
  const lastEvent = (): string => cellOf(core)?.aggregation?.lastEventTime ?? ''
  const first = lastEvent()
  await waitFor('another time', () => {
    worker.bookmark(PODS)
    return lastEvent() > first
  })
  worker.stall()
  await waitFor('the mark', () => cellOf(core)?.stale === true)
  assert.deepEqual(sums(core), [0, 0, 0])
  // What was heard last need not have been written: it is by the next count.
  core.put(POD_PROTECTORS, protector({ minAvailable: 2 }))
  await quiet(reconciled)
  await waitFor('the mark', () => cellOf(core)?.stale === true)
  // From then on, another writer of the protector does not make it fresh.
  core.put(POD_PROTECTORS, protector({ minAvailable: 3 }))
  await quiet(reconciled)
  assert.equal(cellOf(core)?.stale, true)
  worker.resume()
  worker.bookmark(PODS)
  await summed(core, 1, 1, 1)
  assert.equal(cellOf(core)?.stale, undefined)
})

test('a list in pages is read as the pages come, and not once more at the end', async (t) => {
  const worker = new MemoryObjects()
  const follow = worker.follow.bind(worker)
  worker.follow = (kind, namespace, events, choice) =>
    follow(
      kind,
      namespace,
      {
        onReplace: (objects) => {
          for (const [index, object] of objects.entries()) events.onPage?.([object], index === 0)
          events.onReplace(objects.map(() => ({})))
        },
        onChange: (type, object) => events.onChange(type, object),
        onVersion: (version) => events.onVersion?.(version),
        onState: (current, message) => events.onState(current, message),
      },
      choice,
    )
  for (const name of ['a', 'b', 'c']) await worker.create(PODS, pod(name))
  const { core } = start(t, { worker })
  await core.create(POD_PROTECTORS, protector())
  await summed(core, 3, 3, 3)
})
