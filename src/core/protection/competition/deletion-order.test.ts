// Who goes first among deletions that compete, and which pods could go instead of a refused one; against the deletion rank of one
// ReplicaSet.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { PodFacts, PodScaleFacts, ProtectionVerdict } from '../../../api/ports/protection.ts'
import { rankDeletions } from '../../scale/rank/deletion-rank.ts'
import { ranked } from '../../scale/rank/replica-set-pods.ts'
import { namingBetterVictims } from '../quota/protection-messages.ts'
import { FirstVictims } from './better-victims.ts'
import { admissionOrder, type RankedPod } from './deletion-order.ts'

const NOW = Date.parse('2026-06-01T12:00:00Z')
const READY_SINCE = NOW - 3_600_000

function pod(
  name: string,
  scale: Partial<PodScaleFacts> = {},
  facts: Partial<PodFacts> = {},
  cell = 'east',
): RankedPod {
  const of = { controllerUid: 'rs', nodeName: `node-${name}`, phase: 'Running', deletionCost: 0, restarts: 0 }
  return {
    cell,
    pod: {
      namespace: 'shop',
      name,
      uid: name,
      resourceVersion: '1',
      labels: {},
      forceDelete: false,
      criterion: 'Available',
      terminating: false,
      scheduled: true,
      running: true,
      ready: true,
      readySinceMs: READY_SINCE,
      startedMs: READY_SINCE,
      createdMs: READY_SINCE,
      readyWrittenMs: READY_SINCE,
      ...facts,
      scale: { ...of, sidecarRestarts: 0, ...scale },
    },
  }
}

function order(
  pods: readonly (RankedPod | undefined)[],
  known: readonly RankedPod[] = [],
  late: readonly number[] = [],
) {
  const competitors = pods.map((one, index) => ({ ranked: one, late: late.includes(index) }))
  return admissionOrder(competitors, known, NOW).map((index) => pods[index]?.pod.name ?? `#${index}`)
}

describe('who goes first', () => {
  const rows: readonly (readonly [string, readonly (RankedPod | undefined)[], readonly string[]])[] = [
    ['nothing tells them apart: the latest first', [pod('a'), pod('b'), pod('c')], ['c', 'b', 'a']],
    [
      'the lower deletion cost',
      [pod('a', { deletionCost: -1 }), pod('b'), pod('c', { deletionCost: 5 })],
      ['a', 'b', 'c'],
    ],
    [
      'a pod that is not ready, whatever it costs',
      [pod('a', { deletionCost: 9 }, { ready: false }), pod('b')],
      ['a', 'b'],
    ],
    ['a pod without a node', [pod('a', { nodeName: '' }), pod('b', {}, { ready: false })], ['a', 'b']],
    ['doubled up on a node', [pod('a', { nodeName: 'n' }), pod('b', { nodeName: 'n' }), pod('c')], ['b', 'a', 'c']],
    [
      'more restarts',
      [pod('a', { restarts: 3 }), pod('b', { restarts: 1 }), pod('c', { restarts: 2 })],
      ['a', 'c', 'b'],
    ],
    [
      'sharing a node counts only among pods of one owner',
      [pod('a', { nodeName: 'n' }), pod('b', { nodeName: 'n' }), pod('c', { controllerUid: 'other', restarts: 1 })],
      ['c', 'b', 'a'],
    ],
    [
      'cost and restarts count across owners',
      [pod('a', { controllerUid: 'x', deletionCost: 1 }), pod('b', { controllerUid: 'y' })],
      ['b', 'a'],
    ],
    ['what has no rank keeps its place', [pod('a', { deletionCost: -5 }), undefined, pod('b')], ['a', '#1', 'b']],
  ]
  for (const [name, pods, expected] of rows) test(name, () => assert.deepEqual(order(pods), expected))

  test('who is nearly out of time comes behind the others', () => {
    assert.deepEqual(order([pod('a', { deletionCost: -9 }), pod('b'), pod('c')], [], [0]), ['c', 'b', 'a'])
  })

  test('pods that nobody deletes count on their nodes, each once; terminating ones do not', () => {
    const known = [
      pod('x', { nodeName: 'n' }),
      pod('a', { nodeName: 'n' }),
      pod('y', { nodeName: 'm' }, { terminating: true }),
    ]
    assert.deepEqual(order([pod('a', { nodeName: 'n' }), pod('b', { nodeName: 'm' })], known), ['a', 'b'])
    assert.deepEqual(order([pod('a', { nodeName: 'n' }), pod('b', { nodeName: 'm' })]), ['b', 'a'])
  })

  test('nodes of the same name in two clusters are two nodes', () => {
    const pods = [pod('a', { nodeName: 'n' }), pod('b', { nodeName: 'n' }, {}, 'west'), pod('c', { restarts: 1 })]
    assert.deepEqual(order(pods), ['c', 'b', 'a'])
  })

  test('of ten thousand equal pods only a part is compared', () => {
    const pods = Array.from({ length: 10_000 }, (_, index) => pod(`p${index}`, { restarts: index }))
    const sorted = order(pods)
    assert.equal(new Set(sorted).size, 10_000)
    assert.equal(sorted[0], 'p9999')
  })
})

