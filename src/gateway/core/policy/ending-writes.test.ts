import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { parseRequestInfo } from '../request/request-info.ts'
import { addedNoExecute, deadlineSeconds, type EndingWrite, endingWriteOf } from './ending-writes.ts'

const POD = '/api/v1/namespaces/shop/pods/web-1'
const JOB = '/apis/batch/v1/namespaces/shop/jobs/j'
const DAEMON_SET = '/apis/apps/v1/namespaces/shop/daemonsets/d'
const STATEFUL_SET = '/apis/apps/v1/namespaces/shop/statefulsets/s'

function writeOf(method: string, path: string): EndingWrite | undefined {
  const info = parseRequestInfo(method, path)
  assert.ok(!('failure' in info), path)
  return endingWriteOf(info)
}

test('which requests may end pods by what they write', () => {
  for (const path of [POD, JOB, DAEMON_SET, STATEFUL_SET, '/api/v1/nodes/n1'])
    for (const [method, expected] of [
      ['PUT', true],
      ['PATCH', true],
      ['DELETE', false],
      ['GET', false],
    ] as const)
      assert.equal(writeOf(method, path) !== undefined, expected, `${method} ${path}`)
  for (const path of [
    // These leave the relevant fields unchanged.
    `${POD}/status`,
    `${POD}/resize`,
    `${POD}/ephemeralcontainers`,
    `${JOB}/status`,
    '/api/v1/nodes/n1/status',
    // Its Jobs keep running.
    '/apis/batch/v1/namespaces/shop/cronjobs/c',
    '/apis/apps/v1/namespaces/shop/deployments/web',
    '/apis/example.com/v1/namespaces/shop/pods/web-1',
    '/api/v1/namespaces/shop/pods',
    '/metrics',
  ])
    assert.equal(writeOf('PATCH', path), undefined, path)
})

type Row = readonly [before: JsonObject, after: JsonObject, expected: string | undefined]

function check(path: string, called: string, rows: readonly Row[]): void {
  for (const [before, after, expected] of rows)
    assert.equal(writeOf('PATCH', path)?.outcome(before, after, called), expected, JSON.stringify([before, after]))
}

test('the deadline of a pod', () => {
  const pod = (activeDeadlineSeconds?: number): JsonObject => ({ spec: { activeDeadlineSeconds } })
  check(POD, 'pods/web-1', [
    [pod(), pod(1), 'sets spec.activeDeadlineSeconds of pods/web-1 to 1'],
    [{}, pod(1), 'sets spec.activeDeadlineSeconds of pods/web-1 to 1'],
    [pod(), pod(0), 'sets spec.activeDeadlineSeconds of pods/web-1 to 0'],
    [pod(9), pod(8), 'lowers spec.activeDeadlineSeconds of pods/web-1 from 9 to 8'],
    [pod(9), pod(9), undefined],
    [pod(9), pod(), undefined],
    [pod(), pod(), undefined],
    [{ metadata: { deletionTimestamp: '2030-01-01T00:00:00Z' }, ...pod() }, pod(1), undefined],
  ])
  assert.deepEqual(
    [deadlineSeconds(pod(7)), deadlineSeconds({}), deadlineSeconds({ spec: 7 })],
    [7, undefined, undefined],
  )
})

test('a Job that is suspended, or may have fewer pods', () => {
  const job = (spec: JsonObject, status: JsonObject = {}): JsonObject => ({ spec, status })
  const done = { conditions: [{ type: 'Complete', status: 'True' }] }
  const failing = { conditions: [7, { type: 'Failed', status: 'False' }] }
  check(JOB, 'jobs/j', [
    [job({ suspend: false }), job({ suspend: true }), 'suspends jobs/j'],
    [job({}, failing), job({ suspend: true }), 'suspends jobs/j'],
    [job({ suspend: true }), job({ suspend: true }), undefined],
    [job({ suspend: true }), job({ suspend: false }), undefined],
    [job({}, done), job({ suspend: true }), undefined],
    [job({ parallelism: 3 }), job({ parallelism: 0 }), 'lowers spec.parallelism of jobs/j from 3 to 0'],
    [job({ parallelism: 3 }), job({ parallelism: 4 }), undefined],
    [job({ completions: 3 }), job({ completions: 2 }), 'lowers spec.completions of jobs/j from 3 to 2'],
    [job({}), job({ activeDeadlineSeconds: 5 }), 'sets spec.activeDeadlineSeconds of jobs/j to 5'],
    [job({ backoffLimit: 6 }), job({ backoffLimit: 0 }), 'lowers spec.backoffLimit of jobs/j from 6 to 0'],
    [job({}), job({ parallelism: 1, completions: 1, backoffLimit: 6 }), undefined],
  ])
})

