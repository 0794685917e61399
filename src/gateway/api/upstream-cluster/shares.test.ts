// spec.shares: valid values, and every error with its path and fix.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FieldError } from '../../../kit/api/json/field-error.ts'
import { nodePemChecks } from '../../../pki/io/pem-checks.ts'
import { checkUpstreamCluster } from './checks.ts'

function check(shares: unknown): readonly FieldError[] {
  const object = {
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: { name: 'prod' },
    spec: {
      servers: [{ endpoint: 'https://10.0.0.1:6443' }],
      clientConfig: { insecure: true, bearerToken: 'dG9rZW4=' },
      dispatchPolicies: [{ rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }] }],
      shares,
    },
  }
  return checkUpstreamCluster(object, nodePemChecks)
}

const weights = (...rules: readonly object[]): object => ({ weights: rules })

test('null is as good as absent, and every field', () => {
  const full = weights({ weight: 100, users: ['a*', 'b'], userGroups: ['-c'] }, { weight: 1, userGroups: ['d'] })
  for (const shares of [null, {}, { weights: [] }, full]) assert.deepEqual(check(shares), [])
})

const BAD: readonly (readonly [object, string, RegExp])[] = [
  [weights({ users: ['a'] }), 'error spec.shares.weights[0].weight', /./],
  [weights({ weight: 0, users: ['a'] }), 'error spec.shares.weights[0].weight', /out of range/],
  [weights({ weight: 101, users: ['a'] }), 'error spec.shares.weights[0].weight', /out of range/],
  [weights({ weight: 1.5, users: ['a'] }), 'error spec.shares.weights[0].weight', /./],
  [weights({ weight: 2, users: ['-*'] }), 'error spec.shares.weights[0].users[0]', /-\*/],
  [weights({ weight: 2, userGroups: ['a*'] }), 'warning spec.shares.weights[0].userGroups[0]', /not a pattern/],
  [weights({ weight: 2 }), 'warning spec.shares.weights[0]', /names no user or group/],
  [weights(...Array.from({ length: 65 }, () => ({ weight: 2, users: ['a'] }))), 'error spec.shares.weights', /./],
]
for (const [shares, place, message] of BAD) {
  test(JSON.stringify(shares).slice(0, 80), () => {
    const found = check(shares).map(({ severity, path, message: said }) => [`${severity} ${path}`, said] as const)
    const [first] = found
    assert.ok(first !== undefined, 'nothing was found')
    assert.equal(first[0], place)
    assert.match(first[1], message)
  })
}
