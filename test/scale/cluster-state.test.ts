// The autoscaler's own tables (test/data/clusterstate.json), and runs of the loop.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import fc from 'fast-check'
import { ClusterState, type Instance, type NodeGroup, truncatedMessage } from '../../bench/scale/cluster-state.ts'
import { DEFAULTS, RULES_1_27, RULES_1_28, RULES_1_30, RULES_1_36 } from '../../bench/scale/rules.ts'
import {
  acceptableRange,
  deletableInstances,
  type IncorrectSize,
  incorrectSize,
  sizeCorrection,
  upcomingNodes,
} from '../../bench/scale/sizes.ts'
import { hasTooManyUnready, type NodeState, type Readiness, readiness } from '../../src/incidents/core/readiness.ts'
import { changedRequest } from '../../src/scale-up-guard/core/cluster-state.ts'

const CASES = JSON.parse(readFileSync(new URL('../data/clusterstate.json', import.meta.url), 'utf8'))
const MINUTE = 60_000
type Counts = Partial<Readiness>
type PerGroup<T> = Record<string, T>

test("defaults are the autoscaler's", () => {
  const { defaults } = CASES
  assert.deepEqual(DEFAULTS, {
    maxNodeProvisionMs: defaults.maxNodeProvisionTimeSeconds * 1000,
    maxNodeStartupMs: defaults.maxNodeStartupTimeSeconds * 1000,
    okTotalUnreadyCount: defaults.okTotalUnreadyCount,
    maxTotalUnreadyPercentage: defaults.maxTotalUnreadyPercentage,
    backoff: {
      initialMs: defaults.initialNodeGroupBackoffSeconds * 1000,
      maxMs: defaults.maxNodeGroupBackoffSeconds * 1000,
      resetMs: defaults.nodeGroupBackoffResetSeconds * 1000,
    },
    rules: RULES_1_36,
  })
})

for (const { unready, nodes, healthy } of CASES.clusterHealthFormula_derived.cases) {
  test(`${unready} of ${nodes} nodes unready: ${healthy ? 'healthy' : 'unhealthy'}`, () => {
    assert.equal(hasTooManyUnready(unready, nodes, DEFAULTS), !healthy)
  })
}

for (const { name, readiness: own, increase = {}, scaledDown = [], targets, want } of CASES.updateAcceptableRanges
  .cases) {
  test(`acceptable ranges: ${name}`, () => {
    for (const [group, target] of Object.entries(targets as PerGroup<number>)) {
      const deletions = scaledDown.filter((one: string) => one === group).length
      assert.deepEqual(acceptableRange(target, readiness(own[group]), increase[group] ?? 0, deletions), want[group])
    }
  })
}

for (const { name, readiness: counts, newTarget, increase, want, wantUpcoming } of CASES.recalculateAfterSizeChange
  .cases) {
  test(`after a change of size: ${name}`, () => {
    const own = readiness(counts as Counts)
    assert.deepEqual(acceptableRange(newTarget, own, increase, 0), want)
    assert.equal(upcomingNodes(newTarget, own), wantUpcoming)
  })
}

for (const { name, targets, readiness: counts, previous, want } of CASES.updateIncorrectNodeGroupSizes.cases) {
  test(`incorrect sizes: ${name}`, () => {
    const nowMs = 10_000_000
    const at = (
      one: { current: number; expected: number; firstObservedAgo: number } | undefined,
    ): IncorrectSize | undefined =>
      one && { current: one.current, expected: one.expected, firstObservedMs: nowMs - one.firstObservedAgo * 1000 }
    for (const [group, target] of Object.entries(targets as PerGroup<number>)) {
      const own = readiness(counts[group])
      const range = acceptableRange(target, own, 0, 0)
      assert.deepEqual(incorrectSize(own, range, at(previous[group]), RULES_1_28, nowMs), at(want[group]))
    }
  })
}

