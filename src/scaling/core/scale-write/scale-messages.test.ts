// Messages for callers that lower replicas, and how long an annotation overrides the refusal.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ProtectorAnswer } from '../../../protection/api/protection.ts'
import { isAllowed } from '../../request/scale-protection.ts'
import type { PlannedPod, ScaleDownPlan } from '../rank/scale-down-plan.ts'
import { leavingWarnings, refusalCauses, refusalText } from './scale-messages.ts'

const CHANGE = { name: 'deployments/web', from: 8, to: 2 }

function podsOf(count: number, name = 'web'): PlannedPod[] {
  return Array.from({ length: count }, (_, at) => {
    return { name: `${name}-${at}`, uid: String(at), node: '', rule: 'Tie', because: '' }
  })
}

function planOf(certain: readonly PlannedPod[], count = 0, open: readonly PlannedPod[] = []): ScaleDownPlan {
  const set = { name: 'web-1', from: 8, to: 2, certain, possible: { count, pods: open }, safe: [] }
  return { from: 8, to: 2, sets: [set], notes: [] }
}

test('certain ones by name, the others by number, and nothing where no pod goes', () => {
  assert.deepEqual(leavingWarnings(CHANGE, planOf([]), true), [])
  assert.deepEqual(leavingWarnings(CHANGE, planOf(podsOf(1)), true), [
    'deployments/web: 8 -> 2 replicas deletes 1 pod: web-0',
  ])
  assert.deepEqual(leavingWarnings(CHANGE, planOf(podsOf(2), 1, podsOf(2, 'b')), true), [
    'deployments/web: 8 -> 2 replicas deletes 3 pods: web-0, web-1',
    'deployments/web: 1 of these 2 go: b-0, b-1',
  ])
  assert.deepEqual(leavingWarnings(CHANGE, planOf(podsOf(2), 1, podsOf(2)), false), [
    'deployments/web: 8 -> 2 replicas deletes 3 pods',
  ])
})

test('every name is in one of them as long as a dozen is enough, and none is longer than 256', () => {
  for (const count of [30, 120, 5000]) {
    const pods = podsOf(count, 'web-7c5d8f9b6d')
    const texts = leavingWarnings(CHANGE, planOf(pods), true)
    assert.ok(texts.length <= 12 && texts.every(({ length }) => length <= 256))
    const told = pods.filter(({ name }) => texts.some((text) => text.split(/[ ,]+/).includes(name)))
    if (count < 130) assert.equal(told.length, count)
    else assert.match(texts.at(-1) ?? '', /more pods go than are named here/)
  }
})

function answerOf(protector: string): ProtectorAnswer {
  const numbers = { required: 6, requiredAfter: 5, counted: 8, beingDeleted: 2147483647, deletions: 6, delayed: 0 }
  return { protector, ...numbers, refused: { least: 3, most: 3 }, stale: false }
}

test('a refusal stays below 400 characters, however long the names are', () => {
  const long = `${'n'.repeat(63)}/${'p'.repeat(253)}`
  const against = Array.from({ length: 40 }, () => answerOf(long))
  const change = { name: `replicationcontrollers/${'w'.repeat(253)}`, from: 2147483647, to: 2147483646 }
  assert.ok(refusalText(change, against).length < 400)
  assert.equal(refusalCauses(against).length, 16)
})

test('the annotation is a time, and counts until then', () => {
  const workload = (until: unknown): object => ({
    metadata: { annotations: { 'scale.portcullis.io/allow-until': until } },
  })
  const nowMs = Date.parse('2030-01-31T12:00:00Z')
  const allowed = (until: unknown): boolean => isAllowed({ ...workload(until) }, nowMs)
  for (const good of ['2030-01-31T12:00:01Z', '2030-01-31T14:00:00+01:00', '2030-01-31t12:00:00.5z'])
    assert.ok(allowed(good), good)
  const bad = [
    '2030-01-31T12:00:00Z',
    '2030-01-31T12:30:00+01:00',
    '2031',
    'true',
    'Fri, 31 Jan 2031 12:00:00 GMT',
    '',
    1,
  ]
  for (const one of bad) assert.ok(!allowed(one), String(one))
  assert.ok(!isAllowed({}, nowMs))
})
