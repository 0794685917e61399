// Which pods get a deletion cost: a table per preference, and that the controller then deletes exactly these.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { nameOf } from '../../../kit/api/json/json-object.ts'
import type { VictimPreference } from '../../api/scale-down-policy.ts'
import { rankDeletions } from '../rank/deletion-rank.ts'
import { ranked } from '../rank/replica-set-pods.ts'
import { scalePod } from '../rank/scale-pod.ts'
import { type ChoiceInput, chooseVictims, MAX_VICTIMS, type NodeFacts } from './choose-victims.ts'
import { costAnnotations, OWN_COST_ANNOTATION, ownCost, podCost, withoutCost } from './own-cost.ts'

const NOW = Date.parse('2026-06-01T12:00:00Z')
const COST = 'controller.kubernetes.io/pod-deletion-cost'
const OURS = costAnnotations({ id: 'before', workload: 'deployments/web', to: 3, at: '2026-06-01T11:00:00Z' })

interface PodOptions {
  readonly node?: string
  readonly ready?: boolean
  readonly annotations?: Readonly<Record<string, string>>
  readonly restarts?: number
  /** Seconds since it became ready. */
  readonly age?: number
}

function pod(name: string, given: PodOptions = {}) {
  const { node = `node-${name}`, ready = true, annotations = {}, restarts = 0, age = 7200 } = given
  const time = '2026-06-01T10:00:00Z'
  const lastTransitionTime = new Date(NOW - age * 1000).toISOString()
  return {
    metadata: { name, uid: `uid-${name}`, annotations, creationTimestamp: time },
    spec: node === '' ? {} : { nodeName: node },
    status: {
      phase: 'Running',
      conditions: [{ type: 'Ready', status: ready ? 'True' : 'False', lastTransitionTime }],
      containerStatuses: [{ restartCount: restarts }],
    },
  }
}

function nodes(facts: Readonly<Record<string, Partial<NodeFacts>>>): ReadonlyMap<string, NodeFacts> {
  const whole = { unschedulable: false, labels: {}, pods: undefined }
  return new Map(Object.entries(facts).map(([name, some]) => [name, { ...whole, ...some }]))
}

function victims(input: Partial<ChoiceInput> & Pick<ChoiceInput, 'pods' | 'count'>): string[] {
  const { pods } = input
  return chooseVictims({
    related: pods,
    prefer: [],
    nodes: new Map(),
    controller: {},
    ...input,
  }).victims.map(nameOf)
}

const zone = (name: string): Partial<NodeFacts> => ({ labels: { zone: name } })
const EMPTIEST: VictimPreference = { by: 'EmptiestNode' }
const ZONE: VictimPreference = { by: 'TopologyExcess', topologyKey: 'zone' }
const SESSIONS: VictimPreference = { by: 'Annotation', annotation: 'sessions' }
const CORDONED: VictimPreference = { by: 'UnschedulableNode' }
const sessions = (number: string): PodOptions => ({ annotations: { sessions: number } })