test('a DaemonSet that may run on fewer nodes', () => {
  const set = (spec: JsonObject): JsonObject => ({ spec: { template: { spec } } })
  const narrows = (field: string): string => `narrows the nodes of daemonsets/d by spec.template.spec.${field}`
  const affinity = (required?: string, preferred?: string): JsonObject => ({
    affinity: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: required,
        preferredDuringSchedulingIgnoredDuringExecution: preferred,
      },
    },
  })
  const a = { key: 'a', operator: 'Exists' }
  const b = { key: 'b', value: 'x', effect: 'NoExecute', tolerationSeconds: 5 }
  check(DAEMON_SET, 'daemonsets/d', [
    [set({}), set({ nodeSelector: { a: 'b' } }), narrows('nodeSelector')],
    [set({ nodeSelector: { a: 'b' } }), set({ nodeSelector: { a: 'c' } }), narrows('nodeSelector')],
    [set({ nodeSelector: { a: 'b', c: 'd' } }), set({ nodeSelector: { a: 'b' } }), undefined],
    [set({ nodeSelector: { a: 'b' } }), set({}), undefined],
    [set({}), set({ nodeName: 'n1' }), narrows('nodeName')],
    [set({ nodeName: 'n1' }), set({}), undefined],
    [set({}), set(affinity('x')), narrows('affinity')],
    [set(affinity('x')), set(affinity('y')), narrows('affinity')],
    [set(affinity('x')), set(affinity('x', 'z')), undefined],
    [set(affinity('x')), set({}), undefined],
    [set({ tolerations: [a, b] }), set({ tolerations: [a] }), narrows('tolerations')],
    [set({ tolerations: [a] }), set({ tolerations: [b, a] }), undefined],
    [set({ tolerations: [b] }), set({ tolerations: [{ ...b, operator: 'Equal', tolerationSeconds: 1 }] }), undefined],
    [set({ tolerations: [b] }), set({ tolerations: [{ ...b, value: 'y' }] }), narrows('tolerations')],
    [set({ containers: ['a'] }), set({ containers: ['b'] }), undefined],
  ])
})

test('a StatefulSet whose ordinals move away from its pods', () => {
  const set = (start: number | undefined, replicas: number): JsonObject => ({ spec: { ordinals: { start }, replicas } })
  const moves = (from: number, to: number): string =>
    `moves spec.ordinals.start of statefulsets/s from ${from} to ${to}`
  check(STATEFUL_SET, 'statefulsets/s', [
    [set(undefined, 3), set(2, 3), moves(0, 2)],
    [set(2, 3), set(0, 3), moves(2, 0)],
    [set(2, 3), { spec: { replicas: 3 } }, moves(2, 0)],
    [set(2, 3), set(0, 5), undefined],
    [set(2, 0), set(0, 0), undefined],
    [set(2, 3), set(2, 1), undefined],
  ])
})

const node = (...taints: unknown[]): object => ({ spec: { taints } })

const A = { key: 'a', effect: 'NoExecute', timeAdded: '2030-01-01T00:00:00Z' }

const B = { key: 'b', value: 'x', effect: 'NoExecute' }

test('what a write adds', () => {
  const rows: readonly [object, object, string | undefined][] = [
    [{}, node(A), 'a'],
    [node(), node(B), 'b=x'],
    [node(A), node({ ...A, timeAdded: undefined }), undefined],
    [node(A), node({ ...A, effect: 'NoSchedule' }), undefined],
    [node({ ...A, effect: 'NoSchedule' }), node(A), 'a'],
    [node(A, B), node(A), undefined],
    [node(A, B), {}, undefined],
    [node(A), node(A, { key: 'c', effect: 'NoSchedule' }), undefined],
    // A toleration may be limited to one value.
    [node(B), node({ ...B, value: 'y' }), 'b=y'],
    [{ spec: 7 }, { spec: { taints: [7, null, A] } }, 'a'],
  ]
  for (const [before, after, expected] of rows)
    assert.equal(addedNoExecute({ ...before }, { ...after }), expected, JSON.stringify([before, after]))
})
