// What the request path costs without the wire: everything between a request head and the head that goes upstream, the answer
// on its way back, the record and the metrics. Both sides are fakes that do nothing; time is CPU time of this process, so
// that other programs disturb little. `node bench/micro/request-path.ts [requests [case]]`

import { execFileSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import type { UpstreamCluster } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { compileCluster } from '../../src/gateway/core/cluster/compile-cluster.ts'
import { createAccessReviewer } from '../../src/gateway/io/reviews/access-review.ts'
import { createTokenReviewer } from '../../src/gateway/io/reviews/token-review.ts'
import { threadScheduler } from '../../src/gateway/io/scheduling/thread-scheduler.ts'
import type { Upstreams } from '../../src/gateway/io/upstream/upstreams.ts'
import { TOKEN_CACHE } from '../../src/gateway/metrics/descriptors.ts'
import { createMetrics } from '../../src/gateway/metrics/metrics.ts'
import type { Gateway } from '../../src/gateway/request/exchange/gateway.ts'
import { createRequestHandler } from '../../src/gateway/request/serve.ts'
import { AccessGrants } from '../../src/gateway/state/access-grants.ts'
import { ClusterTable } from '../../src/gateway/state/clusters.ts'
import { EndedSessions } from '../../src/gateway/state/ended-sessions.ts'
import { IdentitiesSeen } from '../../src/gateway/state/identities-seen.ts'
import { RunningRequests } from '../../src/gateway/state/running.ts'
import { ThreadShares } from '../../src/gateway/state/thread-shares.ts'
import { UserBudgets } from '../../src/gateway/state/user-budgets.ts'
import type {
  HeaderList,
  Peer,
  PeerCertificate,
  RequestHandler,
  Stream,
  StreamEvents,
} from '../../src/kit/api/stream.ts'
import { addressCharge } from '../../src/kit/core/shares/charge.ts'
import { AT, beginStep, endStep } from '../../src/kit/io/stalls/steps.ts'
import { systemClock } from '../../src/kit/io/world/clock.ts'
import { fastUuid } from '../../src/kit/io/world/uuid.ts'
import { tuneForRequests } from '../../src/kit/io/world/v8-flags.ts'
import { createCA, issueCertificate } from '../../src/pki/io/pki.ts'
import { loadThreadSubjects } from '../../src/program/subjects/load.ts'
import { createFilters } from '../../src/program/threads/thread/filters.ts'

const HOST = 'bench.example.com'
const ENDPOINT = 'https://10.0.0.1:6443'
const TARGET = '/api/v1/namespaces/default/configmaps/small'
const TOKEN = 'eyJhbGciOiJSUzI1NiIsImtpZCI6IiJ9.eyJpc3MiOiJrdWJlcm5ldGVzL3NlcnZpY2VhY2NvdW50In0.c2lnbmF0dXJl'
const BATCH = 64
const ROUNDS = 40
const BODY = Buffer.alloc(1024, 'x')
const noop = (): void => undefined
/** Says nothing, and is asked nothing. */
const MAIN_THREAD = {
  topics: { publish: noop, subscribe: noop },
  questions: { ask: () => new Promise<never>(noop), onLate: noop },
}

/** The other side of a request or of an answer: takes everything. */
class Sink implements Stream {
  readonly queued: number = 0
  status = ''
  fields = 0

  headers(list: HeaderList, _end: boolean): void {
    this.status = list[1] ?? ''
    this.fields = list.length
  }

  body(_chunk: Buffer, _end: boolean): void {}
  trailers(_list: HeaderList): void {}
  credit(_bytes: number): void {}
  reset(_reason: string): void {}
}

const RESPONSE: HeaderList = [
  ':status',
  '200',
  'audit-id',
  '6c2f5d0b-4a8e-4a9a-9a52-3d1e9d1b7a10',
  'cache-control',
  'no-cache, private',
  'content-type',
  'application/json',
  'x-kubernetes-pf-flowschema-uid',
  '2f0c5c1e-7a30-4b8f-8f5c-0d6b1a7a8c11',
  'x-kubernetes-pf-prioritylevel-uid',
  '9a1d3f7e-3b7c-44fb-9f2d-6a4c0f5e2b22',
  'date',
  'Sat, 21 Nov 2026 09:51:07 GMT',
  'content-length',
  '1024',
]

/** What is open upstream, in the order of the requests. */
const opened: StreamEvents[] = []
const upstreamSink = new Sink()

/** Answers token reviews at once, everything else when asked to. */
const endpoint = {
  open(_kind: string, head: HeaderList, _shared: unknown, _noBody: boolean, events: StreamEvents): Stream {
    if (head.includes('/apis/authentication.k8s.io/v1/tokenreviews')) queueMicrotask(() => answerReview(events))
    else opened.push(events)
    return upstreamSink
  },
  isFull: (): boolean => false,
}

function answerReview(events: StreamEvents): void {
  const user = { username: 'bench', uid: '1', groups: ['one', 'two', 'three'] }
  events.onHeaders([':status', '201'], false)
  events.onBody(Buffer.from(JSON.stringify({ status: { authenticated: true, user } })), true)
}

function clusterOf(policies: number, clientCA: string): UpstreamCluster {
  const misses = Array.from({ length: policies - 1 }, (_, i) => ({
    rules: [{ verbs: ['get'], apiGroups: ['apps'], resources: [`kind${i}`], users: [`user${i}`] }],
  }))
  const last = { flowControlSchemaName: 'all', rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }] }
  return {
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: { name: HOST },
    spec: {
      servers: [{ endpoint: ENDPOINT }],
      clientConfig: { bearerToken: Buffer.from('gateway').toString('base64') },
      secureServing: { clientCAData: Buffer.from(clientCA).toString('base64') },
      authentication: { tokenSuccessTTLSeconds: 3600 },
      flowControl: { flowControlSchemas: [{ name: 'all', tokenBucket: { qps: 1_000_000, burst: 1_000_000 } }] },
      dispatchPolicies: [...misses, last],
    },
  } as UpstreamCluster
}

