import assert from 'node:assert/strict'
import { availableParallelism, hostname } from 'node:os'
import { test } from 'node:test'
import { DEFAULT_PROTECTION_SETTINGS } from '../api/protection-settings.ts'
import { ALL_SETTINGS, type Config, ConfigError, loadConfig } from './config.ts'

type Env = Record<string, string | undefined>

function load(flags: Record<string, unknown>, env: Env = {}, files: Record<string, string> = {}): Config {
  const readFile = (path: string): string => {
    const text = files[path]
    if (text === undefined) throw new Error('ENOENT: no such file or directory')
    return text
  }
  return loadConfig({ flags, env, readFile })
}

function problemsOf(flags: Record<string, unknown>, env: Env = {}, files: Record<string, string> = {}): string[] {
  try {
    load(flags, env, files)
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error))
    assert.equal(error.message.split('\n').length, error.problems.length)
    return error.problems.map((problem) => `${problem.where}: ${problem.message}`)
  }
  return []
}

const GATEWAY_YAML = `
source: files
configDir: from-file
listen:
  - 127.0.0.1:8443
  - "[::1]:8443"
adminListen: 127.0.0.1:9091
dataDir: /var/lib/portcullis
drainTimeout: 1m30s
tlsCertFile: tls.crt
tlsPrivateKeyFile: tls.key
accessLog: false
`

test('defaults need nothing: objects live in the embedded API server', () => {
  assert.deepEqual(load({}), {
    source: 'embedded',
    configDir: '',
    controlListen: { host: '0.0.0.0', port: 9443 },
    controlHosts: [],
    maxControlConnections: 512,
    controlAdmins: [],
    controlViewers: [],
    accessRequesters: [],
    accessApprovers: [],
    controlAuditLogPath: '',
    storeKeyFile: '',
    kubeconfig: '',
    context: '',
    installCrds: true,
    secretNamespaces: ['portcullis-system', 'default'],
    allowLocalServers: [],
    controlOidcIssuerUrl: '',
    controlOidcClientId: '',
    controlOidcUsernameClaim: 'sub',
    controlOidcUsernamePrefix: '',
    controlOidcGroupsClaim: '',
    controlOidcGroupsPrefix: '',
    controlOidcRequiredClaims: [],
    controlOidcCaFile: '',
    controlOidcSigningAlgs: ['RS256'],
    replicaName: hostname(),
    redisUrl: '',
    redisPasswordFile: '',
    redisSentinelUser: '',
    redisSentinelPasswordFile: '',
    redisCaFile: '',
    redisCertFile: '',
    redisKeyFile: '',
    redisTlsServerName: '',
    expectedReplicas: 1,
    listen: [{ host: '0.0.0.0', port: 8443 }],
    proxyProtocolFrom: [],
    proxyProtocolOthers: 'refuse',
    adminListen: '127.0.0.1:9090',
    dataDir: 'data',
    sessionRecordingDir: '',
    sessionRecordingKeyFile: '',
    sessionRecordingMaxBytes: 67_108_864,
    sessionRecordingMaxDirBytes: 10_737_418_240,
    sessionRecordingS3Endpoint: '',
    sessionRecordingS3Bucket: '',
    sessionRecordingS3Prefix: '',
    sessionRecordingS3Region: 'us-east-1',
    sessionRecordingS3CredentialsFile: '',
    sessionRecordingS3CaFile: '',
    shutdownDelayMs: 0,
    drainTimeoutMs: 30_000,
    tlsCertFile: '',
    tlsPrivateKeyFile: '',
    servingHosts: [],
    tlsMinVersion: 'VersionTLS12',
    tlsCipherSuites: [],
    accessLog: true,
    auditLogPath: '',
    auditPolicyFile: '',
    auditMaxBodyBytes: 102_400,
    auditLogMaxage: 366,
    auditLogMaxbackup: 100,
    auditLogMaxsize: 0,
    auditLogCompress: false,
    auditWebhookConfigFile: '',
    auditWebhookInitialBackoffMs: 10_000,
    auditWebhookBatchBufferSize: 10_000,
    auditWebhookBatchMaxSize: 400,
    auditWebhookBatchMaxWaitMs: 30_000,
    auditWebhookBatchThrottleEnable: true,
    auditWebhookBatchThrottleQps: 10,
    auditWebhookBatchThrottleBurst: 15,
    auditLogTruncateMaxEventSize: 0,
    auditWebhookTruncateMaxEventSize: 0,
    logLevel: 'info',
    top: true,
    topMetrics: [],
    maxHeaderBytes: 1_048_576,
    maxConcurrentStreams: 250,
    headerTimeoutMs: 10_000,
    handshakeTimeoutMs: 10_000,
    firstRequestTimeoutMs: 30_000,
    maxConnections: 20_000,
    maxUnauthenticatedConnections: 4_000,
    maxAuthenticationFailures: 10,
    authenticationFailureBlockMs: 300_000,
    idleTimeoutMs: 120_000,
    maxConnectionsPerAddress: 1_000,
    maxRequestsInflight: 4096,
    maxWatches: 50_000,
    maxBufferedBytes: 268_435_456,
    maxConnectionAgeMs: 0,
    goawayChance: 0,
    memoryLimit: 0,
    maxFollowedBytes: 0,
    memoryDefaults: ['maxConnections', 'maxRequestsInflight', 'maxWatches', 'maxBufferedBytes'],
    threads: availableParallelism(),
    stallThresholdMs: 50,
    adminTlsCertFile: '',
    adminTlsPrivateKeyFile: '',
    adminTokenFile: '',
    adminAdvertise: undefined,
    adminPeers: [],
    adminCaFile: '',
    healthListen: undefined,
    healthTlsCertFile: '',
    healthTlsPrivateKeyFile: '',
    metricsTokenFile: '',
    tracingOtlpEndpoint: '',
    tracingOtlpCaFile: '',
    tracingOtlpHeadersFile: '',
    tracingSamplingRatePerMillion: 0,
    tracingCallersPerSecond: 10,
    tracingUserAttributes: false,
    protection: {
      settings: DEFAULT_PROTECTION_SETTINGS,
      kubeconfig: '',
      context: '',
      listen: undefined,
      generatorConfigFile: '',
      workloadsKubeconfig: '',
      workloadsContext: '',
      metricsByNamespace: false,
      metricsByUser: false,
    },
    warnings: [],
  })
})

