// The CRDs in deploy/crds/ in a real kube-apiserver: it takes what the gateway takes, and refuses what CEL can refuse with
// the words of the gateway; the rest is refused by the webhook.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { after, before, describe, test } from 'node:test'
import fc from 'fast-check'
import { parse } from 'yaml'
import { reviewAdmission } from '../../../src/apiserver/webhooks/webhook.ts'
import { UPSTREAM_CLUSTERS } from '../../../src/gateway/api/upstream-cluster-kind.ts'
import type { JsonObject } from '../../../src/kit/api/json/json-object.ts'
import { SILENT } from '../../../src/kit/api/ports.ts'
import { StatusError } from '../../../src/kube/api/status.ts'
import { patchAsSeen, patchSame } from '../../../src/kube/controllers/kernel/object-patch.ts'
import { createKubeClient } from '../../../src/kube/io/client.ts'
import { nodePemChecks } from '../../../src/pki/io/pem-checks.ts'
import { createCA, issueCertificate } from '../../../src/pki/io/pki.ts'
import { SCHEME } from '../../../src/program/api/scheme.ts'
import { POD_PROTECTORS } from '../../../src/protection/api/pod-protector-kind.ts'
import { SCALE_UP_GUARDS } from '../../../src/scale-up-guard/api/scale-up-guard-kind.ts'
import { compileGuard } from '../../../src/scale-up-guard/core/guard/compile-guard.ts'
import { startCluster, type TestCluster } from '../../harness/clusters/cluster.ts'
import type { KubeResponse } from '../../harness/clusters/kube-request.ts'
import { kubeGatewayManifests, kubeGatewayObjects } from '../../harness/objects/kubegateway-objects.ts'
import { gatewayCA, serverCertificate } from '../../harness/pki.ts'
import { waitFor } from '../../harness/wait.ts'

const CLUSTERS = '/apis/proxy.kubegateway.io/v1alpha1/upstreamclusters'
const PROTECTORS = '/apis/podseidon.kubewharf.io/v1alpha1/namespaces/default/podprotectors'
const GUARDS = '/apis/scale.portcullis.io/v1alpha1/scaleupguards'
const DEPLOY = new URL('../../../deploy/', import.meta.url)

interface Cause {
  readonly field: string
  readonly message: string
}

let cluster: TestCluster
const material = new Map<string, string>()

before(async () => {
  const ca = createCA({ commonName: 'ca' })
  const pair = issueCertificate(ca, { commonName: 'gateway', usage: 'both' })
  const texts = {
    $CERT: pair.certPem,
    $KEY: pair.keyPem,
    $OTHERKEY: createCA({ commonName: 'other' }).keyPem,
    $CA: ca.certPem,
    $GARBAGE: 'this is no PEM',
  }
  for (const [name, text] of Object.entries(texts)) material.set(name, Buffer.from(text).toString('base64'))
  cluster = await startCluster({ name: 'crds' })
  const applied = await cluster.kubectl(['apply', '-f', new URL('crds/', DEPLOY).pathname])
  assert.equal(applied.code, 0, applied.stderr)
  const established = await cluster.kubectl(['wait', '--for=condition=Established', '--timeout=60s', 'crd', '--all'])
  assert.equal(established.code, 0, established.stderr)
  // Established is said a moment before the paths are there.
  for (const path of [CLUSTERS, PROTECTORS, GUARDS]) {
    await waitFor(path, async () => (await cluster.request(path)).status === 200)
  }
})

after(() => cluster?.stop())

function withMaterial(value: unknown): JsonObject {
  return JSON.parse(JSON.stringify(value), (_key, member: unknown) =>
    typeof member === 'string' ? (material.get(member) ?? member) : member,
  )
}

/** Nothing is stored. By default unknown fields are errors, as kubectl asks for it. */
function dryRun(path: string, object: JsonObject, fieldValidation = 'Strict'): Promise<KubeResponse> {
  return cluster.request(`${path}?dryRun=All&fieldValidation=${fieldValidation}`, { method: 'POST', body: object })
}