function buildGateway(policies: number, clientCA: string): Gateway {
  const clusters = new ClusterTable()
  const compiled = compileCluster({ object: clusterOf(policies, clientCA), revision: '1' })
  clusters.change([compiled], [], systemClock.monotonic())
  const live = clusters.get(HOST)
  for (const one of live?.endpoints.all ?? []) one.health.state = 'healthy'
  const metrics = createMetrics()
  metrics.clustersChanged([{ name: HOST, endpoints: [ENDPOINT] }])
  const known = new Map([[HOST, new Map([[ENDPOINT, endpoint]])]])
  const log = {
    debug: noop,
    info: noop,
    warn: noop,
    error: (text: string, fields?: object) => console.error(text, fields),
  }
  return {
    clusters,
    upstreams: { get: (cluster: string, url: string) => known.get(cluster)?.get(url) } as unknown as Upstreams,
    running: new RunningRequests(),
    grants: new AccessGrants(),
    endedSessions: new EndedSessions(),
    endSessions: async () => 'here' as const,
    clock: systemClock,
    log,
    tokens: createTokenReviewer(systemClock.monotonic, (cluster, outcome) =>
      metrics.recorder.add(TOKEN_CACHE, 1, cluster, outcome === 'hit' ? 'hit' : 'miss'),
    ),
    issuers: { setKeys: noop, vouch: noop, faultOf: noop },
    budgets: new UserBudgets(),
    identities: new IdentitiesSeen(),
    shares: new ThreadShares({ maxRequestsInflight: 8000, maxWatches: 30_000, maxBufferedBytes: 2 ** 28, threads: 1 }),
    access: createAccessReviewer(systemClock.monotonic, noop),
    events: {
      requestStarted: (record) => metrics.requestStarted(record),
      requestIdentified: noop,
      responseStarted: noop,
      requestEnded: (record) => metrics.observe(record),
      retried: noop,
      disruptionUnchecked: noop,
      limited: noop,
      gatewayRefused: noop,
      awaitsCheck: noop,
    },
    random: Math.random,
    uuid: fastUuid,
    draining: false,
  } as Gateway
}

function peerOf(certificate: PeerCertificate | undefined): Peer {
  return {
    id: 1,
    protocol: 'h2',
    serverName: HOST,
    tlsCluster: HOST,
    localAddress: '10.0.0.9',
    localPort: 443,
    remoteAddress: '10.1.2.3',
    remotePort: 51234,
    proxyAddress: '',
    certificate,
    drain: () => false,
    addressCharge: addressCharge('10.1.2.3'),
    charge: addressCharge('10.1.2.3'),
    memo: new Map(),
  }
}

