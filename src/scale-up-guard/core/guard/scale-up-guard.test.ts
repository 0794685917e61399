import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { raiseRefusal } from './check-raise.ts'
import { compilePolicy } from './compile-guard.ts'
import { evaluateGroup, type GroupMemory, type MachineGroup, SETTLE_MS } from './evaluate-group.ts'
import { dueInMs, type MachineState, machineFailure } from './machine-failure.ts'

const DEFAULTS = compilePolicy({ clusterRef: { management: 'prod' } })
const NOW = 10_000_000
const FAILED = { reason: 'InstanceProvisionFailed', message: 'no capacity', sinceMs: NOW - 20_000 }

const NODE = machine('node', { hasNode: true })
const BAD = machine('bad', { notReady: FAILED })
const GONE = machine('gone', { deleting: true })
const WAITING = machine('waiting', { createdMs: NOW - 1 })

test('a machine fails by its condition at once, by silence later; a node, a deletion and the control plane are not ours', () => {
  const reason = (facts: Partial<MachineState>): string | undefined =>
    machineFailure(machine('a', facts), DEFAULTS, NOW)?.reason
  assert.equal(reason({ notReady: FAILED }), 'InstanceProvisionFailed')
  assert.equal(reason({ notReady: { ...FAILED, sinceMs: NOW - 19_999 } }), undefined)
  assert.equal(reason({ notReady: { ...FAILED, reason: 'WaitingForBootstrapData' } }), undefined)
  assert.equal(reason({ hasProviderID: false, createdMs: NOW - 179_999 }), undefined)
  assert.equal(reason({ hasProviderID: false, createdMs: NOW - 180_000 }), 'NoProviderID')
  assert.equal(reason({ createdMs: NOW - 599_999 }), undefined)
  assert.equal(reason({ createdMs: NOW - 600_000 }), 'NoNode')
  for (const not of [{ hasNode: true }, { deleting: true }, { controlPlane: true }]) {
    assert.equal(reason({ notReady: FAILED, hasProviderID: false, createdMs: 0, ...not }), undefined)
  }
})

test('what is lowered is what failed, with those machines marked', () => {
  const { correction, isNew, failures, inaction } = evaluate(group({ replicas: 4, machines: [NODE, NODE, BAD, BAD] }))
  assert.deepEqual(correction, { machines: failures.map(({ machine: one }) => one), replicas: 2 })
  assert.deepEqual([isNew, inaction, failures.length], [true, undefined, 2])
})

test('one that fails before those that failed earlier are gone is marked as well', () => {
  // The target was lowered from 4 to 3 for the first, whose controller has not taken it away yet.
  const first = { ...badNamed('first'), marked: true }
  const { correction } = evaluate(group({ replicas: 3, machines: [NODE, NODE, first, badNamed('second')] }))
  assert.deepEqual([correction?.replicas, correction?.machines.map(({ name }) => name)], [2, ['second']])
})

test('no more are marked than the minimum lets go', () => {
  const first = { ...badNamed('first'), marked: true }
  const machines = [NODE, first, badNamed('second'), badNamed('third')]
  const { correction } = evaluate(group({ replicas: 3, minSize: 2, machines }))
  assert.deepEqual([correction?.replicas, correction?.machines.map(({ name }) => name)], [2, ['second']])
})

test('where the autoscaler has marked a node and lowered the target for it, it is that node that goes', () => {
  const leaving = { ...nodeNamed('leaving'), marked: true }
  const machines = [leaving, NODE, badNamed('first'), badNamed('second')]
  const { correction } = evaluate(group({ replicas: 3, machines }))
  assert.deepEqual([correction?.replicas, correction?.machines.map(({ name }) => name)], [2, ['first']])
})

test('a mark alone does not lower a target: the failed machine is marked beside it', () => {
  const marked = { ...nodeNamed('marked'), marked: true }
  const { correction } = evaluate(group({ replicas: 2, machines: [marked, BAD] }))
  assert.deepEqual([correction?.replicas, correction?.machines.map(({ name }) => name)], [1, ['bad']])
})

