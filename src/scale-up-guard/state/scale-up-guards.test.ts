import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseRequestInfo, type RequestInfo } from '../../gateway/core/request/request-info.ts'
import type { GuardInForce } from '../core/guard/guards-in-force.ts'
import { ScaleUpGuardTable } from './scale-up-guards.ts'

const NOW = 1000

function guard(name: string, facts: Partial<GuardInForce> = {}, untilMs = NOW + 1): GuardInForce {
  const backoff = { group: 'MachineDeployment/ns/a', untilMs, attempt: 1, failed: 1, machines: 2, reason: 'X' }
  const rest = { cluster: 'mgmt', apiGroup: 'cluster.x-k8s.io', users: ['ca'], shadow: false }
  return { guard: name, ...rest, backoffs: [backoff], ...facts }
}

function info(method: string, path: string): RequestInfo {
  const found = parseRequestInfo(method, path)
  assert.ok(!('failure' in found))
  return found
}

const PATH = '/apis/cluster.x-k8s.io/v1beta2/namespaces/ns/machinedeployments/a'

function found(guards: readonly GuardInForce[], method = 'PATCH', path = `${PATH}/scale`, cluster = 'mgmt'): unknown {
  const table = new ScaleUpGuardTable()
  table.replace(guards)
  return table.find(cluster, info(method, path), NOW)?.guard
}

test('a write of the group, or of its scale, in any version of the API', () => {
  assert.equal(found([guard('g')]), 'g')
  assert.equal(found([guard('g')], 'PUT', PATH), 'g')
  assert.equal(found([guard('g')], 'PATCH', PATH.replace('v1beta2', 'v1beta1')), 'g')
})

test('nothing else', () => {
  assert.equal(found([guard('g')], 'GET'), undefined)
  assert.equal(found([guard('g')], 'PATCH', `${PATH}b/scale`), undefined)
  assert.equal(found([guard('g')], 'PATCH', PATH.replace('/ns/', '/other/')), undefined)
  assert.equal(found([guard('g')], 'PATCH', PATH.replace('machinedeployments', 'machinesets')), undefined)
  assert.equal(found([guard('g')], 'PATCH', PATH, 'other'), undefined)
  assert.equal(found([guard('g', {}, NOW - 1)]), undefined, 'it is over')
  assert.equal(found([]), undefined)
})

test('the stricter of two guards of one group counts, in either order', () => {
  const [shy, strict, longer] = [guard('shy', { shadow: true }, NOW + 9), guard('strict'), guard('longer', {}, NOW + 5)]
  assert.equal(found([shy, strict]), 'strict')
  assert.equal(found([strict, shy]), 'strict')
  assert.equal(found([strict, longer]), 'longer')
  assert.equal(found([longer, strict]), 'longer')
})

test('the table is empty when nothing is backed off', () => {
  const table = new ScaleUpGuardTable()
  assert.equal(table.size, 0)
  table.replace([guard('g')])
  assert.equal(table.size, 1)
  table.replace([])
  assert.equal(table.size, 0)
})
