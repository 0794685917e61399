// The outage of OpenAI's clusters on 2024-12-11, in small: an agent on every node lists all pods, again and again, and the DNS that the
// servers' name depends on does not answer. Nodes renew their Leases all the time, and an operator works.

import assert from 'node:assert/strict'
import type { ClientHttp2Session } from 'node:http2'
import { afterEach, test } from 'node:test'
import type { UpstreamClusterSpec } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { lookUp } from '../../src/gateway/io/dns/look-up.ts'
import { createCA, type KeyPair } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Request, type Response } from '../harness/clients/h2-client.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { ALLOW_ALL, clientPair, clusterObject } from '../harness/objects/objects.ts'
import { type DnsServer, startDnsServer } from '../harness/servers/dns-server.ts'
import { reply, type SeenRequest, type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const clientCA = createCA({ commonName: 'clients of prod' })
const AGENT = 'system:serviceaccount:monitoring:telemetry'
const ALL = { verbs: ['*'], apiGroups: ['*'], resources: ['*'] }
const LIST_BYTES = 3_000_000
const MAX = 60
const ROUNDS = 5
const NODES = 10

const SPEC: Partial<UpstreamClusterSpec> = {
  listGuard: { maxBytesUnlimited: 1_000_000 },
  flowControl: { flowControlSchemas: [{ name: 'all', maxRequestsInflight: { max: MAX }, cost: true }] },
  dispatchPolicies: [{ ...ALLOW_ALL, flowControlSchemaName: 'all' }],
  degrade: { exempt: [{ ...ALL, users: ['operator'] }] },
}

const cleanups: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

interface Scene {
  readonly dns: DnsServer
  readonly stub: StubUpstream
  readonly gateway: InProcessGateway
  as(name: string, groups?: readonly string[]): ClientHttp2Session
}

async function setUp(threads: number, maxConcurrentStreams = 250, spec = SPEC): Promise<Scene> {
  const dns = await startDnsServer()
  const stub = await startStub(0, { maxConcurrentStreams })
  dns.answer = { addresses: ['127.0.0.1'], ttl: 1 }
  const servers = [{ endpoint: stub.url.replace('127.0.0.1', 'localhost'), resolve: true }]
  const object = clusterObject([stub], { clientCA, spec: { servers, ...spec } })
  const found = { servers: [dns.address], hostsFile: '/dev/null', hasIPv6: false, system: () => Promise.resolve([]) }
  const gateway = await startInProcess([object], { threads }, Promise.resolve(), {
    lookUp: (name) => lookUp(name, found),
  })
  const sessions: ClientHttp2Session[] = []
  const pairs = new Map<string, KeyPair>()
  cleanups.push(
    () => dns.stop(),
    stub.stop,
    gateway.stop,
    () => {
      for (const session of sessions) session.destroy()
    },
  )
  await waitFor('the endpoint to be healthy', async () => /endpoint_healthy\{[^}]*\} 1/.test(await gateway.metrics()))
  const as = (name: string, groups: readonly string[] = []): ClientHttp2Session => {
    const certificate = pairs.get(name) ?? clientPair(clientCA, name, groups)
    pairs.set(name, certificate)
    const session = h2Connect({ port: gateway.port, serverName: 'prod.example.com', certificate })
    sessions.push(session)
    return session
  }
  return { dns, stub, gateway, as }
}

function send(session: ClientHttp2Session, method: string, path: string, agent = 'x/1'): Promise<Response> {
  return h2Request(session, [':method', method, ':path', path, 'user-agent', agent])
}

/** A kubelet renews its Lease and its node's status until `done`; what did not succeed, and how long each took. */
async function heartbeats(session: ClientHttp2Session, name: string, done: () => boolean): Promise<Beats> {
  const lease = `/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${name}`
  const beats: Beats = { failed: [], took: [] }
  for (let i = 0; i < 3 || !done(); i++) {
    const startMs = performance.now()
    const { status } = await send(session, ...BEATS[i % 2 === 0 ? 0 : 1](lease, name), 'kubelet/v1.36')
    beats.took.push(performance.now() - startMs)
    if (status !== 200) beats.failed.push(`${name}: ${status}`)
    // A kubelet renews every 10 s, and a node's budget is for that: so many in a row would be refused.
    if (i >= 15) break
  }
  return beats
}

