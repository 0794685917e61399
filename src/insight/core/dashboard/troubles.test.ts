import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isHurting, troublesOf, troubleWeight } from './troubles.ts'

type Tile = Parameters<typeof troublesOf>[0]

const WELL: Tile = {
  endpoints: { up: 2, all: 2 },
  requestsPerSecond: 10,
  errorRatio: 0,
  refusedRatio: 0,
  p50: 5,
  p99: 20,
  inFlight: 0,
  watches: 0,
  degrade: null,
}

/** The troubles of a cluster that is healthy except for `change`. */
function troubles(change: Partial<Tile>, credentialFault = ''): readonly string[] {
  return troublesOf({ ...WELL, ...change }, credentialFault)
}

test('each trouble begins at its threshold', () => {
  assert.deepEqual(troubles({}), [])
  assert.deepEqual(troubles({ endpoints: { up: 0, all: 2 } }), ['down'])
  assert.deepEqual(troubles({ endpoints: { up: 1, all: 2 } }), ['endpoints'])
  assert.deepEqual([troubles({ errorRatio: 0.009 }), troubles({ errorRatio: 0.01 })], [[], ['errors']])
  assert.deepEqual([troubles({ refusedRatio: 0.049 }), troubles({ refusedRatio: 0.05 })], [[], ['refused']])
  assert.deepEqual([troubles({ p99: 999 }), troubles({ p99: 1000 }), troubles({ p99: null })], [[], ['slow'], []])
  assert.deepEqual(troubles({}, 'refused with 401'), ['credentials'])
  const degrade = { mode: 'Freeze', reason: '', by: '', since: 0, expiresAt: 0, shadow: false } as const
  assert.deepEqual(troubles({ degrade }), ['degraded'])
})

test('a few requests tell nothing of errors, refusals or latency', () => {
  assert.deepEqual(troubles({ requestsPerSecond: 0.1, errorRatio: 1, refusedRatio: 1, p99: 60_000 }), [])
})

test('a switch is shown, but alone is not a trouble; what weighs more comes first', () => {
  assert.equal(isHurting({ troubles: ['degraded'] }), false)
  assert.equal(isHurting({ troubles: ['degraded', 'slow'] }), true)
  assert.ok(
    troubleWeight(['down']) > troubleWeight(['errors', 'credentials', 'endpoints', 'refused', 'degraded', 'slow']),
  )
})
