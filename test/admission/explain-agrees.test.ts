// What `explain` says of a request is what a running gateway does with it: 10,000 random requests to random objects, asked of one
// and sent to the other. Not among them is what no object decides: fill levels of limits, health, what PodProtectors say, upgrades.

import assert from 'node:assert/strict'
import type { ClientHttp2Session } from 'node:http2'
import { after, before, test } from 'node:test'
import fc from 'fast-check'
import { checkUpstreamCluster } from '../../src/gateway/api/upstream-cluster/checks.ts'
import { DEGRADE_MODES } from '../../src/gateway/api/upstream-cluster/degrade-modes.ts'
import {
  type AccessRule,
  type DispatchPolicy,
  type DispatchRule,
  FEATURE_GATES_ANNOTATION,
  type FlowControlSchema,
  type UpstreamCluster,
  type UpstreamClusterSpec,
} from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import type { FilterName } from '../../src/gateway/core/admission/order.ts'
import { buildClusterIndex } from '../../src/gateway/core/cluster/cluster-index.ts'
import { compileCluster } from '../../src/gateway/core/cluster/compile-cluster.ts'
import { explainRequest } from '../../src/gateway/core/explain/explain-request.ts'
import type { RefusalReason } from '../../src/kit/core/refusal/refusal.ts'
import { nodePemChecks } from '../../src/pki/io/pem-checks.ts'
import { createCA, type KeyPair } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Request, type Response, valuesOf } from '../harness/clients/h2-client.ts'
import { type GuardedGateway, startGuardedGateway } from '../harness/gateways/guarded-gateway.ts'
import { clientPair, clusterObject } from '../harness/objects/objects.ts'
import { PATIENT } from '../harness/patience.ts'
import { type PodUpstream, startPodUpstream } from '../harness/upstreams/pod-upstream.ts'
import { reply } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const WORLDS = 400
const REQUESTS_OF_A_WORLD = 25

// === who asks ===

interface Sender {
  readonly user: string
  readonly groups: readonly string[]
  /** By which it is known; neither = anonymous. */
  readonly certificate?: KeyPair
  readonly token?: string
}

const clientCA = createCA({ commonName: 'clients' })
const byCertificate = (user: string, groups: readonly string[]): Sender => ({
  user,
  groups,
  certificate: clientPair(clientCA, user, groups),
})
const SENDERS: readonly Sender[] = [
  byCertificate('alice', ['dev']),
  byCertificate('bob', ['ops', 'dev']),
  byCertificate('system:node:n1', ['system:nodes']),
  { user: 'ci', groups: ['robots'], token: 'token-of-ci' },
  {
    user: 'system:serviceaccount:ns1:robot',
    groups: ['system:serviceaccounts', 'system:serviceaccounts:ns1'],
    token: 'token-of-robot',
  },
  // Known, but no header field can say so.
  { user: 'padded ', groups: ['robots'], token: 'token-of-padded' },
  { user: '', groups: [] },
]
const ADDRESSES = ['127.0.0.1', '127.0.0.2']

// === the objects ===

const NAMES = ['c0', 'c1', 'c2']
const UPSTREAMS: readonly PodUpstream[] = [await startPodUpstream(), await startPodUpstream()]
/** Each under two names. */
const SERVERS = UPSTREAMS.flatMap(({ stub: { port } }) => [`https://127.0.0.1:${port}`, `https://localhost:${port}`])
const USERS = ['alice', 'bob', 'ci', 'system:*', 'system:anonymous', '*', '-alice', 'nobody']
const GROUPS = ['dev', 'ops', 'robots', 'system:nodes', 'system:authenticated', 'system:unauthenticated', '-dev']
const AGENTS = ['kubectl/*', 'kubelet/*', '-kubectl/*']

const some = <T>(values: readonly T[]): fc.Arbitrary<T[]> =>
  fc.subarray([...values], { minLength: 1, maxLength: Math.min(values.length, 3) })
const maybe = <T>(value: fc.Arbitrary<T>, freq = 2): fc.Arbitrary<T | undefined> =>
  fc.option(value, { nil: undefined, freq })

