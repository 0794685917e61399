// The report of an autoscaler's status: bounded, ordered, and without the times of each write.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { recordedStatus, statusConfigMap, withoutBackoff } from '../../../../test/harness/clusters/autoscaler.ts'
import { MAX_NODE_GROUPS, reportOf } from './report.ts'
import {
  type AutoscalerStatus,
  type NodeGroupStatus,
  readAutoscalerStatus,
  withoutProbeTimes,
  writtenAt,
} from './status.ts'

const NOW = Date.UTC(2026, 6, 31, 12, 0, 30, 250)

function read(text: string): AutoscalerStatus {
  return readAutoscalerStatus(statusConfigMap(text, NOW)) ?? assert.fail('no status')
}

test('the groups in backoff first, with since when and why', () => {
  const report = reportOf(read(recordedStatus(NOW)))
  const [spot, onDemand, ...more] = report.groups ?? []
  assert.deepEqual(more, [])
  const { errorMessage, ...rest } = spot ?? assert.fail()
  assert.match(errorMessage ?? '', /^We currently/)
  assert.deepEqual(rest, {
    name: 'MachineDeployment/machines/spot',
    health: 'Healthy',
    scaleUp: 'Backoff',
    scaleUpSince: '2026-07-31T11:56:00Z',
    scaleDown: 'NoCandidates',
    minSize: 0,
    maxSize: 10,
    target: 4,
    registered: 2,
    ready: 2,
    unready: 0,
    longUnregistered: 2,
    errorCode: 'OutOfResource.InsufficientInstanceCapacity',
  })
  assert.equal(onDemand?.name, 'MachineDeployment/machines/on-demand')
  assert.deepEqual([report.health, report.scaleUp, report.scaleDown], ['Healthy', 'InProgress', 'NoCandidates'])
})

test('writes that say nothing new differ only in times that are left out', () => {
  const first = recordedStatus(NOW)
  const second = recordedStatus(NOW + 10_000)
  assert.notEqual(first, second)
  assert.equal(withoutProbeTimes(first), withoutProbeTimes(second))
  assert.notEqual(withoutProbeTimes(first), withoutProbeTimes(withoutBackoff(first)))
  assert.equal(writtenAt(first), NOW)
  assert.equal(writtenAt(second), NOW + 10_000)
  assert.equal(read(withoutBackoff(first)).groups.filter(({ scaleUp }) => scaleUp === 'Backoff').length, 0)
})

test('a time in quotes, and none', () => {
  assert.equal(writtenAt('autoscalerStatus: Running\ntime: "2026-07-31T12:00:30.25Z"\n'), NOW)
  assert.equal(writtenAt('autoscalerStatus: Running\n'), 0)
})

test('nothing that is in a ConfigMap makes a report large', () => {
  const group = (name: string, more: Partial<NodeGroupStatus> = {}): NodeGroupStatus => {
    const texts = { health: 'Healthy', scaleUp: 'NoActivity', scaleDown: '', errorCode: '', errorMessage: '' }
    const counts = { minSize: 0, maxSize: 0, target: 0, registered: 0, ready: 0, unready: 0, longUnregistered: 0 }
    return { name, ...texts, ...counts, scaleUpSinceMs: 0, ...more }
  }
  const long = 'x'.repeat(100_000)
  const healthy = Array.from({ length: 500 }, (_, at) => group(`g${String(at).padStart(3, '0')}`))
  const report = reportOf({
    state: 'Running',
    writtenAtMs: 0,
    health: long,
    scaleUp: '',
    scaleDown: '',
    groups: [
      ...healthy,
      group(long, { scaleUp: 'Backoff', errorCode: long, errorMessage: long, target: Number.MAX_SAFE_INTEGER }),
      group('z', { health: 'Unhealthy' }),
    ],
  })
  assert.equal(report.groups?.length, MAX_NODE_GROUPS)
  assert.equal(report.omittedGroups, 502 - MAX_NODE_GROUPS)
  assert.deepEqual(
    report.groups?.slice(0, 3).map(({ name }) => name.slice(0, 4)),
    ['xxxx', 'z', 'g000'],
  )
  assert.ok(JSON.stringify(report).length < 20_000)
  assert.equal(report.groups?.[0]?.errorMessage?.length, 256)
  assert.equal(report.groups?.[0]?.target, 2 ** 31 - 1)
})
