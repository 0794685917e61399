import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Charge } from '../../../kit/api/stream.ts'
import { FIRST_QUARANTINE_MS, LONGEST_QUARANTINE_MS, MAX_SUSPECTS, Offenders, OWN_LANES } from './offenders.ts'

function charge(source: string, known = true): Charge {
  return { source, weight: 1, known }
}

test('who has ended a connection gets its own for a while, each time for longer', () => {
  const offenders = new Offenders()
  const mallory = charge('mallory')
  assert.equal(offenders.none, true)
  assert.equal(offenders.charge(mallory, 1, 0), FIRST_QUARANTINE_MS)
  assert.equal(offenders.none, false)
  assert.ok(offenders.laneOf(mallory, 1) >= 0)
  assert.equal(offenders.laneOf(charge('alice'), 1), -1)
  assert.equal(offenders.laneOf(mallory, FIRST_QUARANTINE_MS), -1)
  assert.equal(offenders.none, true)
  const times = Array.from({ length: 5 }, () => offenders.charge(mallory, 1, FIRST_QUARANTINE_MS))
  assert.equal(times[0], 4 * FIRST_QUARANTINE_MS)
  assert.equal(times.at(-1), LONGEST_QUARANTINE_MS)
})

test('one suspect of several is only separated when it is one again', () => {
  const offenders = new Offenders()
  assert.equal(offenders.charge(charge('mallory'), 0.5, 0), 0)
  assert.equal(offenders.laneOf(charge('mallory'), 0), -1)
  assert.ok(offenders.charge(charge('mallory'), 0.5, 1) > 0)
})

test('after a quiet time it is as if nothing had been', () => {
  const offenders = new Offenders()
  offenders.charge(charge('mallory'), 0.9, 0)
  assert.equal(offenders.charge(charge('mallory'), 0.9, 600_001), 0)
})

test('lanes are bounded; who comes later shares one, and who has no name never takes one', () => {
  const offenders = new Offenders()
  for (let i = 0; i < 3; i++) offenders.charge(charge(`address ${i}`, false), 1, 0)
  const lanes = Array.from({ length: OWN_LANES + 3 }, (_, i) => {
    offenders.charge(charge(`${i}`), 1, 0)
    return offenders.laneOf(charge(`${i}`), 1)
  })
  assert.equal(new Set(lanes.slice(0, OWN_LANES)).size, OWN_LANES)
  assert.deepEqual(lanes.slice(OWN_LANES), [OWN_LANES, OWN_LANES, OWN_LANES])
  assert.equal(offenders.laneOf(charge('address 0', false), 1), OWN_LANES + 1)
  // A lane whose quarantine is over goes to the next source, although the old one never came back.
  offenders.charge(charge('late'), 1, FIRST_QUARANTINE_MS)
  assert.equal(offenders.quarantined, 1)
  assert.equal(offenders.laneOf(charge('late'), FIRST_QUARANTINE_MS + 1), 0)
})

test('what is remembered is bounded', () => {
  const offenders = new Offenders()
  for (let i = 0; i < 3 * MAX_SUSPECTS; i++) offenders.charge(charge(`${i}`), 1, 0)
  assert.equal(offenders.quarantined, MAX_SUSPECTS)
})
