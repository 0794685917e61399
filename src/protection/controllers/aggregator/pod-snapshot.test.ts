import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { podFacts } from '../../core/quota/pod-facts.ts'
import { PodSnapshot, sameForCounting, slimPod } from './pod-snapshot.ts'

function pod(name: string, labels: Record<string, string>, more: JsonObject = {}): JsonObject {
  const metadata = { name, namespace: 'default', uid: `uid-${name}`, resourceVersion: '5', labels, ...more }
  const conditions = [{ type: 'Ready', status: 'True', lastTransitionTime: '2026-01-02T03:04:05Z' }]
  return { metadata, spec: { secret: 'x' }, status: { phase: 'Running', conditions, podIP: '10.0.0.1' } }
}

test('a pod is evaluated the same whether whole or reduced to what is kept', () => {
  const annotations = {
    'podseidon.kubewharf.io/force-delete': '',
    'podseidon.kubewharf.io/health-criterion': 'Ready',
    seen: '1',
    'kubectl.kubernetes.io/last-applied-configuration': '{}',
  }
  const deletion = { deletionTimestamp: '2026-01-02T03:04:05Z', deletionGracePeriodSeconds: 3 }
  for (const more of [{}, { annotations }, deletion, { annotations: { __proto__: 'x' } }, { annotations: 3 }]) {
    const whole = pod('a', { app: 'web' }, more)
    assert.deepEqual(podFacts(slimPod(whole, 'seen')), podFacts(whole))
  }
  const text = JSON.stringify(slimPod(pod('a', {}, { annotations }), 'seen'))
  assert.ok(text.includes('"seen"') && !/secret|last-applied|podIP/.test(text))
  assert.ok(!JSON.stringify(slimPod(pod('a', {}, { annotations }))).includes('seen'))
  fc.assert(fc.property(fc.jsonValue(), (value) => void slimPod({ metadata: value, status: value })))
})

test('pods with the same labels share them', () => {
  const snapshot = new PodSnapshot(() => 0)
  snapshot.replace(Array.from({ length: 100 }, (_, i) => pod(`p${i}`, { app: 'web', tier: 'one' })))
  const [a, b] = [snapshot.get('uid-p0'), snapshot.get('uid-p99')]
  assert.ok(a !== undefined && b !== undefined && a.labels === b.labels)
  const { before, after } = snapshot.change(
    'MODIFIED',
    pod('p0', { app: 'web', tier: 'one' }, { resourceVersion: '6' }),
  )
  assert.ok(before !== undefined && after !== undefined && sameForCounting(before, after))
  assert.equal(snapshot.get('uid-p0')?.resourceVersion, '6')
})

test('a list takes the place of everything; until the first one nothing is complete', () => {
  const snapshot = new PodSnapshot(() => 0)
  assert.deepEqual([snapshot.complete, snapshot.version], [false, ''])
  snapshot.replace([pod('a', { app: 'web' }), pod('b', { app: 'web' }), {}, { metadata: { name: 'no uid' } }])
  snapshot.reached('7')
  assert.deepEqual([snapshot.complete, snapshot.version, snapshot.size], [true, '7', 2])
  snapshot.replace([pod('c', { app: 'web' })])
  // At a version not yet known.
  assert.equal(snapshot.version, '')
  const names = [...snapshot.select('default', { matchLabels: { app: 'web' } })].map(({ name }) => name)
  assert.deepEqual(names, ['c'])
  const { before, after } = snapshot.change('DELETED', pod('c', { app: 'web' }))
  assert.deepEqual([before?.name, after, snapshot.size], ['c', undefined, 0])
  assert.deepEqual(snapshot.change('DELETED', pod('c', {})), { before: undefined, after: undefined })
})

test('a list in pages: nothing of it counts before all of it is there, nor anything of one that failed', () => {
  const snapshot = new PodSnapshot(() => 0)
  const pods = ['a', 'b', 'c'].map((name) => pod(name, { app: 'web' }))
  const names = (): string[] => ['a', 'b', 'c', 'lost'].filter((name) => snapshot.get(`uid-${name}`) !== undefined)
  snapshot.prepare([pod('lost', { app: 'web' })], true)
  snapshot.prepare(pods.slice(0, 2), true)
  snapshot.prepare(pods.slice(2), false)
  assert.deepEqual([names(), snapshot.complete], [[], false])
  snapshot.replace(pods)
  assert.deepEqual([names(), snapshot.complete], [['a', 'b', 'c'], true])
  // From a caller that doesn't announce pages, after a failed list.
  snapshot.prepare([pod('lost', { app: 'web' })], true)
  snapshot.replace(pods.slice(1))
  assert.deepEqual(names(), ['b', 'c'])
})

test('since when a pod is ready: what is heard at once needs no stamp; what a list tells has one', () => {
  let nowMs = 1_000
  const snapshot = new PodSnapshot(() => nowMs)
  const at = (time: string, status = 'True'): JsonObject => {
    const fieldsV1 = { 'f:status': { 'f:conditions': { 'k:{"type":"Ready"}': {} } } }
    const whole = pod('a', {}, { managedFields: [{ time: '2026-01-02T03:04:05Z', fieldsV1 }] })
    return { ...whole, status: { conditions: [{ type: 'Ready', status, lastTransitionTime: time }] } }
  }
  const known = (): unknown => {
    const { readySeenMs, readyWrittenMs } = snapshot.get('uid-a') ?? {}
    return [readySeenMs, readyWrittenMs]
  }
  const stamp = Date.parse('2026-01-02T03:04:05Z')
  snapshot.replace([at('2026-01-01T00:00:00Z')])
  assert.deepEqual(known(), [1_000, stamp])
  nowMs = 2_000
  snapshot.change('MODIFIED', at('2026-01-01T00:00:00Z'))
  assert.deepEqual(known(), [1_000, stamp], 'nothing has changed')
  snapshot.change('MODIFIED', at('2026-01-01T00:00:07Z', 'False'))
  assert.deepEqual(known(), [0, 0])
  snapshot.change('MODIFIED', at('2026-01-01T00:00:08Z'))
  assert.deepEqual(known(), [2_000, 0])
  nowMs = 3_000
  snapshot.replace([at('2026-01-01T00:00:08Z')])
  assert.deepEqual(known(), [2_000, 0], 'a list of the same says nothing new')
  snapshot.replace([at('2026-01-01T00:00:09Z')])
  assert.deepEqual(known(), [3_000, stamp])
})