test('a patch of the status never reaches another object of the same name; its uid alone would not prevent that', async () => {
  const client = createKubeClient({ kubeconfigFile: cluster.adminKubeconfig, log: SILENT })
  const at = { namespace: '', name: 'again' }
  const object = {
    apiVersion: 'scale.portcullis.io/v1alpha1',
    kind: 'ScaleUpGuard',
    metadata: { name: at.name },
    spec: { clusterRef: { management: 'mgmt' } },
  }
  const options = { fieldManager: 'portcullis', subresource: 'status' } as const
  const target = { client, kind: SCALE_UP_GUARDS, ...options }
  const statusWith = (observedGeneration: number): JsonObject => ({ status: { observedGeneration } })
  try {
    const first = await client.create(SCALE_UP_GUARDS, object)
    const written = await patchAsSeen(target, first, statusWith(1))
    await assert.rejects(patchAsSeen(target, first, statusWith(2)), isConflict)
    assert.deepEqual((await patchSame(target, first, statusWith(3)))['status'], { observedGeneration: 3 })
    await client.delete(SCALE_UP_GUARDS, at)
    await client.create(SCALE_UP_GUARDS, object)
    for (const patch of [patchAsSeen, patchSame])
      await assert.rejects(patch(target, written, statusWith(4)), isConflict)
    assert.equal((await client.get(SCALE_UP_GUARDS, at))['status'], undefined)
    const byUid = { metadata: { uid: 'another' }, ...statusWith(5) }
    const reached = await client.patch(SCALE_UP_GUARDS, at, 'application/merge-patch+json', byUid, options)
    assert.deepEqual(reached['status'], { observedGeneration: 5 })
  } finally {
    await client.close()
  }
})

function isConflict(error: unknown): boolean {
  return error instanceof StatusError && error.reason === 'Conflict'
}

function casesOf(file: string): Record<string, unknown>[] {
  return JSON.parse(readFileSync(new URL(`../../data/${file}`, import.meta.url), 'utf8')).cases
}

/** Beyond schema and CEL: certificates, keys, annotations. */
const ONLY_WEBHOOK: ReadonlySet<unknown> = new Set([
  'key of another certificate',
  'CA that is no PEM',
  'serving key of another certificate',
  'unknown feature gate',
  'feature gate without value',
  'harm: a name that no certificate fits',
])

test('UpstreamClusters: the API server takes what the gateway takes, and refuses what it refuses', async () => {
  let refused = 0
  for (const { name, object, expected } of casesOf('upstreamcluster-objects.json')) {
    const accepted = JSON.stringify(expected).includes('"accepted":true') || ONLY_WEBHOOK.has(name)
    const whole = withMaterial(object)
    const answer = await dryRun(CLUSTERS, whole, 'Warn')
    assert.equal(answer.status === 201, accepted, `${String(name)}: ${answer.text}`)
    if (answer.status !== 201) refused++
    else if (!ONLY_WEBHOOK.has(name)) {
      const errors = UPSTREAM_CLUSTERS.check(answer.json(), undefined, nodePemChecks)
      assert.ok(!errors.some(({ severity }) => severity === 'error'), `${String(name)}: ${JSON.stringify(errors)}`)
    }
  }
  assert.ok(refused >= 25, `${refused}`)
})

test("KubeGateway's manifests: the API server takes those that the gateway takes", async () => {
  for (const { name, object, errors } of kubeGatewayManifests()) {
    const answer = await dryRun(CLUSTERS, object, 'Warn')
    if (errors.length === 0) assert.equal(answer.status, 201, `${name}: ${answer.text}`)
    else if (!ONLY_WEBHOOK.has(name)) assert.notEqual(answer.status, 201, name)
  }
})

