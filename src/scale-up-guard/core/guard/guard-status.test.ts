import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { createSchemaCheck } from '../../../kit/api/validation/schema-errors.ts'
import { SCALE_UP_GUARDS } from '../../api/scale-up-guard-kind.ts'
import { compileGuard } from './compile-guard.ts'
import { backoffsIn, type GroupReport, MAX_GROUPS_IN_STATUS, rememberedGroups, statusGroups } from './guard-status.ts'
import { guardInForce } from './guards-in-force.ts'

const NOW = Date.UTC(2026, 0, 1, 12)

function report(name: string, facts: Partial<GroupReport> = {}): GroupReport {
  return {
    name,
    memory: { replicas: 4, failed: new Set(), missingSinceMs: [] },
    evaluation: { failures: [], inaction: 'none-failed' },
    backoff: undefined,
    request: undefined,
    lastAction: '',
    lastActionMs: 0,
    shadow: false,
    healthCheck: '',
    ...facts,
  }
}

function failed(...uids: readonly string[]): GroupReport['evaluation'] {
  const rest = {
    createdMs: 0,
    deleting: false,
    marked: false,
    controlPlane: false,
    hasProviderID: false,
    hasNode: false,
  }
  return {
    failures: uids.map((uid) => ({
      machine: { name: `m-${uid}`, uid, ...rest, notReady: undefined },
      reason: 'InstanceProvisionFailed',
      message: 'x'.repeat(1000),
    })),
    inaction: undefined,
  }
}

const BACKOFF = {
  durationMs: 270_000,
  untilMs: NOW + 270_000,
  lastFailureMs: NOW,
  error: { attempt: 2, failed: 2, machines: 4, reason: 'InstanceProvisionFailed' },
}

function guard(status: object, spec: object = {}): JsonObject {
  return {
    apiVersion: 'scale.portcullis.io/v1alpha1',
    kind: 'ScaleUpGuard',
    metadata: { name: 'g', uid: 'u', generation: 3 },
    spec: { clusterRef: { management: 'mgmt' }, ...spec },
    status,
  }
}

test('a restart goes on from the status: failures known, the same backoff, the same request', () => {
  const request = { increase: 2, timeMs: NOW, expectedAddMs: NOW + 600_000, by: 'cluster-autoscaler' }
  const memory = { replicas: 4, failed: new Set(['u1', 'u2']), missingSinceMs: [NOW, NOW + 1000] }
  const facts = {
    memory,
    evaluation: failed('u1', 'u2'),
    backoff: BACKOFF,
    request,
    lastAction: 'did',
    lastActionMs: NOW,
  }
  const object = guard({ groups: statusGroups([report('MachineDeployment/ns/a', facts)]) })
  assert.deepEqual(rememberedGroups(object).get('MachineDeployment/ns/a'), {
    memory,
    backoff: BACKOFF,
    request,
    lastAction: 'did',
    lastActionMs: NOW,
  })
  const { problems } = createSchemaCheck(SCALE_UP_GUARDS.schema)({ ...object, metadata: {} }, '')
  assert.deepEqual(problems, [], 'and the schema knows all of it')
})

test('a failed MachinePool is remembered as a whole', () => {
  const failures = [{ machine: undefined, reason: 'NoNode', message: 'no node after 600 s' }]
  const name = 'MachinePool/ns/p'
  const groups = statusGroups([report(name, { evaluation: { failures, inaction: undefined } })])
  assert.deepEqual(rememberedGroups(guard({ groups })).get(name)?.memory.failed, new Set([name]))
})

test('what is in force ends no earlier than what was decided', () => {
  fc.assert(
    fc.property(fc.nat({ max: 1_000_000 }), (ms) => {
      const groups = statusGroups([report('MachineDeployment/ns/a', { backoff: { ...BACKOFF, untilMs: NOW + ms } })])
      const [backoff] = backoffsIn(guard({ groups }), NOW)
      assert.ok(backoff !== undefined && backoff.untilMs >= NOW + ms && backoff.untilMs < NOW + ms + 1000)
    }),
  )
})

test('a guard in force says whose raises are refused; what is over is not in force', () => {
  const object = guard({ groups: statusGroups([report('MachineDeployment/ns/a', { backoff: BACKOFF })]) })
  const compiled = compileGuard(object)
  assert.ok(typeof compiled !== 'string')
  const { error, untilMs } = BACKOFF
  assert.deepEqual(guardInForce(compiled, object, NOW), {
    guard: 'g',
    cluster: 'mgmt',
    apiGroup: 'cluster.x-k8s.io',
    users: ['system:serviceaccount:kube-system:cluster-autoscaler'],
    shadow: false,
    backoffs: [{ group: 'MachineDeployment/ns/a', untilMs, ...error }],
  })
  assert.equal(guardInForce(compiled, object, untilMs + 1), undefined)
})