test('for pods of one owner it is the order of its scale-down: certain victims first, safe pods last', () => {
  const scale = fc.record({
    nodeName: fc.constantFrom('', 'n1', 'n2', 'n3'),
    deletionCost: fc.integer({ min: -1, max: 1 }),
    restarts: fc.nat({ max: 2 }),
  })
  const ages = fc.integer({ min: 1, max: 5_000 })
  const pods = fc.array(fc.tuple(scale, fc.boolean(), ages), { minLength: 2, maxLength: 14 })
  fc.assert(
    fc.property(pods, fc.nat(), (given, seed) => {
      const all = given.map(([facts, ready, age], index) => {
        const since = { readySinceMs: NOW - age * 10_000, createdMs: NOW - age * 20_000 }
        return pod(`p${index}`, facts, { ready, ...since })
      })
      const count = 1 + (seed % (all.length - 1))
      const scaled = all.map(({ pod: { scale: own, ...facts } }) => ({ ...facts, ...own }))
      const conditions = { window: { fromMs: NOW, toMs: NOW } }
      const { certain, safe } = rankDeletions(ranked(scaled, scaled, conditions), count, conditions)
      const first = new Set(order(all).slice(0, count))
      assert.deepEqual(
        certain.filter((one) => !first.has(one.pod.name)),
        [],
      )
      assert.deepEqual(
        safe.filter((one) => first.has(one.pod.name)),
        [],
      )
    }),
  )
})

describe('pods that could go instead', () => {
  const pods = [
    pod('cheap', { deletionCost: -100 }),
    pod('unready', {}, { ready: false }),
    pod('going', {}, { terminating: true, ready: false }),
    pod('twin-1', { nodeName: 'n' }),
    pod('twin-2', { nodeName: 'n' }),
    pod('dear', { deletionCost: 7 }),
  ]
  const victims = new FirstVictims(pods, NOW)
  const all = (): boolean => true
  const of = (name: string): RankedPod => pods.find((one) => one.pod.name === name) ?? pod(name)

  test('those that take no quota, and those that a scale-down would take first, each with the reason', () => {
    assert.deepEqual(victims.betterThan(of('dear'), 10, all), [
      { name: 'unready', because: 'is not ready: its deletion takes no available pod' },
      { name: 'cheap', because: 'has deletion cost -100, less than 7' },
      { name: 'twin-1', because: 'has deletion cost 0, less than 7' },
      { name: 'twin-2', because: 'has deletion cost 0, less than 7' },
    ])
    const { because } = victims.betterThan(pod('new'), 10, all)[2] ?? {}
    assert.equal(because, 'is one of 2 pods of its owner on node n')
  })

  test('never the pod itself, a worse one, one that terminates, or more than were asked for', () => {
    const names = victims.betterThan(of('cheap'), 10, all).map(({ name }) => name)
    assert.deepEqual(names, ['unready'])
    assert.equal(victims.betterThan(of('dear'), 2, all).length, 2)
    const left = victims.betterThan(of('dear'), 2, (uid) => uid !== 'unready')
    assert.deepEqual(left[0]?.name, 'cheap')
  })

  test('they are causes of the refusal, and in its message as long as it stays short', () => {
    const refused: ProtectionVerdict = {
      status: 'Rejected',
      admitted: false,
      overridden: '',
      protector: 'shop/web',
      message: 'too few',
      causes: [],
      retryAfterSeconds: 0,
      freePass: false,
      reservation: undefined,
    }
    const named = namingBetterVictims({ ...refused, betterVictims: victims.betterThan(of('dear'), 2, all) })
    assert.equal(named.message, 'too few; could go instead: unready, cheap')
    assert.deepEqual(named.causes[1], {
      reason: 'PodProtectorBetterVictim',
      message: 'pod cheap has deletion cost -100, less than 7',
      field: 'pod/cheap',
    })
    const long = namingBetterVictims({ ...refused, betterVictims: [{ name: 'x'.repeat(400), because: 'is younger' }] })
    assert.deepEqual([long.message, long.causes.length], ['too few', 1])
  })
})