test('names for the certificate that the gateway makes itself', () => {
  const { servingHosts } = load({ servingHost: ['VIP.example.com.', '*.example.org,192.0.2.10', '2001:DB8::1'] })
  assert.deepEqual(servingHosts, ['vip.example.com', '*.example.org', '192.0.2.10', '2001:db8::1'])
  for (const [given, problem] of [
    ['192.0.2.10:8443', '"192.0.2.10:8443" is neither a host name nor an address'],
    ['https://vip', '"https://vip" is neither a host name nor an address'],
    ['a.example.com,a_b', '"a_b" is neither a host name nor an address'],
    [Array.from({ length: 51 }, (_, i) => `h${i}`).join(), 'has too many names'],
  ] as const) {
    const [said = '', ...more] = problemsOf({ servingHost: given })
    assert.ok(said.startsWith('--serving-host: ') && said.includes(problem), said)
    assert.deepEqual(more, [])
  }
  const own = { tlsCertFile: 'tls.crt', tlsPrivateKeyFile: 'tls.key', servingHost: 'vip' }
  assert.deepEqual(problemsOf(own), ['--serving-host: is given, and the certificate is that of --tls-cert-file'])
})

test('a configuration directory alone means files', () => {
  assert.equal(load({ configDir: 'clusters' }).source, 'files')
  assert.equal(load({ source: 'kubernetes' }).source, 'kubernetes')
})

test('settings of one source are refused with another', () => {
  const errors: [Record<string, unknown>, string][] = [
    [{ source: 'embedded', configDir: 'd' }, '--config-dir: has no meaning with --source embedded'],
    [{ kubeconfig: 'k' }, '--kubeconfig: has no meaning with --source embedded'],
    [{ redisPasswordFile: 'p' }, '--redis-password-file: is given without --redis-url'],
    [{ redisUrl: 'localhost:6379' }, '--redis-url: "localhost:6379" is not a URL'],
    [{ redisUrl: 'http://:sesame@r' }, '--redis-url: begins with http://'],
    [{ redisUrl: 'redis+sentinel://:sesame@r:1' }, '--redis-url: does not name the master that its Sentinels know'],
    [
      { redisUrl: 'redis+cluster://r/1' },
      '--redis-url: "redis+cluster://r/1" names a database, and a Redis Cluster has only 0',
    ],
    [{ redisUrl: 'redis://a,b' }, '--redis-url: "redis://a,b" names several servers'],
    [
      { redisUrl: 'redis://r', redisSentinelPasswordFile: 'p' },
      '--redis-sentinel-password-file: has no meaning, because --redis-url names no Sentinels',
    ],
    [{ redisUrl: 'redis://r', redisCaFile: 'c' }, '--redis-ca-file: has no meaning, because --redis-url is not TLS'],
    [{ redisUrl: 'rediss://r', redisCertFile: 'c' }, '--redis-cert-file: is given without --redis-key-file'],
    [{ redisUrl: 'rediss://r', redisKeyFile: 'c' }, '--redis-key-file: is given without --redis-cert-file'],
    [
      { redisUrl: 'redis://:sesame@r', redisPasswordFile: 'p' },
      '--redis-password-file: is a second password, in addition to that in --redis-url',
    ],
    [
      { redisUrl: 'redis+sentinel://r/m', redisSentinelUser: 'u' },
      '--redis-sentinel-user: is given without a password',
    ],
    [{ redisTlsServerName: 'n' }, '--redis-tls-server-name: is given without --redis-url'],
    [{ controlAdmin: ['alice'] }, '--control-admin: ["alice"] names no user'],
    [{ controlListen: '0.0.0.0:8443' }, '--control-listen: 0.0.0.0:8443 is also in --listen as 0.0.0.0:8443'],
  ]
  for (const [flags, problem] of errors) assert.deepEqual(problemsOf(flags), [problem])
})