const BEATS = [
  (lease: string): [string, string] => ['PUT', lease],
  (_lease: string, name: string): [string, string] => ['PATCH', `/api/v1/nodes/${name}/status`],
] as const

interface Beats {
  readonly failed: string[]
  readonly took: number[]
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
}

function isUnlimited({ path }: SeenRequest): boolean {
  return path === '/api/v1/pods'
}

/** @returns latency of heartbeats in the incident, as a multiple of that before it */
async function incident(agents: number, threads: number): Promise<number> {
  const { dns, stub, gateway, as } = await setUp(threads)
  const held: SeenRequest[] = []
  stub.answer = (request) => {
    if (isUnlimited(request)) reply(request, 200, `{"items":["${'x'.repeat(LIST_BYTES)}"]}`)
    // An API server that is overloaded: pages take for ever.
    else if (request.path.includes('limit=')) held.push(request)
    else reply(request, 200, '{}')
  }
  const kubelets = Array.from({ length: NODES }, (_, i) => as(`system:node:n${i}`, ['system:nodes']))
  const operator = as('operator')
  const fleet = Array.from({ length: Math.ceil(agents / 10) }, () => as(AGENT))
  const agentOf = (i: number): ClientHttp2Session => fleet[i % fleet.length] ?? assert.fail()

  const idle = await Promise.all(kubelets.map((session, i) => heartbeats(session, `n${i}`, () => true)))

  // The new agent comes to the first node: it is not known yet how much it lists.
  assert.equal((await send(agentOf(0), 'GET', '/api/v1/pods', 'telemetry/2.1')).status, 200)
  await waitFor('all threads to know', async () => {
    const codes = await Promise.all(fleet.map(async (one) => (await send(one, 'GET', '/api/v1/pods')).status))
    return codes.every((code) => code === 429)
  })
  const learned = stub.seen.filter(isUnlimited).length
  dns.answer = { silent: ['A', 'AAAA'] }
  const { questions } = dns
  await waitFor('DNS to be asked in vain', () => dns.questions > questions)

  // Then to all. Some fetch pages, which are in flight until nothing else may be.
  for (let i = 0; i < MAX * 2; i++) void send(agentOf(i), 'GET', '/api/v1/pods?limit=100')
  await waitFor('the limit to be reached', async () => {
    void send(agentOf(1), 'GET', '/api/v1/pods?limit=1')
    return (await send(agentOf(1), 'GET', '/api/v1/nodes')).status === 429
  })
  let over = false
  const refusals: Response[] = []
  const flood = Promise.all(
    Array.from({ length: agents }, async (_, i) => {
      for (let round = 0; round < ROUNDS; round++)
        refusals.push(await send(agentOf(i), 'GET', '/api/v1/pods', 'telemetry/2.1'))
    }),
  ).then(() => {
    over = true
  })
  const working = (async () => {
    const codes: number[] = []
    for (let i = 0; i < 10 || !over; i++) {
      const [method, path] = i % 2 === 0 ? ['GET', '/api/v1/pods'] : ['DELETE', '/api/v1/namespaces/x/pods/y']
      codes.push((await send(operator, method ?? '', path ?? '')).status)
    }
    return codes
  })()
  const beats = await Promise.all(kubelets.map((session, i) => heartbeats(session, `n${i}`, () => over)))
  await flood

  assert.deepEqual(
    beats.flatMap(({ failed }) => failed),
    [],
  )
  assert.deepEqual(new Set(await working), new Set([200]), 'the operator, who may even list')
  assert.equal(refusals.length, agents * ROUNDS)
  assert.ok(refusals.every(({ status }) => status === 429))
  const { message } = JSON.parse(String(refusals.at(-1)?.body)) as { message: string }
  assert.match(message, /^User "system:serviceaccount:monitoring:telemetry" \(telemetry\/2\.1\) lists all "pods"/)
  const operators = (await working).length / 2
  assert.ok(stub.seen.filter(isUnlimited).length <= learned + Math.ceil(operators), 'none of the fleet came through')
  const metrics = await gateway.metrics()
  assert.match(metrics, /portcullis_flow_control_reserved_total\{[^}]*\} [1-9]/)
  for (const request of held) reply(request, 200, '{}')
  const took = (all: readonly Beats[]): number => median(all.flatMap((one) => one.took))
  return took(beats) / took(idle)
}

