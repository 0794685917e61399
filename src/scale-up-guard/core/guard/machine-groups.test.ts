import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { compileSelector } from '../../../kube/core/selectors/compile-selector.ts'
import { type GroupKind, isPaused, readGroup, readHealthCheck, readMachine } from './cluster-api-objects.ts'
import { type ClusterApiObjects, type FoundGroup, findGroups } from './machine-groups.ts'

const GROUP = 'cluster.x-k8s.io'
const SIZES = {
  [`${GROUP}/cluster-api-autoscaler-node-group-min-size`]: '1',
  [`${GROUP}/cluster-api-autoscaler-node-group-max-size`]: '5',
}
const T0 = '2026-01-01T00:00:00Z'

interface Options {
  readonly owner?: string
  readonly labels?: object
  readonly annotations?: object
  readonly spec?: object
  readonly status?: object
  readonly metadata?: object
}

function object(
  name: string,
  { owner, labels = {}, annotations = {}, spec = {}, status = {}, metadata = {} }: Options,
): JsonObject {
  const ownerReferences = owner === undefined ? [] : [{ uid: 'other' }, { uid: owner, controller: true }]
  return {
    metadata: {
      name,
      namespace: 'ns',
      uid: name,
      resourceVersion: '7',
      creationTimestamp: T0,
      labels,
      annotations,
      ownerReferences,
      ...metadata,
    },
    spec: { clusterName: 'c', ...spec },
    status,
  }
}

function group(kind: GroupKind, name: string, options: Options = {}): ReturnType<typeof readGroup> {
  const annotations = kind === 'MachineSet' && options.owner !== undefined ? {} : SIZES
  return readGroup(object(name, { annotations, ...options, spec: { replicas: 2, ...options.spec } }), kind, GROUP)
}

function machine(name: string, options: Options = {}): ReturnType<typeof readMachine> {
  return readMachine(object(name, options), GROUP, undefined, () => true)
}

function find(objects: Partial<ClusterApiObjects>, labels?: Record<string, string>): readonly FoundGroup[] {
  const none = {
    groups: [],
    machines: [],
    pausedClusters: new Set<string>(),
    healthChecks: [],
    nodes: new Set<string>(),
  }
  return findGroups(
    { ...none, ...objects },
    labels === undefined ? undefined : compileSelector({ matchLabels: labels }),
  )
}

const names = (found: readonly FoundGroup[]): string[] => found.map(({ group: { id } }) => id)

test('groups are those of the autoscaler: with both sizes, and a MachineSet only where it has no MachineDeployment', () => {
  const groups = [
    group('MachineDeployment', 'md'),
    group('MachineSet', 'md-1', { owner: 'md', annotations: SIZES }),
    group('MachineSet', 'alone'),
    group('MachinePool', 'pool'),
    group('MachineDeployment', 'by-hand', { annotations: {} }),
    group('MachineDeployment', 'no-number', { annotations: { ...SIZES, [Object.keys(SIZES)[0] ?? '']: 'one' } }),
    group('MachineDeployment', 'going', { metadata: { deletionTimestamp: T0 } }),
  ]
  assert.deepEqual(names(find({ groups })), ['MachineDeployment/ns/md', 'MachineSet/ns/alone', 'MachinePool/ns/pool'])
})

test('a selector chooses by the labels of the group', () => {
  const groups = [group('MachineDeployment', 'a', { labels: { tier: 'spot' } }), group('MachineDeployment', 'b')]
  assert.deepEqual(names(find({ groups }, { tier: 'spot' })), ['MachineDeployment/ns/a'])
})

test('machines belong to the MachineDeployment of their MachineSet; two sets with replicas are a rollout', () => {
  const sets = [
    group('MachineSet', 'md-1', { owner: 'md' }),
    group('MachineSet', 'md-2', { owner: 'md', spec: { replicas: 0 } }),
  ]
  const machines = [machine('m1', { owner: 'md-1' }), machine('m2', { owner: 'md-2' }), machine('m3', { owner: 'x' })]
  const [found] = find({ groups: [group('MachineDeployment', 'md'), ...sets], machines })
  assert.deepEqual(
    found?.group.machines?.map(({ name }) => name),
    ['m1', 'm2'],
  )
  assert.equal(found?.group.rollingOut, false)
  // It still has machines, although it should have none.
  const old = group('MachineSet', 'md-2', { owner: 'md', spec: { replicas: 0 }, status: { replicas: 1 } })
  const [rolling] = find({ groups: [group('MachineDeployment', 'md'), ...sets.slice(0, 1), old] })
  assert.equal(rolling?.group.rollingOut, true)
})

test('paused: by the group, one of its MachineSets, or its Cluster; by field or annotation', () => {
  const annotations = { ...SIZES, [`${GROUP}/paused`]: '' }
  const isGroupPaused = (objects: Partial<ClusterApiObjects>): boolean | undefined => find(objects)[0]?.group.paused
  const plain = group('MachineDeployment', 'md')
  assert.equal(isGroupPaused({ groups: [plain] }), false)
  assert.equal(isGroupPaused({ groups: [group('MachineDeployment', 'md', { annotations })] }), true)
  assert.equal(isGroupPaused({ groups: [group('MachineDeployment', 'md', { spec: { paused: true } })] }), true)
  assert.equal(isGroupPaused({ groups: [plain, group('MachineSet', 's', { owner: 'md', annotations })] }), true)
  assert.equal(isGroupPaused({ groups: [plain], pausedClusters: new Set(['ns/c']) }), true)
  assert.equal(isGroupPaused({ groups: [plain], pausedClusters: new Set(['other/c']) }), false)
  assert.equal(isPaused(object('c', { spec: { paused: true } }), GROUP), true)
})