test('a file sets everything, in YAML types', () => {
  const config = load({ config: 'gateway.yaml' }, {}, { 'gateway.yaml': GATEWAY_YAML })
  assert.equal(config.configDir, 'from-file')
  assert.deepEqual(config.listen, [
    { host: '127.0.0.1', port: 8443 },
    { host: '::1', port: 8443 },
  ])
  assert.equal(config.drainTimeoutMs, 90_000)
  assert.equal(config.accessLog, false)
  assert.equal(config.tlsPrivateKeyFile, 'tls.key')
})

test('flag before variable before file before default', () => {
  const files = { 'gateway.yaml': GATEWAY_YAML }
  const env = { PORTCULLIS_CONFIG: 'gateway.yaml', PORTCULLIS_CONFIG_DIR: 'from-env', PORTCULLIS_DRAIN_TIMEOUT: '10s' }
  const config = load({ configDir: 'from-flag', listen: [] }, env, files)
  assert.equal(config.configDir, 'from-flag')
  assert.equal(config.drainTimeoutMs, 10_000)
  assert.equal(config.adminListen, '127.0.0.1:9091')
  assert.equal(config.logLevel, 'info')
  assert.equal(config.listen.length, 2)
  assert.equal(load({ config: 'other.yaml', configDir: 'd' }, env, { 'other.yaml': '' }).adminListen, '127.0.0.1:9090')
})

test('an empty variable counts as not set', () => {
  assert.equal(load({ configDir: 'd' }, { PORTCULLIS_DRAIN_TIMEOUT: '' }).drainTimeoutMs, 30_000)
})

test('listen may be repeated: flags, commas in a variable', () => {
  const expected = [
    { host: '127.0.0.1', port: 8443 },
    { host: '::', port: 0 },
  ]
  assert.deepEqual(load({ configDir: 'd', listen: ['127.0.0.1:8443', '[::]:0'] }).listen, expected)
  assert.deepEqual(load({ configDir: 'd' }, { PORTCULLIS_LISTEN: '127.0.0.1:8443, [::]:0' }).listen, expected)
})

test('the switch takes a bare flag, words and booleans', () => {
  for (const [raw, value] of [
    [true, true],
    ['off', false],
    ['true', true],
    [false, false],
  ]) {
    assert.equal(load({ configDir: 'd', accessLog: raw }).accessLog, value)
  }
})

test('a chance is a number from 0 to 0.02, however it is written', () => {
  for (const [raw, value] of [
    ['.001', 0.001],
    ['0.02', 0.02],
    [0.01, 0.01],
    ['0', 0],
  ]) {
    assert.equal(load({ configDir: 'd', goawayChance: raw }).goawayChance, value)
  }
  for (const [raw, problem] of [
    ['0.021', '--goaway-chance: "0.021" is not from 0 to 0.02'],
    ['-0.01', '--goaway-chance: "-0.01" is not a number'],
    ['1%', '--goaway-chance: "1%" is not a number'],
    ['.', '--goaway-chance: "." is not a number'],
  ]) {
    assert.deepEqual(problemsOf({ source: 'files', configDir: 'd', goawayChance: raw }), [problem])
  }
})

