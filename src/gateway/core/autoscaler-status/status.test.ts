import assert from 'node:assert/strict'
import { test } from 'node:test'
import { goTime, isTextFormat, LAST_UPDATED, readAutoscalerStatus } from './status.ts'

const YAML = `time: 2026-07-31 12:00:05.123456789 +0000 UTC
autoscalerStatus: Running
clusterWide:
  health:
    status: Healthy
    nodeCounts: { registered: { total: 5, ready: 4, notStarted: 1 }, longUnregistered: 0, unregistered: 0 }
  scaleUp: { status: InProgress }
  scaleDown: { status: NoCandidates }
nodeGroups:
- name: MachineDeployment/ns/spot
  health:
    status: Healthy
    nodeCounts:
      registered: { total: 2, ready: 1, unready: { total: 1, resourceUnready: 0 } }
      longUnregistered: 2
    cloudProviderTarget: 4
    minSize: 1
    maxSize: 10
  scaleUp:
    status: Backoff
    backoffInfo:
      errorCode: cloudProviderError
      errorMessage: "refused: 2 of 2 machines failed"
    lastTransitionTime: "2026-07-31T11:58:00Z"
  scaleDown: { status: NoCandidates }
- health: { status: Healthy }
`

function configMap(status: unknown, annotations: object = {}): object {
  return { metadata: { annotations }, data: { status } }
}

test('the YAML of 1.30 and later', () => {
  const status = readAutoscalerStatus(configMap(YAML))
  assert.deepEqual(status, {
    state: 'Running',
    writtenAtMs: Date.UTC(2026, 6, 31, 12, 0, 5, 123),
    health: 'Healthy',
    scaleUp: 'InProgress',
    scaleDown: 'NoCandidates',
    groups: [
      {
        name: 'MachineDeployment/ns/spot',
        health: 'Healthy',
        scaleUp: 'Backoff',
        scaleDown: 'NoCandidates',
        minSize: 1,
        maxSize: 10,
        target: 4,
        registered: 2,
        ready: 1,
        unready: 1,
        longUnregistered: 2,
        errorCode: 'cloudProviderError',
        errorMessage: 'refused: 2 of 2 machines failed',
        scaleUpSinceMs: Date.UTC(2026, 6, 31, 11, 58),
      },
    ],
  })
})

test('the text of 1.29 and earlier is recognised, and not read', () => {
  const text = 'Cluster-autoscaler status at 2023-05-01 10:00:00.5 +0000 UTC:\nCluster-wide:\n  Health:      Healthy\n'
  assert.equal(readAutoscalerStatus(configMap(text)), undefined)
  assert.deepEqual([isTextFormat(text), isTextFormat(YAML)], [true, false])
})

test('before its first loop there is only a state; the annotation tells the time where the status does not', () => {
  const at = { [LAST_UPDATED]: '2026-07-31 12:00:00.5 +0200 CEST' }
  const status = readAutoscalerStatus(configMap('autoscalerStatus: Initializing\n', at))
  assert.deepEqual([status?.state, status?.writtenAtMs], ['Initializing', Date.UTC(2026, 6, 31, 10, 0, 0, 500)])
})

test('an invalid status is ignored, and a field of a wrong type is left out', () => {
  for (const other of [undefined, 7, '', 'hello', '- a\n- b\n', '}'.repeat(1000), 'a: &a [*a]']) {
    assert.equal(readAutoscalerStatus(configMap(other)), undefined)
  }
  assert.equal(readAutoscalerStatus(null), undefined)
  const odd = readAutoscalerStatus(
    configMap('autoscalerStatus: Running\nnodeGroups: [{name: a, health: 7}, 5, null]\n'),
  )
  assert.deepEqual(
    odd?.groups.map(({ name, target }) => [name, target]),
    [['a', 0]],
  )
})

test('times in the format of Go', () => {
  assert.equal(goTime('2026-07-31T11:58:00Z'), Date.UTC(2026, 6, 31, 11, 58))
  assert.equal(goTime('2026-07-31 11:58:00.999999999 -0700 MST'), Date.UTC(2026, 6, 31, 18, 58, 0, 999))
  for (const bad of ['', 'yesterday', '2026-99-31 11:58:00 +0000 UTC']) assert.equal(goTime(bad), 0)
})
