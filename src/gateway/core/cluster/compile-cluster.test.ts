import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import fc from 'fast-check'
import { PATIENT } from '../../../../test/harness/patience.ts'
import {
  FEATURE_GATES_ANNOTATION,
  type UpstreamCluster,
  type UpstreamClusterSpec,
} from '../../api/upstream-cluster/upstream-cluster.ts'
import { compileCluster } from './compile-cluster.ts'
import type { CompiledCluster } from './compiled-cluster.ts'

interface TableRow {
  readonly name: string
  readonly object: UpstreamCluster
  readonly expected: { readonly accepted: boolean }
}

const table: { cases: TableRow[] } = JSON.parse(
  readFileSync(new URL('../../../../test/data/upstreamcluster-objects.json', import.meta.url), 'utf8'),
)

const SMALLEST: UpstreamClusterSpec = {
  servers: [{ endpoint: 'https://10.0.0.1:6443' }],
  dispatchPolicies: [{ rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }] }],
}

function compile(spec: Partial<UpstreamClusterSpec>, gates?: string): CompiledCluster {
  const annotations = gates === undefined ? {} : { annotations: { [FEATURE_GATES_ANNOTATION]: gates } }
  const metadata = { name: 'prod', ...annotations }
  const object = {
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata,
    spec: { ...SMALLEST, ...spec },
  }
  return compileCluster({ object, revision: '7' })
}

const base64 = (text: string): string => Buffer.from(text).toString('base64')

test('every object that is accepted compiles, and can be sent to a thread', () => {
  let compiled = 0
  for (const { name, object, expected } of table.cases) {
    if (!expected.accepted) continue
    const cluster = compileCluster({ object, revision: '1' })
    assert.deepEqual(structuredClone(cluster), cluster, name)
    compiled++
  }
  assert.ok(compiled > 10)
})

test('the smallest object gets every documented default', () => {
  const { policies, ...rest } = compile({})
  assert.deepEqual(rest, {
    name: 'prod',
    labels: {},
    revision: '7',
    hosts: ['prod'],
    ips: [],
    ports: [],
    isDefault: false,
    endpoints: [
      { url: 'https://10.0.0.1:6443', scheme: 'https', host: '10.0.0.1', port: 6443, disabled: false, weight: 100 },
    ],
    followsSlice: false,
    client: { insecure: false, bearerToken: '', key: '', cert: '', ca: '', serverName: '', qps: 0, burst: 0 },
    serving: { key: '', cert: '', clientCA: '' },
    schemas: [],
    logMode: '',
    healthCheck: { path: '/readyz', intervalMs: 5000, timeoutMs: 3000, healthyThreshold: 1, unhealthyThreshold: 2 },
    access: undefined,
    degrade: {
      mode: 'Off',
      reason: '',
      expiresAtMs: 0,
      expiresAt: '',
      exempt: [],
      shadow: false,
      recovery: undefined,
      auto: undefined,
      observed: false,
      guardsDisruption: false,
      limited: { startQps: 1, endQps: 20, overMs: 300_000, sinceMs: 0 },
      ramp: { startQps: 1, endQps: 20, overMs: 300_000, sinceMs: 0 },
    },
    authentication: {
      audiences: [],
      issuers: [],
      successTtlMs: 60_000,
      failureTtlMs: 10_000,
      anonymous: true,
      revoked: undefined,
    },
    listGuard: undefined,
    learnsLists: false,
    weights: [],
    protection: undefined,
    autoscaler: undefined,
    scaleProtection: undefined,
    cache: undefined,
    federation: undefined,
    sessionRecording: undefined,
    controllerManager: { podDeletionCost: true, logarithmicScaleDown: true, sidecarRestarts: true },
    closeWhenIdle: false,
  })
  const [{ rules, ...policy } = { rules: [] }] = policies
  assert.equal(rules.length, 1)
  assert.deepEqual(policy, {
    index: 0,
    strategy: 'RoundRobin',
    endpoints: [0],
    schema: -1,
    logMode: '',
    deny: false,
    shadow: false,
  })
})

