import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CachedResourceInForce } from '../../api/upstream-cluster/read-cache/read-cache-in-force.ts'
import type { UpstreamClusterStatus } from '../../api/upstream-cluster/status.ts'
import type { UpstreamClusterSpec } from '../../api/upstream-cluster/upstream-cluster.ts'
import { compileCluster } from '../cluster/compile-cluster.ts'
import type { CompiledCluster } from '../cluster/compiled-cluster.ts'
import { clusterStatus, conditionOf } from './cluster-status.ts'
import { statusTransitions } from './events.ts'
import { answersReads, type MembersFact, membersFact, membersVerdict } from './members.ts'
import type { StatusFacts } from './status-facts.ts'

const PODS = { version: 'v1', resource: 'pods' }
const DEPLOYMENTS = { group: 'apps', version: 'v1', resource: 'deployments' }

function compiled(name: string, spec: Partial<UpstreamClusterSpec>): CompiledCluster {
  const whole = { servers: [], dispatchPolicies: [], ...spec }
  const object = {
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: { name },
    spec: whole,
  }
  return compileCluster({ object, revision: '1' })
}

function kept(resource: string, state: CachedResourceInForce['state'], message = ''): CachedResourceInForce {
  const nothing = { sinceMs: 0, objects: 0, bytes: 0, ageMs: undefined, hits: 0, passes: {} }
  return { resource, version: 'v1', state, message, ...nothing }
}

interface Given {
  readonly clusters: readonly CompiledCluster[]
  readonly cached?: Readonly<Record<string, readonly CachedResourceInForce[]>>
  readonly partial?: 'Refuse' | 'Omit'
}

function fact({ clusters, cached = {}, partial = 'Refuse' }: Given): MembersFact {
  const { federation } = compiled('all', {
    members: [{ name: 'east' }, { name: 'west', cluster: 'west-1' }],
    federation: { resources: [PODS, DEPLOYMENTS], partial },
  })
  return membersFact(federation ?? assert.fail(), {
    get: (name) => clusters.find((cluster) => cluster.name === name),
    cached: (name) => cached[name] ?? [],
  })
}

const EAST = compiled('east', { cache: [PODS, DEPLOYMENTS] })
const WEST = compiled('west-1', { cache: [PODS, DEPLOYMENTS] })
const SERVING = [kept('pods', 'Serving'), kept('deployments.apps', 'Serving')]

test('all is read', () => {
  const all = fact({ clusters: [EAST, WEST], cached: { east: SERVING, 'west-1': SERVING } })
  assert.deepEqual(membersVerdict(all), {
    status: 'True',
    reason: 'Ready',
    message: 'objects of east, west are answered',
  })
  assert.ok(answersReads(all))
})

test('why a member cannot be read, and what to do', () => {
  const east = { east: SERVING }
  const cases: readonly [given: Given, status: string, reason: string, message: RegExp][] = [
    [
      { clusters: [EAST], cached: east },
      'False',
      'MemberMissing',
      /^west: no UpstreamCluster "west-1" is in force; create it/,
    ],
    [
      { clusters: [EAST, compiled('west-1', { members: [{ name: 'east' }] })], cached: east },
      'False',
      'MemberFederated',
      /^west: UpstreamCluster "west-1" has members itself/,
    ],
    [
      { clusters: [EAST, compiled('west-1', { cache: [PODS, { ...DEPLOYMENTS, version: 'v1beta1' }] })], cached: east },
      'False',
      'NotCached',
      /^west: in UpstreamCluster "west-1" spec.cache lacks deployments.apps of version v1; add it$/,
    ],
    [
      { clusters: [EAST, compiled('west-1', { cache: [{ ...PODS, namespaces: ['a'] }, DEPLOYMENTS] })], cached: east },
      'False',
      'NotCached',
      /only some namespaces of pods; remove/,
    ],
    [
      {
        clusters: [EAST, compiled('west-1', { cache: [{ ...PODS, encodings: ['Protobuf'] }, DEPLOYMENTS] })],
        cached: east,
      },
      'False',
      'NotCached',
      /without the encoding JSON/,
    ],
    [
      { clusters: [EAST, WEST], cached: east },
      'Unknown',
      'Loading',
      /^west: pods are being read; deployments.apps are being read$/,
    ],
    [
      {
        clusters: [EAST, WEST],
        cached: { ...east, 'west-1': [kept('pods', 'Refused', 'may not list'), SERVING[1] ?? kept('', 'Serving')] },
      },
      'False',
      'NotRead',
      /^west: pods: may not list$/,
    ],
  ]
  for (const [given, status, reason, message] of cases) {
    const verdict = membersVerdict(fact(given))
    assert.deepEqual([verdict.status, verdict.reason], [status, reason])
    assert.match(verdict.message, message)
    assert.equal(answersReads(fact(given)), false)
    assert.equal(answersReads(fact({ ...given, partial: 'Omit' })), true)
  }
})

