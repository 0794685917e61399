// Activity from changes of counters: what has not changed has no requests.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRecord } from '../../../gateway/api/request-record.ts'
import { createMetrics } from '../../../gateway/metrics/metrics.ts'
import { MetricsRecorder } from '../../../gateway/metrics/recorder.ts'
import { STEP_SECONDS } from '../../api/overview.ts'
import { Samples } from './samples.ts'

const ENDPOINT = 'https://10.0.0.1:6443'
const CLUSTERS = ['busy', 'quiet'].map((name) => ({ name, endpoints: [ENDPOINT] }))
const REFUSED = { refusal: 'no-policy', refusalRule: 'rule', code: 403 } as const
const ANSWERED = { endpoint: ENDPOINT, attempts: 1, code: 200, durationMs: 8, policy: 0, flowControl: 'all' } as const

function setUp() {
  const metrics = createMetrics()
  const thread = new MetricsRecorder()
  for (const each of [metrics, thread]) each.clustersChanged(CLUSTERS, [])
  const samples = new Samples()
  let nowMs = 0
  return {
    metrics,
    thread,
    samples,
    ask: (cluster: string, part: object) => thread.observe(Object.assign(createRecord(), { cluster }, part)),
    step: async (): Promise<void> => {
      nowMs += STEP_SECONDS * 1000
      metrics.threads.latest(1, structuredClone(thread.changes()))
      await samples.take(await metrics.changes(), nowMs, nowMs)
    },
  }
}

test('a step without requests is one of zeros, and the totals stay', async () => {
  const { samples, ask, step } = setUp()
  await step()
  for (let i = 0; i < STEP_SECONDS; i++) for (const part of [ANSWERED, REFUSED]) ask('busy', part)
  await step()
  const busy = samples.of('busy')
  assert.ok(busy)
  assert.deepEqual([busy.requests.last, busy.refused.last, samples.all.requests.last], [2, 1, 2])
  assert.equal(busy.endpoints.get(ENDPOINT)?.requests, 1)
  assert.deepEqual([busy.admitted.get('all'), busy.policies.get('0')], [1, 1])
  assert.ok(busy.durations.length > 0)
  await step()
  assert.deepEqual(busy.requests.values(3), [2, 0])
  assert.deepEqual([busy.refused.last, samples.all.requests.last], [0, 0])
  assert.deepEqual([busy.endpoints.get(ENDPOINT), busy.admitted.get('all'), busy.durations], [undefined, undefined, []])
  assert.equal(busy.totals?.requests, 2 * STEP_SECONDS)
  assert.equal(samples.all.totals?.requests, 2 * STEP_SECONDS)
  assert.deepEqual(
    busy.refusals('busy').map(({ count, perSecond }) => [count, perSecond]),
    [[STEP_SECONDS, 0]],
  )
  ask('busy', ANSWERED)
  await step()
  assert.deepEqual(
    busy.requests.values(3).map((value) => Number(value.toFixed(2))),
    [2, 0, 1 / STEP_SECONDS],
  )
})

test('steps of a cluster without requests are as many as those of one with requests', async () => {
  const { samples, ask, step } = setUp()
  await step()
  for (const name of ['busy', 'quiet']) ask(name, ANSWERED)
  for (let i = 0; i < 3; i++) {
    await step()
    ask('busy', ANSWERED)
  }
  for (const name of ['busy', 'quiet']) assert.equal(samples.of(name)?.requests.values(9).length, 3, name)
  assert.deepEqual(samples.of('quiet')?.requests.values(9).slice(1), [0, 0])
})

test('a cluster is remembered from its first request on', async () => {
  const { thread, samples, ask, step } = setUp()
  // Health checks alone.
  for (const { name } of CLUSTERS) thread.upstream(name, ENDPOINT).opened++
  await step()
  assert.deepEqual([...samples.entries()], [])
  ask('busy', ANSWERED)
  await step()
  assert.deepEqual([...new Map(samples.entries()).keys()], ['busy'])
})

test('a removed cluster is forgotten, and a new one has only new requests', async () => {
  const { metrics, thread, samples, ask, step } = setUp()
  ask('quiet', ANSWERED)
  await step()
  for (const each of [metrics, thread]) each.clustersChanged([], ['quiet'])
  await step()
  assert.equal(samples.of('quiet'), undefined)
  assert.deepEqual([...samples.entries()], [])
  for (const each of [metrics, thread]) each.clustersChanged(CLUSTERS, [])
  ask('quiet', ANSWERED)
  await step()
  assert.deepEqual(
    samples
      .of('quiet')
      ?.requests.values(9)
      .map((value) => Number(value.toFixed(2))),
    [1 / STEP_SECONDS],
  )
})
