// spec.autoscaler: valid values, and every error with its path and fix.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { nodePemChecks } from '../../../pki/io/pem-checks.ts'
import { checkUpstreamCluster } from './checks.ts'

function check(autoscaler: unknown): readonly string[] {
  const object = {
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: { name: 'prod' },
    spec: {
      servers: [{ endpoint: 'https://10.0.0.1:6443' }],
      clientConfig: { insecure: true, bearerToken: 'dG9rZW4=' },
      dispatchPolicies: [{ rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }] }],
      autoscaler,
    },
  }
  return checkUpstreamCluster(object, nodePemChecks).map(({ severity, path, message }) => {
    return `${severity} ${path.replace('spec.autoscaler', '').replace(/^[.]/, '')}: ${message}`
  })
}

test('accepted', () => {
  const every = { statusConfigMap: { namespace: 'autoscaling', name: 'status.a' }, staleAfterSeconds: 3600 }
  for (const good of [undefined, null, {}, { statusConfigMap: {} }, every]) assert.deepEqual(check(good), [])
})

test('errors', () => {
  const bad: readonly (readonly [unknown, RegExp])[] = [
    [
      { statusConfigMap: { namespace: 'kube-*' } },
      /^error statusConfigMap.namespace: "kube-\*" is not a valid namespace/,
    ],
    [{ statusConfigMap: { namespace: 'a/../b' } }, /^error statusConfigMap.namespace: /],
    [{ statusConfigMap: { name: '..' } }, /^error statusConfigMap.name: ".." is not a valid ConfigMap name/],
    [{ statusConfigMap: { name: '' } }, /^error statusConfigMap.name: /],
    [{ statusConfigMap: 'kube-system/a' }, /^error statusConfigMap: /],
    [{ staleAfterSeconds: 9 }, /^error staleAfterSeconds: /],
    [{ staleAfterSeconds: 3601 }, /^error staleAfterSeconds: /],
    [{ configMap: {} }, /^warning configMap: /],
    [[], /^error : /],
  ]
  for (const [autoscaler, expected] of bad) {
    const [first = '', ...more] = check(autoscaler)
    assert.deepEqual(more, [], JSON.stringify(autoscaler))
    assert.match(first, expected)
  }
})

test('nothing throws, whatever it is', () => {
  fc.assert(fc.property(fc.jsonValue(), (value) => void check(value)))
  fc.assert(fc.property(fc.jsonValue(), (value) => void check({ statusConfigMap: value })))
})
