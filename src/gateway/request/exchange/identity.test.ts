import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Peer } from '../../../kit/api/stream.ts'
import { addressCharge } from '../../../kit/core/shares/charge.ts'
import type { UserInfo } from '../../../kube/api/user.ts'
import type { CompiledCluster } from '../../core/cluster/compiled-cluster.ts'
import { Authenticated } from './identity.ts'

const PEER = { addressCharge: addressCharge('10.0.0.1') } as unknown as Peer
const PROD = { name: 'prod', weights: [] } as unknown as CompiledCluster

function user(name: string): UserInfo {
  return { name, uid: '', groups: [], extra: {} }
}

test('a user pays as a user of the cluster, with the same object each time', () => {
  const alice = new Authenticated(user('alice'), 'token', [])
  const charge = alice.chargeIn(PROD, PEER)
  assert.deepEqual(charge, { source: 'user "alice" of cluster "prod"', weight: 1, known: true })
  assert.equal(alice.chargeIn(PROD, PEER), charge)
})

test('an anonymous user is charged to the address, whatever its name', () => {
  const anonymous = new Authenticated(user('system:anonymous'), 'anonymous', [])
  assert.equal(anonymous.chargeIn(PROD, PEER), PEER.addressCharge)
  assert.deepEqual(PEER.addressCharge, { source: 'address 10.0.0.1', weight: 1, known: false })
})
