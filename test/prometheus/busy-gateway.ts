// A gateway with everything switched on, in front of the demo's two clusters and a stub, and clients that use all of it: so that every
// metric has a value. Beside it a second replica that has other objects.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { constants } from 'node:http2'
import { type AddressInfo, createConnection } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { type DemoBackend, startInProcessClusters } from '../../src/demo/clusters.ts'
import { createDemoPki, prepareDirectory, writeObjects } from '../../src/demo/files.ts'
import { DEMO_TOKENS, startTraffic } from '../../src/demo/traffic.ts'
import type { UpstreamClusterSpec } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { UPSTREAM_CLUSTERS } from '../../src/gateway/api/upstream-cluster-kind.ts'
import type { JsonObject } from '../../src/kit/api/json/json-object.ts'
import type { Logger } from '../../src/kit/api/ports.ts'
import { createCA, type KeyPair } from '../../src/pki/io/pki.ts'
import { type Config, loadConfig } from '../../src/process/config/config.ts'
import { SCHEME } from '../../src/program/api/scheme.ts'
import type { RunningGateway } from '../../src/program/lifecycle/running-gateway.ts'
import { startGateway } from '../../src/program/lifecycle/start-gateway.ts'
import type { Json } from '../harness/clients/control-client.ts'
import { h2Connect, h2Open, h2Request, type Response } from '../harness/clients/h2-client.ts'
import { recordedStatus, statusConfigMap } from '../harness/clusters/autoscaler.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { clusterObject } from '../harness/objects/objects.ts'
import { serverCertificate } from '../harness/pki.ts'
import { freePorts } from '../harness/ports.ts'
import { startRedis, type TestRedis } from '../harness/redis/redis.ts'
import { reply, type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'

export interface BusyGateway {
  readonly gateway: RunningGateway
  readonly replica: InProcessGateway
  readonly redis: TestRedis
  readonly backends: readonly DemoBackend[]
  /** The endpoints of the cluster `edge`. The second one breaks its connections at times. */
  readonly edge: StubUpstream
  readonly second: StubUpstream
  /** PEM file of the CA of the health listener, and the file with its token. */
  readonly healthCaFile: string
  readonly tokenFile: string
  /** The certificate of the health listener, which may be overwritten. */
  readonly healthCertFile: string
  readonly metrics: () => Promise<string>
  ask(path: string, token: string, method?: string, body?: object, type?: string): Promise<Response>
  /** Merge patch of an UpstreamCluster. */
  change(cluster: string, spec: object): Promise<void>
  stop(): Promise<void>
}

const EDGE = 'edge'
export const EDGE_TOKEN = 'token-of-edge'
const { NGHTTP2_CANCEL } = constants
/** Requests to an endpoint that breaks connections at first. */
const BROKEN_UNTIL = 200
const ABANDON_EVERY_MS = 500
const ABANDON_AFTER_MS = 200
const quiet = (): void => undefined
const LOG: Logger = { debug: quiet, info: quiet, warn: quiet, error: quiet }

export async function startBusyGateway(): Promise<BusyGateway> {
  const dir = mkdtempSync(join(tmpdir(), 'portcullis-busy-'))
  const demoDir = join(dir, 'demo')
  prepareDirectory(demoDir)
  const pki = createDemoPki()
  const [backends, redis, edge, second] = await Promise.all([
    startInProcessClusters(),
    startRedis(),
    startStub(),
    startStub(),
  ])
  for (const stub of [edge, second]) stub.tokens.set(EDGE_TOKEN, { username: 'edge-client' })
  breakAtTimes(second)
  const objects = [
    ...writeObjects(demoDir, pki, backends).map(withEverything),
    edgeObject(edge, second),
    ...FURTHER_OBJECTS,
  ]
  const health = createCA({ commonName: 'health' })
  const files = writeFiles(dir, health, backends)
  const ports = await freePorts(4)
  const collector = createServer((request, response) => {
    request.resume().on('end', () => response.writeHead(200, { 'content-type': 'application/json' }).end('{}'))
  })
  await new Promise<void>((listening) => void collector.listen(0, '127.0.0.1', listening))
  const { port: collectorPort } = collector.address() as AddressInfo
  const gateway = await startGateway(configOf(dir, demoDir, files, ports, redis, collectorPort), { log: LOG })
  for (const object of objects) {
    const kind = SCHEME.find((one) => one.kind === object['kind'])
    if (kind !== undefined) await gateway.objects?.create(kind, object)
  }
  await gateway.inForce(3)
  const replica = await startInProcess([clusterObject([edge], { name: EDGE })])
  const origin = `https://127.0.0.1:${gateway.ports[0] ?? 0}`
  const traffic = startTraffic({ origin, ca: pki.ca.certPem, clusters: backends })
  let session = h2Connect({ port: gateway.ports[0] ?? 0 })
  const ask: BusyGateway['ask'] = (
    path,
    token,
    method = 'GET',
    body = undefined,
    type = 'application/merge-patch+json',
  ) => {
    const bytes = body === undefined ? undefined : Buffer.from(JSON.stringify(body))
    const head = [':method', method, ':path', path, ':authority', '127.0.0.1', 'authorization', `Bearer ${token}`]
    if (bytes !== undefined) head.push('content-type', type, 'content-length', String(bytes.length))
    // The gateway asks clients to open another connection.
    if (session.closed || session.destroyed) session = h2Connect({ port: gateway.ports[0] ?? 0 })
    return h2Request(session, head, bytes)
  }
  const clients = startClients(ask, ports[1] ?? 0)
  const abandon = setInterval(() => {
    const path = `/clusters/${EDGE}/api/v1/namespaces/a/configmaps/slow`
    const stream = h2Open(session, [':path', path, ':authority', '127.0.0.1', 'authorization', `Bearer ${EDGE_TOKEN}`])
    setTimeout(() => stream.close(NGHTTP2_CANCEL), ABANDON_AFTER_MS)
  }, ABANDON_EVERY_MS)
  const tap = new AbortController()
  void watchTap(gateway.adminPort, tap.signal).catch(quiet)
  const admin = h2Connect({ port: gateway.ports[0] ?? 0, certificate: pki.admin })
  const written = await h2Request(admin, ...autoscalerStatus())
  admin.destroy()
  if (written.status !== 201) throw new Error(`the status of the autoscaler: ${written.status} ${written.body}`)
  return {
    gateway,
    replica,
    redis,
    backends,
    edge,
    healthCaFile: files.healthCa,
    healthCertFile: files.healthPair.cert,
    tokenFile: files.token,
    metrics: async () => (await fetch(`http://127.0.0.1:${gateway.adminPort}/metrics`)).text(),
    ask,
    async change(cluster, spec) {
      const at = { namespace: '', name: cluster }
      const type = 'application/merge-patch+json'
      await gateway.objects?.patch(UPSTREAM_CLUSTERS, at, type, { spec }, { fieldManager: 'test' })
    },
    second,
    async stop() {
      clients()
      clearInterval(abandon)
      tap.abort()
      traffic.stop()
      session.destroy()
      await gateway.stop()
      await replica.stop()
      collector.close()
      collector.closeAllConnections()
      await Promise.all([...backends.map((backend) => backend.stop()), edge.stop(), second.stop(), redis.stop()])
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

interface Files {
  readonly healthCa: string
  readonly healthPair: { readonly cert: string; readonly key: string }
  readonly token: string
  readonly workloads: string
  readonly generator: string
}

function writeFiles(dir: string, health: KeyPair, [prod]: readonly DemoBackend[]): Files {
  const write = (name: string, text: string): string => {
    writeFileSync(join(dir, name), text)
    return join(dir, name)
  }
  const data = (text: string): string => Buffer.from(text).toString('base64')
  const user = prod?.gateway ?? health
  const named = (name: string, value: object): object => ({ name: 'prod', [name]: value })
  const workloads = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'prod',
    clusters: [named('cluster', { server: prod?.endpoints[0], 'certificate-authority-data': data(prod?.ca ?? '') })],
    users: [named('user', { 'client-certificate-data': data(user.certPem), 'client-key-data': data(user.keyPem) })],
    contexts: [named('context', { cluster: 'prod', user: 'prod' })],
  }
  const pair = serverCertificate(health, ['localhost'], ['127.0.0.1'])
  return {
    healthCa: write('health-ca.crt', health.certPem),
    healthPair: { cert: write('health.crt', pair.certPem), key: write('health.key', pair.keyPem) },
    token: write('metrics.token', 'token-of-prometheus\n'),
    workloads: write('workloads.kubeconfig', JSON.stringify(workloads)),
    generator: write('generator.yaml', stringify({ kinds: [{ kind: 'Deployment' }] })),
  }
}

function configOf(
  dir: string,
  demoDir: string,
  files: Files,
  ports: readonly number[],
  redis: TestRedis,
  collectorPort: number,
): Config {
  const [port = 0, proxied = 0, control = 0, health = 0] = ports
  const flags = {
    listen: [`127.0.0.1:${port}`, `127.0.0.1:${proxied}/proxy-protocol`],
    proxyProtocolFrom: ['127.0.0.1'],
    adminListen: '127.0.0.1:0',
    controlListen: `127.0.0.1:${control}`,
    replicaName: 'busy',
    dataDir: join(dir, 'data'),
    tlsCertFile: join(demoDir, 'pki/tls.crt'),
    tlsPrivateKeyFile: join(demoDir, 'pki/tls.key'),
    healthListen: `127.0.0.1:${health}`,
    healthTlsCertFile: files.healthPair.cert,
    healthTlsPrivateKeyFile: files.healthPair.key,
    metricsTokenFile: files.token,
    redisUrl: redis.url,
    protectionGeneratorConfig: files.generator,
    protectionWorkloadsKubeconfig: files.workloads,
    controlOidcIssuerUrl: 'https://127.0.0.1:9/',
    controlOidcClientId: 'kubernetes',
    tracingOtlpEndpoint: `http://127.0.0.1:${collectorPort}`,
    tracingSamplingRatePerMillion: '1000000',
    topMetrics: ['user', 'resource'],
    maxConnectionAge: '1s',
    allowLocalServers: ['127.0.0.1'],
    accessLog: 'false',
    drainTimeout: '1s',
    threads: '2',
  }
  return loadConfig({ flags, env: {}, readFile: () => '' })
}

/** The example of the demo, with what it leaves out. */
function withEverything(object: JsonObject): JsonObject {
  if (object['kind'] !== 'UpstreamCluster') return object
  const spec = object['spec'] as JsonObject
  const degrade = { ...(spec['degrade'] as JsonObject), auto: { nodes: {}, upstream: {} } }
  return { ...object, spec: { ...spec, degrade, autoscaler: {} } } as JsonObject
}

/** A cluster of one stub, with a limit of two requests at a time, one that replicas share, and one in shadow mode. */
function edgeObject(edge: StubUpstream, second: StubUpstream): JsonObject {
  const clientCA = createCA({ commonName: 'clients of edge', days: 3 })
  const rule = (resource: string): object => ({ verbs: ['*'], apiGroups: ['*'], resources: [resource] })
  const everything = [rule('*'), { verbs: ['*'], nonResourceURLs: ['*'] }]
  const spec = {
    flowControl: {
      flowControlSchemas: [
        { name: 'narrow', maxRequestsInflight: { max: 2 } },
        {
          name: 'shared',
          strategy: 'globalCount',
          globalTokenBucket: { qps: 50, burst: 50 },
          tokenBucket: { qps: 50, burst: 50 },
        },
        { name: 'tried', tokenBucket: { qps: 1, burst: 1 }, shadow: true },
        { name: 'listed', tokenBucket: { qps: 1, burst: 1 }, cost: true },
      ],
    },
    dispatchPolicies: [
      { flowControlSchemaName: 'narrow', rules: [rule('secrets')] },
      { flowControlSchemaName: 'tried', rules: [rule('services')] },
      { flowControlSchemaName: 'listed', rules: [rule('endpoints')] },
      { flowControlSchemaName: 'shared', rules: everything },
    ],
    listGuard: { shadow: true },
    authentication: { jwt: [AWAY] },
    degrade: { mode: 'Off', exempt: [{ ...rule('endpoints'), resourceNames: ['reserved'] }] },
    servers: [{ endpoint: edge.url.replace('127.0.0.1', 'localhost'), resolve: true }, { endpoint: second.url }],
  } as unknown as UpstreamClusterSpec
  return clusterObject([edge], { name: EDGE, clientCA, spec }) as unknown as JsonObject
}

/** An issuer that is away. */
const AWAY = {
  issuer: { url: 'https://127.0.0.1:9', audiences: ['kubernetes'] },
  claimMappings: { username: { claim: 'sub', prefix: 'oidc:' } },
}

const FURTHER_OBJECTS: readonly JsonObject[] = [
  {
    apiVersion: 'scale.portcullis.io/v1alpha1',
    kind: 'ScaleDownPolicy',
    metadata: { name: 'web', namespace: 'shop' },
    spec: { selector: { matchLabels: { app: 'web' } }, prefer: [{ by: 'EmptiestNode' }], shadow: true },
  },
]

const SHOP = '/apis/apps/v1/namespaces/shop/deployments'
const PODS = '/api/v1/namespaces/shop/pods'

/** Beside the demo's traffic: who deletes protected pods, scales, uses the cluster `edge`, and comes by PROXY protocol. @returns ends them */
function startClients(ask: BusyGateway['ask'], proxiedPort: number): () => void {
  const timers: NodeJS.Timeout[] = []
  const every = (ms: number, act: () => Promise<unknown> | unknown): void => {
    timers.push(setInterval(() => void Promise.resolve(act()).catch(quiet), ms))
  }
  for (const resource of ['secrets', 'services', 'configmaps', 'endpoints', 'endpoints/reserved'])
    every(120, () => ask(`/clusters/${EDGE}/api/v1/namespaces/a/${resource}`, EDGE_TOKEN))
  every(400, () => ask('/clusters/prod/api/v1/namespaces/shop/pods', 'a-token-that-nobody-has'))
  every(300, async () => {
    const { items } = JSON.parse((await ask(`/clusters/prod${PODS}`, DEMO_TOKENS.alice)).body.toString())
    const web = items.find((one: Json) => one.metadata.labels?.app === 'web')
    if (web !== undefined) await ask(`/clusters/prod${PODS}/${web.metadata.name}`, DEMO_TOKENS.alice, 'DELETE')
  })
  let replicas = 8
  every(900, async () => {
    replicas = replicas === 8 ? 7 : 8
    await ask(`/clusters/prod${SHOP}/web`, DEMO_TOKENS.alice, 'PATCH', { spec: { replicas } })
  })
  every(700, () => {
    const socket = createConnection(proxiedPort, '127.0.0.1', () => socket.end('PROXY UNKNOWN\r\n'))
    socket.on('error', quiet)
  })
  return () => {
    for (const timer of timers) clearInterval(timer)
  }
}

/** Requests that it has taken up get no answer, so that the gateway sends them again, and thinks the worse of it. */
function breakAtTimes(stub: StubUpstream): void {
  let requests = 0
  stub.answer = (request) => {
    requests++
    if (requests < BROKEN_UNTIL && requests % 40 < 6) stub.breakConnections()
    else if (!request.path.endsWith('/slow')) reply(request, 200, '{"kind":"Stub"}')
  }
}

/** Creates what the cluster-autoscaler of prod writes, now. */
function autoscalerStatus(): [readonly string[], Buffer] {
  const nowMs = Date.now()
  const body = Buffer.from(JSON.stringify(statusConfigMap(recordedStatus(nowMs), nowMs)))
  const path = '/clusters/prod/api/v1/namespaces/kube-system/configmaps'
  const head = [':method', 'POST', ':path', path, ':authority', '127.0.0.1', 'content-type', 'application/json']
  return [[...head, 'content-length', String(body.length)], body]
}

/** A tap shows what comes. */
async function watchTap(adminPort: number, signal: AbortSignal): Promise<void> {
  const answer = await fetch(`http://127.0.0.1:${adminPort}/api/v1/tap?cluster=prod`, { signal })
  for await (const _ of answer.body ?? []) if (signal.aborted) return
}