test('a member that is lost is answered as it was last known', () => {
  const stale = [kept('pods', 'Stale', 'timeout'), kept('deployments.apps', 'Serving')]
  const lost = fact({ clusters: [EAST, WEST], cached: { east: SERVING, 'west-1': stale } })
  const { status, reason, message } = membersVerdict(lost)
  assert.deepEqual([status, reason], ['False', 'Stale'])
  assert.match(message, /^west: cannot be followed; pods are served as they were last known$/)
  assert.ok(answersReads(lost))
})

test('members that cannot be read any more, and can again, are Events', () => {
  const condition = (status: 'True' | 'False' | 'Unknown', reason: string): UpstreamClusterStatus => ({
    conditions: [{ type: 'MembersReady', status, reason, message: 'why', lastTransitionTime: '2030-01-01T00:00:00Z' }],
  })
  const told = (before: UpstreamClusterStatus, after: UpstreamClusterStatus): readonly string[] =>
    statusTransitions(before, after).map(({ type, reason }) => `${type} ${reason}`)
  assert.deepEqual(told(condition('True', 'Ready'), condition('False', 'Stale')), ['Warning MembersNotReady'])
  assert.deepEqual(told(condition('False', 'Stale'), condition('False', 'Stale')), [])
  assert.deepEqual(told(condition('False', 'Stale'), condition('False', 'NotRead')), ['Warning MembersNotReady'])
  assert.deepEqual(told(condition('False', 'NotRead'), condition('True', 'Ready')), ['Normal MembersReady'])
  assert.deepEqual(told(condition('Unknown', 'Loading'), condition('True', 'Ready')), [])
})

test('without any member nothing is answered', () => {
  assert.equal(answersReads(fact({ clusters: [], partial: 'Omit' })), false)
})

test('the status of a federated cluster has members in the place of endpoints', () => {
  const facts: StatusFacts = {
    generation: 3,
    inForce: 3,
    problems: [],
    degrade: undefined,
    endpoints: [],
    credentials: [],
    endingSoon: [],
    rights: { kind: 'unasked' },
    shadows: [],
    limits: undefined,
    protection: undefined,
    members: fact({ clusters: [EAST], cached: { east: SERVING } }),
  }
  const said = (more: Partial<StatusFacts>, type: string): readonly (string | undefined)[] => {
    const condition = conditionOf(clusterStatus({ ...facts, ...more }, undefined, 0), type)
    return [condition?.status, condition?.reason]
  }
  assert.deepEqual(said({}, 'Ready'), ['False', 'MembersNotReady'])
  assert.deepEqual(said({}, 'MembersReady'), ['False', 'MemberMissing'])
  assert.deepEqual(said({}, 'EndpointsHealthy'), [undefined, undefined])
  assert.deepEqual(said({}, 'CredentialsValid'), ['True', 'Valid'])
  const some = fact({ clusters: [EAST], cached: { east: SERVING }, partial: 'Omit' })
  assert.deepEqual(said({ members: some }, 'Ready'), ['True', 'Serving'])
  const loading = fact({ clusters: [EAST, WEST], cached: { east: SERVING } })
  assert.deepEqual(said({ members: loading }, 'Ready'), ['Unknown', 'Pending'])
  assert.deepEqual(said({ inForce: 2 }, 'Ready'), ['Unknown', 'Pending'])
  const expired = { path: 'spec.secureServing.certData', reason: 'Expired', message: 'expired' } as const
  assert.deepEqual(said({ members: some, credentials: [expired] }, 'Ready'), ['False', 'CredentialsInvalid'])
})
