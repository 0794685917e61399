import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { PodProtector } from '../../api/pod-protector.ts'
import type { PodFacts } from '../../api/protection.ts'
import { type HistoryLimits, limitsOf } from '../history/cell-history.ts'
import { formatMicros, parseMicros } from '../history/micro-time.ts'
import { compareVersions, joinVersions, newerVersion } from '../history/resource-version.ts'
import { aggregatePods, healthCriterion, isAvailable, podFacts } from './pod-facts.ts'

test('times with microseconds are read and written exactly', () => {
  assert.equal(parseMicros('1970-01-01T00:00:01.000002Z'), 1_000_002)
  assert.equal(parseMicros('2026-01-02T03:04:05.1Z') % 1_000_000, 100_000)
  assert.equal(parseMicros('2026-01-02T03:04:05.123456789Z') % 1_000_000, 123_456)
  assert.equal(parseMicros('2026-01-02T03:04:05+02:00'), parseMicros('2026-01-02T01:04:05Z'))
  assert.equal(formatMicros(parseMicros('2026-01-02T03:04:05.000006Z')), '2026-01-02T03:04:05.000006Z')
  const moments = fc.integer({ min: 0, max: parseMicros('2200-01-01T00:00:00Z') })
  fc.assert(fc.property(moments, (micros) => parseMicros(formatMicros(micros)) === micros))
})

test('an invalid time is NaN', () => {
  const texts = ['', 'now', '2026-02-30T00:00:00Z', '2026-01-01T24:00:00Z', '2026-01-01T00:00:60Z', '2026-01-01']
  for (const text of [...texts, '0001-01-01T00:00:00Z', '9999-01-01T00:00:00Z', '2026-13-01T00:00:00Z', 'NaN']) {
    assert.equal(parseMicros(text), Number.NaN, text)
  }
  assert.throws(() => formatMicros(Number.NaN), RangeError)
})

test('resourceVersions are compared as numbers of any length', () => {
  const order = (a: string, b: string) => Math.sign(compareVersions(a, b) ?? Number.NaN)
  assert.equal(order('9', '10'), -1)
  assert.equal(order('99999999999999999999999', '99999999999999999999998'), 1)
  assert.equal(order('007', '7'), 0)
  for (const unknown of ['', '-1', '0x1', '1.5', 'abc', ' 1']) assert.equal(compareVersions(unknown, '1'), undefined)
  assert.equal(newerVersion('9', '10'), '10')
  assert.equal(newerVersion('', '10'), '')
  const numbers = fc.bigInt({ min: 0n, max: 2n ** 80n })
  fc.assert(fc.property(numbers, numbers, (a, b) => order(`${a}`, `${b}`) === (a < b ? -1 : a > b ? 1 : 0)))
})

test('versions of several clusters go with those of the same clusters: older when any is', () => {
  assert.equal(joinVersions(new Map([['a', '7']])), '7')
  assert.equal(
    joinVersions(
      new Map([
        ['a', '7'],
        ['b', ''],
      ]),
    ),
    '',
  )
  const at = (a: number, b: number): string =>
    joinVersions(
      new Map([
        ['a', `${a}`],
        ['b', `${b}`],
      ]),
    )
  assert.equal(at(7, 9), 'a=7;b=9')
  const order = (x: string, y: string) => Math.sign(compareVersions(x, y) ?? Number.NaN)
  assert.deepEqual([order(at(7, 9), at(7, 9)), order(at(8, 9), at(7, 9)), order(at(7, 10), at(7, 9))], [0, 1, 1])
  assert.deepEqual([order(at(6, 9), at(7, 9)), order(at(8, 8), at(7, 9)), order(at(6, 99), at(7, 9))], [-1, -1, -1])
  assert.equal(order('b=9;a=7', at(7, 9)), 0)
  for (const other of ['7', '', 'a=7', 'a=7;c=9', 'a=7;b=9;c=1', 'a=x;b=9']) {
    assert.deepEqual(
      [compareVersions(other, at(7, 9)), compareVersions(at(7, 9), other)],
      [undefined, undefined],
      other,
    )
  }
})

const NOW_MS = Date.parse('2026-01-01T00:00:10Z')

function pod(status: unknown, metadata: object = {}): PodFacts {
  const facts = podFacts({ metadata: { name: 'a', uid: 'u', namespace: 'n', ...metadata }, status })
  assert.ok(facts)
  return facts
}

const ready = { type: 'Ready', status: 'True', lastTransitionTime: '2026-01-01T00:00:05Z' }

test('facts of a pod', () => {
  const facts = pod(
    { phase: 'Running', conditions: [{ type: 'PodScheduled', status: 'True' }, ready] },
    {
      resourceVersion: '12',
      labels: { app: 'x' },
      annotations: { 'podseidon.kubewharf.io/force-delete': '', 'podseidon.kubewharf.io/health-criterion': 'Running' },
    },
  )
  assert.deepEqual(facts, {
    namespace: 'n',
    name: 'a',
    uid: 'u',
    resourceVersion: '12',
    labels: { app: 'x' },
    forceDelete: true,
    criterion: 'Running',
    terminating: false,
    scheduled: true,
    running: true,
    ready: true,
    readySinceMs: NOW_MS - 5000,
    startedMs: 0,
    createdMs: 0,
    readyWrittenMs: 0,
  })
})