test('incorrect sizes up to 1.27: what a scale-up has not brought yet is acceptable', () => {
  const own = readiness({ registered: 7 })
  assert.equal(incorrectSize(own, acceptableRange(10, own, 3, 0), undefined, RULES_1_27, 0), undefined)
  assert.notEqual(incorrectSize(own, acceptableRange(10, own, 3, 0), undefined, RULES_1_28, 0), undefined)
  assert.equal(incorrectSize(undefined, acceptableRange(10, undefined, 0, 0), undefined, RULES_1_28, 0), undefined)
})

test(`requests: ${CASES.registerScaleUp.name}`, () => {
  const { steps, maxNodeProvisionTimeSeconds } = CASES.registerScaleUp
  let request: ReturnType<typeof changedRequest>
  for (const { delta, at, want } of steps) {
    request = changedRequest(request, delta, maxNodeProvisionTimeSeconds * 1000, at * 1000)
    const seconds = request && {
      increase: request.increase,
      time: request.timeMs / 1000,
      expectedAdd: request.expectedAddMs / 1000,
    }
    assert.deepEqual(seconds ?? null, want)
  }
})

test(`corrections: ${CASES.fixNodeGroupSize.name}`, () => {
  const { target, registered, maxNodeProvisionTimeSeconds, firstObservedAgo, checks } = CASES.fixNodeGroupSize
  const size = { current: registered, expected: target, firstObservedMs: -firstObservedAgo * 1000 }
  for (const { atAgo, want } of checks) {
    const delta = sizeCorrection(size, maxNodeProvisionTimeSeconds * 1000, -atAgo * 1000)
    assert.equal(delta, want?.decreaseTargetSize ?? 0)
  }
  assert.equal(sizeCorrection({ ...size, current: 5 }, 0, 1), 0, 'never upwards')
})

test(`instances that never registered: ${CASES.removeOldUnregisteredNodes.name}`, () => {
  const { min, target, unregistered, maxNodeProvisionTimeSeconds, unregisteredAgo, checks } =
    CASES.removeOldUnregisteredNodes
  const state = new ClusterState({ ...DEFAULTS, maxNodeProvisionMs: maxNodeProvisionTimeSeconds * 1000 })
  const groups = [group({ minSize: min, target, instances: [running('ng1-1'), ...unregistered.map(running)] })]
  state.update(groups, [node('ng1-1')], -unregisteredAgo * 1000)
  for (const { atAgo, want } of checks) {
    const deleted = state.instancesToDelete(-atAgo * 1000, false).get('ng1') ?? []
    assert.deepEqual(
      deleted.map(({ providerID }) => providerID),
      want,
    )
  }
  for (const one of CASES.removeOldUnregisteredNodes.capping_derived) {
    assert.equal(deletableInstances(one.old, one.target, one.min, one.force ?? false), one.deleted)
  }
})

test(`unregistered nodes: ${CASES.unregisteredNodes.name}`, () => {
  const { maxNodeProvisionTimeSeconds, target, instances, steps } = CASES.unregisteredNodes
  const state = new ClusterState({
    ...DEFAULTS,
    maxNodeProvisionMs: maxNodeProvisionTimeSeconds * 1000,
    rules: RULES_1_30,
  })
  const groups = [group({ target, maxSize: 10, instances: instances.map(running) })]
  for (const { at, registered, registerScaleUp, want } of steps) {
    if (registerScaleUp !== undefined) state.registerScaleUp('ng1', registerScaleUp, at * 1000)
    state.update(groups, registered.map(node), at * 1000)
    assert.deepEqual(
      state.unregistered.map(({ providerID }) => providerID),
      want.unregistered,
    )
    if (want.upcoming !== undefined) assert.equal(state.upcoming('ng1', at * 1000), want.upcoming)
  }
})

test(`sizes of all groups: ${CASES.clusterSize.name}`, () => {
  let targets: PerGroup<number> = {}
  let outside = 0
  for (const step of CASES.clusterSize.steps) {
    targets = step.targets ?? targets
    outside = step.outsideGroups ?? outside
    registeredCount = step.registered ?? registeredCount
    const state = new ClusterState(DEFAULTS)
    const groups = Object.entries(targets).map(([id, target]) => group({ id, target }))
    const nodes = Array.from({ length: registeredCount }, (_, i) => node(`ng1-${i}`))
    nodes.push(...Array.from({ length: outside }, (_, i) => ({ ...node(`own-${i}`), group: '' })))
    state.update(groups, nodes, 0)
    assert.deepEqual([state.autoscaledNodes.current, state.autoscaledNodes.target], step.want)
  }
})