test('so it does with objects made from the types of KubeGateway', async () => {
  for (const object of fc.sample(kubeGatewayObjects, 100)) {
    const answer = await dryRun(CLUSTERS, object, 'Warn')
    assert.equal(answer.status, 201, `${JSON.stringify(object)}: ${answer.text}`)
  }
})

test('PodProtectors: the API server takes what the gateway takes', async () => {
  for (const { name, object, problems } of casesOf('pod-protector-objects.json')) {
    const answer = await dryRun(PROTECTORS, withMaterial(object), 'Warn')
    const isFine = !JSON.stringify(problems).includes('error')
    if (isFine) assert.equal(answer.status, 201, `${String(name)}: ${answer.text}`)
    // Only the gateway reads selectors.
    else if (!JSON.stringify(problems).includes('elector.match')) assert.notEqual(answer.status, 201, String(name))
  }
})

const GUARD_SPECS: readonly (readonly [spec: JsonObject, isFine: boolean])[] = [
  [{}, true],
  [{ autoscalerUsers: [], groupSelector: {}, shadow: true, correctTarget: false }, true],
  [{ failure: { minDuration: '0', noProviderIDFor: '1m30s', noNodeFor: '.5h' }, backoff: { initial: '1500ms' } }, true],
  [{ clusterRef: {} }, false],
  [{ clusterRef: { management: 'A/B' } }, false],
  [{ clusterRef: { management: '' } }, false],
  [{ group: 'not a group' }, false],
  [{ failure: { minDuration: '20' } }, false],
  [{ failure: { noNodeFor: '-1s' } }, false],
  [{ failure: { conditionReasons: [''] } }, false],
  [{ backoff: { max: 'long' } }, false],
  [{ autoscalerUsers: Array.from({ length: 65 }, (_, i) => `user-${i}`) }, false],
  [{ shadow: 'yes' }, false],
]

test('ScaleUpGuards: the API server takes what the gateway takes, and refuses what it refuses', async () => {
  for (const [given, isFine] of GUARD_SPECS) {
    const spec = { clusterRef: { management: 'mgmt' }, ...given }
    const object = { apiVersion: 'scale.portcullis.io/v1alpha1', kind: 'ScaleUpGuard', metadata: { name: 'a' }, spec }
    assert.equal(typeof compileGuard(object) !== 'string', isFine, JSON.stringify(given))
    const answer = await dryRun(GUARDS, object)
    assert.equal(answer.status, isFine ? 201 : 422, `${JSON.stringify(given)}: ${answer.text}`)
    if (isFine) assert.deepEqual(answer.json().spec, spec, 'defaults are not stored')
  }
})

const RULES = [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }]
const HASH = 'a1'.repeat(32)

function upstream(spec: JsonObject, name = 'prod'): JsonObject {
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
  }
}

function limit(schema: JsonObject): JsonObject {
  return { flowControl: { flowControlSchemas: [{ name: 'a', ...schema }] } }
}

const client = (config: JsonObject): JsonObject => ({ clientConfig: { insecure: true, ...config } })
const revoked = (...list: JsonObject[]): JsonObject => ({ authentication: { revoked: list } })
const protection = (podProtection: JsonObject): JsonObject => ({ podProtection })
const policy = (more: JsonObject): JsonObject => ({ dispatchPolicies: [{ rules: RULES, ...more }] })
const SCHEMAS = 'spec.flowControl.flowControlSchemas[0]'
const BUCKET = { qps: 2, burst: 4 }
const MEMBERS = { servers: undefined, clientConfig: undefined, members: [{ name: 'a' }] }