test('200 agents list all pods, DNS is away, the limit is reached: heartbeats and an operator lose nothing', async (t) => {
  t.diagnostic(`heartbeats took ${(await incident(200, 1)).toFixed(1)} times as long as before`)
})

test('1,000 agents (long)', async (t) => {
  t.diagnostic(`heartbeats took ${(await incident(1000, 2)).toFixed(1)} times as long as before`)
})

test('heartbeats and operators wait for no stream to upstream that others hold', async () => {
  const { stub, as } = await setUp(1, 1)
  const held: SeenRequest[] = []
  stub.answer = (request) => void (request.path.includes('held') ? held.push(request) : reply(request, 200, '{}'))
  const sessions = Array.from({ length: 4 }, () => as('alice'))
  // One stream a connection, and no third connection before one has answered: all others wait.
  let ended = 0
  const streams = Array.from({ length: MAX + 20 }, async (_, i) => {
    await send(sessions[i % 4] ?? assert.fail(), 'GET', '/api/v1/namespaces/held/configmaps/x')
    ended++
  })
  await waitFor('all streams to be taken', () => held.length >= 2 && ended >= 20)
  for (let i = 0; i < 5; i++) {
    assert.equal((await send(as('operator'), 'GET', '/api/v1/pods')).status, 200)
    const [method, path] = BEATS[0]('/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/a')
    assert.equal((await send(as('system:node:a', ['system:nodes']), method, path)).status, 200)
  }
  assert.equal(ended, 20, 'only those that the limit refuses')
  stub.answer = (request) => reply(request, 200, '{}')
  for (const request of held) stub.answer(request)
  await Promise.all(streams)
})

test('one node that sends heartbeats without end does not take the connections of the others', async () => {
  const { stub, as } = await setUp(1, 8, { ...SPEC, dispatchPolicies: [ALLOW_ALL] })
  const seen: SeenRequest[] = []
  stub.answer = (request) => {
    seen.push(request)
    if (!request.path.includes('held')) reply(request, 200, '{}')
  }
  const of = (path: string): SeenRequest[] => seen.filter((request) => request.path === path)
  const others = ['alice', 'bob'].flatMap((name) => {
    const session = as(name)
    return Array.from({ length: 60 }, () => send(session, 'GET', '/api/v1/namespaces/held/configmaps/x'))
  })
  await waitFor('all streams to be taken', () => seen.length >= 16)
  // The operator is exempt: the request goes through the reserved lane.
  assert.equal((await send(as('operator'), 'GET', '/api/v1/pods')).status, 200)
  const reserved = of('/api/v1/pods')[0]?.session ?? assert.fail()
  // Its budget there is 20 and one a second. The others wait with alice's, or have what is spare.
  const startMs = performance.now()
  const flood = as('system:node:a', ['system:nodes'])
  const lease = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/a'
  const beats = Array.from({ length: 60 }, () => send(flood, 'PUT', lease))
  await waitFor('its first heartbeats', () => of(lease).length >= 20)
  assert.equal((await send(as('system:node:b', ['system:nodes']), 'PUT', lease.replace(/a$/, 'b'))).status, 200)
  const allowed = 21 + (performance.now() - startMs) / 1000
  const there = of(lease).filter(({ session }) => session === reserved).length
  assert.ok(there > 0 && there <= allowed, `${there} of 60, where ${allowed} are allowed`)
  stub.answer = (request) => reply(request, 200, '{}')
  for (const request of seen) if (request.path.includes('held')) stub.answer(request)
  await Promise.all([...others, ...beats])
})
