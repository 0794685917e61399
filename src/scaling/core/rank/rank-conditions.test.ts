// How knowledge about the controller and about the time of its comparison changes what is certain.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { candidate, comparePods } from './compare-pods.ts'
import { rankDeletions } from './deletion-rank.ts'
import type { ScalePod } from './scale-pod.ts'

const NOW = Date.parse('2026-06-01T12:00:00Z')

function pod(name: string, more: Partial<ScalePod>): ScalePod {
  return {
    name,
    uid: name,
    labels: {},
    controllerUid: 'set',
    nodeName: `of-${name}`,
    phase: 'Running',
    ready: true,
    readySinceMs: NOW - 1_000_000_000,
    createdMs: NOW - 1_000_000_000,
    deletionCost: 0,
    restarts: 0,
    sidecarRestarts: 0,
    terminating: false,
    ...more,
  }
}

test('if the controller looks before ages change places, what is said to go soon goes', () => {
  const second = fc.integer({ min: 0, max: 90 })
  fc.assert(
    fc.property(fc.array(second, { minLength: 2, maxLength: 8 }), fc.nat(), fc.nat(59_999), (ages, seed, laterMs) => {
      const pods = ages.map((age, at) => {
        const time = NOW - age * 1000
        return pod(`p${at}`, { uid: `${(at * 7 + seed) % 10}-${at}`, readySinceMs: time, createdMs: time })
      })
      const count = 1 + (seed % (pods.length - 1))
      const at = (fromMs: number, toMs: number) => {
        const conditions = { window: { fromMs, toMs } }
        const candidates = pods.map((one) => candidate(one, { low: 1, high: 1 }, conditions))
        return rankDeletions(candidates, count, conditions)
      }
      const { certain, possible } = at(NOW, NOW + 60_000)
      const { soon } = possible
      const lookMs = NOW + laterMs
      if (soon === undefined || lookMs >= soon.untilMs) return
      const then = at(lookMs, lookMs)
      const said = [...certain.map((one) => one.pod.name), ...soon.pods.map(({ name }) => name)].sort()
      assert.deepEqual([then.certain.map((one) => one.pod.name).sort(), then.possible.count], [said, 0])
    }),
  )
})

test('costs that are still to be set leave open all pods that they decide among, and no others', () => {
  const conditions = { window: { fromMs: NOW, toMs: NOW }, costsOpen: true }
  const rank = (node: number) => ({ low: node, high: node })
  const pods = [
    candidate(pod('unready', { ready: false }), rank(1), conditions),
    candidate(pod('low', { deletionCost: -5 }), rank(1), conditions),
    candidate(pod('ours', { deletionCost: -1 }), rank(1), conditions),
    candidate(pod('none', {}), rank(3), conditions),
    candidate(pod('more', {}), rank(1), conditions),
    candidate(pod('high', { deletionCost: 5 }), rank(9), conditions),
  ]
  const { certain, possible, safe } = rankDeletions(pods, 3, conditions)
  const names = (verdicts: typeof safe): string[] => verdicts.map((one) => one.pod.name)
  assert.deepEqual(names(certain), ['unready', 'low'])
  assert.deepEqual([possible.count, new Set(names(possible.pods))], [1, new Set(['more', 'none', 'ours'])])
  assert.deepEqual(
    possible.pods.map(({ decision }) => decision.rule),
    ['Policy', 'Policy', 'Policy'],
  )
  assert.deepEqual(names(safe), ['high'])
})

test('a controller before 1.31 does not look at sidecars', () => {
  const [a, b] = [
    pod('a', { sidecarRestarts: 3, createdMs: NOW - 1_000_000 }),
    pod('b', { createdMs: NOW - 100_000_000 }),
  ]
  const decide = (sidecarRestarts: boolean) => {
    const conditions = { window: { fromMs: NOW, toMs: NOW }, sidecarRestarts }
    const [one, other] = [a, b].map((each) => candidate(each, { low: 1, high: 1 }, conditions))
    return one && other && comparePods(one, other, conditions).rule
  }
  assert.deepEqual([decide(true), decide(false)], ['Restarts', 'CreationTime'])
})