/** What is wrong, where the API server says so, and how. The gateway's own checks find each of them too. */
const BAD: readonly (readonly [JsonObject, string, RegExp])[] = [
  [{ servers: [{ endpoint: 'https://a' }, { endpoint: 'http://b' }] }, 'spec.servers', /use one scheme/],
  [{ servers: [{ endpoint: 'https://a/path' }] }, 'spec.servers[0].endpoint', /without a path/],
  [{ servers: [{ endpoint: 'https://a:x' }] }, 'spec.servers[0].endpoint', /write https:\/\/host:port/],
  [{ servers: [{ endpoint: 'https://[::1' }] }, 'spec.servers[0].endpoint', /write https:\/\/host:port/],
  [{ servers: [{ endpoint: 'https://a', weight: 1001 }] }, 'spec.servers[0].weight', /less than or equal to 1000/],
  [client({}), 'spec.clientConfig', /names no credentials/],
  [{ clientConfig: { bearerToken: 'dG9rZW4=' } }, 'spec.clientConfig.caData', /is required for https/],
  [
    { ...client({ bearerTokenRef: { name: 'a', key: 'b' } }), servers: [{ endpoint: 'http://a' }] },
    'spec.clientConfig',
    /would be sent in clear/,
  ],
  [client({ keyData: 'eA==' }), 'spec.clientConfig.certData', /is required when keyData is set/],
  [client({ certData: 'eA==' }), 'spec.clientConfig.keyData', /is required when certData is set/],
  [client({ bearerToken: '*' }), 'spec.clientConfig.bearerToken', /byte/],
  [client({ bearerToken: 'eA==', qps: 10, burst: 5 }), 'spec.clientConfig.burst', /is below qps/],
  [
    client({ bearerToken: 'eA==', bearerTokenRef: { name: 'a', key: 'b' } }),
    'spec.clientConfig.bearerTokenRef',
    /may not be specified when bearerToken is set/,
  ],
  [client({ bearerTokenRef: {} }), 'spec.clientConfig.bearerTokenRef', /exactly one of file and name/],
  [client({ bearerTokenRef: { name: 'a' } }), 'spec.clientConfig.bearerTokenRef.key', /is required when name is set/],
  [client({ bearerTokenRef: { file: 'a' } }), 'spec.clientConfig.bearerTokenRef.file', /--source files/],
  [{ secureServing: { serverNames: ['*'] } }, 'spec.secureServing.serverNames[0]', /is not a valid host name/],
  [{ secureServing: { serverNames: ['a', 'a_b'] } }, 'spec.secureServing.serverNames[1]', /is not a valid host name/],
  [limit({}), SCHEMAS, /sets no limit, or more than one/],
  [limit({ exempt: {}, tokenBucket: BUCKET }), SCHEMAS, /sets no limit, or more than one/],
  [limit({ tokenBucket: { qps: 2, burst: 1 } }), `${SCHEMAS}.tokenBucket.burst`, /is below qps/],
  [
    limit({ exempt: {}, globalTokenBucket: BUCKET }),
    `${SCHEMAS}.tokenBucket`,
    /is required when globalTokenBucket is set/,
  ],
  [
    limit({ tokenBucket: BUCKET, globalTokenBucket: { qps: 1, burst: 4 } }),
    `${SCHEMAS}.globalTokenBucket.qps`,
    /is below the local limit/,
  ],
  [
    limit({ tokenBucket: BUCKET, globalTokenBucket: BUCKET, strategy: 'globalCount', perUser: true }),
    `${SCHEMAS}.perUser`,
    /may not be specified with a limit that replicas share/,
  ],
  [policy({ flowControlSchemaName: 'x' }), 'spec.dispatchPolicies', /is not in spec.flowControl/],
  [{ ...limit({ exempt: {} }), ...policy({ flowControlSchemaName: 'x' }) }, 'spec.dispatchPolicies', /is not in/],
  [policy({ upstreamSubset: ['https://10.0.0.2'] }), 'spec.dispatchPolicies', /is not in spec.servers/],
  [policy({ rules: [{ ...RULES[0], users: ['-*'] }] }), 'spec.dispatchPolicies[0].rules[0].users[0]', /should match/],
  [{ servers: undefined }, 'spec.servers', /add servers: the kube-apiservers, or members/],
  [{ members: [{ name: 'a' }] }, 'spec.servers', /may not be specified with members/],
  [{ federation: {} }, 'spec.members', /is required when federation is set/],
  [{ ...MEMBERS, members: [{ name: 'a--b' }] }, 'spec.members[0].name', /without two hyphens in a row/],
  [{ ...MEMBERS, members: [{ name: 'm'.repeat(33) }] }, 'spec.members[0].name', /32/],
  [
    { ...MEMBERS, members: [{ name: 'a' }, { name: 'b' }, { name: 'a' }] },
    'spec.members',
    /two members have the same name/,
  ],
  [{ ...MEMBERS, federation: { mode: 'both' } }, 'spec.federation.mode', /supported values: "prefixed", "merged"/],
  [{ degrade: { mode: 'off' } }, 'spec.degrade.mode', /supported values: "Off", "Limited"/],
  [{ degrade: { expiresAt: 'tomorrow' } }, 'spec.degrade.expiresAt', /date-time/],
  [{ degrade: { exempt: [{ verbs: ['-*'] }] } }, 'spec.degrade.exempt[0].verbs[0]', /should match/],
  [{ addresses: { ips: ['example.com'] } }, 'spec.addresses.ips[0]', /is not a valid IP address/],
  [{ addresses: { ports: [0] } }, 'spec.addresses.ports[0]', /greater than or equal to 1/],
  [{ healthCheck: { path: 'readyz' } }, 'spec.healthCheck.path', /begins with \//],
  [revoked({ reason: 'x' }), 'spec.authentication.revoked[0]', /give exactly one of/],
  [revoked({ user: 'a', tokenHash: HASH }), 'spec.authentication.revoked[0]', /give exactly one of/],
  [
    revoked({ certificateFingerprint: 'AA:BB' }),
    'spec.authentication.revoked[0].certificateFingerprint',
    /not a valid SHA-256/,
  ],
  [protection({ cell: '..' }), 'spec.podProtection.cell', /is not a valid cell name/],
  [protection({ cell: '' }), 'spec.podProtection.cell', /is not a valid cell name/],
  [protection({ timeoutSeconds: 31 }), 'spec.podProtection.timeoutSeconds', /less than or equal to 30/],
  [protection({ failurePolicy: 'Open' }), 'spec.podProtection.failurePolicy', /supported values: "Fail", "Ignore"/],
  [
    protection({ excludedNamespaces: ['a', '*'] }),
    'spec.podProtection.excludedNamespaces[1]',
    /is not a valid namespace/,
  ],
  [
    protection({ aggregation: { syncTime: 'Annotation' } }),
    'spec.podProtection.aggregation.syncTimeAnnotation',
    /is required when syncTime is Annotation/,
  ],
  [
    protection({ aggregation: { updateTrigger: { namespace: 'a', name: 'B' } } }),
    'spec.podProtection.aggregation.updateTrigger.name',
    /is not a valid pod name/,
  ],
  [
    { autoscaler: { statusConfigMap: { namespace: 'kube-*' } } },
    'spec.autoscaler.statusConfigMap.namespace',
    /is not a valid namespace/,
  ],
  [
    { autoscaler: { statusConfigMap: { name: 'A' } } },
    'spec.autoscaler.statusConfigMap.name',
    /is not a valid ConfigMap name/,
  ],
  [{ autoscaler: { staleAfterSeconds: 9 } }, 'spec.autoscaler.staleAfterSeconds', /greater than or equal to 10/],
]

describe('a bad object is refused where it is wrong, by the API server as by the gateway', () => {
  for (const [spec, field, message] of BAD) {
    test(`${field} ${message}`, async () => {
      const object = upstream(spec)
      const answer = await dryRun(CLUSTERS, object)
      assert.equal(answer.status, 422, answer.text)
      const causes: Cause[] = answer.json().details.causes
      assert.ok(
        causes.some((cause) => cause.field === field && message.test(cause.message)),
        answer.text,
      )
      const own = UPSTREAM_CLUSTERS.check(object, undefined, nodePemChecks)
      assert.ok(own.some(({ severity }) => severity === 'error'))
    })
  }
})

function many<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index))
}