test('all errors at once, each with its origin and value', () => {
  const yaml = 'drainTimeout: 30\nlistne: 1.2.3.4:1\nlogLevel: loud\nmaxHeaderBytes: [1]\n'
  const problems = problemsOf(
    { config: 'g.yaml', listen: ['::1:8443'], source: 'consul' },
    { PORTCULLIS_MAX_CONCURRENT_STREAMS: '-1', PORTCULLIS_ADMIN_LISTEN: 'localhost:99999' },
    { 'g.yaml': yaml },
  )
  assert.deepEqual(problems, [
    'g.yaml:2 listne: unknown key, did you mean listen?',
    '--source: "consul" is not known',
    '--listen: ["::1:8443"] has an IPv6 address without brackets',
    'PORTCULLIS_ADMIN_LISTEN: "localhost:99999" has a port that is not 0 to 65535',
    'g.yaml:1 drainTimeout: 30 is not a duration',
    'g.yaml:3 logLevel: "loud" is not known',
    'g.yaml:4 maxHeaderBytes: [1] is not a single value',
    'PORTCULLIS_MAX_CONCURRENT_STREAMS: "-1" is not a whole number',
  ])
})

test('every problem has a fix', () => {
  try {
    load({ source: 'files', drainTimeout: '25h' })
    assert.fail('accepted')
  } catch (error) {
    assert.ok(error instanceof ConfigError)
    assert.equal(
      error.message,
      '--drain-timeout: "25h" is not from 0s to 24h; write a duration from 0s to 24h with its unit, for example 30s, 1m30s or 500ms\n' +
        '--config-dir: no directory of UpstreamCluster files is given; ' +
        'give --config-dir, PORTCULLIS_CONFIG_DIR or configDir in the configuration file',
    )
  }
})

test('bounds are inclusive, beyond is refused', () => {
  const ok = { configDir: 'd' }
  for (const flags of [
    { maxConcurrentStreams: '1' },
    { threads: '1' },
    { maxConcurrentStreams: '100000' },
    { headerTimeout: '100ms' },
    { drainTimeout: '0' },
    { maxHeaderBytes: '1Mi' },
    { listen: ['h:65535'] },
  ]) {
    assert.deepEqual(problemsOf({ ...ok, ...flags }), [])
  }
  for (const flags of [
    { maxConcurrentStreams: '0' },
    { threads: '0' },
    { maxConcurrentStreams: '100001' },
    { maxConcurrentStreams: '1.5' },
    { headerTimeout: '99ms' },
    { maxHeaderBytes: '4095' },
    { listen: ['h:65536'] },
    { listen: [':8443'] },
    { listen: ['h'] },
    { drainTimeout: '-1s' },
  ]) {
    assert.equal(problemsOf({ ...ok, ...flags }).length, 1, JSON.stringify(flags))
  }
})

test('settings that contradict each other', () => {
  const ok = { configDir: 'd' }
  assert.deepEqual(problemsOf({ ...ok, tlsCertFile: 'a' }), [
    '--tls-cert-file: is given without --tls-private-key-file',
  ])
  assert.deepEqual(problemsOf(ok, { PORTCULLIS_TLS_PRIVATE_KEY_FILE: 'k' }), [
    'PORTCULLIS_TLS_PRIVATE_KEY_FILE: is given without --tls-cert-file',
  ])
  assert.deepEqual(problemsOf({ ...ok, listen: ['1.2.3.4:1', '1.2.3.4:1'] }), ['--listen: 1.2.3.4:1 is given twice'])
  assert.deepEqual(problemsOf({ ...ok, listen: ['h:0', 'h:0'] }), [])
  assert.deepEqual(problemsOf({ ...ok, listen: ['0.0.0.0:9090'] }), [
    '--admin-listen: 127.0.0.1:9090 is also in --listen as 0.0.0.0:9090',
  ])
})

test("TLS by kube-apiserver's names", () => {
  const config = load({ tlsMinVersion: 'VersionTLS13', tlsCipherSuites: ['TLS_AES_128_GCM_SHA256'] })
  assert.deepEqual([config.tlsMinVersion, config.tlsCipherSuites], ['VersionTLS13', ['TLS_AES_128_GCM_SHA256']])
  const suites = 'TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_RSA_WITH_RC4_128_SHA'
  assert.deepEqual(problemsOf({}, { PORTCULLIS_TLS_CIPHER_SUITES: suites }), [
    `PORTCULLIS_TLS_CIPHER_SUITES: "${suites}" names "TLS_RSA_WITH_RC4_128_SHA", which is not known`,
  ])
  assert.deepEqual(problemsOf({ tlsMinVersion: 'VersionTLS10' }), ['--tls-min-version: "VersionTLS10" is not known'])
})

test('a file that cannot be used', () => {
  const ok = { configDir: 'd', config: 'g.yaml' }
  assert.deepEqual(problemsOf(ok), ['--config: cannot read "g.yaml": ENOENT: no such file or directory'])
  assert.deepEqual(problemsOf(ok, {}, { 'g.yaml': '- a\n' }), ['g.yaml: is not a map of settings'])
  assert.match(
    problemsOf(ok, {}, { 'g.yaml': 'source: files\nsource: files\n' })[0] ?? '',
    /^g\.yaml:2: Map keys must be unique/,
  )
  assert.match(problemsOf(ok, {}, { 'g.yaml': 'a: "b\n' })[0] ?? '', /^g\.yaml:\d: /)
})