const NEVER: readonly (readonly [string, Partial<MachineGroup>, Partial<GroupMemory>?])[] = [
  ['none-failed', { machines: [nodeNamed('a'), nodeNamed('b')] }],
  ['paused', { paused: true }],
  ['rolling-out', { rollingOut: true }],
  ['target-changed', {}, { replicas: 1 }],
  ['at-minimum', { minSize: 2 }],
  // A target of 2 with 4 machines: the two failed ones are already going.
  ['already-lowered', { machines: [nodeNamed('a'), nodeNamed('b'), badNamed('c'), badNamed('d')] }],
]
for (const [inaction, facts, memory] of NEVER) {
  test(`it does not act: ${inaction}`, () => {
    const known = { replicas: 2, failed: new Set<string>(), missingSinceMs: [], ...memory }
    const evaluation = evaluate(group({ replicas: 2, machines: [NODE, BAD], ...facts }), known)
    assert.equal(evaluation.correction, undefined)
    assert.equal(evaluation.inaction, inaction)
  })
}

test('it does not act: correction is off', () => {
  const policy = { ...DEFAULTS, correctTarget: false }
  const evaluation = evaluateGroup(group({ machines: [BAD] }), undefined, policy, NOW)
  assert.deepEqual([evaluation.inaction, evaluation.isNew], ['correction-is-off', true])
})

test('a group at less than its minimum is corrected as far as the minimum', () => {
  const { correction } = evaluate(group({ replicas: 4, minSize: 3, machines: [NODE, NODE, BAD, BAD] }))
  assert.equal(correction?.replicas, 3)
  assert.equal(correction?.machines.length, 1)
})

test('a failure is news once, and a group that changed is looked at again', () => {
  const facts = group({ replicas: 2, machines: [NODE, BAD] })
  const first = evaluate(facts)
  assert.equal(evaluate(facts, first.memory).isNew, false)
  const changed = evaluate({ ...facts, replicas: 3 }, first.memory)
  assert.deepEqual([changed.inaction, changed.againInMs], ['target-changed', SETTLE_MS])
  assert.equal(evaluate({ ...facts, replicas: 3 }, changed.memory).inaction, undefined)
  const other = { ...BAD, uid: 'other' }
  assert.equal(evaluate({ ...facts, machines: [NODE, BAD, other] }, first.memory).isNew, true)
})

test('another look is due when the first machine may count as failed', () => {
  const waiting = machine('w', { createdMs: NOW - 60_000, hasProviderID: false })
  assert.equal(evaluate(group({ machines: [NODE, waiting] })).againInMs, 120_000)
  assert.equal(dueInMs({ ...waiting, notReady: { ...FAILED, sinceMs: NOW } }, DEFAULTS, NOW), 20_000)
  assert.equal(evaluate(group({ machines: [BAD] })).againInMs, undefined, 'it has failed: nothing is awaited')
})

test('a MachinePool has only nodes: each replica may be without one for ten minutes, whatever was ordered since', () => {
  const pool = group({ replicas: 4, nodes: 2, machines: undefined })
  const first = evaluate(pool, undefined, NOW)
  assert.deepEqual([first.inaction, first.againInMs], ['none-failed', 600_000])
  const raised = evaluate({ ...pool, replicas: 5 }, first.memory, NOW + 500_000)
  assert.deepEqual([raised.inaction, raised.memory.missingSinceMs.length], ['none-failed', 3])
  const later = evaluate({ ...pool, replicas: 5 }, raised.memory, NOW + 600_000)
  assert.deepEqual(later.correction, { machines: [], replicas: 3 })
  assert.equal(later.againInMs, 500_000)
  assert.equal(later.isNew, true)
  assert.equal(evaluate({ ...pool, replicas: 5 }, later.memory, NOW + 600_001).isNew, false)
  assert.deepEqual(evaluate({ ...pool, nodes: 3 }, first.memory, NOW + 600_000).correction?.replicas, 3, 'one came')
})

test('a MachinePool gives back only what has no instance: the cloud may choose a node', () => {
  const pool = group({ replicas: 4, nodes: 1, instances: 3, machines: undefined })
  const known = { replicas: 4, failed: new Set<string>(), missingSinceMs: [0, 0, 0] }
  const evaluation = evaluate(pool, known)
  assert.equal(evaluation.failures.length, 3)
  assert.deepEqual(evaluation.correction, { machines: [], replicas: 3 })
  const all = evaluate({ ...pool, instances: 4 }, known)
  assert.deepEqual([all.correction, all.inaction, all.isNew], [undefined, 'unregistered-are-kept', true])
})

test('machines with an instance are kept where the guard is told so', () => {
  const silent = machine('silent', { createdMs: NOW - 600_000 })
  const policy = { ...DEFAULTS, deleteLongUnregistered: false }
  const only = evaluateGroup(group({ machines: [NODE, silent] }), undefined, policy, NOW)
  assert.deepEqual([only.correction, only.inaction, only.isNew], [undefined, 'unregistered-are-kept', true])
  const { correction } = evaluateGroup(group({ machines: [NODE, silent, BAD] }), undefined, policy, NOW)
  assert.deepEqual([correction?.replicas, correction?.machines.map(({ name }) => name)], [2, ['bad']])
})

