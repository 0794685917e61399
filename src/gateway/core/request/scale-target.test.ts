// Which requests scale something.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseRequestInfo } from './request-info.ts'
import { scaleName, scalePath, scaleTargetOf } from './scale-target.ts'

function targetOf(method: string, path: string): ReturnType<typeof scaleTargetOf> {
  const info = parseRequestInfo(method, path)
  assert.ok(!('failure' in info))
  return scaleTargetOf(info)
}

const APPS = '/apis/apps/v1/namespaces/shop'
const MACHINES = '/apis/cluster.x-k8s.io/v1beta1/namespaces/shop'

const SCALES: readonly (readonly [path: string, name: string])[] = [
  [`${APPS}/deployments/web`, 'deployments/web'],
  [`${APPS}/deployments/web/scale`, 'deployments/web'],
  [`${APPS}/replicasets/web`, 'replicasets/web'],
  [`${APPS}/statefulsets/db/scale`, 'statefulsets/db'],
  ['/api/v1/namespaces/shop/replicationcontrollers/old', 'replicationcontrollers/old'],
  [`${MACHINES}/machinedeployments/a`, 'machinedeployments.cluster.x-k8s.io/a'],
  [`${MACHINES}/machinepools/a/scale`, 'machinepools.cluster.x-k8s.io/a'],
  ['/apis/example.com/v1/namespaces/shop/rollouts/web/scale', 'rollouts.example.com/web'],
  ['/apis/example.com/v1/fleets/all/scale', 'fleets.example.com/all'],
]

const OTHERS: readonly string[] = [
  `${APPS}/deployments`,
  `${APPS}/deployments/web/status`,
  `${APPS}/daemonsets/agent`,
  '/apis/example.com/v1/namespaces/shop/rollouts/web',
  '/apis/example.com/v1/namespaces/shop/deployments/web',
  '/api/v1/namespaces/shop/pods/web',
  '/healthz',
]

for (const [path, name] of SCALES) {
  test(`a write of ${path}`, () => {
    for (const method of ['PUT', 'PATCH']) {
      const target = targetOf(method, path)
      assert.ok(target)
      assert.equal(scaleName(target), name)
      assert.equal(scalePath(target, path.endsWith('/scale') ? '/scale' : ''), path)
    }
    for (const method of ['GET', 'POST', 'DELETE']) assert.equal(targetOf(method, path), undefined)
  })
}

for (const path of OTHERS) test(`not a write of ${path}`, () => assert.equal(targetOf('PUT', path), undefined))

test('the group of Cluster API has another name where the configuration says so', () => {
  const info = parseRequestInfo('PUT', '/apis/machines.example.com/v1/namespaces/a/machinesets/b')
  assert.ok(!('failure' in info))
  assert.equal(scaleTargetOf(info), undefined)
  assert.equal(scaleTargetOf(info, 'machines.example.com')?.name, 'b')
})
