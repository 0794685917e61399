import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Incident, REFUSED_OF_ONE_USER } from './incident.ts'

const PLACE = { thread: 0, threads: 1, seed: [1, 2] } as const
const NOW = Date.UTC(2026, 0, 1)

test('one user who is refused ever other disruptive requests does not look like a crowd', () => {
  const incident = new Incident(PLACE)
  for (let i = 0; i < 20; i++) incident.countRefused('one', `request ${i}`, NOW)
  const few = incident.refusedInLastMinute(NOW)
  assert.ok(few > 10 && few <= 20, `${few} of 20 are told about as they are`)
  for (let i = 0; i < 10_000; i++) incident.countRefused('one', `request ${i}`, NOW)
  const many = incident.refusedInLastMinute(NOW)
  assert.ok(many <= REFUSED_OF_ONE_USER + 8, `${many}`)
  for (let i = 0; i < 500; i++) incident.countRefused(`user ${i}`, 'request', NOW)
  const crowd = incident.refusedInLastMinute(NOW)
  assert.ok(crowd > 450 && crowd < 650, `500 users and one: ${crowd}`)
})