const rule: fc.Arbitrary<DispatchRule> = fc
  .record({
    verbs: fc.oneof(fc.constant(['*']), some(['get', 'list', 'watch', 'create', 'delete', 'deletecollection', '-get'])),
    apiGroups: fc.oneof(fc.constant(['*']), some(['', 'apps', '-apps'])),
    resources: fc.oneof(fc.constant(['*']), some(['pods', 'pods/log', '*/status', 'deployments', 'nodes', '-pods'])),
    nonResourceURLs: fc.oneof(fc.constant(['*']), some(['/healthz', '/version', '/openapi/*', '/api'])),
    resourceNames: maybe(some(['p1', 'n1', '-p1']), 6),
    namespaces: maybe(some(['ns1', 'kube-*', '']), 6),
    users: maybe(some(USERS), 3),
    userGroups: maybe(some(GROUPS), 4),
    userAgents: maybe(some(AGENTS), 6),
  })
  .map(defined)

const accessRule: fc.Arbitrary<AccessRule> = fc
  .record({
    name: maybe(fc.constantFrom('of people', 'of "machines"', 'ö')),
    users: maybe(some(USERS.filter((user) => !user.startsWith('-'))), 1),
    userGroups: maybe(some(['dev', 'ops', 'system:nodes', 'system:unauthenticated']), 1),
    userAgents: maybe(some(['kubectl/*', 'kubelet/*'])),
    sourceIPs: maybe(some(['127.0.0.2', '127.0.0.0/30', '10.0.0.0/8', '::/0'])),
  })
  .map(defined)
  .filter((one) => Object.keys(one).some((key) => key !== 'name'))

const KINDS: readonly (readonly [string, Partial<FlowControlSchema>])[] = [
  ['free', { exempt: {} }],
  ['closed', { maxRequestsInflight: { max: 0 } }],
  ['wide', { maxRequestsInflight: { max: 1000 } }],
  ['bucket', { tokenBucket: { qps: 5000, burst: 5000 } }],
]
const schema: fc.Arbitrary<FlowControlSchema> = fc
  .record({
    kind: fc.constantFrom(...KINDS),
    perUser: maybe(fc.boolean()),
    maxWatches: maybe(fc.constantFrom(0, 1000)),
    shadow: maybe(fc.boolean()),
  })
  .map(({ kind: [name, limit], ...more }) => defined({ name, ...limit, ...more }))

const policyOf = (urls: readonly string[], schemas: readonly string[]): fc.Arbitrary<DispatchPolicy> =>
  fc
    .record({
      rules: fc.array(rule, { minLength: 1, maxLength: 3 }),
      action: maybe(fc.constantFrom('Deny' as const, 'Forward' as const)),
      shadow: fc.boolean(),
      strategy: maybe(fc.constantFrom('RoundRobin', 'Random', 'LeastRequest', 'Affinity')),
      upstreamSubset: maybe(some(urls), 3),
      flowControlSchemaName: schemas.length === 0 ? fc.constant(undefined) : maybe(fc.constantFrom(...schemas), 4),
    })
    .map(({ shadow, ...policy }) => defined({ ...policy, ...(policy.action === 'Deny' && shadow ? { shadow } : {}) }))

const degrade = fc
  .record({
    // More often the one that lets most pass, and refuses the rest in ways of its own.
    mode: maybe(fc.oneof(fc.constantFrom(...DEGRADE_MODES), fc.constant('NoDisruption' as const)), 6),
    reason: maybe(fc.constantFrom('etcd is slow', 'a "quoted" rëason')),
    expiresAt: maybe(fc.constantFrom('2020-01-01T00:00:00Z', '2090-01-01T00:00:00Z')),
    exempt: maybe(fc.array(rule, { minLength: 1, maxLength: 2 })),
    shadow: maybe(fc.boolean()),
    // Never empty.
    limited: fc.constant({ startQPS: 100_000, endQPS: 100_000 }),
  })
  .map(defined)