test('a machine is a node by its nodeRef, or by a Node with its providerID', () => {
  const machines = [
    machine('ref', { owner: 's', status: { nodeRef: { name: 'n' } } }),
    machine('node', { owner: 's', spec: { providerID: 'p1' } }),
    machine('none', { owner: 's', spec: { providerID: 'p2' } }),
    machine('empty', { owner: 's' }),
  ]
  // An empty providerID of a Node matches no machine.
  const [found] = find({ groups: [group('MachineSet', 's')], machines, nodes: new Set(['p1']) })
  assert.deepEqual(
    found?.group.machines?.map(({ hasNode }) => hasNode),
    [true, true, false, false],
  )
})

test('a MachinePool has the nodes of its providerIDs, or as many as Cluster API knows', () => {
  const pool = group('MachinePool', 'p', {
    spec: { replicas: 4, providerIDList: ['a', 'b', 'c'] },
    status: { nodeRefs: [{}] },
  })
  const [found] = find({ groups: [pool], nodes: new Set(['a', 'b']) })
  assert.deepEqual([found?.group.nodes, found?.group.instances, found?.group.machines], [2, 3, undefined])
})

test('a MachineHealthCheck is found by the labels that the group gives its machines, in its namespace and Cluster', () => {
  const groups = [group('MachineDeployment', 'md', { spec: { template: { metadata: { labels: { pool: 'a' } } } } })]
  const check = (spec: object, metadata: object = {}): ReturnType<typeof readHealthCheck> =>
    readHealthCheck(object('mhc', { spec: { selector: { matchLabels: { pool: 'a' } }, ...spec }, metadata }))
  const of = (...healthChecks: readonly ReturnType<typeof readHealthCheck>[]): string | undefined =>
    find({ groups, healthChecks })[0]?.healthCheck
  assert.equal(of(check({})), 'mhc')
  assert.equal(of(check({ clusterName: 'other' })), '')
  assert.equal(of(check({}, { namespace: 'other' })), '')
  assert.equal(of(check({ selector: { matchLabels: { pool: 'b' } } })), '')
  assert.equal(of(check({ selector: { matchExpressions: 'nonsense' } })), '', 'and nothing is thrown')
})

test('a condition whose message is another each time goes on failing', () => {
  const notReady = (reason: string, lastTransitionTime: string): JsonObject => {
    const condition = {
      type: 'InfrastructureReady',
      status: 'False',
      reason,
      message: lastTransitionTime,
      lastTransitionTime,
    }
    return object('m', { status: { conditions: [{ type: 'Ready', status: 'False' }, condition] } })
  }
  const isTerminal = (reason: string): boolean => reason === 'Failed'
  const first = readMachine(notReady('Failed', T0), GROUP, undefined, isTerminal)
  const again = readMachine(notReady('Failed', '2026-01-01T00:01:00Z'), GROUP, first, isTerminal)
  assert.equal(again.state.notReady?.sinceMs, Date.parse(T0))
  const waited = readMachine(notReady('Waiting', T0), GROUP, undefined, isTerminal)
  const failed = readMachine(notReady('Failed', '2026-01-01T00:01:00Z'), GROUP, waited, isTerminal)
  assert.equal(failed.state.notReady?.sinceMs, Date.parse('2026-01-01T00:01:00Z'), 'waiting is not failing')
  const unreadable = readMachine(notReady('Failed', 'yesterday'), GROUP, undefined, isTerminal)
  assert.equal(unreadable.state.notReady?.sinceMs, Number.POSITIVE_INFINITY, 'nothing follows from it')
})

test('who wrote the replicas last is in managedFields', () => {
  const entry = (manager: string, time: string, field: string): object => {
    return { manager, time, fieldsV1: { 'f:spec': { [field]: {} } } }
  }
  const managedFields = [
    entry('helm', '2026-01-01T00:00:00Z', 'f:replicas'),
    entry('cluster-autoscaler', '2026-01-02T00:00:00Z', 'f:replicas'),
    entry('kubectl', '2026-01-03T00:00:00Z', 'f:template'),
  ]
  assert.equal(group('MachineDeployment', 'md', { metadata: { managedFields } }).writer, 'cluster-autoscaler')
})

test('no JSON makes a reader throw', () => {
  fc.assert(
    fc.property(fc.object({ maxDepth: 4 }), fc.object(), fc.object(), (spec, status, metadata) => {
      const any: JsonObject = { metadata, spec, status }
      const healthChecks = [readHealthCheck(any)]
      const machines = [readMachine(any, GROUP, undefined, () => true)]
      find({ groups: [readGroup(any, 'MachineDeployment', GROUP), group('MachineSet', 's')], machines, healthChecks })
    }),
  )
})