function large(servers: number, policies: number): JsonObject {
  const endpoint = (index: number): string => `https://s${index}`
  return {
    servers: many(servers, (index) => ({ endpoint: endpoint(index) })),
    flowControl: { flowControlSchemas: many(1024, (index) => ({ name: `limit-${index}`, tokenBucket: BUCKET })) },
    dispatchPolicies: many(policies, (index) => ({
      rules: [{ ...RULES[0], users: many(20, (user) => `-user-${user}`) }],
      upstreamSubset: many(128, (place) => endpoint((index + place) % servers)),
      flowControlSchemaName: `limit-${1023 - index}`,
    })),
    secureServing: { serverNames: many(1024, (index) => `${'a'.repeat(60)}.${'b'.repeat(60)}.n${index}.example.com`) },
    addresses: { ips: many(1024, (index) => `fd00:1111:2222:3333:4444:5555:6666:${index.toString(16)}`) },
    podProtection: { excludedNamespaces: many(1024, (index) => `${'a'.repeat(58)}-${index}`) },
    authentication: {
      revoked: many(10_000, (index) => ({ tokenHash: HASH.slice(8) + String(index).padStart(8, '0') })),
    },
  }
}

test('the largest objects that the schema allows cost no more than the API server grants', async () => {
  for (const [servers, policies] of [
    [128, 16],
    [4, 512],
    [16, 128],
    [17, 128],
  ] as const) {
    const spec = large(servers, policies)
    const answer = await dryRun(CLUSTERS, upstream(spec))
    assert.equal(answer.status, 201, `${servers} ${policies} ${answer.text.slice(0, 2000)}`)
    const bad = await dryRun(CLUSTERS, upstream({ ...spec, flowControl: { flowControlSchemas: [] } }))
    assert.equal(bad.status, 422, `${servers} ${policies}`)
  }
})