describe('preferences', () => {
  test('the emptiest node: the nodes with one pod are emptied, though the controller prefers those that share one (k/k #138718)', () => {
    const pods = [
      pod('a', { node: 'n1' }),
      pod('b', { node: 'n2' }),
      ...['c', 'd', 'e', 'f'].map((name) => pod(name, { node: 'n3' })),
    ]
    const facts = nodes({ n1: { pods: 1 }, n2: { pods: 1 }, n3: { pods: 4 } })
    assert.deepEqual(new Set(victims({ pods, count: 2, prefer: [EMPTIEST], nodes: facts })), new Set(['a', 'b']))
  })

  test('one node is emptied before the next one is begun; pods of others count', () => {
    const pods = ['a1', 'a2', 'b1', 'b2', 'b3', 'c1'].map((name) => pod(name, { node: name.charAt(0) }))
    const facts = nodes({ a: { pods: 2 }, b: { pods: 3 }, c: { pods: 9 } })
    const chosen = victims({ pods, count: 4, prefer: [EMPTIEST], nodes: facts })
    assert.deepEqual(
      [chosen.slice(0, 2).sort(), chosen.slice(2).every((name) => name.startsWith('b'))],
      [['a1', 'a2'], true],
    )
  })

  test('an unschedulable node', () => {
    const pods = [pod('a'), pod('b'), pod('c')]
    const facts = nodes({ 'node-b': { unschedulable: true }, 'node-a': {}, 'node-c': {} })
    assert.deepEqual(victims({ pods, count: 1, prefer: [CORDONED], nodes: facts }), ['b'])
  })

  test('topology: always the zone that has most; nodes without the label last', () => {
    const pods = ['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((name) => pod(name))
    const named = { a: 'x', b: 'x', c: 'x', d: 'x', e: 'y', f: 'y' }
    const facts = nodes(Object.fromEntries(Object.entries(named).map(([name, at]) => [`node-${name}`, zone(at)])))
    const chosen = victims({ pods, count: 4, prefer: [ZONE], nodes: facts })
    const zones = chosen.map((name) => Reflect.get(named, name))
    assert.deepEqual(
      [zones.slice(0, 2), zones.slice(2).sort()],
      [
        ['x', 'x'],
        ['x', 'y'],
      ],
    )
  })

  test('an annotation: the lowest number first, none and nonsense last', () => {
    const pods = [
      pod('a', sessions('7')),
      pod('b', sessions('x')),
      pod('c'),
      pod('d', sessions('-2')),
      pod('e', sessions('')),
    ]
    assert.deepEqual(victims({ pods, count: 2, prefer: [SESSIONS] }), ['d', 'a'])
  })

  test('the next preference decides where the first does not, and then the controller', () => {
    const pods = [
      pod('a', { node: 'n1', ...sessions('5') }),
      pod('b', { node: 'n2', ...sessions('1') }),
      pod('c', { node: 'n3', restarts: 4 }),
      pod('d', { node: 'n4', restarts: 9 }),
    ]
    const facts = nodes({ n1: { unschedulable: true }, n2: { unschedulable: true }, n3: {}, n4: {} })
    const prefer = [CORDONED, SESSIONS]
    assert.deepEqual(victims({ pods, count: 3, prefer, nodes: facts }), ['b', 'a', 'd'])
  })
})

test('among equal pods the choice does not depend on when it is made, nor on the order in which they are read', () => {
  // The controller deletes the first two by UID, lower first, while both are in one age bucket, and six seconds later the younger one.
  const pods = [
    pod('a', { age: 8_790 }),
    pod('b', { age: 8_000 }),
    pod('c', { age: 40_000 }),
    pod('d', { age: 40_000 }),
  ]
  assert.deepEqual(victims({ pods, count: 1, prefer: [SESSIONS] }), ['b'])
  assert.deepEqual(victims({ pods: pods.toReversed(), count: 3, prefer: [SESSIONS] }), ['b', 'a', 'c'])
})

describe('what is left alone', () => {
  test('pods that go before costs are asked get none, and count', () => {
    const pods = [pod('a', { ready: false }), pod('b', { node: '' }), pod('c'), pod('d', sessions('1'))]
    assert.deepEqual(victims({ pods, count: 3, prefer: [SESSIONS] }), ['d'])
    assert.deepEqual(victims({ pods, count: 2, prefer: [SESSIONS] }), [])
    assert.deepEqual(victims({ pods, count: 4, prefer: [SESSIONS] }), [])
  })

  test('among pods that are not ready one is chosen, too', () => {
    const pods = [pod('a', { ready: false }), pod('b', { ready: false, ...sessions('1') }), pod('c', sessions('0'))]
    assert.deepEqual(victims({ pods, count: 1, prefer: [SESSIONS] }), ['b'])
  })

  test('costs of others: a lower one goes first by itself, a higher one stays, and both are told', () => {
    const cost = (value: string): PodOptions => ({ annotations: { [COST]: value } })
    const pods = [pod('a', cost('-5')), pod('b', cost('3')), pod('c', cost('0')), pod('d', sessions('1')), pod('e')]
    const given = {
      related: pods,
      prefer: [SESSIONS],
      nodes: new Map(),
      controller: {},
    }
    const choice = chooseVictims({ pods, count: 2, ...given })
    assert.deepEqual([choice.victims.map(nameOf), choice.conflicts], [['d'], ['a', 'b', 'c']])
    assert.deepEqual(chooseVictims({ pods, count: 1, ...given }).victims, [])
  })

  test('costs of ours from before: used again, or taken back', () => {
    const pods = [pod('a', { annotations: OURS }), pod('b', { annotations: { ...OURS, sessions: '1' } }), pod('c')]
    const given = {
      related: pods,
      prefer: [SESSIONS],
      nodes: new Map(),
      controller: {},
    }
    const choice = chooseVictims({ pods, count: 1, ...given })
    assert.deepEqual([choice.victims.map(nameOf), choice.stale.map(nameOf), choice.conflicts], [['b'], ['a'], []])
  })

  test('more victims than may get a cost', () => {
    const pods = Array.from({ length: 200 }, (_, index) => pod(`p${index}`))
    assert.equal(victims({ pods, count: 150, prefer: [SESSIONS] }).length, MAX_VICTIMS)
    assert.deepEqual(victims({ pods, count: 200 }), [])
    assert.deepEqual(victims({ pods: [], count: 3 }), [])
  })
})

test('with the costs the controller deletes exactly what was chosen, whatever the pods are like', () => {
  const options = fc.record({
    node: fc.constantFrom('', 'n1', 'n2', 'n3'),
    ready: fc.constantFrom(true, true, true, false),
    restarts: fc.nat({ max: 2 }),
    annotations: fc.constantFrom<Readonly<Record<string, string>>>(
      {},
      {},
      {},
      { sessions: '3' },
      { [COST]: '-4' },
      { [COST]: '2' },
      OURS,
    ),
  })
  const prefer = fc.subarray([EMPTIEST, ZONE, SESSIONS, CORDONED], { minLength: 1 })
  const counts = fc.record({ n1: fc.nat({ max: 5 }), n2: fc.nat({ max: 5 }), n3: fc.nat({ max: 5 }) })
  fc.assert(
    fc.property(
      fc.array(options, { minLength: 1, maxLength: 15 }),
      prefer,
      counts,
      fc.nat(),
      (given, preferred, on, seed) => {
        const pods = given.map((one, index) => pod(`p${index}`, one))
        const count = 1 + (seed % pods.length)
        const facts = nodes({
          n1: { pods: on.n1, ...zone('x') },
          n2: { pods: on.n2, ...zone('y') },
          n3: { pods: on.n3 },
        })
        const choice = chooseVictims({
          controller: {},
          pods,
          related: pods,
          count,
          prefer: preferred,
          nodes: facts,
        })
        const chosen = new Set(choice.victims.map(nameOf))
        const stale = new Set(choice.stale.map(nameOf))
        const patched: JsonObject[] = pods.map((one) => {
          const { metadata } = one
          const before: Record<string, string> = { ...metadata.annotations }
          if (stale.has(metadata.name)) for (const key of Object.keys(OURS)) delete before[key]
          return {
            ...one,
            metadata: { ...metadata, annotations: { ...before, ...(chosen.has(metadata.name) && OURS) } },
          }
        })
        const conditions = { window: { fromMs: NOW, toMs: NOW } }
        const read = patched.map(scalePod)
        const { certain, possible } = rankDeletions(ranked(read, read, conditions), count, conditions)
        const goes = new Set(certain.map((one) => one.pod.name))
        assert.deepEqual(
          [...chosen].filter((name) => !goes.has(name)),
          [],
        )
        // Everything that costs can decide is decided: only pods with foreign costs are left open.
        const open = new Set(possible.pods.map((one) => one.pod.name))
        const conflicts = new Set(choice.conflicts)
        if (chosen.size > 0) assert.ok([...open].every((name) => conflicts.has(name) || !chosen.has(name)))
        if (choice.conflicts.length === 0 && chosen.size > 0) assert.equal(possible.count, 0)
      },
    ),
  )
})

test('what is ours is known again, and what has become of it', () => {
  const ours = pod('a', { annotations: OURS })
  assert.deepEqual(podCost(ours), { kind: 'own', own: ownCost(ours) })
  assert.deepEqual(ownCost(ours), { id: 'before', workload: 'deployments/web', to: 3, at: '2026-06-01T11:00:00Z' })
  const changed = pod('a', { annotations: { ...OURS, [COST]: '5' } })
  assert.equal(podCost(changed).kind, 'foreign')
  assert.deepEqual(withoutCost('foreign'), { [OWN_COST_ANNOTATION]: null })
  assert.deepEqual(withoutCost('own'), { [OWN_COST_ANNOTATION]: null, [COST]: null })
  for (const text of ['', '{', '[]', '7', '{"to":"x","id":7}']) {
    assert.deepEqual(ownCost(pod('a', { annotations: { [OWN_COST_ANNOTATION]: text } })), {
      id: '',
      workload: '',
      to: 0,
      at: '',
    })
  }
  assert.deepEqual([podCost(pod('a')).kind, ownCost(pod('a'))], ['none', undefined])
})
