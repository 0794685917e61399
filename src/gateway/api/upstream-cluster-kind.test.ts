import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FieldError, FieldErrorReason } from '../../kit/api/json/field-error.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { asCause } from '../../kit/api/validation/field-causes.ts'
import { nodePemChecks } from '../../pki/io/pem-checks.ts'
import { UPSTREAM_CLUSTERS, upstreamClusterKind } from './upstream-cluster-kind.ts'

const RULES = [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'], nonResourceURLs: ['*'] }]

function cluster(name: string, spec: JsonObject = {}, more: JsonObject = {}): JsonObject {
  return {
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: { name },
    spec: {
      servers: [{ endpoint: 'https://10.0.0.1:6443' }],
      clientConfig: { bearerToken: 'dG9rZW4=', insecure: true },
      dispatchPolicies: [{ rules: RULES }],
      ...spec,
    },
    ...more,
  }
}

function errorsOf(object: JsonObject): string[] {
  return UPSTREAM_CLUSTERS.check(object, undefined, nodePemChecks).map(({ path, message }) => `${path}: ${message}`)
}

test('an object as an API server returns it is right', () => {
  const object = cluster(
    'prod',
    {},
    {
      metadata: {
        name: 'prod',
        uid: '6fdab1b6-5a0f-4d0b-9a8f-0f2b7f0f4f0e',
        resourceVersion: '12',
        generation: 3,
        creationTimestamp: '2026-01-01T00:00:00Z',
        deletionTimestamp: '2026-01-02T00:00:00Z',
        deletionGracePeriodSeconds: 0,
        labels: { a: 'b' },
        annotations: { 'kubectl.kubernetes.io/last-applied-configuration': '{}' },
        finalizers: ['example.com/x'],
        ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'a', uid: 'b' }],
        managedFields: [{ manager: 'kubectl', operation: 'Apply', fieldsType: 'FieldsV1', fieldsV1: { 'f:spec': {} } }],
      },
      status: { conditions: [{ type: 'Ready', status: 'True' }], endpoints: { ready: 1, total: 1 }, future: {} },
    },
  )
  assert.deepEqual(UPSTREAM_CLUSTERS.check(object, undefined, nodePemChecks), [])
})

test('references to files are refused, those to Secrets are not', () => {
  const file = { clientConfig: { insecure: true, bearerTokenRef: { file: '/etc/shadow' } } }
  assert.deepEqual(errorsOf(cluster('a', file)), [
    'spec.clientConfig.bearerTokenRef.file: is only for objects that come from files (--source files)',
  ])
  const serving = { secureServing: { clientCARef: { file: 'ca.pem' } } }
  assert.equal(errorsOf(cluster('a', serving)).length, 1)
  const secret = { clientConfig: { insecure: true, bearerTokenRef: { name: 'prod', key: 'token' } } }
  assert.deepEqual(errorsOf(cluster('a', secret)), [])
})

test('global limits are a warning where they cannot be kept', () => {
  const schema = {
    name: 'a',
    strategy: 'globalCount',
    tokenBucket: { qps: 1, burst: 1 },
    globalTokenBucket: { qps: 2, burst: 2 },
  }
  const object = cluster('a', { flowControl: { flowControlSchemas: [schema] } })
  const severities = (globalLimits: boolean): string[] =>
    upstreamClusterKind({ globalLimits })
      .check(object, undefined, nodePemChecks)
      .map(({ severity }) => severity)
  assert.deepEqual(severities(true), [])
  assert.deepEqual(severities(false), ['warning'])
})

test('a revocation names exactly one thing, in the right form', () => {
  const revoked = (...list: JsonObject[]): string[] => errorsOf(cluster('a', { authentication: { revoked: list } }))
  const hash = 'a1'.repeat(32)
  assert.deepEqual(
    revoked(
      { user: 'eve', reason: 'left', revokedAt: '2026-01-01T00:00:00Z' },
      { certificateFingerprint: hash },
      { tokenHash: hash },
    ),
    [],
  )
  const at = 'spec.authentication.revoked'
  assert.deepEqual(revoked({}, { user: 'eve', tokenHash: hash }, { user: '' }), [
    `${at}[2].user: is empty`,
    `${at}[0]: names no user and no credential`,
    `${at}[1].tokenHash: may not be specified when user is set`,
  ])
  assert.deepEqual(
    revoked({ certificateFingerprint: 'A1:B2' }, { tokenHash: 'my-token' }, { user: 'a', revokedAt: 'now' }),
    [
      `${at}[0].certificateFingerprint: "A1:B2" is not a valid SHA-256`,
      `${at}[1].tokenHash: is not a valid SHA-256`,
      `${at}[2].revokedAt: "now" is not a valid time`,
    ],
  )
})

