// What counting one request costs: nanoseconds and bytes for `requestStarted` and `observe` together. The records are
// made outside the clock, with names that are new strings each time, as they are when cut out of a request.
//
//   node bench/micro/metrics.ts

import { createRecord, type RequestRecord } from '../../src/gateway/api/request-record.ts'
import { MetricsRecorder } from '../../src/gateway/metrics/recorder.ts'

const ENDPOINTS = ['https://10.0.0.1:6443', 'https://10.0.0.2:6443', 'https://10.0.0.3:6443']
const RESOURCES = ['pods', 'nodes', 'events', 'leases', 'secrets', 'configmaps', 'endpointslices', 'deployments']
const VERBS = ['get', 'list', 'update', 'patch', 'create']
const BATCH = 64
const BATCHES = 12_000
const ALLOCATION_BATCH = 20_000

/** The same text in another string, cut out of a longer one that was just read. */
function fresh(text: string): string {
  return Buffer.from(`/${text}/`, 'latin1')
    .toString('latin1')
    .slice(1, 1 + text.length)
}

function recordOf(index: number, resources: number): RequestRecord {
  const record = createRecord()
  record.cluster = 'prod'
  record.verb = VERBS[index % VERBS.length] ?? 'get'
  record.apiGroup = fresh(index % 3 === 0 ? 'apps' : '')
  record.apiVersion = fresh('v1')
  record.resource = fresh(RESOURCES[index % resources] ?? 'pods')
  record.namespace = 'default'
  record.name = record.verb === 'list' ? '' : 'some-name'
  record.isResourceRequest = true
  record.endpoint = ENDPOINTS[index % ENDPOINTS.length] ?? ''
  record.flowControl = 'reads'
  record.attempts = 1
  record.code = index % 16 === 0 ? 404 : 200
  record.durationMs = 1.25 + (index % 8)
  record.ttfbMs = 1.2
  record.upstreamMs = 1.05
  record.responseBytes = 1024
  return record
}

/** Counts `size` new requests; what that took, nanoseconds. */
function countBatch(recorder: MetricsRecorder, from: number, size: number, resources: number): number {
  const batch: RequestRecord[] = []
  for (let i = 0; i < size; i++) batch.push(recordOf(from + i, resources))
  const start = process.hrtime.bigint()
  for (const record of batch) {
    recorder.requestStarted(record)
    recorder.observe(record)
  }
  return Number(process.hrtime.bigint() - start)
}

function measure(title: string, resources: number): void {
  const recorder = new MetricsRecorder()
  recorder.clustersChanged([{ name: 'prod', endpoints: ENDPOINTS }])
  const times: number[] = []
  for (let round = 0; round < BATCHES; round++)
    times.push(countBatch(recorder, round * BATCH, BATCH, resources) / BATCH)
  const steady = times.slice(BATCHES / 2).sort((a, b) => a - b)
  // The quickest tenth is what the code costs; the rest is what else the machine does.
  const quick = steady[Math.floor(steady.length / 10)] ?? 0
  const median = steady[steady.length >> 1] ?? 0
  const allocated = allocatedBytes(recorder, resources).toFixed(2)
  console.log(`${title}: ${quick.toFixed(0)} ns (median ${median.toFixed(0)} ns), ${allocated} bytes per request`)
}

/** Bytes for each request, from the smallest of a few measurements: a collection in between spoils one. */
function allocatedBytes(recorder: MetricsRecorder, resources: number): number {
  const batch: RequestRecord[] = []
  for (let i = 0; i < ALLOCATION_BATCH; i++) batch.push(recordOf(i, resources))
  let smallest = Number.POSITIVE_INFINITY
  for (let round = 0; round < 5; round++) {
    const before = process.memoryUsage().heapUsed
    for (const record of batch) {
      recorder.requestStarted(record)
      recorder.observe(record)
    }
    const bytes = process.memoryUsage().heapUsed - before
    if (bytes >= 0) smallest = Math.min(smallest, bytes / ALLOCATION_BATCH)
  }
  return smallest
}

function measureSnapshot(clusters: number, resources: number): void {
  const recorder = new MetricsRecorder()
  const names = Array.from({ length: clusters }, (_, index) => `cluster-${index}`)
  recorder.clustersChanged(names.map((name) => ({ name, endpoints: ENDPOINTS })))
  for (const cluster of names) {
    for (let i = 0; i < resources * VERBS.length; i++) {
      const record = Object.assign(recordOf(i, 1), { cluster, resource: `r${i % resources}` })
      recorder.observe(record)
    }
  }
  const start = performance.now()
  const snapshot = recorder.changes()
  const made = performance.now()
  structuredClone(snapshot)
  const cloned = performance.now()
  console.log(
    `snapshot of ${clusters} clusters with ${resources} resources: ` +
      `${(made - start).toFixed(2)} ms, cloned in ${(cloned - made).toFixed(2)} ms`,
  )
}

measure('one resource', 1)
measure('eight resources, five verbs', 8)
measureSnapshot(1, 50)
measureSnapshot(50, 80)