for (const [message, max, want] of CASES.truncateMessage.cases) {
  test(`a message of ${message.length} characters in ${max}`, () => assert.equal(truncatedMessage(message, max), want))
}

test('a request that times out: failure and backoff; the target is lowered since 1.36', () => {
  for (const [rules, lowered] of [
    [RULES_1_30, []],
    [RULES_1_36, [['ng1', -2]]],
  ] as const) {
    const state = new ClusterState({ ...DEFAULTS, rules })
    const groups = [group({ target: 3, instances: ['a', 'b', 'c'].map(running) })]
    state.registerScaleUp('ng1', 2, 0)
    assert.deepEqual(state.update(groups, [node('a')], 15 * MINUTE).failures, [], 'the moment itself is in time')
    const { failures, lowerTargets } = state.update(groups, [node('a')], 15 * MINUTE + 1)
    assert.deepEqual(
      failures.map(({ group: id, reason, backedOffUntilMs }) => [id, reason, backedOffUntilMs]),
      [['ng1', 'timeout', 20 * MINUTE + 1]],
    )
    assert.deepEqual([...lowerTargets], lowered)
    assert.equal(state.request('ng1'), undefined)
    assert.equal(state.isSafeToScaleUp('ng1', 20 * MINUTE + 1), false)
    assert.equal(state.isSafeToScaleUp('ng1', 20 * MINUTE + 2), true)
  }
})

for (const [ms, text] of [
  [180_000, '3m0s'],
  [45_000, '45s'],
  [910_000, '15m10s'],
  [900_001, '15m0.001s'],
  [3_600_000, '1h0m0s'],
  [500, '500ms'],
] as const) {
  test(`the message of a request that times out after ${text} has the time as Go prints it`, () => {
    const state = new ClusterState({ ...DEFAULTS, maxNodeProvisionMs: ms - 1 })
    state.registerScaleUp('ng1', 1, 0)
    const { failures } = state.update([group({ target: 1, instances: [] })], [], ms)
    assert.deepEqual(
      failures.map(({ message }) => message),
      [`Scale-up timed out for node group ng1 after ${text}`],
    )
  })
}

test('a request is done when all its nodes are ready; up to 1.29 that also ends a backoff', () => {
  for (const [rules, backedOff] of [
    [RULES_1_28, false],
    [RULES_1_30, true],
  ] as const) {
    const state = new ClusterState({ ...DEFAULTS, rules })
    state.registerScaleUp('ng1', 1, 0)
    state.registerFailedScaleUp('ng1', { code: 'apiCallError', message: 'no' }, 0)
    state.update([group({ target: 1, instances: [running('a')] })], [node('a')], MINUTE)
    assert.equal(state.request('ng1'), undefined)
    assert.equal(state.backoff.status('ng1', MINUTE) !== undefined, backedOff)
  }
})

test('instances that could not be made count once, by code, and only while the group is scaling up', () => {
  const broken = (providerID: string): Instance => ({
    providerID,
    state: 'creating',
    error: { code: 'OutOfResources.ZONE_EXHAUSTED', message: 'no capacity' },
  })
  const groups = [group({ target: 5, instances: [running('a'), broken('b'), broken('c'), ...['d', 'e'].map(running)] })]
  const state = new ClusterState(DEFAULTS)
  assert.deepEqual(state.update(groups, [node('a')], 0).failures, [], 'nothing was ordered')
  const other = new ClusterState(DEFAULTS)
  other.registerScaleUp('ng1', 4, 0)
  assert.equal(other.update(groups, [node('a')], 1).failures.length, 1)
  assert.deepEqual(other.request('ng1'), { increase: 2, timeMs: 0, expectedAddMs: 15 * MINUTE })
  assert.equal(other.backoff.status('ng1', 1)?.error.code, 'OutOfResources.ZONE_EXHAUSTED')
  assert.equal(other.update(groups, [node('a')], 2).failures.length, 0, 'known already')
  assert.deepEqual(
    other.unregistered.map(({ providerID }) => providerID),
    ['d', 'e'],
  )
})