test('everything written is kept', () => {
  const cluster = compile({
    secureServing: {
      serverNames: ['A.example.com.', '*.B.example.com', 'PROD'],
      keyData: base64('k'),
      certData: base64('c'),
      clientCAData: base64('a'),
    },
    clientConfig: {
      insecure: false,
      bearerToken: base64('token\n'),
      caData: base64('ca'),
      serverName: 'kubernetes',
      qps: 100,
      burst: 200,
      qpsDivisor: 4,
    },
    addresses: { ips: ['10.0.0.9'], ports: [9443] },
    default: true,
    logging: { mode: 'on' },
    healthCheck: { path: '/livez', intervalSeconds: 1, timeoutSeconds: 2, healthyThreshold: 3, unhealthyThreshold: 4 },
    authentication: {
      audiences: ['x'],
      tokenSuccessTTLSeconds: 0,
      tokenFailureTTLSeconds: 1,
      anonymous: false,
      jwt: [
        {
          issuer: { url: 'https://a.example.com', discoveryURL: 'https://b.example.com/x', audiences: ['k'] },
          claimMappings: { username: { claim: 'sub', prefix: 'a:' }, groups: { claim: 'groups', prefix: '' } },
          claimValidationRules: [{ claim: 'hd', requiredValue: 'example.com' }],
        },
      ],
    },
    degrade: {
      mode: 'Limited',
      reason: 'r',
      expiresAt: '2030-01-01T00:00:00Z',
      since: '2029-01-01T00:00:00Z',
      limited: { startQPS: 2, overSeconds: 60 },
      shadow: true,
    },
  })
  assert.deepEqual(cluster.hosts, ['prod', 'a.example.com', '*.b.example.com'])
  assert.deepEqual([cluster.ips, cluster.ports, cluster.isDefault, cluster.logMode], [['10.0.0.9'], [9443], true, 'on'])
  assert.deepEqual(cluster.serving, { key: 'k', cert: 'c', clientCA: 'a' })
  const client = {
    insecure: false,
    bearerToken: 'token',
    key: '',
    cert: '',
    ca: 'ca',
    serverName: 'kubernetes',
    qps: 25,
    burst: 200,
  }
  assert.deepEqual(cluster.client, client)
  const health = { path: '/livez', intervalMs: 1000, timeoutMs: 2000, healthyThreshold: 3, unhealthyThreshold: 4 }
  assert.deepEqual(cluster.healthCheck, health)
  const issuer = {
    rules: {
      issuer: 'https://a.example.com',
      audiences: ['k'],
      username: { claim: 'sub', prefix: 'a:' },
      groups: { claim: 'groups', prefix: '' },
      uidClaim: '',
      requiredClaims: { hd: 'example.com' },
    },
    keys: JSON.stringify(['https://a.example.com', 'https://b.example.com/x', '']),
    discoveryUrl: 'https://b.example.com/x',
    ca: '',
  }
  const authentication = {
    audiences: ['x'],
    issuers: [issuer],
    successTtlMs: 0,
    failureTtlMs: 1000,
    anonymous: false,
    revoked: undefined,
  }
  assert.deepEqual(cluster.authentication, authentication)
  const expiresAtMs = Date.UTC(2030, 0)
  const degrade = {
    mode: 'Limited',
    reason: 'r',
    expiresAtMs,
    expiresAt: '2030-01-01T00:00:00Z',
    exempt: [],
    shadow: true,
    recovery: undefined,
    auto: undefined,
    observed: true,
    guardsDisruption: true,
    limited: { startQps: 2, endQps: 20, overMs: 60_000, sinceMs: Date.UTC(2029, 0) },
    ramp: { startQps: 2, endQps: 20, overMs: 60_000, sinceMs: Date.UTC(2029, 0) },
  }
  assert.deepEqual(cluster.degrade, degrade)
})

test('endpoints: IPv6, default ports, and one entry for one that is named twice', () => {
  const { endpoints } = compile({
    servers: [
      { endpoint: 'https://[fd00::1]' },
      { endpoint: 'http://a.example.com', disabled: true, weight: 0 },
      { endpoint: 'https://[fd00::1]', weight: 5 },
      { endpoint: 'http://a.example.com:8080' },
    ],
  })
  assert.deepEqual(
    endpoints.map(({ host, port, disabled, weight }) => [host, port, disabled, weight]),
    [
      ['fd00::1', 443, false, 100],
      ['a.example.com', 80, true, 0],
      ['a.example.com', 8080, false, 100],
    ],
  )
})