/** The first server is always enabled: a request with a token, or the deletion of a pod, needs a server that can be asked about it. */
function specOf(name: string): fc.Arbitrary<Partial<UpstreamClusterSpec>> {
  const [first = '', ...others] = SERVERS
  const server = (endpoint: string): fc.Arbitrary<UpstreamClusterSpec['servers'][number]> =>
    fc.record({ endpoint: fc.constant(endpoint), disabled: fc.boolean(), weight: fc.constantFrom(0, 1, 100) })
  return fc.uniqueArray(schema, { maxLength: 3, selector: (one) => one.name }).chain((schemas) => {
    const policy = policyOf(
      SERVERS,
      schemas.map((one) => one.name),
    )
    const access = fc.array(accessRule, { maxLength: 2 })
    return fc
      .record({
        servers: fc.tuple(...others.map(server)).map((more) => [{ endpoint: first }, ...more]),
        flowControl: fc.constant({ flowControlSchemas: schemas }),
        dispatchPolicies: fc
          .tuple(fc.array(policy, { minLength: 1, maxLength: 4 }), fc.boolean())
          .map(([some, all]) => {
            return all
              ? [...some, { rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'], nonResourceURLs: ['*'] }] }]
              : some
          }),
        accessControl: maybe(fc.record({ allow: access, deny: access, shadow: fc.boolean() })),
        degrade: maybe(degrade),
        authentication: maybe(
          fc.record({ anonymous: fc.boolean(), revoked: fc.constantFrom([], [{ user: 'ci' }], [{ user: 'bob' }]) }),
        ),
        podProtection: maybe(
          fc.record({
            cell: fc.constant(`cell-of-${name}`),
            shadow: fc.boolean(),
            excludedNamespaces: fc.subarray(['ns1']),
          }),
        ),
        scaleProtection: maybe(fc.record({ shadow: fc.boolean(), excludedNamespaces: fc.subarray(['ns1']) })),
      })
      .map(defined)
  })
}

// === the requests ===

const GET_LIKE = ['GET', 'HEAD', 'OPTIONS', 'PURGE']
const METHODS = [...GET_LIKE, 'GET', 'GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'DELETE', 'DELETE']
const TARGETS = [
  '/api',
  '/apis',
  '/healthz',
  '/readyz/etcd',
  '/version',
  '/openapi/v3?hash=1',
  '/api/v1/pods',
  '/api/v1/pods?watch=1',
  '/api/v1/watch/pods',
  '/api/v1/watch',
  '/api/v1/namespaces/ns1/pods',
  '/api/v1/namespaces/ns1/pods?labelSelector=a%3Db&fieldSelector=metadata.name%3Dp1',
  '/api/v1/namespaces/ns1/pods/p1',
  '/api/v1/namespaces/kube-system/pods/p1',
  '/api/v1/namespaces/kube-system/pods/p1/log?follow=1',
  '/api/v1/namespaces/kube-system/pods/p1/status',
  '/api/v1/nodes/n1',
  '/api/v1/nodes/n1/status',
  '/apis/apps/v1/namespaces/ns1/deployments/d1',
  '/apis/apps/v1/namespaces/ns1/deployments/d1/scale',
  '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1',
  '/api/v1/namespaces/ns1/events',
  '/api/v1/%zz',
  '/api/v1/namespaces/ns%31/pods',
  '/api/v1/pods with a space',
  '/',
]
const EVICTION = 'POST /api/v1/namespaces/kube-system/pods/p1/eviction'
const HOSTS = [
  ...NAMES.flatMap((name) => [name, `${name}.example.com`, `X.${name}.Example.COM:6443`]),
  'nobody.example.org',
  'user@c0.example.com',
]

interface Ask {
  readonly sender: Sender
  readonly address: string
  readonly host: string
  readonly method: string
  readonly target: string
  readonly userAgent: string
}

const ask: fc.Arbitrary<Ask> = fc
  .record({
    sender: fc.constantFrom(...SENDERS),
    address: fc.constantFrom(...ADDRESSES),
    host: fc.constantFrom(...HOSTS),
    method: fc.constantFrom(...METHODS),
    target: fc.constantFrom(...TARGETS),
    isEviction: fc.integer({ min: 0, max: 15 }).map((n) => n === 0),
    isLong: fc.integer({ min: 0, max: 200 }).map((n) => n === 0),
    prefix: maybe(fc.constantFrom(...NAMES, 'nobody'), 6),
    userAgent: fc.constantFrom('', 'kubectl/v1.30', 'kubelet/v1.30'),
  })
  .map(({ isEviction, isLong, prefix, ...request }) => {
    const [method = '', plain = ''] = isEviction ? EVICTION.split(' ') : [request.method, request.target]
    const target = isLong ? `/api?${'x'.repeat(300_000)}` : plain
    return { ...request, method, target: prefix === undefined ? target : `/clusters/${prefix}${target}` }
  })

// === both answers ===

/** What both say. */
interface Answer {
  readonly cluster: string | null
  readonly verb: string
  readonly policy: number | null
  readonly rule: number | null
  readonly flowControl: string | null
  readonly decision: ReturnType<typeof explainRequest>['decision']
  /** 200 where it is forwarded. */
  readonly code: number
  readonly reason: string
  /** The message of the refusal; else what filters in shadow mode would have said. */
  readonly message: string
  readonly isProtectionAsked: boolean
}

let gateway: GuardedGateway
const sessions = new Map<string, ClientHttp2Session>()

before(async () => {
  for (const upstream of UPSTREAMS) {
    upstream.add('p1')
    // The pod stays, whatever is done.
    upstream.answerWrite = ({ request }) => {
      reply(request, 200, '{}')
      return true
    }
    for (const { token, user, groups } of SENDERS)
      if (token !== undefined) upstream.stub.tokens.set(token, { username: user, groups: [...groups] })
  }
  gateway = await startGuardedGateway(objectOf('c0', {}))
})

after(async () => {
  for (const session of sessions.values()) session.destroy()
  await gateway?.stop()
  for (const { stub } of UPSTREAMS) await stub.stop()
})

function objectOf(name: string, spec: Partial<UpstreamClusterSpec>, gates = ''): UpstreamCluster {
  const serverNames = [`${name}.example.com`, `*.${name}.example.com`]
  const object = clusterObject(
    UPSTREAMS.map(({ stub }) => stub),
    {
      name,
      spec: {
        secureServing: { clientCAData: Buffer.from(clientCA.certPem).toString('base64'), serverNames },
        logging: { mode: 'on' },
        ...spec,
      },
    },
  )
  if (gates === '') return object
  return { ...object, metadata: { name, annotations: { [FEATURE_GATES_ANNOTATION]: gates } } }
}

/** A client without SNI may ask for any cluster. */
function sessionOf({ sender: { certificate, user }, address }: Ask): ClientHttp2Session {
  const key = `${certificate === undefined ? '' : user} ${address}`
  const known = sessions.get(key)
  // After a refusal for good of a certificate the gateway ends the connection.
  if (known !== undefined && !known.closed && !known.destroyed) return known
  const fresh = h2Connect({
    port: gateway.port,
    localAddress: address,
    ...(certificate === undefined ? {} : { certificate }),
  })
  fresh.on('goaway', () => fresh.close())
  sessions.set(key, fresh)
  return fresh
}

function explained(
  clusters: readonly UpstreamCluster[],
  { sender, host, method, target, userAgent, address }: Ask,
): Answer & { readonly endpoints: readonly string[] } {
  const index = buildClusterIndex(clusters.map((object) => compileCluster({ object, revision: '1' })))
  const { user, groups } = sender
  const input = { host, method, target, user, userAgent, remoteAddress: address, ...(user === '' ? {} : { groups }) }
  const output = explainRequest(index, input, Date.now())
  const parts = output.decision === 'forward' ? output.message.split('; ') : [output.message]
  // What the body decides: none of these ends pods or lowers replicas.
  const own = parts.filter(
    (part) =>
      !/^(degrade mode |(if it (lowers the replicas|sets or lowers activeDeadlineSeconds), )?PodProtectors are asked)/.test(
        part,
      ),
  )
  const { cluster, policy, rule, flowControl, decision, code, reason, endpoints } = output
  return {
    cluster,
    // As the audit log has it where there is none.
    // As kube-apiserver's: none for OPTIONS on a resource.
    verb: cluster === null || !output.requestInfo?.isResourceRequest ? method.toLowerCase() : output.requestInfo.verb,
    policy,
    rule,
    flowControl,
    decision,
    code,
    reason,
    message: own.join('; '),
    isProtectionAsked: parts.some((part) => part.startsWith('PodProtectors are asked')),
    endpoints,
  }
}

/** A request that was sent, and what explain says of it. */
interface Sent {
  readonly request: Ask
  readonly cluster: UpstreamCluster | undefined
  readonly auditId: string
  readonly told: ReturnType<typeof explained>
  readonly response: Response
}

async function send(request: Ask, auditId: string): Promise<Response> {
  const { sender, host, method, target, userAgent } = request
  const head = [':method', method, ':path', target, ':authority', host, 'audit-id', auditId]
  if (userAgent !== '') head.push('user-agent', userAgent)
  if (sender.token !== undefined) head.push('authorization', `Bearer ${sender.token}`)
  const body = bodyOf(request)
  if (body !== undefined) head.push('content-type', 'application/json')
  let response = await h2Request(sessionOf(request), head, body)
  // The gateway was ending the connection.
  for (let again = 0; response.status === 0 && again < 5; again++)
    response = await h2Request(sessionOf(request), head, body)
  return response
}

/** What the audit log has of it, whose annotations are the record that the request path made. */
type Audited = GuardedGateway['audit'][number]

function done({ request, response }: Sent, { verb, annotations, responseStatus }: Audited): Answer {
  const text = (name: string): string | null => annotations[`portcullis.io/${name}`] ?? null
  const number = (name: string): number | null => (text(name) === null ? null : Number(text(name)))
  const isRefused = text('decision') !== 'forward'
  // For a HEAD, what the client would read.
  const read = isRefused && request.method !== 'HEAD' ? statusIn(response.body) : responseStatus
  return {
    cluster: text('cluster'),
    verb,
    policy: number('policy'),
    rule: number('rule'),
    flowControl: text('flow-control'),
    decision: isRefused ? 'refuse' : 'forward',
    code: isRefused ? response.status : 200,
    reason: isRefused ? read.reason : '',
    message: isRefused ? read.message : valuesOf(response.head, 'warning').map(warningText).join('; '),
    isProtectionAsked: !isRefused && text('protection') !== null,
  }
}

function statusIn(body: Buffer): Audited['responseStatus'] {
  return JSON.parse(body.toString()) as Audited['responseStatus']
}

function bodyOf({ method, target }: Ask): Buffer | undefined {
  if (method !== 'POST' && method !== 'PUT' && method !== 'PATCH') return undefined
  if (!target.endsWith('/eviction')) return Buffer.from('{}')
  const metadata = { name: 'p1', namespace: 'kube-system' }
  return Buffer.from(JSON.stringify({ apiVersion: 'policy/v1', kind: 'Eviction', metadata }))
}

/** Header fields come as latin1, and are UTF-8. */
function warningText(value: string): string {
  const quoted = /^299 - "(.*)"$/s.exec(Buffer.from(value, 'latin1').toString())?.[1] ?? value
  return quoted.replace(/\\(.)/g, '$1')
}

function defined<T extends object>(value: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined)) as {
    [K in keyof T]: Exclude<T[K], undefined>
  }
}

const world = fc.record({
  specs: fc.tuple(...NAMES.map((name) => specOf(name))),
  gates: fc.tuple(
    ...NAMES.map(() => fc.integer({ min: 0, max: 15 }).map((n) => (n === 0 ? 'DenyAllRequests=true' : ''))),
  ),
  fallback: maybe(fc.constantFrom(...NAMES), 4),
  asks: fc.array(ask, { minLength: REQUESTS_OF_A_WORLD, maxLength: REQUESTS_OF_A_WORLD }),
})

async function runWorld(
  { specs, gates, fallback, asks }: ReturnType<typeof sampled>[number],
  at: number,
): Promise<Sent[]> {
  const clusters = NAMES.map((name, i) => {
    return objectOf(name, { ...specs[i], ...(name === fallback ? { default: true } : {}) }, gates[i])
  })
  for (const object of clusters) assert.deepEqual(errorsOf(object), [])
  await gateway.apply(clusters)
  return await Promise.all(
    asks.map(async (request, i): Promise<Sent> => {
      const auditId = `world-${at}-${i}`
      const told = explained(clusters, request)
      const cluster = clusters.find(({ metadata }) => metadata.name === told.cluster)
      return { request, cluster, auditId, told, response: await send(request, auditId) }
    }),
  )
}

/** The same ones for the same PROPERTY_SEED; a failure names it. */
const SEED = fc.readConfigureGlobal().seed ?? Date.now()
const sampled = () => fc.sample(world, { numRuns: WORLDS, seed: SEED })

test('explain and a running gateway agree on 10,000 requests', PATIENT, async () => {
  const all: Sent[] = []
  for (const [at, one] of sampled().entries()) all.push(...(await runWorld(one, at)))
  const audited = new Map<string, Audited>()
  await waitFor('the log of every request', () => {
    for (const event of gateway.audit.splice(0))
      if (event.stage === 'ResponseComplete') audited.set(event.auditID, event)
    return audited.size === all.length
  })
  const seen = new Map<string, number>()
  const count = (what: string | undefined): void => void (what && seen.set(what, (seen.get(what) ?? 0) + 1))
  for (const sent of all) {
    const event = audited.get(sent.auditId)
    assert.ok(event !== undefined)
    const { endpoints, ...told } = sent.told
    const did = done(sent, event)
    assert.deepEqual(
      told,
      did,
      `${describe(sent)}\n"actual" is explain, "expected" is the gateway; PROPERTY_SEED=${SEED}`,
    )
    const { reason = 'forward', endpoint = '', shadow = '' } = plainNames(event.annotations)
    if (did.decision === 'forward') assert.ok(endpoints.includes(endpoint), `${endpoint} serves ${describe(sent)}`)
    count(reason)
    for (const one of shadow.split(', ')) count(`shadow ${one.split('/')[0]}`)
    if (did.isProtectionAsked) count('protection')
  }
  for (const what of SEEN) assert.ok((seen.get(what) ?? 0) >= 5, `${what} among ${JSON.stringify([...seen])}`)
  assert.ok(all.length >= 10_000)
})

function plainNames(annotations: Audited['annotations']): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(annotations).map(([name, value]) => [name.slice(name.indexOf('/') + 1), value]),
  )
}

function describe({ request: { sender, address, host, method, target, userAgent }, cluster }: Sent): string {
  const spec = { ...cluster?.spec, clientConfig: undefined, secureServing: undefined }
  const from = `${sender.user} of ${sender.groups.join(', ')} from ${address} with "${userAgent}"`
  return `${method} ${host} ${target.slice(0, 200)} by ${from}: ${JSON.stringify({ ...cluster, spec })}`
}

/** All that configuration alone leads to. */
const SEEN: readonly (RefusalReason | 'forward' | `shadow ${FilterName}` | 'protection')[] = [
  'forward',
  'protection',
  'shadow access-list',
  'shadow dispatch-action',
  'shadow degrade',
  'shadow flow-control',
  'target-too-long',
  'unknown-cluster',
  'bad-request',
  'request-info',
  'unauthorized',
  'revoked',
  'no-policy',
  'access-denied',
  'policy-denied',
  'degraded',
  'disruption-refused',
  'eviction-refused',
  'too-many-in-flight',
  'no-endpoint',
]

function errorsOf(object: UpstreamCluster): readonly object[] {
  return checkUpstreamCluster(object, nodePemChecks).filter(({ severity }) => severity === 'error')
}
