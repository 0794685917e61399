import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { before, describe, test } from 'node:test'
import fc from 'fast-check'
import type { FieldError } from '../../../kit/api/json/field-error.ts'
import { nodePemChecks } from '../../../pki/io/pem-checks.ts'
import { createCA, issueCertificate } from '../../../pki/io/pki.ts'
import { compileCluster } from '../../core/cluster/compile-cluster.ts'
import { checkUpstreamCluster, normalizeUpstreamCluster } from './checks.ts'

interface TableCase {
  readonly name: string
  readonly object: unknown
  readonly expected: { accepted: boolean; errors: string[]; warnings: string[] }
}

const TABLE: readonly TableCase[] = JSON.parse(
  readFileSync(new URL('../../../../test/data/upstreamcluster-objects.json', import.meta.url), 'utf8'),
).cases

const material: Record<string, string> = {}

before(() => {
  const ca = createCA({ commonName: 'ca' })
  const pair = issueCertificate(ca, { commonName: 'gateway', usage: 'both' })
  const other = createCA({ commonName: 'other' })
  material['$CERT'] = base64(pair.certPem)
  material['$KEY'] = base64(pair.keyPem)
  material['$OTHERKEY'] = base64(other.keyPem)
  material['$CA'] = base64(ca.certPem)
  material['$GARBAGE'] = base64('this is not PEM')
})

function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}

/** Fills in the table's placeholders. */
function withMaterial(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value), (_key, member: unknown) =>
    typeof member === 'string' && member.startsWith('$') ? material[member] : member,
  )
}

function check(object: unknown): readonly FieldError[] {
  return checkUpstreamCluster(withMaterial(object), nodePemChecks)
}

/** `error spec.x`, in text order. */
function verdict(object: unknown): string[] {
  return check(object)
    .map(({ severity, path }) => `${severity} ${path}`)
    .sort()
}