test('time during which a group, or a machine, is paused does not count', () => {
  const old = machine('old', { createdMs: 0, hasProviderID: false })
  const facts = group({ machines: [NODE, old] })
  const paused = evaluate({ ...facts, paused: true })
  assert.deepEqual([paused.isNew, paused.failures.length, paused.inaction], [false, 0, 'paused'])
  const resumed = evaluate(facts, paused.memory, NOW + 1)
  assert.deepEqual([resumed.failures.length, resumed.againInMs], [0, 179_999])
  assert.equal(evaluate(facts, resumed.memory, NOW + 180_000).failures[0]?.reason, 'NoProviderID')
  assert.equal(machineFailure({ ...old, paused: true }, DEFAULTS, NOW), undefined)
})

test('a refusal names group, reason, end and attempt in fewer than 400 characters; lowering always passes', () => {
  const backoff = {
    group: `MachineDeployment/ns/${'a'.repeat(253)}`,
    untilMs: Date.UTC(2026, 0, 1, 12, 5, 15),
    attempt: 1,
    failed: 2,
    machines: 2,
    reason: 'InsufficientInstanceCapacity',
  }
  const refusal = raiseRefusal(backoff, 2, 4, backoff.untilMs)
  assert.ok(refusal.length < 400)
  assert.equal(
    raiseRefusal({ ...backoff, group: 'MachineDeployment/ns/a' }, 2, 4, backoff.untilMs),
    'scale-up of MachineDeployment/ns/a refused: 2 of 2 machines failed (InsufficientInstanceCapacity); ' +
      'backing off until 12:05:15Z (attempt 1). Other groups are not affected.',
  )
  assert.equal(raiseRefusal(backoff, 4, 4, 0), '')
  assert.equal(raiseRefusal(backoff, 4, 3, 0), '')
  assert.equal(raiseRefusal(backoff, 2, 4, backoff.untilMs + 1), '')
  assert.equal(raiseRefusal(undefined, 2, 4, 0), '')
})

test('whatever the machines: no target below the minimum, and none below the machines that have not failed', () => {
  const machines = fc.array(
    fc.constantFrom(NODE, BAD, GONE, WAITING, { ...NODE, marked: true }, { ...BAD, marked: true }),
    { maxLength: 8 },
  )
  const counts = fc.nat({ max: 9 })
  fc.assert(
    fc.property(machines, counts, counts, (some, replicas, minSize) => {
      const named = some.map((one, i) => ({ ...one, name: `m${i}`, uid: `m${i}` }))
      const { correction, failures } = evaluate(group({ replicas, minSize, machines: named }))
      if (correction === undefined) return
      assert.ok(correction.replicas >= minSize && correction.replicas < replicas)
      const present = named.filter(({ deleting }) => !deleting).length
      const good = present - failures.length
      // All that its controller takes away have the mark.
      const before = named.filter(({ marked, deleting }) => marked && !deleting).length
      assert.ok(before + correction.machines.length >= Math.max(present, replicas) - correction.replicas)
      assert.ok(correction.replicas >= Math.min(good, replicas))
      for (const one of correction.machines) assert.ok(!one.hasNode && !one.deleting && !one.marked)
    }),
  )
})

function nodeNamed(name: string): MachineState {
  return machine(name, { hasNode: true })
}

function badNamed(name: string): MachineState {
  return machine(name, { notReady: FAILED })
}

function machine(name: string, facts: Partial<MachineState> = {}): MachineState {
  const rest = {
    createdMs: NOW - 30_000,
    deleting: false,
    marked: false,
    controlPlane: false,
    hasProviderID: true,
    hasNode: false,
  }
  return { name, uid: name, ...rest, notReady: undefined, ...facts }
}

function group(facts: Partial<MachineGroup>): MachineGroup {
  const rest = { minSize: 0, paused: false, rollingOut: false, machines: [], nodes: 0, instances: 0 }
  return { id: 'MachineDeployment/ns/a', replicas: facts.machines?.length ?? 2, ...rest, ...facts }
}

function evaluate(facts: MachineGroup, memory?: GroupMemory, nowMs = NOW): ReturnType<typeof evaluateGroup> {
  return evaluateGroup(facts, memory, DEFAULTS, nowMs)
}
