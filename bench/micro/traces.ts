// What traces cost a request, CPU time, with the loop itself (which is all of "off"): off, and of so many requests traced; and what one that is traced costs all threads together.
// node bench/micro/traces.ts

import process from 'node:process'
import { promisify } from 'node:util'
import { deserialize, serialize } from 'node:v8'
import { constants, gzip } from 'node:zlib'
import { createRecord, type RequestRecord } from '../../src/gateway/api/request-record.ts'
import type { RequestTrace, Tracer } from '../../src/gateway/api/request-trace.ts'
import { MetricsRecorder } from '../../src/gateway/metrics/recorder.ts'
import { loadConfig } from '../../src/process/config/config.ts'
import { ThreadTraces } from '../../src/traces/app/observers.ts'
import type { WrittenSpans } from '../../src/traces/core/otlp.ts'
import { envelope } from '../../src/traces/core/otlp-json.ts'
import { documentOf } from '../../src/traces/io/otlp-exporter.ts'

const RUNS = 5
const REQUESTS = 400_000
const BATCH = 256
const BATCHES = 20
const MILLION = 1_000_000
const UNSAMPLED = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00'
const FIELDS = [
  ...[':method', 'GET', ':path', '/api/v1/namespaces/shop/pods', ':scheme', 'https', ':authority', 'prod.example.com'],
  ...['user-agent', 'kubectl/v1.36.0 (linux/amd64)', 'accept', 'application/json', 'accept-encoding', 'gzip'],
]

function newRecord(): RequestRecord {
  return {
    ...createRecord(),
    auditId: '6c2f5d0b-4a8e-4a9a-9a52-3d1e9d1b7a10',
    cluster: 'prod',
    method: 'GET',
    target: '/api/v1/namespaces/shop/pods',
    verb: 'list',
    isResourceRequest: true,
    apiVersion: 'v1',
    resource: 'pods',
    namespace: 'shop',
    user: 'system:serviceaccount:shop:ci-bot',
    startWallMs: 1_790_000_000_000,
    userAgent: 'kubectl/v1.36.0 (linux/amd64)',
    remoteAddress: '10.1.2.3',
    code: 200,
    durationMs: 1,
    ttfbMs: 1,
  }
}

function threadTraces(ratePerMillion: number): ThreadTraces {
  const defaults = loadConfig({ flags: { source: 'files', configDir: 'none' }, env: {}, readFile: () => '' })
  const config = { ...defaults, tracingSamplingRatePerMillion: ratePerMillion }
  const traces = new ThreadTraces(config, 1, new MetricsRecorder(), () => performance.now())
  traces.handTo(() => undefined)
  return traces
}

/** As begin-record.ts, attempt.ts and the observers of a thread do it. */
function request(traces: ThreadTraces | undefined, record: RequestRecord, fields: string[], traceparent: string): void {
  const tracer = traces?.tracer
  if (tracer !== undefined) record.trace = tracer.begin(traceparent, fields, record.startMs)
  const { trace } = record
  if (trace !== undefined && tracer !== undefined) pass(trace, tracer)
  traces?.responseStarted(record)
  traces?.requestEnded(record)
}

/** Every step, one sending: five spans. */
function pass(trace: RequestTrace, tracer: Tracer): void {
  trace.authenticatedMs = 0.1
  trace.identifiedMs = 0.1
  trace.admittedMs = 0.2
  const times = { pickMs: 0.2, sentMs: 0.3, headMs: 3, endMs: 4 }
  trace.attempts.push({
    spanId: tracer.newSpanId(),
    endpoint: 'https://10.0.0.1:6443',
    ...times,
    code: 200,
    error: '',
  })
}

function cpuMicros(work: () => void): number {
  const began = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(began)
  return user + system
}

function measure(name: string, ratePerMillion: number | undefined, traceparent = ''): void {
  const traces = ratePerMillion === undefined ? undefined : threadTraces(ratePerMillion)
  // A thread hands over what waits before there are too many.
  const flushEvery = Math.min(REQUESTS, Math.ceil((BATCH * MILLION) / Math.max(1, ratePerMillion ?? 0)))
  const record = newRecord()
  const fields = [...FIELDS]
  let best = Number.POSITIVE_INFINITY
  for (let run = 0; run < RUNS; run++) {
    const micros = cpuMicros(() => {
      for (let i = 1; i <= REQUESTS; i++) {
        request(traces, record, fields, traceparent)
        fields.length = FIELDS.length
        if (i % flushEvery === 0) traces?.flush()
      }
    })
    traces?.flush()
    best = Math.min(best, micros)
  }
  print(name, best / REQUESTS)
}

/** From the head of a request to what goes to the collector: in its thread, on its way to the main thread, there, and compressed. */
async function measureWhole(): Promise<void> {
  const record = newRecord()
  const traces = threadTraces(MILLION)
  let written: WrittenSpans[] = []
  traces.handTo((spans) => written.push(spans))
  const around = envelope({ 'service.name': 'portcullis' }, '1.0.0')
  const compress = promisify(gzip)
  const level = constants.Z_BEST_SPEED
  let best = Number.POSITIVE_INFINITY
  for (let run = 0; run < RUNS; run++) {
    const began = process.cpuUsage()
    for (let batch = 0; batch < BATCHES; batch++) {
      for (let i = 0; i < BATCH; i++) request(traces, record, [...FIELDS], '')
      traces.flush()
      const cloned: readonly WrittenSpans[] = deserialize(serialize(written))
      written = []
      await compress(documentOf(around, cloned), { level })
    }
    const { user, system } = process.cpuUsage(began)
    best = Math.min(best, user + system)
  }
  print('a traced request in all threads', best / (BATCH * BATCHES))
}

function print(name: string, micros: number): void {
  console.log(`${name.padEnd(48)} ${(micros * 1000).toFixed(1)} ns a request`)
}

measure('off', undefined)
measure('0 %', 0)
measure('0 %, the caller has a trace that is not sampled', 0, UNSAMPLED)
measure('1 %', MILLION / 100)
measure('100 %', MILLION)
await measureWhole()