test('a subset keeps its order and never becomes all endpoints', () => {
  const servers = ['https://a', 'https://b', 'https://c'].map((endpoint) => ({ endpoint }))
  const [{ rules = [] } = {}] = SMALLEST.dispatchPolicies
  const subsets = [['https://c', 'https://a', 'https://c'], [], ['https://gone']]
  const { policies } = compile({
    servers,
    dispatchPolicies: subsets.map((upstreamSubset) => ({ rules, upstreamSubset })),
  })
  assert.deepEqual(
    policies.map(({ endpoints }) => endpoints),
    [[2, 0], [0, 1, 2], []],
  )
})

test('limits: the kind is that of the local part', () => {
  const bucket = { qps: 5, burst: 10 }
  const { schemas, policies } = compile({
    flowControl: {
      flowControlSchemas: [
        { name: 'free', exempt: {} },
        {
          name: 'bucket',
          tokenBucket: bucket,
          globalTokenBucket: { qps: 50, burst: 100 },
          strategy: 'globalCount',
          perUser: true,
        },
        { name: 'slots', maxRequestsInflight: { max: 0 }, maxWatches: 3, shadow: true },
        { name: 'all', strategy: 'globalAllocate', tokenBucket: bucket, globalTokenBucket: { qps: 50, burst: 100 } },
        {
          name: 'all-slots',
          strategy: 'globalCount',
          maxRequestsInflight: { max: 2 },
          globalMaxRequestsInflight: { max: 9 },
        },
        { name: 'unasked', tokenBucket: bucket, globalTokenBucket: { qps: 50, burst: 100 } },
      ],
    },
    dispatchPolicies: [
      { rules: [], flowControlSchemaName: 'slots', strategy: 'Affinity', action: 'Deny', shadow: true, logMode: 'off' },
    ],
  })
  const plain = {
    qps: 0,
    burst: 0,
    max: 0,
    perUser: false,
    cost: false,
    maxWatches: 0,
    shadow: false,
    strategy: '',
    shared: undefined,
  }
  assert.deepEqual(schemas, [
    { ...plain, name: 'free', kind: 'exempt' },
    { ...plain, ...bucket, name: 'bucket', kind: 'tokenBucket', perUser: true, strategy: 'globalCount' },
    { ...plain, name: 'slots', kind: 'maxRequestsInflight', maxWatches: 3, shadow: true },
    {
      ...plain,
      ...bucket,
      name: 'all',
      kind: 'tokenBucket',
      strategy: 'globalAllocate',
      shared: { qps: 50, burst: 100, max: 0 },
    },
    {
      ...plain,
      name: 'all-slots',
      kind: 'maxRequestsInflight',
      max: 2,
      strategy: 'globalCount',
      shared: { qps: 0, burst: 0, max: 9 },
    },
    { ...plain, ...bucket, name: 'unasked', kind: 'tokenBucket' },
  ])
  assert.deepEqual(policies, [
    { index: 0, rules: [], strategy: 'Affinity', endpoints: [0], schema: 2, logMode: 'off', deny: true, shadow: true },
  ])
})

test("KubeGateway's DenyAllRequests is a freeze that names the annotation", () => {
  const { degrade } = compile(
    { degrade: { mode: 'ReadOnly', expiresAt: '2000-01-01T00:00:00Z', shadow: true } },
    'DenyAllRequests=true',
  )
  assert.deepEqual([degrade.mode, degrade.expiresAtMs, degrade.shadow], ['Freeze', 0, false])
  assert.ok(degrade.reason.includes(FEATURE_GATES_ANNOTATION))
  for (const gates of [
    'DenyAllRequests=false',
    '',
    'DenyAllRequests',
    'DenyAllRequests=true,DenyAllRequests=false',
    'CloseConnectionWhenIdle=true',
  ]) {
    assert.equal(compile({}, gates).degrade.mode, 'Off', gates)
  }
})