test('kubectl prints the columns and explains the fields', async () => {
  await cluster.apply(JSON.stringify(upstream({ degrade: { mode: 'ReadOnly' } }, 'columns')))
  const now = '2026-01-01T00:00:00Z'
  const status = {
    conditions: [
      { type: 'Ready', status: 'True', reason: 'Serving', message: 'is served', lastTransitionTime: now },
      { type: 'Degraded', status: 'True', reason: 'ReadOnly', message: 'writes are refused', lastTransitionTime: now },
    ],
    endpoints: { ready: 1, total: 2 },
    gateways: [{ name: 'a', threads: 2, threadsApplied: 2, observedGeneration: 1, appliedAt: now, future: 1 }],
  }
  const patched = await cluster.request(`${CLUSTERS}/columns/status`, {
    method: 'PATCH',
    headers: { 'content-type': 'application/merge-patch+json' },
    body: { status },
  })
  assert.equal(patched.status, 200, patched.text)
  assert.deepEqual(patched.json().status, status)
  const { stdout } = await cluster.kubectl(['get', 'uc', 'columns', '-o', 'wide'])
  assert.match(
    stdout,
    /^NAME +READY +ENDPOINTS +TOTAL +DEGRADE +CACHE +AGE +CACHE-HITS +CACHE-BYTES +CACHE-AGE +AUTOSCALER +REASON\n/,
  )
  assert.match(stdout, /\ncolumns +True +1 +2 +ReadOnly +\w+ +is served\n/)
  // The schema is published after the objects are served.
  const explained = await waitFor('the schema', async () => {
    const { code, stdout } = await cluster.kubectl(['explain', 'uc.spec.degrade.mode'])
    return code === 0 && stdout
  })
  assert.match(explained, /HeartbeatsOnly:\s+only\s+node\s+heartbeats\s+are\s+let\s+through/)
  const protectors = await cluster.kubectl(['get', 'ppr'])
  assert.equal(protectors.code, 0, protectors.stderr)
})