test('who made a pod ready, and when, by the clock of its API server', () => {
  const fields = (...types: string[]): object => ({
    'f:status': { 'f:conditions': Object.fromEntries(types.map((type) => [`k:{"type":"${type}"}`, {}])) },
  })
  const managedFields = [
    {
      manager: 'kubelet',
      subresource: 'status',
      time: '2026-01-01T00:00:06Z',
      fieldsV1: fields('Ready', 'Initialized'),
    },
    { manager: 'gate', subresource: 'status', time: '2026-01-01T00:00:09Z', fieldsV1: fields('Gate') },
    { manager: 'old', subresource: 'status', time: '2026-01-01T00:00:02Z', fieldsV1: fields('Ready') },
    null,
    { fieldsV1: { 'f:status': 3 } },
  ]
  const { readyWrittenMs } = pod({ conditions: [ready] }, { managedFields })
  assert.equal(readyWrittenMs, Date.parse('2026-01-01T00:00:06Z'))
  assert.equal(pod({ conditions: [{ ...ready, status: 'False' }] }, { managedFields }).readyWrittenMs, 0)
  assert.equal(pod({ conditions: [ready] }, { managedFields: 'none' }).readyWrittenMs, 0)
})

test('malformed pods: parts that cannot be read are absent', () => {
  assert.equal(podFacts({}), undefined)
  assert.equal(podFacts({ metadata: { name: 'a', uid: 7 } }), undefined)
  const odd = pod(
    { phase: 3, conditions: [null, { type: 'Ready', status: true }, 'x'] },
    JSON.parse('{"labels": {"a": 1, "b": "c", "__proto__": {"x": "y"}}, "annotations": [], "deletionTimestamp": null}'),
  )
  assert.deepEqual({ ...odd.labels }, { b: 'c' })
  assert.deepEqual([odd.ready, odd.running, odd.scheduled, odd.terminating], [false, false, false, false])
  assert.equal(odd.criterion, 'Available')
  assert.equal(pod(undefined).ready, false)
  assert.equal(healthCriterion({ 'podseidon.kubewharf.io/health-criterion': 'ready' }), undefined)
  assert.equal(healthCriterion(Object.create({ 'podseidon.kubewharf.io/health-criterion': 'Ready' })), undefined)
  assert.equal(healthCriterion('x'), undefined)
})

const readyFor = ({ readySinceMs }: PodFacts): number => NOW_MS - readySinceMs

test('a pod is available when it has been ready for minReadySeconds', () => {
  const young = pod({ conditions: [ready] })
  assert.equal(isAvailable(young, 5, readyFor), true)
  assert.equal(isAvailable(young, 6, readyFor), false)
  assert.equal(
    isAvailable(pod({ conditions: [ready] }, { deletionTimestamp: '2026-01-01T00:00:00Z' }), 0, readyFor),
    false,
  )
  const unknown = (): number => 0
  assert.deepEqual([isAvailable(young, 0, unknown), isAvailable(young, 1, unknown)], [true, false])
})

test('counts of pods', () => {
  const pods = [
    pod({ phase: 'Running', conditions: [ready, { type: 'PodScheduled', status: 'True' }] }),
    pod({ phase: 'Running', conditions: [{ ...ready, lastTransitionTime: '2026-01-01T00:00:09Z' }] }),
    pod({ phase: 'Succeeded', conditions: [{ type: 'Ready', status: 'False' }] }),
    pod({ phase: 'Running', conditions: [ready] }, { deletionTimestamp: '2026-01-01T00:00:40Z' }),
  ]
  assert.deepEqual(aggregatePods(pods, 4, readyFor), {
    total: 3,
    available: 1,
    ready: 2,
    scheduled: 1,
    running: 2,
    nextAvailableMs: 3000,
  })
})

test('an object overrides the settings of the process, within reason', () => {
  const defaults: HistoryLimits = {
    maxConcurrentLag: 7,
    compactThreshold: 100,
    aggregationRateMs: 1000,
    staleAfterMs: 5,
  }
  const limits = (config: unknown) =>
    limitsOf({ spec: { admissionHistoryConfig: config } } as unknown as PodProtector, defaults)
  assert.deepEqual(limits(undefined), defaults)
  assert.deepEqual(limits({ maxConcurrentLag: 0, compactThreshold: 3, aggregationRateMillis: 20 }), {
    maxConcurrentLag: 0,
    compactThreshold: 3,
    aggregationRateMs: 20,
    staleAfterMs: 5,
  })
  const odd = limits({ maxConcurrentLag: -1, compactThreshold: 0, aggregationRateMillis: 'x' })
  assert.deepEqual([odd.maxConcurrentLag, odd.compactThreshold, odd.aggregationRateMs], [0, 1, 1000])
  // More buckets than an object can hold.
  assert.equal(limits({ compactThreshold: 1e9 }).compactThreshold, 5000)
})
