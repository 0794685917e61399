// Condition IssuersReachable, and its Events.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { UpstreamClusterStatus } from '../../api/upstream-cluster/status.ts'
import { clusterStatus, conditionOf } from './cluster-status.ts'
import { statusTransitions } from './events.ts'
import type { IssuerFact, StatusFacts } from './status-facts.ts'

const ISSUER: IssuerFact = { issuer: 'https://login.test', keys: 2, asked: true, message: '' }
const AWAY: IssuerFact = { ...ISSUER, message: 'no answer within 10 s' }

function status(before: UpstreamClusterStatus | undefined, issuers: readonly IssuerFact[] | undefined) {
  const facts: StatusFacts = {
    generation: 1,
    problems: [],
    inForce: 1,
    degrade: undefined,
    endpoints: [],
    credentials: [],
    endingSoon: [],
    rights: { kind: 'granted' },
    shadows: [],
    limits: undefined,
    protection: undefined,
    issuers,
  }
  return clusterStatus(facts, before, 0)
}

function shown(...issuers: readonly IssuerFact[]): string {
  const { status: value, reason, message } = conditionOf(status(undefined, issuers), 'IssuersReachable') ?? {}
  return `${value} ${reason}: ${message}`
}

test('it says which issuer is away, and whether its keys stay in use', () => {
  assert.equal(shown(ISSUER), 'True KeysRead: https://login.test: 2 keys')
  assert.equal(
    shown({ ...ISSUER, keys: 0, asked: false }),
    'Unknown Pending: https://login.test: its keys are being read',
  )
  assert.equal(
    shown(AWAY),
    'False KeysNotRead: the keys of https://login.test cannot be read (no answer within 10 s); the 2 keys read last stay in use for a day',
  )
  assert.match(shown({ ...AWAY, keys: 0 }), /its tokens are not accepted$/)
  assert.match(
    shown(ISSUER, { ...AWAY, issuer: 'https://other.test' }),
    /^False KeysNotRead: .*other\.test cannot be read/,
  )
  assert.equal(conditionOf(status(undefined, undefined), 'IssuersReachable'), undefined)
})

test('Events when one goes, and when all are back', () => {
  const good = status(undefined, [ISSUER])
  const bad = status(good, [AWAY])
  const told = (before: UpstreamClusterStatus, after: UpstreamClusterStatus) =>
    statusTransitions(before, after).map(({ type, reason }) => `${type} ${reason}`)
  assert.ok(told(good, bad).includes('Warning IssuersNotReachable'))
  assert.ok(told(bad, status(bad, [ISSUER])).includes('Normal IssuersReachable'))
  assert.ok(!told(good, status(good, [ISSUER])).some((one) => one.includes('Issuers')))
})
