// spec.cache: valid values, and every error with its path and fix.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FieldError } from '../../../../kit/api/json/field-error.ts'
import { nodePemChecks } from '../../../../pki/io/pem-checks.ts'
import { type ClusterCheckOptions, checkUpstreamCluster } from '../checks.ts'
import { bytesOf, quantityOf } from './read-cache.ts'

function check(cache: unknown, options: ClusterCheckOptions = {}): readonly FieldError[] {
  const object = {
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: { name: 'a' },
    spec: {
      servers: [{ endpoint: 'http://10.0.0.1:8080' }],
      dispatchPolicies: [{ rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }] }],
      cache,
    },
  }
  return checkUpstreamCluster(object, nodePemChecks, options)
}

const PODS = { version: 'v1', resource: 'pods' }

test('valid values', () => {
  const valid: readonly unknown[] = [
    [],
    [PODS],
    [PODS, { group: 'apps', version: 'v1', resource: 'deployments', namespaces: ['a', 'b'] }],
    [{ ...PODS, group: '', maxBytes: '4Mi', maxStaleness: '1m30s' }],
    [PODS, { ...PODS, group: 'metrics.k8s.io' }],
    [
      { ...PODS, encodings: ['JSON', 'Protobuf'] },
      { ...PODS, group: 'a', encodings: [] },
    ],
  ]
  for (const value of valid) assert.deepEqual(check(value), [], JSON.stringify(value))
})

test('errors say where and what to write', () => {
  const wrong: readonly (readonly [unknown, string, RegExp])[] = [
    [[{ version: 'v1' }], '[0].resource', /required/],
    [[{ resource: 'pods' }], '[0].version', /required/],
    [[{ ...PODS, resource: 'pods/log' }], '[0].resource', /subresource/],
    [[{ ...PODS, resource: 'Pods' }], '[0].resource', /plural in lower case/],
    [[{ ...PODS, resource: '*' }], '[0].resource', /plural in lower case/],
    [[{ ...PODS, version: 'apps/v1' }], '[0].version', /write v1/],
    [[{ ...PODS, group: 'apps/v1' }], '[0].group', /without the version/],
    [[{ ...PODS, namespaces: ['a', 'b*'] }], '[0].namespaces[1]', /no patterns/],
    [[{ ...PODS, namespaces: ['a', 'a'] }], '[0].namespaces[1]', /twice/],
    [[PODS, { ...PODS, group: '', namespaces: ['a'] }], '[1]', /same resource as spec\.cache\[0\]/],
    [[{ ...PODS, maxBytes: '256' }], '[0].maxBytes', /too little/],
    [[{ ...PODS, maxBytes: '64Ki' }], '[0].maxBytes', /too little.*at least 4Mi/],
    [[{ ...PODS, maxBytes: '4095Ki' }], '[0].maxBytes', /too little.*twice what they take as JSON/],
    [[{ ...PODS, maxBytes: 'much' }], '[0].maxBytes', /256Mi/],
    [[{ ...PODS, maxBytes: '1.5Gi' }], '[0].maxBytes', /not a quantity/],
    [[{ ...PODS, encodings: ['protobuf'] }], '[0].encodings[0]', /Protobuf/],
    [[{ ...PODS, maxStaleness: '10' }], '[0].maxStaleness', /10s/],
    [[{ ...PODS, maxStaleness: '-10s' }], '[0].maxStaleness', /not a duration/],
    [[{ ...PODS, maxStaleness: '1.5m' }], '[0].maxStaleness', /not a duration.*1m30s/],
    [[{ ...PODS, maxStaleness: 'soon' }], '[0].maxStaleness', /not a duration/],
  ]
  for (const [value, path, text] of wrong) {
    const [problem, ...more] = check(value)
    assert.deepEqual(
      [problem?.severity, problem?.path, more],
      ['error', `spec.cache${path}`, []],
      JSON.stringify(value),
    )
    assert.match(`${problem?.message}; ${problem?.fix}`, text)
  }
})

test('without the read cache, spec.cache is warned of', () => {
  const [warning, ...more] = check([PODS], { withoutSubject: (field) => field === 'cache' })
  assert.deepEqual([warning?.severity, warning?.path, more], ['warning', 'spec.cache', []])
})

test('quantities', () => {
  assert.deepEqual(['1', '5k', '256Mi', '2Gi', '1Ti', '-1', ''].map(bytesOf), [
    1,
    5000,
    268_435_456,
    2_147_483_648,
    undefined,
    undefined,
    undefined,
  ])
})

test('amounts in the status are rounded up, and short', () => {
  const bytes = [0, 1, 1023, 1024, 1025, 10 * 1024, 2 * 1024 ** 2, 9.16 * 1024 ** 2, 256 * 1024 ** 2, 1536 * 1024 ** 2]
  const texts = ['0', '1', '1023', '1Ki', '1.1Ki', '10Ki', '2Mi', '9.2Mi', '256Mi', '1.5Gi']
  assert.deepEqual(bytes.map(quantityOf), texts)
})
