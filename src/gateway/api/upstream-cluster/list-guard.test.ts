// spec.listGuard and `cost`: valid values, and every error with its path and fix.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FieldError } from '../../../kit/api/json/field-error.ts'
import { nodePemChecks } from '../../../pki/io/pem-checks.ts'
import { checkUpstreamCluster } from './checks.ts'

function check(spec: object): readonly FieldError[] {
  const object = {
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: { name: 'prod' },
    spec: {
      servers: [{ endpoint: 'https://10.0.0.1:6443' }],
      clientConfig: { insecure: true, bearerToken: 'dG9rZW4=' },
      dispatchPolicies: [{ rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }] }],
      ...spec,
    },
  }
  return checkUpstreamCluster(object, nodePemChecks)
}

const RULE = { verbs: ['list'], apiGroups: ['*'], resources: ['*'], users: ['backup'] }
const limit = (schema: object): object => ({ flowControl: { flowControlSchemas: [{ name: 'a', ...schema }] } })

test('null is as good as absent, empty is on, and every field', () => {
  const full = { shadow: true, maxBytesUnlimited: 100_000, exempt: [RULE] }
  for (const listGuard of [null, {}, full]) assert.deepEqual(check({ listGuard }), [])
  for (const cost of [true, false, null])
    assert.deepEqual(check(limit({ cost, tokenBucket: { qps: 1, burst: 1 } })), [])
})

const BAD: readonly (readonly [object, string, RegExp])[] = [
  [{ listGuard: { shadow: 'yes' } }, 'error spec.listGuard.shadow', /./],
  [{ listGuard: { maxBytesUnlimited: 99_999 } }, 'error spec.listGuard.maxBytesUnlimited', /out of range/],
  [{ listGuard: { maxBytesUnlimited: '50Mi' } }, 'error spec.listGuard.maxBytesUnlimited', /./],
  [{ listGuard: { maxBytesUnlimited: 2 ** 31 } }, 'error spec.listGuard.maxBytesUnlimited', /./],
  [{ listGuard: { exempt: [{ ...RULE, users: ['-*'] }] } }, 'error spec.listGuard.exempt[0].users[0]', /-\*/],
  [{ listGuard: { mode: 'Refuse' } }, 'warning spec.listGuard.mode', /./],
  [limit({ cost: 'yes', exempt: {} }), 'error spec.flowControl.flowControlSchemas[0].cost', /./],
  [limit({ cost: true, exempt: {} }), 'warning spec.flowControl.flowControlSchemas[0].cost', /has no effect/],
]
for (const [spec, place, message] of BAD) {
  test(JSON.stringify(spec), () => {
    const [problem, ...more] = check(spec)
    assert.deepEqual([`${problem?.severity} ${problem?.path}`, more], [place, []])
    assert.match(problem?.message ?? '', message)
    assert.notEqual(problem?.fix, '')
  })
}