test('unknown variables warn, those of a Kubernetes Service and of commands do not', () => {
  const env = {
    PORTCULLIS_DRIAN_TIMEOUT: '1s',
    PORTCULLIS_PORT: 'tcp://10.0.0.1:8443',
    PORTCULLIS_PORT_8443_TCP_ADDR: '10.0.0.1',
    PORTCULLIS_SERVICE_PORT_HTTPS: '8443',
    PORTCULLIS_ADMIN_SERVICE_HOST: '10.0.0.2',
    PORTCULLIS_ADMIN: 'https://10.0.0.7:9090',
    OTHER: 'x',
  }
  assert.deepEqual(load({ configDir: 'd' }, env).warnings, [
    'variable PORTCULLIS_DRIAN_TIMEOUT is unknown and has no effect, did you mean PORTCULLIS_DRAIN_TIMEOUT?',
  ])
})

test('a setting that was replaced names the new one, wherever it is given', () => {
  const flags = {
    configDir: 'd',
    config: 'g.yaml',
    auditLogTruncateEnabled: true,
    auditWebhookTruncateMaxBatchSize: '1Mi',
  }
  const env = { PORTCULLIS_AUDIT_WEBHOOK_TRUNCATE_ENABLED: 'true' }
  assert.deepEqual(problemsOf(flags, env, { 'g.yaml': 'auditLogTruncateMaxBatchSize: 10Mi\n' }), [
    'g.yaml:1 auditLogTruncateMaxBatchSize: was replaced by auditLogTruncateMaxEventSize',
    '--audit-log-truncate-enabled: was replaced by --audit-log-truncate-max-event-size',
    'PORTCULLIS_AUDIT_WEBHOOK_TRUNCATE_ENABLED: was replaced by --audit-webhook-truncate-max-event-size',
    '--audit-webhook-truncate-max-batch-size: was replaced by --audit-webhook-truncate-max-event-size',
  ])
})

test('an admin listener that other machines can reach has TLS and a login', () => {
  for (const adminListen of ['127.0.0.1:1', '[::1]:1', 'localhost:1', '127.8.8.8:1']) {
    assert.deepEqual(load({ configDir: 'd', adminListen }).warnings, [])
  }
  const tls = { adminTlsCertFile: 'c', adminTlsPrivateKeyFile: 'k' }
  const token = { adminTokenFile: 't' }
  for (const [flags, problem] of [
    [
      { configDir: 'd', adminListen: '0.0.0.0:1' },
      /^--admin-listen: is not a loopback address, and has no TLS and no login$/,
    ],
    [{ configDir: 'd', adminListen: '0.0.0.0:1', ...token }, /^--admin-listen: is not a loopback address/],
    [{ configDir: 'd', ...tls }, /^--admin-tls-cert-file: is given, but there is no way to log in/],
    [{ adminTlsCertFile: 'c' }, /^--admin-tls-cert-file: is given without --admin-tls-private-key-file/],
    [{ adminTlsPrivateKeyFile: 'k' }, /^--admin-tls-private-key-file: is given without --admin-tls-cert-file/],
  ] as const) {
    assert.match(problemsOf(flags)[0] ?? '', problem)
  }
  for (const flags of [
    { configDir: 'd', adminListen: '0.0.0.0:1', ...tls, ...token },
    { adminListen: '0.0.0.0:1', ...tls },
    { source: 'kubernetes', adminListen: '0.0.0.0:1', ...tls },
  ]) {
    assert.deepEqual(load(flags).warnings, [])
  }
})

