// Whose writes of replicas are checked.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { UpstreamCluster } from '../../api/upstream-cluster/upstream-cluster.ts'
import { compileCluster } from '../cluster/compile-cluster.ts'
import { parseRequestInfo } from '../request/request-info.ts'
import { scaleProtectionOf } from './scale-write.ts'

const APPS = '/apis/apps/v1/namespaces/shop'
const MANAGER = 'system:kube-controller-manager'
const ACCOUNT = 'system:serviceaccount:kube-system:'

function isChecked(path: string, user = 'alice', scaleProtection: object = {}): boolean {
  const object: UpstreamCluster = {
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: { name: 'prod' },
    spec: {
      servers: [{ endpoint: 'https://10.0.0.1:6443' }],
      dispatchPolicies: [{ rules: [{ verbs: ['*'] }] }],
      scaleProtection,
    },
  }
  const info = parseRequestInfo('PUT', path)
  assert.ok(!('failure' in info))
  return scaleProtectionOf(compileCluster({ object, revision: '1' }), info, user) !== undefined
}

test('workloads and every /scale, where the cluster says so and no namespace is excluded', () => {
  const scale = '/apis/example.com/v1/namespaces/shop/rollouts/web/scale'
  for (const path of [`${APPS}/deployments/web`, scale]) {
    assert.equal(isChecked(path), true)
    assert.equal(isChecked(path, 'alice', { excludedNamespaces: ['shop'] }), false)
  }
  assert.equal(isChecked(`${APPS}/daemonsets/web`), false)
})

test('not what the Deployment controller writes, and yet what the horizontal autoscaler does, which may be the same user', () => {
  const set = `${APPS}/replicasets/web-1`
  assert.equal(isChecked(set, `${ACCOUNT}deployment-controller`), false)
  assert.equal(isChecked(set, MANAGER), false)
  assert.equal(isChecked(set), true)
  assert.equal(isChecked(`${set}/scale`, MANAGER), true)
  assert.equal(isChecked(`${APPS}/deployments/web/scale`, MANAGER), true)
  assert.equal(isChecked(`${APPS}/deployments/web/scale`, `${ACCOUNT}horizontal-pod-autoscaler`), true)
})