test('CloseConnectionWhenIdle, with any of the words that Go takes for true', () => {
  for (const word of ['true', 'True', 'TRUE', 't', 'T', '1']) {
    assert.equal(compile({}, `Tracing=false, CloseConnectionWhenIdle=${word}`).closeWhenIdle, true, word)
  }
  for (const word of ['false', '0', 'yes', ''])
    assert.equal(compile({}, `CloseConnectionWhenIdle=${word}`).closeWhenIdle, false)
})

test('no text in a field makes it throw', PATIENT, () => {
  const text = fc.oneof(fc.string(), fc.string({ unit: 'binary' }))
  fc.assert(
    fc.property(text, fc.array(text), (word, words) => {
      const cluster = compile(
        {
          servers: [{ endpoint: word }],
          clientConfig: { bearerToken: word, certData: word },
          secureServing: { serverNames: words, clientCAData: word },
          addresses: { ips: words },
          accessControl: { deny: [{ users: words, sourceIPs: words }] },
          degrade: { mode: 'Freeze', expiresAt: word, exempt: [{ verbs: words }] },
          dispatchPolicies: [{ rules: [{ verbs: words, users: words, resources: words }], upstreamSubset: words }],
        },
        word,
      )
      assert.equal(cluster.degrade.mode, 'Freeze')
    }),
  )
})

test('podProtection: defaults, and everything written', () => {
  assert.equal(compile({}).protection, undefined)
  assert.deepEqual(
    compile({ podProtection: { objectSelector: {}, aggregation: { syncTimeAnnotation: 'a' } } }).protection,
    {
      cell: 'prod',
      shadow: false,
      failurePolicy: 'Fail',
      timeoutMs: 10_000,
      excludedNamespaces: new Set(),
      objectSelector: undefined,
      aggregation: {
        enabled: true,
        syncTime: 'ResourceVersion',
        syncTimeAnnotation: '',
        podSelector: undefined,
        updateTrigger: undefined,
      },
    },
  )
  const selector = { matchLabels: { app: 'web' } }
  const written = compile({
    podProtection: {
      cell: 'a',
      shadow: true,
      failurePolicy: 'Ignore',
      timeoutSeconds: 3,
      excludedNamespaces: ['kube-system'],
      objectSelector: selector,
      aggregation: {
        syncTime: 'Annotation',
        syncTimeAnnotation: 'example.com/time',
        podLabelSelector: selector,
        updateTrigger: { namespace: 'default' },
      },
    },
  }).protection
  assert.deepEqual(written, {
    cell: 'a',
    shadow: true,
    failurePolicy: 'Ignore',
    timeoutMs: 3_000,
    excludedNamespaces: new Set(['kube-system']),
    objectSelector: selector,
    aggregation: {
      enabled: true,
      syncTime: 'Annotation',
      syncTimeAnnotation: 'example.com/time',
      podSelector: selector,
      updateTrigger: { namespace: 'default', name: 'portcullis-update-trigger', intervalMs: 1_000 },
    },
  })
  assert.deepEqual(structuredClone(written), written, 'it crosses threads')
  const off = compile({ podProtection: { aggregation: { disabled: true, updateTrigger: { namespace: 'a' } } } })
  assert.deepEqual([off.protection?.aggregation.enabled, off.protection?.aggregation.updateTrigger], [false, undefined])
})

test('what the checks warn about is in force as they say', () => {
  const verified = compile({ clientConfig: { insecure: true, bearerToken: base64('t'), caData: base64('ca') } })
  assert.deepEqual([verified.client.insecure, verified.client.ca], [false, 'ca'])
  const lone = compile({
    clientConfig: { insecure: true, bearerToken: base64('t'), keyData: base64('k') },
    secureServing: { certData: base64('c'), serverNames: ['10.0.0.1', 'fd00::1', 'a.example.com'] },
  })
  assert.deepEqual([lone.client.key, lone.client.cert, lone.client.bearerToken], ['', '', 't'])
  assert.deepEqual([lone.serving.key, lone.serving.cert], ['', ''])
  assert.deepEqual(lone.hosts, ['prod', 'a.example.com'])
})

test('no token is kept for servers that would be asked in clear', () => {
  const { client } = compile({
    servers: [{ endpoint: 'http://10.0.0.1' }],
    clientConfig: { bearerToken: base64('token') },
  })
  assert.equal(client.bearerToken, '')
})
