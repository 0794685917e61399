import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CompiledCluster } from '../core/cluster/compiled-cluster.ts'
import { AccessGrants } from '../state/access-grants.ts'
import { refuseEndedGrant, withGrants } from './access-grants.ts'
import type { Exchange } from './exchange/exchange.ts'
import { Authenticated } from './exchange/identity.ts'

const ALICE = { name: 'alice', uid: '', groups: ['dev'], extra: {} }
const PROD = { name: 'prod', federation: undefined } as CompiledCluster
const FEDERATED = { name: 'prod', federation: { members: [] } } as unknown as CompiledCluster
const WALL = 1_000_000

function exchangeOf(impersonates = false, nowMs = WALL): Exchange {
  const grants = new AccessGrants()
  const subject = { kind: 'User', name: 'alice' } as const
  const times = { fromMs: WALL - 1000, untilMs: WALL + 1000 }
  grants.replace([{ name: 'one', uid: '1', subject, clusters: ['prod'], groups: ['ops'], ...times }], WALL, 0)
  return {
    gw: { grants },
    head: { impersonates },
    record: { accessGrant: '' },
    nowMs,
    monotonicMs: nowMs - WALL,
  } as never
}

test('the sender has the groups; the same identity serves its next request', () => {
  const requester = new Authenticated(ALICE, 'x509', ['hash'])
  const exchange = exchangeOf()
  const granted = withGrants(exchange, PROD, requester)
  assert.ok(granted instanceof Authenticated)
  assert.deepEqual([granted.user.groups, granted.kind, granted.hashes], [['dev', 'ops'], 'x509', ['hash']])
  assert.equal(exchange.record.accessGrant, 'one')
  assert.equal(withGrants(exchange, PROD, requester), granted)
  assert.equal(refuseEndedGrant(exchange, granted), undefined)
  const late = { ...exchange, nowMs: WALL + 1000, monotonicMs: 1000 } as Exchange
  assert.equal(refuseEndedGrant(late, granted)?.refused, 'grant-ended')
  assert.equal(withGrants(late, PROD, requester), requester)
})

test('there are none for a request that impersonates, for anonymous senders, and on federated clusters', () => {
  const requester = new Authenticated(ALICE, 'x509', [])
  assert.equal(withGrants(exchangeOf(true), PROD, requester), requester)
  assert.equal(withGrants(exchangeOf(), FEDERATED, requester), requester)
  const anonymous = new Authenticated(ALICE, 'anonymous', [])
  assert.equal(withGrants(exchangeOf(), PROD, anonymous), anonymous)
  const exchange = exchangeOf(true)
  withGrants(exchange, PROD, requester)
  assert.equal(exchange.record.accessGrant, '')
})
