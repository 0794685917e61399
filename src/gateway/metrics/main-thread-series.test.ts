import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { UpstreamClusterSpec } from '../api/upstream-cluster/upstream-cluster.ts'
import { compileCluster } from '../core/cluster/compile-cluster.ts'
import type { CompiledCluster } from '../core/cluster/compiled-cluster.ts'
import { Exposition } from './exposition.ts'
import { exposeClusters } from './main-thread-series.ts'

function cluster(name: string, revision: string, spec: Partial<UpstreamClusterSpec> = {}): CompiledCluster {
  const servers = [{ endpoint: 'https://127.0.0.1:1' }]
  const dispatchPolicies = [{ rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }] }]
  const object = {
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: { name },
    spec: { servers, dispatchPolicies, ...spec },
  } as const
  return compileCluster({ object, revision })
}

function textOf(clusters: readonly CompiledCluster[], nowMs: number): string {
  const into = new Exposition()
  exposeClusters(into, clusters, nowMs)
  return into.text()
}

function sampleOf(text: string, series: string): number | undefined {
  const line = text.split('\n').find((each) => each.startsWith(`${series} `))
  return line === undefined ? undefined : Number(line.slice(series.length + 1))
}

const END = '2026-01-02T03:04:05Z'
const END_MS = Date.parse(END)

test('the degrade mode in force, until it expires', () => {
  const degrade = { mode: 'ReadOnly', expiresAt: END, reason: 'INC-1' } as const
  const both = [cluster('a', '1', { degrade }), cluster('b', '1', { degrade: { mode: 'Freeze', shadow: true } })]
  const before = textOf(both, END_MS - 1)
  assert.equal(sampleOf(before, 'portcullis_degrade_mode{cluster="a",mode="ReadOnly",shadow="false"}'), 1)
  assert.equal(sampleOf(before, 'portcullis_degrade_expiration_timestamp_seconds{cluster="a"}'), END_MS / 1000)
  assert.equal(sampleOf(before, 'portcullis_degrade_mode{cluster="b",mode="Freeze",shadow="true"}'), 1)
  assert.equal(sampleOf(before, 'portcullis_degrade_expiration_timestamp_seconds{cluster="b"}'), 0)
  const after = textOf(both, END_MS)
  assert.equal(sampleOf(after, 'portcullis_degrade_mode{cluster="a",mode="Off",shadow="false"}'), 1)
  assert.equal(sampleOf(after, 'portcullis_degrade_expiration_timestamp_seconds{cluster="a"}'), undefined)
})

test('the size of limits of requests in flight, unless they are for each user', () => {
  const flowControlSchemas = [
    { name: 'all', maxRequestsInflight: { max: 40 } },
    { name: 'each', perUser: true, maxRequestsInflight: { max: 4 } },
    { name: 'rate', tokenBucket: { qps: 5, burst: 10 } },
  ]
  const text = textOf([cluster('a', '1', { flowControl: { flowControlSchemas } })], 0)
  assert.equal(sampleOf(text, 'portcullis_flow_control_limit{cluster="a",schema="all"}'), 40)
  assert.equal(text.match(/^portcullis_flow_control_limit\{/gm)?.length, 1)
})

test('the hash is that of the objects, whatever their order and the addresses that a replica has looked up', () => {
  const hash = (...clusters: CompiledCluster[]): number | undefined =>
    sampleOf(textOf(clusters, 0), 'portcullis_config_hash')
  const [a, b] = [cluster('a', 'aa'), cluster('b', 'bb')]
  const whole = hash(a, b)
  assert.ok(Number.isSafeInteger(whole))
  assert.equal(hash(b, a), whole)
  assert.equal(hash(cluster('a', 'aa https://api:6443=192.0.2.1'), b), whole)
  for (const other of [hash(a), hash(), hash(cluster('a', 'bb'), b), hash(cluster('a', 'bb'), cluster('b', 'aa'))])
    assert.notEqual(other, whole)
})