test('PROXY protocol: in flags, variables and files alike; whose headers are believed must be said', () => {
  const from = { proxyProtocolFrom: ['10.0.0.0/24', 'fd00::/64'] }
  const text = '0.0.0.0:8443/proxy-protocol,127.0.0.1:8444'
  const expected = [
    { host: '0.0.0.0', port: 8443, proxyProtocol: true },
    { host: '127.0.0.1', port: 8444 },
  ]
  const yaml = {
    'g.yaml': 'listen:\n- 0.0.0.0:8443/proxy-protocol\n- 127.0.0.1:8444\nproxyProtocolFrom: 10.0.0.0/24,fd00::/64\n',
  }
  for (const config of [
    load({ ...from, listen: text.split(',') }),
    load({}, { PORTCULLIS_LISTEN: text, PORTCULLIS_PROXY_PROTOCOL_FROM: '10.0.0.0/24, fd00::/64' }),
    load({ config: 'g.yaml' }, {}, yaml),
  ]) {
    assert.deepEqual(config.listen, expected)
    assert.deepEqual(
      config.proxyProtocolFrom.map(({ bytes, bits }) => [bytes.length, bits]),
      [
        [4, 24],
        [16, 64],
      ],
    )
  }
  const listen = ['[::1]:8443/proxy-protocol']
  for (const [flags, problem] of [
    [{ listen }, '--listen: has /proxy-protocol, and --proxy-protocol-from is not given'],
    [{ ...from }, '--proxy-protocol-from: is given, and no --listen has /proxy-protocol'],
    [{ proxyProtocolOthers: 'plain' }, '--proxy-protocol-others: is given, and no --listen has /proxy-protocol'],
    [
      { listen, proxyProtocolFrom: ['10.0.0.0/33'] },
      '--proxy-protocol-from: ["10.0.0.0/33"] is not a range of addresses',
    ],
    [{ ...from, listen, proxyProtocolOthers: 'guess' }, '--proxy-protocol-others: "guess" is not known'],
    [{ listen: ['h:1/proxy'] }, '--listen: ["h:1/proxy"] has an unknown option; the only one is /proxy-protocol'],
    [{ ...from, listen: ['fd:3/proxy-protocol', 'fd:3'] }, '--listen: fd:3 is given twice'],
    [{ ...from, listen: ['h:1/proxy-protocol', 'h:1'] }, '--listen: h:1 is given twice'],
    [
      { adminListen: '127.0.0.1:9090/proxy-protocol' },
      '--admin-listen: "127.0.0.1:9090/proxy-protocol" has /proxy-protocol, which is for --listen alone',
    ],
    [
      { controlListen: '127.0.0.1:9443/proxy-protocol' },
      '--control-listen: "127.0.0.1:9443/proxy-protocol" has /proxy-protocol, which is for --listen alone',
    ],
    [{ listen: ['h:1', 'h:2/x'] }, '--listen: "h:2/x" has an unknown option; the only one is /proxy-protocol'],
    [{ adminListen: 'fd:3' }, '--admin-listen: "fd:3" is an inherited socket, which this listener cannot have'],
  ] as const) {
    assert.deepEqual(problemsOf(flags), [problem])
  }
})

test('ranges whose PROXY headers are believed: one that has everybody, and one that is wider than it looks, warn', () => {
  const warningsOf = (...proxyProtocolFrom: string[]): readonly string[] =>
    load({ configDir: 'd', listen: ['0.0.0.0:8443/proxy-protocol'], proxyProtocolFrom }).warnings
  assert.deepEqual(warningsOf('10.0.0.0/24', '192.0.2.7', 'fd00::/64', '::1'), [])
  for (const range of ['0.0.0.0/0', '::/0']) {
    assert.deepEqual(warningsOf('10.0.0.0/24', range), [
      `--proxy-protocol-from: ${range} covers every address: each client can choose its own source address`,
    ])
  }
  assert.deepEqual(warningsOf('10.0.7.1/8'), [
    '--proxy-protocol-from: 10.0.7.1/8 is the whole of its /8; for one address leave the prefix out',
  ])
})

test('the health listener: what belongs together, and who may see a token', () => {
  const ok = { source: 'files', configDir: 'd', healthListen: '0.0.0.0:8081' }
  assert.deepEqual(load(ok).healthListen, { host: '0.0.0.0', port: 8081 })
  assert.deepEqual(load(ok).warnings, [])
  for (const [flags, problem] of [
    [{ metricsTokenFile: 't' }, '--metrics-token-file: is given without --health-listen'],
    [
      { healthListen: 'h:1', healthTlsCertFile: 'c' },
      '--health-tls-cert-file: is given without --health-tls-private-key-file',
    ],
    [
      { healthListen: 'h:1', healthTlsPrivateKeyFile: 'k' },
      '--health-tls-private-key-file: is given without --health-tls-cert-file',
    ],
    [
      { healthTlsCertFile: 'c', healthTlsPrivateKeyFile: 'k', healthListen: '8081' },
      '--health-listen: "8081" has no port',
    ],
    [
      { healthListen: 'systemd:a' },
      '--health-listen: "systemd:a" is an inherited socket, which this listener cannot have',
    ],
    [{ healthListen: '127.0.0.1:9090' }, '--health-listen: 127.0.0.1:9090 is also --admin-listen'],
    [{ healthListen: '127.0.0.1:8443' }, '--health-listen: 127.0.0.1:8443 is also in --listen as 0.0.0.0:8443'],
  ] as const) {
    assert.deepEqual(problemsOf(flags), [problem])
  }
  const tls = { healthTlsCertFile: 'c', healthTlsPrivateKeyFile: 'k' }
  const clear = '--health-listen: has no TLS; bearer tokens for /metrics cross the network in clear'
  assert.deepEqual(load({ ...ok, metricsTokenFile: 't' }).warnings, [clear])
  assert.deepEqual(load({ source: 'kubernetes', healthListen: '0.0.0.0:1' }).warnings, [clear])
  assert.deepEqual(load({ ...ok, metricsTokenFile: 't', ...tls }).warnings, [])
  assert.deepEqual(load({ ...ok, metricsTokenFile: 't', healthListen: 'localhost:1' }).warnings, [])
})