describe('the webhook', () => {
  let server: Server
  let others: JsonObject[] = []

  before(async () => {
    const ca = gatewayCA()
    const { certPem, keyPem } = serverCertificate(ca, [], ['127.0.0.1'])
    server = createServer({ cert: certPem, key: keyPem }, (request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        const [code, answer] = reviewText(Buffer.concat(chunks).toString())
        response.writeHead(code, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const config = parse(readFileSync(new URL('webhook/validating-webhook.yaml', DEPLOY), 'utf8'))
    for (const webhook of config.webhooks) {
      assert.equal(webhook.failurePolicy, 'Ignore')
      webhook.clientConfig = {
        url: `https://127.0.0.1:${port}${webhook.clientConfig.service.path}`,
        caBundle: Buffer.from(ca.certPem).toString('base64'),
      }
    }
    await cluster.apply(JSON.stringify(config))
    // The API server learns of it in its own time.
    const bad = upstream({ clientConfig: { bearerToken: 'eA==', caData: 'eA==' } })
    await waitFor('the webhook to be asked', async () => (await dryRun(CLUSTERS, bad)).status === 422)
  })

  after(() => {
    server?.closeAllConnections()
    server?.close()
  })

  function reviewText(text: string): [number, unknown] {
    try {
      return [200, reviewAdmission(JSON.parse(text), { scheme: SCHEME, pem: nodePemChecks }, others)]
    } catch (error) {
      if (error instanceof StatusError) return [error.code, error.status]
      throw error
    }
  }

  test('refuses with every mistake what CEL cannot see', async () => {
    const spec = {
      clientConfig: { certData: '$CERT', keyData: '$OTHERKEY', caData: '$GARBAGE' },
      secureServing: { serverNames: ['taken.example.com'] },
    }
    others = [upstream({ secureServing: { serverNames: ['taken.example.com'] } }, 'other')]
    const answer = await dryRun(CLUSTERS, withMaterial(upstream(spec)))
    others = []
    assert.equal(answer.status, 422, answer.text)
    const { message, reason, details } = answer.json()
    assert.equal(reason, 'Invalid')
    assert.match(message, /^admission webhook "upstreamclusters\.proxy\.kubegateway\.io" denied the request: /)
    assert.deepEqual(
      details.causes.map(({ field }: Cause) => field),
      ['spec.clientConfig.keyData', 'spec.clientConfig.caData', 'spec.secureServing.serverNames[0]'],
    )
  })

  test('lets the good ones through, with warnings', async () => {
    const rules = [{ ...RULES[0], resources: ['pods/*'] }]
    const answer = await dryRun(CLUSTERS, upstream({ dispatchPolicies: [{ rules }] }))
    assert.equal(answer.status, 201, answer.text)
    assert.match(String(answer.headers['warning']), /^299 - ".*names no subresource that exists/)
  })

  test('refuses selectors of protectors that cannot be read', async () => {
    const selector = { matchExpressions: [{ key: 'a', operator: 'In' }] }
    const answer = await dryRun(PROTECTORS, {
      apiVersion: 'podseidon.kubewharf.io/v1alpha1',
      kind: POD_PROTECTORS.kind,
      metadata: { name: 'web' },
      spec: { minAvailable: 1, minReadySeconds: 0, selector },
    })
    assert.equal(answer.status, 422, answer.text)
  })

  test('does not matter when it is gone', async () => {
    server.closeAllConnections()
    await new Promise<void>((resolve) => server.close(() => resolve()))
    assert.equal((await dryRun(CLUSTERS, upstream({}))).status, 201)
  })
})
