import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createRecord, type RequestRecord } from '../../api/request-record.ts'
import type { LogMode } from '../../api/upstream-cluster/upstream-cluster.ts'
import { accessLogEnabled, createAccessLog, formatAccessLine } from './access-log.ts'

function record(...parts: Partial<RequestRecord>[]): RequestRecord {
  return Object.assign(createRecord(), ...parts)
}

const GET_POD: Partial<RequestRecord> = {
  auditId: 'id-1',
  startWallMs: Date.UTC(2024, 4, 1, 12, 0, 0, 7),
  method: 'GET',
  target: '/clusters/prod/api/v1/namespaces/default/pods/a?x=%2F',
  host: 'gw:8443',
  remoteAddress: '10.1.2.3',
  localAddress: '10.0.0.9',
  localPort: 8443,
  userAgent: 'kubectl/v1.34',
  cluster: 'prod',
  verb: 'get',
  apiVersion: 'v1',
  resource: 'pods',
  namespace: 'default',
  name: 'a',
  isResourceRequest: true,
  user: 'alice',
  groups: ['dev', 'system:authenticated'],
  policy: 1,
  rule: 0,
  flowControl: 'reads',
  endpoint: 'https://10.0.0.1:6443',
  attempts: 1,
  code: 200,
  responseBytes: 5,
  ttfbMs: 1.23456,
  durationMs: 2,
  upstreamMs: 1,
  clusterLogMode: 'on',
}

test('a line has the request, the decision and the outcome', () => {
  assert.deepEqual(JSON.parse(formatAccessLine(record(GET_POD))), {
    time: '2024-05-01T12:00:00.007500Z',
    auditID: 'id-1',
    cluster: 'prod',
    host: 'gw:8443',
    method: 'GET',
    target: '/clusters/prod/api/v1/namespaces/default/pods/a?x=%2F',
    protocol: 'h2',
    user: 'alice',
    groups: ['dev', 'system:authenticated'],
    userAgent: 'kubectl/v1.34',
    remoteAddress: '10.1.2.3',
    localAddress: '10.0.0.9',
    localPort: 8443,
    verb: 'get',
    apiGroup: '',
    apiVersion: 'v1',
    resource: 'pods',
    namespace: 'default',
    name: 'a',
    policy: 1,
    rule: 0,
    flowControl: 'reads',
    endpoint: 'https://10.0.0.1:6443',
    attempts: 1,
    code: 200,
    requestBytes: 0,
    responseBytes: 5,
    latencyMs: 2,
    ttfbMs: 1.235,
    upstreamMs: 1,
  })
})

test('a refusal has its reason; impersonation, shadow and aborts are logged', () => {
  const refused = {
    refusal: 'Degraded',
    refusalRule: 'Freeze',
    message: 'frozen',
    code: 503,
    endpoint: '',
    upstreamMs: -1,
  }
  const more: Partial<RequestRecord> = { impersonator: 'root', uid: 'u-1', shadow: ['access/x'], aborted: 'client' }
  const line = JSON.parse(formatAccessLine(record(GET_POD, refused, more)))
  assert.equal(line.reason, 'Degraded')
  assert.equal(line.refusedBy, 'Freeze')
  assert.equal(line.message, 'frozen')
  assert.equal(line.endpoint, undefined)
  assert.equal(line.upstreamMs, null)
  assert.equal(line.impersonator, 'root')
  assert.deepEqual(line.shadow, ['access/x'])
  assert.equal(line.aborted, 'client')
})

test('whatever clients send, a line is one line of JSON that reads back', () => {
  const text = fc.string({ unit: 'binary' })
  fc.assert(
    fc.property(text, text, text, fc.array(text), (target, user, userAgent, groups) => {
      const line = formatAccessLine(record(GET_POD, { target, user, userAgent, groups, host: user }))
      assert.doesNotMatch(line, /[\n\r]/)
      const read = JSON.parse(line)
      assert.deepEqual(
        [read.target, read.user, read.userAgent, read.groups, read.host],
        [target, user, userAgent, groups, user],
      )
    }),
  )
})

test('an empty record is a line too', () => {
  const line = JSON.parse(formatAccessLine(record({})))
  assert.equal(line.policy, null)
  assert.equal(line.latencyMs, null)
  assert.equal(line.code, 0)
})

// KubeGateway prints slow and failed requests even with the log off: its defect 35.
test('off is off, for slow and failed requests too', () => {
  const lines: string[] = []
  const log = createAccessLog((line) => lines.push(line))
  log(record(GET_POD, { policyLogMode: 'off', durationMs: 60_000, code: 500 }))
  log(record(GET_POD, { clusterLogMode: 'off', policyLogMode: 'on', code: 503, refusal: 'x' }))
  log(record(GET_POD, { clusterLogMode: '', policyLogMode: '' }))
  assert.equal(lines.length, 0)
  log(record(GET_POD))
  log(record(GET_POD, { clusterLogMode: '', policyLogMode: 'on' }))
  assert.equal(lines.length, 2)
})

test('requests of one millisecond have the order in which they came', () => {
  const wall = Date.UTC(2024, 4, 1, 12)
  const times: string[] = []
  // A monotonic clock with another origin, slightly slower than the wall clock, and a wall clock that finally jumps.
  for (let i = 0; i < 5000; i++) {
    const startMs = 77.7 + i * 0.1999
    const startWallMs = Math.floor(wall + i * 0.2) + (i >= 4500 ? 3_600_000 : 0)
    times.push(JSON.parse(formatAccessLine(record({ startMs, startWallMs }))).time)
  }
  assert.ok(times.every((time, i) => i === 0 || time >= (times[i - 1] ?? '')))
  assert.ok(new Set(times).size > 4500, 'nearly all are different')
})

// Cluster, policy, verdict: as KubeGateway's isLogEnabled, extended to all nine cells.
const TABLE: [LogMode, LogMode, boolean][] = [
  ['off', 'on', false],
  ['on', 'off', false],
  ['off', 'off', false],
  ['off', '', false],
  ['', 'off', false],
  ['', '', false],
  ['on', '', true],
  ['', 'on', true],
  ['on', 'on', true],
]

test('the switches of cluster and policy', () => {
  for (const [cluster, policy, on] of TABLE)
    assert.equal(accessLogEnabled(true, cluster, policy), on, `${cluster},${policy}`)
})

test('the switch of the gateway comes first', () => {
  for (const [cluster, policy] of TABLE) assert.equal(accessLogEnabled(false, cluster, policy), false)
})