test('the configuration cannot be changed', () => {
  const config = load({ configDir: 'd' })
  assert.throws(() => Object.assign(config, { configDir: 'x' }), TypeError)
})

test('the table names each setting once, everywhere alike', () => {
  for (const setting of ALL_SETTINGS) {
    assert.match(setting.flag, /^--[a-z0-9-]+$/)
    const words = setting.flag.slice(2)
    assert.equal(setting.env, `PORTCULLIS_${words.replaceAll('-', '_').toUpperCase()}`)
    assert.equal(
      setting.name,
      words.replace(/-./g, (dash) => dash.slice(1).toUpperCase()),
    )
    if (setting.defaultText !== '') assert.ok('value' in setting.parse(setting.defaultText), setting.name)
  }
  assert.equal(new Set(ALL_SETTINGS.map((setting) => setting.flag)).size, ALL_SETTINGS.length)
})

test('pod protection: given values are used', () => {
  const { protection } = load({
    protectionKubeconfig: 'core',
    protectionContext: 'c',
    protectionListen: '0.0.0.0:9444',
    protectionGeneratorConfig: 'generator.yaml',
    protectionWorkloadsKubeconfig: 'workloads',
    protectionWorkloadsContext: 'w',
    protectionMaxConcurrentLag: '5',
    protectionCompactThreshold: '1',
    protectionAggregationRate: '500ms',
    protectionStaleAfter: '30s',
    protectionReservationTimeout: '2m',
    protectionClockSkew: '0s',
    protectionBatchInterval: '0s',
    protectionMetricsByNamespace: 'true',
    protectionMetricsByUser: 'true',
  })
  assert.deepEqual(protection, {
    kubeconfig: 'core',
    context: 'c',
    listen: '0.0.0.0:9444',
    generatorConfigFile: 'generator.yaml',
    workloadsKubeconfig: 'workloads',
    workloadsContext: 'w',
    metricsByNamespace: true,
    metricsByUser: true,
    settings: {
      ...DEFAULT_PROTECTION_SETTINGS,
      maxConcurrentLag: 5,
      compactThreshold: 1,
      aggregationRateMs: 500,
      staleAfterMs: 30_000,
      reservationTimeoutMs: 120_000,
      clockSkewMs: 0,
      batchIntervalMs: 0,
    },
  })
})

test('pod protection: errors', () => {
  const errors: [Record<string, unknown>, string][] = [
    [{ protectionContext: 'c' }, '--protection-context: is given without --protection-kubeconfig'],
    [
      { protectionGeneratorConfig: 'g', protectionKubeconfig: 'k', protectionWorkloadsContext: 'c' },
      '--protection-workloads-context: is given without --protection-workloads-kubeconfig',
    ],
    [
      { protectionWorkloadsKubeconfig: 'w' },
      '--protection-workloads-kubeconfig: is given without --protection-generator-config',
    ],
    [
      { configDir: 'd', protectionListen: 'h:1' },
      '--protection-listen: needs PodProtectors, and with --source files no API server holds them',
    ],
    [
      { configDir: 'd', protectionGeneratorConfig: 'g' },
      '--protection-generator-config: needs PodProtectors, and with --source files no API server holds them',
    ],
    [
      { protectionGeneratorConfig: 'g' },
      '--protection-generator-config: finds no workloads: the embedded API server holds none',
    ],
    [{ protectionListen: '0.0.0.0:8443' }, '--protection-listen: 0.0.0.0:8443 is also in --listen as 0.0.0.0:8443'],
    [{ protectionListen: '0.0.0.0:9443' }, '--protection-listen: 0.0.0.0:9443 is also --control-listen'],
    [{ protectionListen: '0.0.0.0:9090' }, '--protection-listen: 0.0.0.0:9090 is also --admin-listen'],
    [{ protectionListen: '8444' }, '--protection-listen: "8444" has no port'],
    [{ protectionStaleAfter: '29s' }, '--protection-stale-after: "29s" is not from 30s to 24h'],
    [{ protectionCompactThreshold: '0' }, '--protection-compact-threshold: "0" is not from 1 to 5000'],
    [{ protectionReservationTimeout: '0s' }, '--protection-reservation-timeout: "0s" is not from 1s to 1h'],
  ]
  for (const [flags, problem] of errors) assert.deepEqual(problemsOf(flags), [problem])
  const files = { configDir: 'd', protectionListen: 'h:1', protectionKubeconfig: 'core' }
  assert.deepEqual(problemsOf(files), [])
  assert.throws(() => load({ protectionStaleAfter: '1s' }), /0s switches it off/)
})