test('the size of a status is bounded, and what must not be lost comes first', () => {
  const uids = Array.from({ length: 1000 }, (_, i) => `u${i}`)
  const many = Array.from({ length: 600 }, (_, i) => report(`MachineDeployment/ns/a${i}`))
  const groups = statusGroups([
    ...many,
    report('MachineDeployment/ns/z', { evaluation: failed(...uids), backoff: BACKOFF }),
  ])
  assert.equal(groups.length, MAX_GROUPS_IN_STATUS)
  assert.equal(groups[0]?.name, 'MachineDeployment/ns/z')
  assert.equal(groups[0]?.failedCount, 1000)
  assert.ok(JSON.stringify(groups).length < 100_000)
})

test('no JSON makes a reader throw', () => {
  fc.assert(
    fc.property(fc.object({ maxDepth: 4 }), fc.array(fc.object()), (status, groups) => {
      for (const object of [guard(status), guard({ groups }), { status } as JsonObject, {}]) {
        rememberedGroups(object)
        backoffsIn(object, NOW)
        compileGuard(object)
      }
    }),
  )
})

test('the defaults of the schema are in force', () => {
  const compiled = compileGuard(guard({}))
  assert.ok(typeof compiled !== 'string')
  assert.deepEqual(compiled.policy, {
    conditionReasons: new Set(['InstanceProvisionFailed', 'InsufficientInstanceCapacity', 'QuotaExceeded']),
    minDurationMs: 20_000,
    noProviderIDMs: 180_000,
    noNodeMs: 600_000,
    backoff: { initialMs: 270_000, maxMs: 1_620_000, resetMs: 10_800_000 },
    correctTarget: true,
    deleteLongUnregistered: true,
    shadow: false,
  })
  assert.deepEqual([compiled.workload, compiled.group, compiled.groupSelector], ['mgmt', 'cluster.x-k8s.io', undefined])
})

test('every field of the spec is in force', () => {
  const compiled = compileGuard(
    guard(
      {},
      {
        clusterRef: { management: 'mgmt', workload: 'prod' },
        group: 'capi.example.com',
        autoscalerUsers: ['ca'],
        failure: { conditionReasons: ['X'], minDuration: '1s', noProviderIDFor: '2s', noNodeFor: '3s' },
        backoff: { initial: '4s', max: '5s', resetAfter: '6s' },
        correctTarget: false,
        deleteLongUnregistered: false,
        shadow: true,
      },
    ),
  )
  assert.ok(typeof compiled !== 'string')
  assert.deepEqual([compiled.workload, compiled.group, compiled.autoscalerUsers], ['prod', 'capi.example.com', ['ca']])
  assert.deepEqual(compiled.policy, {
    conditionReasons: new Set(['X']),
    minDurationMs: 1000,
    noProviderIDMs: 2000,
    noNodeMs: 3000,
    backoff: { initialMs: 4000, maxMs: 5000, resetMs: 6000 },
    correctTarget: false,
    deleteLongUnregistered: false,
    shadow: true,
  })
})

test('a guard that cannot be used says why', () => {
  const why = (spec: object): unknown => compileGuard(guard({}, spec))
  assert.match(String(why({ clusterRef: {} })), /^spec\.clusterRef\.management /)
  assert.match(String(why({ failure: { minDuration: '20' } })), /^spec\.failure\.minDuration /)
  assert.match(String(why({ failure: { minDuration: '-20s' } })), /^spec\.failure\.minDuration /)
  for (const field of ['noProviderIDFor', 'noNodeFor']) {
    assert.match(String(why({ failure: { [field]: '0' } })), new RegExp(`^spec\\.failure\\.${field} 0 is too short`))
  }
  assert.match(String(why({ backoff: { resetAfter: '999999999999h' } })), /^spec\.backoff\.resetAfter .* is too long/)
  assert.match(String(why({ clusterRef: { management: 'A/B' } })), /^spec\.clusterRef\.management /)
  assert.match(String(why({ backoff: { initial: '10m', max: '5m' } })), /^spec\.backoff\.max /)
  assert.match(
    String(why({ groupSelector: { matchExpressions: [{ key: 'a', operator: 'Is' }] } })),
    /^spec\.groupSelector/,
  )
})

test('however much fails, and whatever servers say, the status fits into one object', () => {
  const uids = Array.from({ length: 60 }, (_, i) => `${i}`.padStart(36, '0'))
  const text = '\u0000'.repeat(20_000)
  const evaluation = {
    failures: failed(...uids).failures.map((one) => ({ ...one, message: text })),
    inaction: undefined,
  }
  const memory = { replicas: 900, failed: new Set(uids), missingSinceMs: uids.flatMap(() => [NOW, NOW, NOW, NOW]) }
  const reports = Array.from({ length: 600 }, (_, i) =>
    report(`MachineDeployment/${'n'.repeat(63)}/${i}`.padEnd(330, 'x'), {
      memory,
      evaluation,
      backoff: BACKOFF,
      lastAction: `failed: ${text}`,
    }),
  )
  const groups = statusGroups(reports)
  // etcd's limit is 1.5 MiB, and managedFields come on top.
  assert.ok(Buffer.byteLength(JSON.stringify(groups)) < 1_200_000)
  assert.deepEqual([groups.length, groups[0]?.failedCount], [MAX_GROUPS_IN_STATUS, 60], 'and it says how many they are')
  assert.equal(statusGroups(reports.slice(0, 1))[0]?.failed?.length, 50, 'one group keeps as many as ever')
})
