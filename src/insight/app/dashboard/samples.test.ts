// Which clusters are remembered from sample to sample.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRecord } from '../../../gateway/api/request-record.ts'
import { MetricsRecorder } from '../../../gateway/metrics/recorder.ts'
import { Samples } from './samples.ts'

const ENDPOINT = 'https://192.0.2.1:6443'

test('a cluster is remembered from its first request on, and that one counts', async () => {
  const recorder = new MetricsRecorder()
  recorder.clustersChanged(['busy', 'idle'].map((name) => ({ name, endpoints: [ENDPOINT] })))
  // Health checks alone.
  for (const name of ['busy', 'idle']) recorder.upstream(name, ENDPOINT).opened++
  const samples = new Samples()
  await samples.take(recorder.snapshot(), 1_000_000, 1_000)
  assert.deepEqual([...samples.entries()], [])
  recorder.observe(Object.assign(createRecord(), { cluster: 'busy', code: 200 }))
  await samples.take(recorder.snapshot(), 1_010_000, 11_000)
  assert.deepEqual(
    [...samples.entries()].map(([name]) => name),
    ['busy'],
  )
  assert.ok((samples.of('busy')?.requests.last ?? 0) > 0)
  await samples.take(recorder.snapshot(), 1_020_000, 21_000)
  assert.equal(samples.of('busy')?.requests.last, 0, 'it stays when it has no more')
  recorder.clustersChanged([], ['busy'])
  await samples.take(recorder.snapshot(), 1_030_000, 31_000)
  assert.deepEqual([...samples.entries()], [])
})