type Json = Record<string, unknown>
const RULES = [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'], nonResourceURLs: ['*'] }]

function cluster(spec: Json, metadata: Json = {}): Json {
  return {
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: { name: 'prod', ...metadata },
    spec: {
      servers: [{ endpoint: 'https://10.0.0.1:6443' }],
      clientConfig: { bearerToken: 'dG9rZW4=', caData: '$CA' },
      dispatchPolicies: [{ rules: RULES }],
      ...spec,
    },
  }
}

function withRule(rule: Json): Json {
  return cluster({ dispatchPolicies: [{ rules: [{ ...RULES[0], ...rule }] }] })
}

function withSchemas(...schemas: Json[]): Json {
  return cluster({ flowControl: { flowControlSchemas: schemas } })
}

describe('table of KubeGateway objects', () => {
  assert.equal(TABLE.length, 47)
  for (const { name, object, expected } of TABLE) {
    test(name, () => {
      const problems = check(object)
      const paths = (severity: string): string[] => problems.filter((p) => p.severity === severity).map((p) => p.path)
      assert.deepEqual(paths('error'), expected.errors)
      assert.deepEqual(paths('warning'), expected.warnings)
      assert.equal(expected.errors.length === 0, expected.accepted)
      for (const problem of problems) assert.ok(problem.message !== '' && problem.fix !== '', JSON.stringify(problem))
    })
  }
})

const FIELDS = 'spec.flowControl.flowControlSchemas[0]'
const RULE = 'spec.dispatchPolicies[0].rules[0]'

/** Cases beyond the table: added fields, and KubeGateway's defects. */
const CASES: readonly (readonly [string, Json, readonly string[]])[] = [
  [
    'all added fields',
    cluster({
      servers: [
        { endpoint: 'https://a_b.example.com', weight: 0 },
        { endpoint: 'https://[2001:db8::1]:6443/', disabled: true },
      ],
      addresses: { ips: ['10.0.0.1', 'fd00::1'], ports: [1, 65535] },
      default: true,
      healthCheck: {
        path: '/livez?verbose',
        intervalSeconds: 1,
        timeoutSeconds: 60,
        healthyThreshold: 1,
        unhealthyThreshold: 1,
      },
      accessControl: {
        allow: [{ name: 'office', sourceIPs: ['10.0.0.0/8', 'fd00::/8', '1.2.3.4'] }],
        deny: [{ users: ['eve', 'x-*'] }],
        shadow: true,
      },
      degrade: {
        mode: 'Freeze',
        reason: 'incident',
        expiresAt: '2030-02-28T23:59:59.5+02:00',
        exempt: RULES,
        shadow: false,
      },
      authentication: { audiences: ['a'], tokenSuccessTTLSeconds: 0, tokenFailureTTLSeconds: 10, anonymous: false },
      flowControl: { flowControlSchemas: [{ name: 'a', exempt: {}, perUser: true, maxWatches: 5, shadow: true }] },
      dispatchPolicies: [
        {
          rules: [{ ...RULES[0], namespaces: ['kube-*', ''], userAgents: ['-kubectl/*'] }],
          strategy: 'Affinity',
          action: 'Deny',
          shadow: true,
        },
      ],
      secureServing: { serverNames: ['*.Example.com', 'x.example.com.'] },
    }),
    [],
  ],
  [
    'every error at once',
    cluster({
      servers: [{ endpoint: 'https://a' }, { endpoint: 'ftp://b', weight: 1001 }],
      clientConfig: { qps: -1 },
      addresses: { ips: ['10.0.0.256', '[::1]', 'fe80::1%eth0'], ports: [0, 65536, 1.5] },
      healthCheck: { path: 'readyz', intervalSeconds: 0, timeoutSeconds: 61 },
      degrade: { mode: 'Frozen', expiresAt: '2030-02-29T00:00:00Z' },
      bogus: true,
    }),
    [
      'error spec.addresses.ips[0]',
      'error spec.addresses.ips[1]',
      'error spec.addresses.ips[2]',
      'error spec.addresses.ports[0]',
      'error spec.addresses.ports[1]',
      'error spec.addresses.ports[2]',
      'warning spec.bogus',
      'error spec.clientConfig',
      'error spec.clientConfig.caData',
      'error spec.clientConfig.qps',
      'error spec.degrade.expiresAt',
      'error spec.degrade.mode',
      'error spec.healthCheck.intervalSeconds',
      'error spec.healthCheck.path',
      'error spec.healthCheck.timeoutSeconds',
      'error spec.servers[1].endpoint',
      'error spec.servers[1].weight',
    ],
  ],
  [
    'insecure beside a CA, which stops KubeGateway',
    cluster({ clientConfig: { insecure: true, bearerToken: 'eA==', caData: '$CA' } }),
    ['warning spec.clientConfig.insecure'],
  ],
  [
    'a key alone beside a token, and a certificate alone',
    cluster({
      clientConfig: { bearerToken: 'eA==', caData: '$CA', keyData: '$GARBAGE' },
      secureServing: { certRef: { name: 'a', key: 'tls.crt' } },
    }),
    ['warning spec.clientConfig.keyData', 'warning spec.secureServing.certRef'],
  ],
  [
    'a token for servers that are asked in clear',
    cluster({
      servers: [{ endpoint: 'http://10.0.0.1' }],
      clientConfig: { bearerTokenRef: { name: 's', key: 'token' }, certData: '$CERT', keyRef: { name: 's', key: 'k' } },
    }),
    [
      'error spec.clientConfig.bearerTokenRef',
      'warning spec.clientConfig.certData',
      'warning spec.clientConfig.keyRef',
    ],
  ],
  [
    'servers that are asked in clear, without a credential',
    cluster({ servers: [{ endpoint: 'http://10.0.0.1' }], clientConfig: {} }),
    [],
  ],
  [
    'negative global limit without a local one, on which KubeGateway panics',
    withSchemas({ name: 'a', strategy: 'globalCount', globalMaxRequestsInflight: { max: -1 } }),
    [`error ${FIELDS}.globalMaxRequestsInflight.max`, `error ${FIELDS}.maxRequestsInflight`],
  ],
  [
    'global limits below the local ones',
    withSchemas(
      {
        name: 'a',
        strategy: 'globalCount',
        tokenBucket: { qps: 5, burst: 10 },
        globalTokenBucket: { qps: 4, burst: 9 },
      },
      { name: 'b', strategy: 'globalAllocate', maxRequestsInflight: { max: 5 }, globalMaxRequestsInflight: {} },
    ),
    [
      `error ${FIELDS}.globalTokenBucket.burst`,
      `error ${FIELDS}.globalTokenBucket.qps`,
      'error spec.flowControl.flowControlSchemas[1].globalMaxRequestsInflight.max',
    ],
  ],
  [
    'a global limit that was not asked for',
    withSchemas({ name: 'a', tokenBucket: { qps: 1, burst: 1 }, globalTokenBucket: { qps: 2, burst: 2 } }),
    [`warning ${FIELDS}.globalTokenBucket`],
  ],
  [
    'two kinds of limit',
    withSchemas({ name: 'a', exempt: {}, tokenBucket: { qps: 1, burst: 1 } }),
    [`error ${FIELDS}.tokenBucket`],
  ],
  ['qps of zero', withSchemas({ name: 'a', tokenBucket: { qps: 0, burst: 1 } }), [`error ${FIELDS}.tokenBucket.qps`]],
  [
    'bucket without anything',
    withSchemas({ name: 'a', tokenBucket: {} }),
    [`error ${FIELDS}.tokenBucket.burst`, `error ${FIELDS}.tokenBucket.qps`],
  ],
  ['limit of zero as Go writes it', withSchemas({ name: 'a', maxRequestsInflight: {} }), []],
  ['watches alone', withSchemas({ name: 'a', maxWatches: -1 }), [`error ${FIELDS}`, `error ${FIELDS}.maxWatches`]],
  [
    'limits in the wrong place',
    cluster({ flowControl: [{ name: 'a' }], dispatchPolicies: [{ rules: RULES, flowControlSchemaName: 'a' }] }),
    ['error spec.flowControl'],
  ],
  [
    'a field misspelt as in the documentation of KubeGateway',
    cluster({ dispatchPolicies: [{ rules: RULES, upsteamSubset: ['https://10.0.0.1:6443'] }] }),
    ['warning spec.dispatchPolicies[0].upsteamSubset'],
  ],
  [
    'subset outside the servers',
    cluster({
      dispatchPolicies: [{ rules: RULES, upstreamSubset: ['https://10.0.0.1:6443', 'https://10.0.0.2:6443'] }],
    }),
    ['error spec.dispatchPolicies[0].upstreamSubset[1]'],
  ],
  [
    'inverted stars',
    withRule({ users: ['-*'], resources: ['-*'], userAgents: ['-**'], namespaces: ['a', '-*'] }),
    [
      `error ${RULE}.namespaces[1]`,
      `error ${RULE}.resources[0]`,
      `error ${RULE}.userAgents[0]`,
      `error ${RULE}.users[0]`,
      `warning ${RULE}.namespaces`,
    ],
  ],
  [
    'inverted star in an exemption and in an access list',
    cluster({ degrade: { exempt: [{ ...RULES[0], users: ['-*'] }] }, accessControl: { deny: [{ users: ['-*'] }] } }),
    ['error spec.accessControl.deny[0].users[0]', 'error spec.degrade.exempt[0].users[0]'],
  ],
  [
    'inverted lists that KubeGateway gets wrong',
    withRule({ resources: ['-pods', '-deployments'], users: ['-user-*'], userGroups: ['-g'] }),
    [],
  ],
  [
    'mixed lists',
    withRule({
      verbs: ['get', '-list'],
      users: ['dev-*', '-dev-bob'],
      userGroups: ['a', '-a'],
      resources: ['*', '-pods'],
    }),
    [`warning ${RULE}.userGroups`, `warning ${RULE}.users`, `warning ${RULE}.verbs`],
  ],
  [
    'rules that match nothing',
    cluster({ dispatchPolicies: [{ rules: [{}, { verbs: ['get'], resources: ['pods'], nonResourceURLs: ['/x'] }] }] }),
    [
      'warning spec.dispatchPolicies[0].rules[0].apiGroups',
      'warning spec.dispatchPolicies[0].rules[0].resources',
      'warning spec.dispatchPolicies[0].rules[0].verbs',
      'warning spec.dispatchPolicies[0].rules[1].apiGroups',
    ],
  ],
  [
    'words that are in no request',
    withRule({
      verbs: ['read', 'GET', '-lst', 'watch', 'options'],
      apiGroups: ['apps/v1', 'Apps', 'core', 'v1', '', 'metrics.k8s.io'],
      resources: ['Deployments', 'deployments/Scale', '*/scale', 'pods'],
    }),
    [
      ...['0', '1', '2', '3'].map((i) => `warning ${RULE}.apiGroups[${i}]`),
      `warning ${RULE}.resources[0]`,
      `warning ${RULE}.resources[1]`,
      `warning ${RULE}.verbs`,
      ...['0', '1', '2'].map((i) => `warning ${RULE}.verbs[${i}]`),
    ],
  ],
  [
    'entries that match nothing',
    withRule({
      resources: ['pods/*', '*/scale'],
      resourceNames: ['web-*'],
      nonResourceURLs: ['healthz', '-/x', '*'],
      serviceAccounts: [{ name: 'x' }],
    }),
    [
      `warning ${RULE}.nonResourceURLs[0]`,
      `warning ${RULE}.resourceNames[0]`,
      `warning ${RULE}.resources[0]`,
      `warning ${RULE}.serviceAccounts[0]`,
    ],
  ],
  [
    'access rules',
    cluster({
      accessControl: {
        allow: [{}],
        deny: [{ sourceIPs: ['10.0.0.0/33', 'office', '::1/129', '::ffff:10.0.0.0/104'] }],
      },
    }),
    [
      'error spec.accessControl.deny[0].sourceIPs[0]',
      'error spec.accessControl.deny[0].sourceIPs[1]',
      'error spec.accessControl.deny[0].sourceIPs[2]',
      'warning spec.accessControl.allow[0]',
    ],
  ],
  [
    'references',
    cluster({
      clientConfig: { bearerTokenRef: { name: 's', key: 'token' }, caRef: { file: 'ca.crt' } },
      secureServing: { certRef: { file: 'tls.crt' }, keyRef: { name: 's', namespace: 'n', key: 'tls.key' } },
    }),
    [],
  ],
  [
    'wrong references',
    cluster({
      clientConfig: {
        bearerToken: 'eA==',
        bearerTokenRef: { name: 's', key: 'token' },
        caRef: {},
        certRef: { name: 's' },
        keyRef: { file: 'a', name: 'b' },
      },
      secureServing: { certRef: { file: 'tls.crt', key: 'x' } },
    }),
    [
      'error spec.clientConfig.bearerTokenRef',
      'error spec.clientConfig.caRef',
      'error spec.clientConfig.certRef.key',
      'error spec.clientConfig.keyRef',
      'error spec.secureServing.certRef.key',
      'warning spec.secureServing.certRef',
    ],
  ],
  [
    'secrets that are not base64',
    cluster({ clientConfig: { bearerToken: 'a token', caData: '-----BEGIN CERTIFICATE-----' } }),
    ['error spec.clientConfig.bearerToken', 'error spec.clientConfig.caData'],
  ],
  [
    'token that no header can carry',
    cluster({ clientConfig: { bearerToken: base64('a\nb'), caData: '$CA' } }),
    ['error spec.clientConfig.bearerToken'],
  ],
  ['token with a line end', cluster({ clientConfig: { bearerToken: base64('token\n'), caData: '$CA' } }), []],
  [
    'certificate that is not PEM',
    cluster({ secureServing: { certData: '$GARBAGE', keyData: '$KEY' } }),
    ['error spec.secureServing.certData'],
  ],
  [
    'endpoints',
    cluster({
      servers: [
        'https://10.0.0.1:6443/path',
        'https://u:p@10.0.0.1',
        'https://10.0.0.1:65536',
        'https://10.0.0.1:0',
        'https://10.0.0',
        'https://',
        'HTTPS://a',
        'https://a?b',
        'https://a b',
        'https://[10.0.0.1]',
      ].map((endpoint) => ({ endpoint })),
    }),
    Array.from({ length: 10 }, (_, i) => `error spec.servers[${i}].endpoint`),
  ],
  [
    'the same server, written otherwise',
    cluster({ servers: [{ endpoint: 'https://A:443' }, { endpoint: 'https://a/' }] }),
    ['warning spec.servers[1].endpoint'],
  ],
  [
    'host names',
    cluster({
      secureServing: {
        serverNames: ['*', '*.*.x', 'a.*.x', 'a_b', 'a..b', '', 'a:443', '::1', '-a', `${'a'.repeat(64)}.x`],
      },
    }),
    Array.from({ length: 10 }, (_, i) => `${i === 7 ? 'warning' : 'error'} spec.secureServing.serverNames[${i}]`),
  ],
  [
    'numbers that no int32 holds',
    cluster({ clientConfig: { bearerToken: 'eA==', caData: '$CA', qps: 2 ** 31, burst: 2 ** 31 } }),
    ['error spec.clientConfig.burst', 'error spec.clientConfig.qps'],
  ],
  ['times', cluster({ degrade: { expiresAt: 'tomorrow' } }), ['error spec.degrade.expiresAt']],
  [
    'null is absent',
    cluster(
      {
        clientConfig: { bearerToken: 'eA==', caData: '$CA', keyData: null },
        secureServing: null,
        logging: { mode: null },
      },
      { creationTimestamp: null },
    ),
    [],
  ],
  [
    'empty choices are absent',
    cluster({ dispatchPolicies: [{ rules: RULES, strategy: '', logMode: '', flowControlSchemaName: '' }] }),
    [],
  ],
  [
    'metadata',
    cluster({}, { name: 'a'.repeat(254), namespace: 'x', lables: {}, labels: { a: 1 }, annotations: [] }),
    [
      'error metadata.annotations',
      'error metadata.labels[a]',
      'warning metadata.lables',
      'error metadata.name',
      'error metadata.namespace',
    ],
  ],
  [
    'not an UpstreamCluster',
    { apiVersion: 'v1', kind: 'Upstreamcluster', metadata: null, specs: {} },
    [
      'error apiVersion',
      'error kind',
      'error metadata.name',
      'error spec.dispatchPolicies',
      'error spec.servers',
      'warning specs',
    ],
  ],
  [
    'a type of secret does not make credentials missing',
    cluster({ clientConfig: { bearerToken: 5, caData: '$CA' } }),
    ['error spec.clientConfig.bearerToken'],
  ],
]

describe('what the table does not hold', () => {
  for (const [name, object, expected] of CASES) {
    test(name, () => {
      assert.deepEqual(verdict(object), [...expected].sort())
    })
  }
})

test('a misspelt field is fixed with its nearest known name', () => {
  const [problem] = check(cluster({ dispatchPolicies: [{ rules: RULES, upsteamSubset: [] }] }))
  assert.equal(problem?.message, 'unknown field, ignored')
  assert.equal(problem?.fix, 'did you mean upstreamSubset?')
})

test('spec.degrade.auto: what could begin it, bounds that fit each other, durations that are some', () => {
  const withAuto = (auto: Json): Json => cluster({ degrade: { auto } })
  const nodes = 'error spec.degrade.auto.nodes'
  const table: readonly (readonly [Json, readonly string[]])[] = [
    [{ nodes: {} }, []],
    [{ upstream: {}, shadow: true, recovery: { hold: '1s', ramp: '0s' } }, []],
    [{}, ['error spec.degrade.auto']],
    [{ shadow: true }, ['error spec.degrade.auto']],
    [{ nodes: { exitPercent: 45 } }, []],
    [{ nodes: { exitPercent: 46 } }, [`${nodes}.exitPercent`]],
    [{ nodes: { maxUnreadyPercent: 29 } }, [`${nodes}.exitPercent`]],
    [{ nodes: { maxUnreadyPercent: 29, exitPercent: 29 } }, []],
    [{ nodes: { maxUnreadyPercent: 101 } }, [`${nodes}.maxUnreadyPercent`]],
    [{ nodes: { enterAfter: '30', exitAfter: '1d' } }, [`${nodes}.enterAfter`, `${nodes}.exitAfter`]],
    [{ nodes: { staleAfter: '4s' } }, [`${nodes}.staleAfter`]],
    [{ nodes: { selector: {} } }, ['warning spec.degrade.auto.nodes.selector']],
    [{ nodes: { selector: { matchLabels: { a: 'b' } } } }, []],
    [{ upstream: { window: '4s' } }, ['error spec.degrade.auto.upstream.window']],
    [{ upstream: { window: '11m' } }, ['error spec.degrade.auto.upstream.window']],
    [{ upstream: { maxErrorPercent: 0 } }, ['error spec.degrade.auto.upstream.maxErrorPercent']],
    [{ upstream: {}, recovery: { hold: 'soon' } }, ['error spec.degrade.auto.recovery.hold']],
  ]
  for (const [auto, want] of table) assert.deepEqual(verdict(withAuto(auto)), want, JSON.stringify(auto))
  const inFile = checkUpstreamCluster(withMaterial(withAuto({ nodes: {} })), nodePemChecks, { recovery: false })
  assert.deepEqual(
    inFile.map(({ severity, path }) => `${severity} ${path}`),
    ['warning spec.degrade.auto'],
  )
})

test('durations of a recovery are Go durations, and in files it has no effect', () => {
  const withRecovery = (recovery: Json): Json => cluster({ degrade: { mode: 'ReadOnly', reason: 'x', recovery } })
  for (const hold of ['60s', '1m30s', '500ms', '0s']) assert.deepEqual(verdict(withRecovery({ hold })), [], hold)
  for (const ramp of ['10 minutes', '-1m', '1d', '60', '', '1.5h', '100000s', '1h1h1h1h1h']) {
    assert.deepEqual(verdict(withRecovery({ ramp })), ['error spec.degrade.recovery.ramp'], ramp)
  }
  assert.deepEqual(verdict(withRecovery({})), [])
  const inFile = checkUpstreamCluster(withMaterial(withRecovery({})), nodePemChecks, { recovery: false })
  assert.deepEqual(
    inFile.map(({ severity, path }) => `${severity} ${path}`),
    ['warning spec.degrade.recovery'],
  )
})

test('without the subject that checks writes of replicas, spec.scaleProtection is warned of', () => {
  const object = withMaterial(cluster({ podProtection: {}, scaleProtection: {} }))
  assert.deepEqual(checkUpstreamCluster(object, nodePemChecks), [])
  const [warning, ...more] = checkUpstreamCluster(object, nodePemChecks, {
    withoutSubject: (field) => field === 'scaleProtection',
  })
  assert.deepEqual([warning?.severity, warning?.path, more], ['warning', 'spec.scaleProtection', []])
})

test('without incidents, what they do for the degrade mode is warned of; without pod protection, its content is checked all the same', () => {
  const without = (spec: Json, ...fields: string[]): string[] => {
    const options = { withoutSubject: (field: string) => fields.includes(field) }
    const found = checkUpstreamCluster(withMaterial(cluster(spec)), nodePemChecks, options)
    return found.map(({ severity, path }) => `${severity} ${path}`)
  }
  const degrade = { mode: 'NoDisruption', reason: 'x', recovery: {}, auto: { upstream: {} } }
  assert.deepEqual(without({ degrade }), [])
  assert.deepEqual(without({ degrade }, 'degrade.mode', 'degrade.recovery', 'degrade.auto'), [
    'warning spec.degrade.mode',
    'warning spec.degrade.recovery',
    'warning spec.degrade.auto',
  ])
  for (const mode of ['Off', 'ReadOnly', 'HeartbeatsOnly', 'Freeze'])
    assert.deepEqual(without({ degrade: { mode, reason: 'x' } }, 'degrade.mode'), [], mode)
  assert.deepEqual(without({ podProtection: { cell: '-' } }, 'podProtection'), [
    'warning spec.podProtection',
    'error spec.podProtection.cell',
  ])
})

test('a rate of Limited that falls is warned of, with the default of the other end', () => {
  const withLimited = (limited: Json): Json => cluster({ degrade: { mode: 'Limited', reason: 'x', limited } })
  for (const limited of [{}, { startQPS: 20 }, { startQPS: 50, endQPS: 50 }]) {
    assert.deepEqual(verdict(withLimited(limited)), [], JSON.stringify(limited))
  }
  for (const limited of [{ startQPS: 21 }, { startQPS: 5, endQPS: 4 }]) {
    assert.deepEqual(verdict(withLimited(limited)), ['warning spec.degrade.limited.startQPS'], JSON.stringify(limited))
  }
})

test('what is normalised is what the API server would have stored', () => {
  const object = cluster(
    {
      secureServing: null,
      flowControl: { flowControlSchemas: [{ name: 'a', strategy: '', maxRequestsInflight: {} }] },
    },
    { creationTimestamp: null, managedFields: [] },
  )
  const { metadata, spec } = normalizeUpstreamCluster(object)
  assert.deepEqual(metadata, { name: 'prod' })
  assert.equal('secureServing' in spec, false)
  assert.deepEqual(spec.flowControl, { flowControlSchemas: [{ name: 'a', maxRequestsInflight: { max: 0 } }] })
})

test('no JSON value makes the checks throw', () => {
  fc.assert(fc.property(fc.jsonValue({ maxDepth: 6 }), (value) => void checkUpstreamCluster(value, nodePemChecks)))
  const deep: unknown = JSON.parse(`${'['.repeat(50_000)}${']'.repeat(50_000)}`)
  for (const object of [
    deep,
    cluster({ servers: deep }),
    cluster({ bogus: deep }),
    { apiVersion: deep, kind: deep, metadata: { name: deep } },
  ]) {
    assert.notEqual(checkUpstreamCluster(object, nodePemChecks).length, 0)
  }
  const poisoned: unknown = JSON.parse(
    '{"__proto__": {"a": 1}, "spec": {"__proto__": {"servers": 1}, "constructor": 1}}',
  )
  const paths = checkUpstreamCluster(poisoned, nodePemChecks).map((problem) => problem.path)
  for (const path of ['__proto__', 'spec.__proto__', 'spec.constructor']) assert.ok(paths.includes(path), path)
})

test('mutated objects never make the checks throw, and what is accepted compiles', () => {
  const seeds = [...TABLE.map(({ object }) => withMaterial(object)), ...CASES.map(([, object]) => withMaterial(object))]
  const texts = [
    '',
    '*',
    '-*',
    '-x',
    'on',
    'https://a',
    'a',
    '10.0.0.1',
    'eA==',
    '2030-01-01T00:00:00Z',
    'globalCount',
    '/x',
  ]
  const value = fc.oneof(
    fc.constantFrom<unknown>(null, true, 0, -1, 1, 1.5, 1e10, [], {}, [{}], ...texts),
    fc.jsonValue(),
  )
  let accepted = 0
  fc.assert(
    fc.property(fc.constantFrom(...seeds), fc.array(fc.tuple(fc.nat(), value), { maxLength: 3 }), (seed, mutations) => {
      const object = structuredClone(seed)
      // A copy: inserting the same value into itself would create a cycle, which JSON cannot have.
      for (const [at, mutation] of mutations) mutate(object, at, structuredClone(mutation))
      const problems = checkUpstreamCluster(object, nodePemChecks)
      if (problems.some((problem) => problem.severity === 'error')) return
      accepted++
      const compiled = compileCluster({ object: normalizeUpstreamCluster(object), revision: 'r' })
      for (const endpoint of compiled.endpoints) assert.ok(endpoint.host !== '' && endpoint.port > 0)
      for (const policy of compiled.policies) {
        assert.ok(policy.endpoints.length > 0 && compiled.schemas.length > policy.schema)
      }
    }),
    { numRuns: 2000 },
  )
  assert.ok(accepted > 50, `only ${accepted} were accepted`)
})

/** Replaces the n-th member of the tree, counted modulo its size. */
function mutate(root: unknown, n: number, value: unknown): void {
  const slots: (() => void)[] = []
  const visit = (node: unknown): void => {
    if (typeof node !== 'object' || node === null) return
    for (const key of Object.keys(node)) {
      slots.push(() => void Reflect.set(node, key, value))
      visit(Reflect.get(node, key))
    }
  }
  visit(root)
  slots[n % Math.max(1, slots.length)]?.()
}

test("a server on the gateway's own machine is a warning, unless the gateway says that it connects to it", () => {
  const object = (endpoint: string) => ({
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: { name: 'prod' },
    spec: { servers: [{ endpoint }], clientConfig: {}, dispatchPolicies: [] },
  })
  const warned = (endpoint: string, options = {}) =>
    checkUpstreamCluster(object(endpoint), nodePemChecks, options).filter(
      ({ path }) => path === 'spec.servers[0].endpoint',
    )
  for (const host of ['127.0.0.1', '[::1]', 'localhost', '169.254.169.254', '[fd00:ec2::254]', '[::ffff:127.0.0.1]']) {
    const [problem] = warned(`http://${host}:80`)
    assert.equal(problem?.severity, 'warning', host)
    assert.match(problem?.message ?? '', /does not connect to it unless the operator allows it$/)
    assert.match(problem?.fix ?? '', /--allow-local-servers=ADDRESS:PORT$/)
  }
  assert.deepEqual(warned('http://10.0.0.1:80'), [])
  assert.deepEqual(warned('http://kube.example.com:80'), [])
  assert.deepEqual(warned('http://127.0.0.1:80', { serverRefusal: () => '' }), [])
  assert.equal(warned('http://10.0.0.1:80', { serverRefusal: () => 'is mine' }).length, 1)
})