test('pod protection: inconsistent times warn', () => {
  assert.deepEqual(load({ protectionStaleAfter: '0' }).warnings, [])
  assert.deepEqual(load({ protectionStaleAfter: '30s', protectionAggregationRate: '10s' }).warnings, [])
  for (const more of [{ protectionAggregationRate: '10001ms' }, { protectionClockSkew: '11s' }]) {
    const { warnings } = load({ protectionStaleAfter: '30s', ...more })
    assert.match(warnings.join(), /^--protection-stale-after: is less than three times/)
  }
  assert.match(load({ protectionReservationTimeout: '30s' }).warnings.join(), /is less than kube-apiserver's own 1m/)
})

test('a bucket for recordings needs an endpoint, a name, credentials and a directory', () => {
  const given = {
    sessionRecordingDir: 'd',
    sessionRecordingKeyFile: 'k',
    sessionRecordingS3Endpoint: 'https://s3.example.com/path',
    sessionRecordingS3Bucket: 'audit.prod',
    sessionRecordingS3CredentialsFile: 'c',
  }
  for (const flags of [
    given,
    { ...given, sessionRecordingS3Prefix: 'prod/sessions/', sessionRecordingS3Region: 'auto' },
    { ...given, sessionRecordingS3CaFile: 'ca' },
  ]) {
    assert.equal(load(flags).sessionRecordingS3Bucket, 'audit.prod')
  }
  const none = { ...given, sessionRecordingS3Endpoint: undefined }
  for (const [flags, wanted] of [
    [{ ...given, sessionRecordingS3Endpoint: 'https://a:secret@h' }, /s3-endpoint: (?!.*secret).*credentials/],
    [{ ...given, sessionRecordingS3Endpoint: 's3.example.com' }, /s3-endpoint.*HTTP URL/],
    [{ ...given, sessionRecordingS3Bucket: undefined }, /s3-bucket: is missing/],
    [{ ...given, sessionRecordingS3Bucket: 'a/b' }, /s3-bucket.*not the name of a bucket/],
    [{ ...given, sessionRecordingS3CredentialsFile: undefined }, /s3-credentials-file: is missing/],
    [{ ...given, sessionRecordingDir: undefined, sessionRecordingKeyFile: undefined }, /recording-dir: is missing/],
    [{ ...given, sessionRecordingS3Prefix: 'a/../b' }, /s3-prefix.*not a prefix/],
    [{ ...given, sessionRecordingS3Prefix: '/a' }, /s3-prefix.*not a prefix/],
    [{ ...given, sessionRecordingS3Region: 'a b' }, /s3-region.*not a region/],
    [{ ...given, sessionRecordingMaxBytes: '5Gi' }, /max-bytes: is more than 4294967296/],
    [
      { ...given, sessionRecordingS3Endpoint: 'http://h', sessionRecordingS3CaFile: 'ca' },
      /s3-ca-file: has no meaning/,
    ],
    [none, /s3-bucket: is given without --session-recording-s3-endpoint/],
    [none, /s3-credentials-file: is given without --session-recording-s3-endpoint/],
  ] as const) {
    const defined = Object.fromEntries(Object.entries(flags).filter(([, value]) => value !== undefined))
    assert.throws(() => load(defined as Partial<typeof given>), wanted)
  }
})

test('recordings of sessions need a directory and a key', () => {
  assert.equal(load({ sessionRecordingDir: 'd', sessionRecordingKeyFile: 'k' }).sessionRecordingDir, 'd')
  for (const [flags, wanted] of [
    [{ sessionRecordingDir: 'd' }, /--session-recording-key-file: is missing.*openssl rand -base64 32/],
    [{ sessionRecordingKeyFile: 'k' }, /--session-recording-dir: is missing/],
    [{ sessionRecordingMaxBytes: '1' }, /--session-recording-max-bytes/],
  ] as const) {
    assert.throws(() => load(flags), wanted)
  }
})
