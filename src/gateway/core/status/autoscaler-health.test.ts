// Condition AutoscalerHealthy, and the Events between two statuses.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AutoscalerReport, NodeGroupReport } from '../../api/upstream-cluster/cluster-autoscaler.ts'
import type { UpstreamClusterStatus } from '../../api/upstream-cluster/status.ts'
import { clusterStatus, conditionOf } from './cluster-status.ts'
import { statusTransitions } from './events.ts'
import type { AutoscalerFact, StatusFacts } from './status-facts.ts'

const WRITTEN = Date.UTC(2026, 6, 31, 12)
const SPOT: NodeGroupReport = {
  name: 'spot',
  health: 'Healthy',
  scaleUp: 'Backoff',
  scaleUpSince: '2026-07-31T11:56:00Z',
  errorCode: 'OutOfResource',
  errorMessage: 'no m5.xlarge in the zone',
}
const READY: NodeGroupReport = { name: 'on-demand', health: 'Healthy', scaleUp: 'NoActivity' }
const CALM: NodeGroupReport = { ...READY, name: 'spot' }

function fact(
  seen: AutoscalerFact['seen'],
  groups?: readonly NodeGroupReport[],
  more: AutoscalerReport = {},
): AutoscalerFact {
  const report = groups === undefined ? undefined : { health: 'Healthy', ...more, groups }
  const where = 'kube-system/cluster-autoscaler-status'
  const message = seen === 'unreachable' ? 'no answer' : seen === 'unreadable' ? 'it is odd' : ''
  return { where, seen, message, state: 'Running', report, writtenAtMs: WRITTEN, staleAfterMs: 60_000 }
}

function status(
  before: UpstreamClusterStatus | undefined,
  autoscaler: AutoscalerFact | undefined,
): UpstreamClusterStatus {
  const facts: StatusFacts = {
    generation: 1,
    problems: [],
    inForce: 1,
    degrade: undefined,
    endpoints: [],
    credentials: [],
    endingSoon: [],
    rights: { kind: 'granted' },
    shadows: [],
    limits: undefined,
    protection: undefined,
    autoscaler,
  }
  return clusterStatus(facts, before, WRITTEN)
}

function told(before: UpstreamClusterStatus | undefined, after: UpstreamClusterStatus): string[] {
  const about = statusTransitions(before, after).filter(({ reason }) => /Autoscaler|NodeGroup/.test(reason))
  return about.map(({ type, reason, message }) => `${type} ${reason}: ${message}`)
}

test('each state has its condition', () => {
  const cases: readonly (readonly [AutoscalerFact, string, RegExp])[] = [
    [fact('pending'), 'Unknown Pending', /has not been read yet/],
    [fact('missing'), 'Unknown NotFound', /there is no ConfigMap kube-system\/cluster-autoscaler-status/],
    [fact('unreachable', [READY]), 'Unknown Unreachable', /cannot be followed: no answer/],
    [fact('unreadable'), 'Unknown Unreadable', /it is odd/],
    [fact('stale', [READY]), 'False Stale', /not been written for 1m, the last time at 2026-07-31T12:00:00Z; is the/],
    [{ ...fact('current', []), state: 'Initializing' }, 'Unknown Initializing', /first loop/],
    [fact('current', [READY], { health: 'Unhealthy' }), 'False Unhealthy', /neither adds nor removes/],
    [
      fact('current', [{ ...SPOT, health: 'Unhealthy' }, READY]),
      'False Unhealthy',
      /1 of 2 node groups are unhealthy: spot/,
    ],
    [fact('current', [SPOT, READY], { omittedGroups: 3 }), 'True Backoff', /1 of 5 node groups are in backoff: spot/],
    [fact('current', [READY]), 'True Healthy', /1 node groups, none in backoff/],
  ]
  for (const [given, verdict, message] of cases) {
    const condition = conditionOf(status(undefined, given), 'AutoscalerHealthy')
    assert.equal(`${condition?.status} ${condition?.reason}`, verdict)
    assert.match(condition?.message ?? '', message)
    assert.equal(condition?.observedGeneration, 1)
  }
  const many = Array.from({ length: 9 }, (_, at) => ({ ...SPOT, name: `g${at}` }))
  const condition = conditionOf(status(undefined, fact('current', many)), 'AutoscalerHealthy')
  assert.match(condition?.message ?? '', /: g0, g1, g2, g3, g4 and 4 more$/)
})

test('an Event when a group enters backoff and when it leaves, and none between', () => {
  const calm = status(undefined, fact('current', [READY, CALM]))
  assert.deepEqual(told(undefined, calm), [])
  const backoff = status(calm, fact('current', [SPOT, READY]))
  const why = 'node group spot is in backoff since 2026-07-31T11:56:00Z: OutOfResource: no m5.xlarge in the zone'
  assert.deepEqual(told(calm, backoff), [`Warning NodeGroupBackoff: ${why}`])
  const longer = status(backoff, fact('current', [{ ...SPOT, ready: 2 }, READY]))
  assert.deepEqual(told(backoff, longer), [])
  const over = status(longer, fact('current', [READY, CALM]))
  assert.deepEqual(told(longer, over), ['Normal NodeGroupBackoffEnded: no longer in backoff: spot'])
  const gone = status(longer, fact('current', [READY]))
  assert.deepEqual(told(longer, gone), ['Normal NodeGroupBackoffEnded: no longer in backoff: spot'])
})

test('a group that is cut from a long list has not left its backoff', () => {
  const backoff = status(undefined, fact('current', [SPOT]))
  const cut = status(backoff, fact('current', [{ ...SPOT, name: 'a' }], { omittedGroups: 1 }))
  assert.deepEqual(
    told(backoff, cut).map((line) => line.slice(0, 26)),
    ['Warning NodeGroupBackoff: '],
  )
})

test('an Event when the autoscaler falls silent, and when it is back', () => {
  const calm = status(undefined, fact('current', [READY]))
  const silent = status(calm, fact('stale', [READY]))
  assert.deepEqual(
    told(calm, silent).map((line) => line.slice(0, 24)),
    ['Warning AutoscalerStale:'],
  )
  assert.deepEqual(told(silent, status(silent, fact('stale', [READY]))), [])
  const back = status(silent, fact('current', [READY]))
  assert.deepEqual(told(silent, back), ['Normal AutoscalerHealthy: 1 node groups, none in backoff'])
})

test('another replica that begins to lead tells nothing again', () => {
  const backoff = status(undefined, fact('current', [SPOT]))
  const silent = status(backoff, fact('stale', [SPOT]))
  for (const before of [backoff, silent]) {
    const taken = status(before, fact('pending'))
    assert.deepEqual(taken.autoscaler, before.autoscaler)
    assert.deepEqual(conditionOf(taken, 'AutoscalerHealthy'), conditionOf(before, 'AutoscalerHealthy'))
    assert.deepEqual(told(before, taken), [])
  }
  assert.deepEqual(told(backoff, status(status(backoff, fact('pending')), fact('current', [SPOT]))), [])
})

test('what is not followed any more is not reported any more', () => {
  const backoff = status(undefined, fact('current', [SPOT]))
  const after = status(backoff, undefined)
  assert.equal(after.autoscaler, undefined)
  assert.equal(conditionOf(after, 'AutoscalerHealthy'), undefined)
  assert.equal(status(backoff, fact('missing')).autoscaler, undefined)
})