test('nodes: deleted, suspended, ready, not started, unready; instances that are being deleted are not awaited', () => {
  const state = new ClusterState(DEFAULTS)
  const nodes = [
    { ...node('a'), deleted: true },
    { ...node('b'), suspended: true },
    node('c'),
    { ...node('d'), ready: false, createdMs: 1 },
    { ...node('e'), ready: false, createdMs: 0 },
  ]
  const instances = ['a', 'b', 'c', 'd', 'e'].map(running)
  instances.push({ ...running('f'), state: 'deleting' })
  state.registerScaleUp('ng1', 3, 15 * MINUTE)
  state.update([group({ target: 6, instances })], nodes, 15 * MINUTE)
  // 6 less one ready, one unready and one suspended.
  assert.equal(state.upcoming('ng1', 15 * MINUTE), 3)
  assert.deepEqual(state.unregistered, [])
})

test('a group is unhealthy when more than 3 and more than 45 % of its minimum are missing; without any node, by its size', () => {
  const state = new ClusterState(DEFAULTS)
  const unready = (count: number): NodeState[] =>
    Array.from({ length: 10 }, (_, i) => ({ ...node(`n${i}`), ready: i >= count }))
  const groups = [
    group({ target: 10 }),
    group({ id: 'empty', target: 2 }),
    group({ id: 'zero', target: 0, minSize: 1 }),
  ]
  state.update(groups, unready(4), 16 * MINUTE)
  assert.deepEqual([state.isHealthy('ng1'), state.isHealthy('empty'), state.isHealthy('zero')], [true, true, true])
  state.update([group({ target: 10 }), group({ id: 'empty', target: 2, minSize: 1 })], unready(5), 16 * MINUTE)
  assert.deepEqual([state.isHealthy('ng1'), state.isHealthy('empty'), state.healthy], [false, false, false])
})

test('whatever happens: a target is never lowered below what is registered, and upcoming nodes are never negative', () => {
  const counts = fc.nat({ max: 12 })
  const steps = fc.array(
    fc.record({ target: counts, ready: counts, dark: counts, order: fc.integer({ min: -4, max: 4 }) }),
  )
  fc.assert(
    fc.property(steps, fc.constantFrom(RULES_1_27, RULES_1_28, RULES_1_30, RULES_1_36), (list, rules) => {
      const state = new ClusterState({ ...DEFAULTS, rules })
      list.forEach(({ target, ready, dark, order }, i) => {
        const nowMs = i * 4 * MINUTE
        if (order !== 0) state.registerScaleUp('ng1', order, nowMs)
        const names = Array.from({ length: ready }, (_, at) => `r${at}`)
        const instances = [...names, ...Array.from({ length: dark }, (_, at) => `d${at}`)].map(running)
        state.update([group({ target, instances })], names.map(node), nowMs)
        assert.ok(state.upcoming('ng1', nowMs) >= 0)
        for (const delta of state.sizeCorrections(nowMs).values()) assert.equal(target + delta, ready)
        const deleted = state.instancesToDelete(nowMs, false).get('ng1')?.length ?? 0
        assert.ok(deleted === 0 || target - deleted >= 1)
      })
    }),
  )
})

let registeredCount = 0

function group(facts: Partial<NodeGroup>): NodeGroup {
  return {
    id: 'ng1',
    minSize: facts.minSize ?? (facts.id === 'empty' ? 0 : 1),
    maxSize: 20,
    target: 1,
    instances: [],
    ...facts,
  }
}

function running(providerID: string): Instance {
  return { providerID, state: 'running', error: undefined }
}

function node(name: string): NodeState {
  return { name, group: 'ng1', providerID: name, createdMs: -1, deleted: false, suspended: false, ready: true }
}