test('a claim that another cluster has is an error that names the holder', () => {
  const prod = cluster('prod', {
    secureServing: { serverNames: ['api.example.com'] },
    addresses: { ips: ['10.0.0.9'], ports: [8443] },
    default: true,
  })
  const other = cluster('PROD'.toLowerCase().concat('-2'), {
    secureServing: { serverNames: ['x', 'API.example.com.', 'prod'] },
    addresses: { ips: ['::ffff:10.0.0.9'], ports: [1, 8443] },
    default: true,
  })
  const broken: JsonObject[] = [{}, { metadata: null, spec: [] }, { spec: { secureServing: { serverNames: 'x' } } }]
  const problems = UPSTREAM_CLUSTERS.conflicts?.(other, [...broken, prod]) ?? []
  assert.deepEqual(
    problems.map(({ path }) => path),
    [
      'spec.secureServing.serverNames[2]',
      'spec.secureServing.serverNames[1]',
      'spec.addresses.ips[0]',
      'spec.addresses.ports[1]',
      'spec.default',
    ],
  )
  assert.equal(
    problems[1]?.message,
    'host name "api.example.com" belongs to UpstreamCluster "prod" (its spec.secureServing.serverNames[0])',
  )
  assert.deepEqual(UPSTREAM_CLUSTERS.conflicts?.(prod, broken), [])
})

test('errors become the causes that kube-apiserver would give', () => {
  const object = cluster('a', {
    servers: [{ endpoint: 'https://user:secret@10.0.0.1' }],
    clientConfig: { keyData: 'not base64 but secret' },
  })
  const causes = UPSTREAM_CLUSTERS.check(object, undefined, nodePemChecks).map((problem) => asCause(problem, object))
  assert.ok(causes.length >= 3)
  assert.ok(!JSON.stringify(causes).includes('secret'), JSON.stringify(causes))
  const cause = (
    path: string,
    message: string,
    fix = '',
    reason: FieldErrorReason = 'FieldValueInvalid',
  ): Omit<FieldError, 'fix' | 'severity'> => {
    const { fix: _, severity: __, ...shown } = asCause({ reason, path, message, fix, severity: 'error' }, object)
    return shown
  }
  assert.deepEqual(cause('spec.x', 'is required', 'add x', 'FieldValueRequired'), {
    reason: 'FieldValueRequired',
    message: 'Required value: add x',
    path: 'spec.x',
  })
  assert.deepEqual(cause('metadata.name', 'is odd', 'choose another'), {
    reason: 'FieldValueInvalid',
    message: 'Invalid value: "a": is odd; choose another',
    path: 'metadata.name',
  })
  assert.deepEqual(cause('data[tls.crt]', 'is required', '', 'FieldValueRequired').message, 'Required value')
  const kinds: readonly (readonly [FieldErrorReason, string])[] = [
    ['FieldValueDuplicate', 'Duplicate value: "a": is odd'],
    ['FieldValueForbidden', 'Forbidden: is odd'],
    ['FieldValueNotSupported', 'Unsupported value: "a": is odd'],
    ['FieldValueTooLong', 'is odd'],
  ]
  // Independent of the message: only the reason is read.
  for (const [reason, message] of kinds) {
    assert.deepEqual(cause('metadata.name', 'is odd', '', reason), { reason, message, path: 'metadata.name' })
    assert.equal(cause('metadata.name', 'is required', '', reason).reason, reason)
  }
  assert.deepEqual(cause('spec.servers', 'is odd').message, 'Invalid value: "array": is odd')
  assert.deepEqual(cause('metadata.__proto__.x', 'is odd').message, 'Invalid value: null: is odd')
})

test('an address that shows the certificate of the cluster is told when it begins to, and not again', () => {
  const told = (object: JsonObject, before?: JsonObject): string[] =>
    UPSTREAM_CLUSTERS.check(object, before, nodePemChecks)
      .filter(({ severity, message }) => severity === 'warning' && /certificate from now on/.test(message))
      .map(({ path }) => path)
  const certificate = { certRef: { name: 'a', key: 'tls.crt' }, keyRef: { name: 'a', key: 'tls.key' } }
  const bare = cluster('a', { addresses: { ips: ['192.0.2.1', '192.0.2.2'] } })
  const shown = cluster('a', { addresses: { ips: ['192.0.2.1', '192.0.2.2'] }, secureServing: certificate })
  const more = cluster('a', { addresses: { ips: ['192.0.2.3', '192.0.2.1'] }, secureServing: certificate })
  assert.deepEqual(told(bare), [])
  assert.deepEqual(told(shown), ['spec.addresses.ips[0]', 'spec.addresses.ips[1]'])
  assert.deepEqual(told(shown, bare), ['spec.addresses.ips[0]', 'spec.addresses.ips[1]'])
  assert.deepEqual(told(shown, shown), [])
  assert.deepEqual(told(more, shown), ['spec.addresses.ips[0]'])
})

test('what a missing field is for is said in a whole sentence', () => {
  const [problem] = UPSTREAM_CLUSTERS.check(cluster('a', { dispatchPolicies: undefined }), undefined, nodePemChecks)
  assert.equal(problem?.path, 'spec.dispatchPolicies')
  assert.equal(problem.fix, 'add dispatchPolicies: In order; the first with a rule that matches decides')
})
