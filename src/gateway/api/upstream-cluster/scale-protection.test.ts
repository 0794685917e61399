// spec.scaleProtection: valid values, and every error with its path and fix.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FieldError } from '../../../kit/api/json/field-error.ts'
import { nodePemChecks } from '../../../pki/io/pem-checks.ts'
import { checkUpstreamCluster } from './checks.ts'

function check(scaleProtection: unknown, podProtection: unknown = {}): readonly FieldError[] {
  const object = {
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: { name: 'prod' },
    spec: {
      servers: [{ endpoint: 'https://10.0.0.1:6443' }],
      clientConfig: { insecure: true, bearerToken: 'dG9rZW4=' },
      dispatchPolicies: [{ rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }] }],
      podProtection,
      scaleProtection,
    },
  }
  return checkUpstreamCluster(object, nodePemChecks)
}

const SELECTOR = { matchExpressions: [{ key: 'tier', operator: 'NotIn', values: ['test'] }] }

test('null is as good as absent, empty is on, and every field', () => {
  const full = { shadow: true, failurePolicy: 'Fail', excludedNamespaces: ['kube-system'], objectSelector: SELECTOR }
  for (const good of [null, {}, full]) assert.deepEqual(check(good), [])
})

const BAD: readonly (readonly [unknown, string, RegExp])[] = [
  [{ shadow: 'yes' }, 'error shadow', /./],
  [{ failurePolicy: 'Open' }, 'error failurePolicy', /./],
  [{ excludedNamespaces: ['kube-*'] }, 'error excludedNamespaces[0]', /is not a valid namespace/],
  [{ excludedNamespaces: ['a', 'a'] }, 'warning excludedNamespaces[1]', /named twice/],
  [{ objectSelector: {} }, 'warning objectSelector', /is empty: it selects all workloads/],
  [
    { objectSelector: { matchExpressions: [{ key: 'a', operator: 'In' }] } },
    'error objectSelector.matchExpressions[0].values',
    /In/,
  ],
  [{ mode: 'Enforce' }, 'warning mode', /./],
]
for (const [value, place, message] of BAD) {
  test(JSON.stringify(value), () => {
    const [problem, ...more] = check(value)
    const [severity = '', path = ''] = place.split(' ')
    assert.deepEqual([problem?.severity, problem?.path, more], [severity, `spec.scaleProtection.${path}`, []])
    assert.match(problem?.message ?? '', message)
    assert.notEqual(problem?.fix, '')
  })
}

test('without podProtection no ledger is asked, which is worth a warning', () => {
  const [problem, ...more] = check({}, null)
  assert.deepEqual([problem?.severity, problem?.path, more], ['warning', 'spec.scaleProtection', []])
  assert.match(problem?.message ?? '', /checks no PodProtector without spec.podProtection/)
})