/** Strings as they come from a connection: flat. */
function headOf(credential: readonly string[]): HeaderList {
  return [
    ':method',
    'GET',
    ':scheme',
    'https',
    ':path',
    TARGET,
    ':authority',
    HOST,
    'user-agent',
    'kubectl/v1.34.1 (linux/amd64) kubernetes/93248f9',
    'accept',
    'application/json;as=Table;v=v1;g=meta.k8s.io,application/json',
    ...credential,
    'accept-encoding',
    'gzip',
  ]
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Requests in batches: heads first, answers a turn of the event loop later, as on a busy connection. */
async function run(handler: RequestHandler, peer: Peer, head: HeaderList, requests: number): Promise<Sink> {
  let last = new Sink()
  for (let done = 0; done < requests; done += BATCH) {
    for (let i = 0; i < BATCH; i++) {
      last = new Sink()
      handler(peer, last, head.slice(), true)
    }
    while (opened.length < BATCH) await turn()
    answerAll()
    await turn()
  }
  return last
}

/** As a connection to an endpoint does it: what comes in one read is one slice of the thread's time. */
function answerAll(): void {
  const nowMs = performance.now()
  threadScheduler.beginShared(nowMs)
  beginStep(AT.upstream, nowMs)
  for (let i = 0; i < BATCH; i++) {
    opened[i]?.onHeaders(RESPONSE.slice(), false)
    opened[i]?.onBody(BODY, true)
  }
  opened.length = 0
  const endMs = performance.now()
  endStep(endMs)
  threadScheduler.sharedDone(nowMs, endMs)
}

/** Microseconds of CPU for one request: the best round, the one that was disturbed least. */
async function measure(name: string, gw: Gateway, peer: Peer, head: HeaderList, requests: number): Promise<number> {
  const thread = { metrics: createMetrics().recorder, ...MAIN_THREAD }
  const filters = createFilters((await loadThreadSubjects()).filters.map((create) => create(thread)))
  const handler = createRequestHandler(gw, filters)
  await run(handler, peer, head, requests)
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < ROUNDS; round++) {
    const before = process.cpuUsage()
    const last = await run(handler, peer, head, requests / ROUNDS)
    const used = process.cpuUsage(before)
    if (last.status !== '200') throw new Error(`${name} was answered with ${last.status}`)
    best = Math.min(best, (used.user + used.system) / (Math.ceil(requests / ROUNDS / BATCH) * BATCH))
  }
  console.log(`${name.padEnd(24)} ${best.toFixed(2)} us`)
  return best
}

const REQUESTS = 300_000
/** As long as the token of a service account. */
const LONG_TOKEN = `${TOKEN}${'x'.repeat(900)}`
const CASES: Readonly<Record<string, { policies: number; token: string }>> = {
  'x509, 20 policies': { policies: 20, token: '' },
  'short token, 20 policies': { policies: 20, token: TOKEN },
  'long token, 20 policies': { policies: 20, token: LONG_TOKEN },
  'x509, 10 policies': { policies: 10, token: '' },
  'x509, 1000 policies': { policies: 1000, token: '' },
}

async function runCase(name: string, requests: number): Promise<void> {
  const { policies, token } = CASES[name] ?? { policies: 20, token: '' }
  tuneForRequests()
  const ca = createCA({ commonName: 'bench CA' })
  const pair = issueCertificate(ca, { commonName: 'alice', organizations: ['dev', 'ops'], usage: 'client' })
  const certificate = { chain: [new X509Certificate(pair.certPem).raw], verified: true, verifyError: '' }
  const peer = peerOf(token === '' ? certificate : undefined)
  const head = headOf(token === '' ? [] : ['authorization', Buffer.from(`Bearer ${token}`).toString('latin1')])
  await measure(name, buildGateway(policies, ca.certPem), peer, head, requests)
}

const only = process.argv[3]
if (only !== undefined) {
  await runCase(only, Number(process.argv[2]))
  process.exit(0)
}
// Each case in a process of its own: what one makes of the code does not slow the next.
const requests = process.argv[2] ?? String(REQUESTS)
for (const name of Object.keys(CASES)) {
  execFileSync(process.execPath, [import.meta.filename, requests, name], { stdio: 'inherit' })
}
