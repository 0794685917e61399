// Changes of the objects under running traffic: in force for the next request, and nothing that runs is dropped.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { ClientHttp2Session, ClientHttp2Stream } from 'node:http2'
import { connect, createServer, type Socket } from 'node:net'
import { afterEach, describe, test } from 'node:test'
import type { TLSSocket } from 'node:tls'
import type {
  DispatchPolicy,
  UpstreamCluster,
  UpstreamClusterSpec,
} from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { createCA, issueCertificate } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Open, h2Request, h2Response, type Response } from '../harness/clients/h2-client.ts'
import { openRaw } from '../harness/clients/raw-clients.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { ALLOW_ALL, base64, clientPair, clusterObject } from '../harness/objects/objects.ts'
import { reply, type SeenRequest, type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'
import { startUpgradeUpstream } from '../harness/upstreams/upgrade-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const clientCA = createCA({ commonName: 'clients of prod' })
const alice = clientPair(clientCA, 'alice')
const EVENT = '{"type":"ADDED"}\n'
const POST = [':method', 'POST', ':path', '/api/v1/namespaces/default/pods']
const READ_ONLY: DispatchPolicy = {
  rules: [{ verbs: ['get', 'list', 'watch'], apiGroups: ['*'], resources: ['*'] }],
}

const BEGIN = '-----BEGIN CERTIFICATE-----'
const END = '-----END CERTIFICATE-----'
const GLOBAL = { flowControlSchemas: [{ name: 'all', strategy: 'globalCount' as const }] }
const LIMITED = { flowControlSchemaName: 'all' }

const cleanups: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

interface Scene {
  readonly stubs: StubUpstream[]
  readonly gateway: InProcessGateway
  readonly session: ClientHttp2Session
  /** Puts a changed object of the one cluster in force. */
  change(spec: Partial<UpstreamClusterSpec>, annotations?: Record<string, string>): void
}

async function setUp(endpoints: number, spec: Partial<UpstreamClusterSpec> = {}): Promise<Scene> {
  const stubs: StubUpstream[] = []
  for (let i = 0; i < endpoints; i++) {
    const stub = await startStub()
    stub.answer = answer
    stubs.push(stub)
    cleanups.push(stub.stop)
  }
  const gateway = await startInProcess([clusterObject(stubs, { clientCA, spec })])
  const session = h2Connect({ port: gateway.port, serverName: 'prod.example.com', certificate: alice })
  cleanups.push(gateway.stop, () => session.destroy())
  const change: Scene['change'] = (next, annotations) => {
    const object = clusterObject(stubs, { clientCA, spec: next })
    const metadata = annotations === undefined ? object.metadata : { ...object.metadata, annotations }
    gateway.apply([{ ...object, metadata }])
  }
  return { stubs, gateway, session, change }
}

/** Watches begin with an event and go on; everything else gets 200. */
function answer(request: SeenRequest): void {
  if (!request.path.includes('watch=1')) {
    reply(request, 200, '{"kind":"Stub"}')
    return
  }
  request.stream.respond([':status', '200', 'content-type', 'application/json'])
  request.stream.write(EVENT)
}

interface Watching {
  readonly stream: ClientHttp2Stream
  readonly ended: Promise<Response>
}

async function startWatch(session: ClientHttp2Session): Promise<Watching> {
  const stream = h2Open(session, [':path', '/api/v1/pods?watch=1'])
  const ended = h2Response(stream)
  await once(stream, 'data')
  return { stream, ended }
}

/** Sends one more event through every watch at the stub, and waits until the client has it. */
async function assertLives(watch: Watching, stubs: readonly StubUpstream[]): Promise<void> {
  const next = once(watch.stream, 'data')
  for (const stub of stubs)
    for (const seen of stub.seen) if (seen.path.includes('watch=1') && !seen.stream.destroyed) seen.stream.write(EVENT)
  await next
}

async function statusOf(session: ClientHttp2Session, head: readonly string[] = []): Promise<number> {
  return (await h2Request(session, head)).status
}

function watchesOf(stub: StubUpstream | undefined): SeenRequest[] {
  return stub?.seen.filter((seen) => seen.path.includes('watch=1')) ?? []
}

describe('what applies to the next request, while a watch runs', () => {
  test('policies', async () => {
    const { stubs, session, change } = await setUp(1)
    const watch = await startWatch(session)
    assert.equal(await statusOf(session, POST), 200)
    change({ dispatchPolicies: [READ_ONLY] })
    assert.equal(await statusOf(session, POST), 403)
    assert.equal(await statusOf(session), 200)
    change({ dispatchPolicies: [ALLOW_ALL] })
    assert.equal(await statusOf(session, POST), 200)
    await assertLives(watch, stubs)
  })

  test('a token bucket: the limit changes, the tokens that are spent stay spent', async () => {
    const limit = (qps: number, burst: number): Partial<UpstreamClusterSpec> => ({
      flowControl: { flowControlSchemas: [{ name: 'few', tokenBucket: { qps, burst } }] },
      dispatchPolicies: [{ ...ALLOW_ALL, flowControlSchemaName: 'few' }],
    })
    const { stubs, session, change } = await setUp(1, limit(1, 20))
    const startedMs = performance.now()
    const watch = await startWatch(session) // the first token
    let admitted = 1
    const send = async (count: number): Promise<void> => {
      const statuses = await Promise.all(Array.from({ length: count }, () => statusOf(session)))
      admitted += statuses.filter((status) => status === 200).length
      assert.ok(statuses.every((status) => status === 200 || status === 429))
    }
    await send(30)
    assert.ok(admitted >= 20)
    for (let burst = 21; burst < 40; burst++) {
      change(limit(1, burst))
      await send(1)
    }
    // Each change would have given a whole burst, had it made a new bucket; now only time gives.
    const refilled = Math.ceil((performance.now() - startedMs) / 1000)
    assert.ok(admitted <= 20 + refilled, `${admitted} admitted`)
    await assertLives(watch, stubs)
  })

  test('requests in flight: those of before count against the new maximum', async () => {
    const limit = (max: number): Partial<UpstreamClusterSpec> => ({
      flowControl: { flowControlSchemas: [{ name: 'few', maxRequestsInflight: { max } }] },
      dispatchPolicies: [{ ...ALLOW_ALL, flowControlSchemaName: 'few' }],
    })
    const { stubs, session, change } = await setUp(1, limit(2))
    const [stub] = stubs
    const held: SeenRequest[] = []
    if (stub !== undefined) stub.answer = (request) => held.push(request)
    const running = [h2Request(session, []), h2Request(session, [])]
    await waitFor('both upstream', () => held.length === 2)
    assert.equal(await statusOf(session), 429)
    change(limit(3))
    running.push(h2Request(session, []))
    await waitFor('the third upstream', () => held.length === 3)
    assert.equal(await statusOf(session), 429)
    change(limit(1))
    for (const request of held.splice(0, 2)) reply(request, 200, '')
    await Promise.all(running.slice(0, 2))
    assert.equal(await statusOf(session), 429, 'one still runs')
    for (const request of held.splice(0)) reply(request, 200, '')
    await running[2]
    if (stub !== undefined) stub.answer = answer
    assert.equal(await statusOf(session), 200)
  })

  test('the degrade switch', async () => {
    const { stubs, session, change } = await setUp(1)
    const watch = await startWatch(session)
    change({ degrade: { mode: 'Freeze' } })
    assert.equal(await statusOf(session), 503)
    change({ degrade: { mode: 'ReadOnly' } })
    assert.equal(await statusOf(session), 200)
    assert.equal(await statusOf(session, POST), 503)
    change({})
    assert.equal(await statusOf(session, POST), 200)
    await assertLives(watch, stubs)
  })

  test("KubeGateway's DenyAllRequests: set, with another value, removed", async () => {
    const { stubs, session, change } = await setUp(1)
    const gates = (value: string): Record<string, string> => ({ 'proxy.kubegateway.io/feature-gates': value })
    const watch = await startWatch(session)
    change({}, gates('DenyAllRequests=true'))
    const refused = await h2Request(session, [])
    assert.equal(refused.status, 503)
    assert.match(refused.body.toString(), /DenyAllRequests/)
    change({}, gates('Tracing=true'))
    assert.equal(await statusOf(session), 200, 'the gate is not named any more')
    change({}, gates('DenyAllRequests=true,Tracing=true'))
    assert.equal(await statusOf(session), 503)
    change({}, gates('DenyAllRequests=false'))
    assert.equal(await statusOf(session), 200)
    change({}, gates('DenyAllRequests=true'))
    assert.equal(await statusOf(session), 503)
    change({})
    assert.equal(await statusOf(session), 200, 'the annotation is gone')
    await assertLives(watch, stubs)
  })

  test('client CAs: a client that was verified by the old bundle is no longer authenticated', async () => {
    const { stubs, gateway, session } = await setUp(1)
    assert.equal(await statusOf(session), 200)
    const otherCA = createCA({ commonName: 'other clients' })
    gateway.apply([clusterObject(stubs, { clientCA: otherCA })])
    assert.equal(await statusOf(session), 401, 'on the same connection')
    const bob = clientPair(otherCA, 'bob')
    const later = h2Connect({ port: gateway.port, serverName: 'prod.example.com', certificate: bob })
    assert.equal(await statusOf(later), 200)
    later.destroy()
  })
})

describe('endpoints', () => {
  const all = (stubs: readonly StubUpstream[]): { endpoint: string }[] => stubs.map(({ url }) => ({ endpoint: url }))

  test('an added one gets its share', async () => {
    const { stubs, session, change } = await setUp(2)
    change({ servers: all(stubs.slice(0, 1)) })
    await Promise.all(Array.from({ length: 10 }, () => statusOf(session)))
    assert.equal(stubs[1]?.seen.length, 0)
    change({ servers: all(stubs) })
    await waitFor('a request on the new one', async () => {
      assert.equal(await statusOf(session), 200)
      return (stubs[1]?.seen.length ?? 0) > 0
    })
  })

  test('a disabled one takes no new requests; its watches live', async () => {
    const { stubs, session, change } = await setUp(2)
    const watches = [await startWatch(session), await startWatch(session)]
    assert.ok(
      stubs.every((stub) => watchesOf(stub).length === 1),
      'one watch on each',
    )
    change({ servers: stubs.map(({ url }, i) => ({ endpoint: url, disabled: i === 0 })) })
    await Promise.all(Array.from({ length: 20 }, () => statusOf(session)))
    assert.deepEqual(
      stubs.map((stub) => stub.seen.length),
      [1, 21],
    )
    for (const watch of watches) await assertLives(watch, stubs)
  })

  test('a removed one: its watches end cleanly, those of others live, requests finish', async () => {
    const { stubs, session, change } = await setUp(2)
    const [removed, kept] = stubs
    const watches = [await startWatch(session), await startWatch(session)]
    const onRemoved = watchesOf(removed).length
    assert.equal(onRemoved, 1)
    const held: SeenRequest[] = []
    for (const stub of stubs) stub.answer = (request) => held.push(request)
    const running = [h2Request(session, POST), h2Request(session, POST)]
    await waitFor('one request on each', () => held.length === 2)
    for (const stub of stubs) stub.answer = answer
    change({ servers: all(stubs.slice(1)) })
    const first = await Promise.race(watches.map(async (watch) => ({ watch, response: await watch.ended })))
    assert.equal(first.response.resetCode, 0)
    assert.equal(first.response.body.toString(), EVENT)
    await waitFor('its end upstream', () => watchesOf(removed).every(({ stream }) => stream.destroyed))
    const [other] = watches.filter((watch) => watch !== first.watch)
    assert.ok(other)
    await assertLives(other, [kept as StubUpstream])
    for (const request of held) reply(request, 201, '{}')
    for (const response of await Promise.all(running)) assert.deepEqual([response.status, response.resetCode], [201, 0])
    // With nothing left to carry, the connections to the removed one close.
    await waitFor('the connections to close', () => removed?.sessions().length === 0)
  })

  test('a removed one: its upgraded sessions end', async () => {
    const upstream = await startUpgradeUpstream()
    cleanups.push(upstream.stop)
    const { stubs, gateway, change } = await setUp(1)
    change({ servers: [{ endpoint: upstream.url }] })
    const exec = await openRaw({ port: gateway.port, serverName: 'prod.example.com', cert: alice, alpn: ['http/1.1'] })
    exec.send(
      'GET /api/v1/namespaces/default/pods/web/exec?command=sh HTTP/1.1\r\nHost: prod.example.com\r\n' +
        'Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n',
    )
    await exec.until(/ 101 /)
    change({ servers: all(stubs) })
    await exec.closed
    await waitFor('the upstream side to be closed', () => upstream.open.size === 0)
  })

  test('all replaced at once: requests wait for the first health check and are served', async () => {
    const { stubs, session, change } = await setUp(2)
    const [before, next] = stubs
    change({ servers: all([before as StubUpstream]) })
    assert.equal(await statusOf(session), 200)
    const probes: SeenRequest[] = []
    if (next !== undefined) next.probe = (request) => probes.push(request)
    change({ servers: all([next as StubUpstream]) })
    const status = statusOf(session)
    await waitFor('the check', () => probes.length > 0)
    assert.deepEqual(next?.seen, [])
    for (const probe of probes) reply(probe, 200, 'ok')
    assert.equal(await status, 200)
  })
})

describe('credentials of the gateway', () => {
  test('a rotated bearer token: for every request from then on, watches live', async () => {
    const { stubs, session, change } = await setUp(1)
    const [stub] = stubs
    const watch = await startWatch(session)
    const config = { caData: base64(stub?.caPem ?? '') }
    change({ clientConfig: { ...config, bearerToken: base64('second-token') } })
    assert.equal(await statusOf(session), 200)
    assert.deepEqual(stub?.seen.at(-1)?.values('authorization'), ['Bearer second-token'])
    await assertLives(watch, stubs)
  })

  test('a rotated client certificate: new connections show the new one, watches live on the old', async () => {
    const gatewayCA = createCA({ commonName: 'gateways' })
    const pairOf = (commonName: string): Partial<UpstreamClusterSpec['clientConfig']> => {
      const pair = issueCertificate(gatewayCA, { commonName, usage: 'client' })
      return { certData: base64(pair.certPem), keyData: base64(pair.keyPem) }
    }
    const { stubs, session, change } = await setUp(1)
    const [stub] = stubs
    const caData = base64(stub?.caPem ?? '')
    const shown = (): string => {
      const socket = stub?.seen.at(-1)?.session?.socket as TLSSocket
      return String(socket.getPeerCertificate().subject.CN)
    }
    change({ clientConfig: { caData, ...pairOf('gateway-1') } })
    assert.equal(await statusOf(session), 200)
    assert.equal(shown(), 'gateway-1')
    const watch = await startWatch(session)
    change({ clientConfig: { caData, ...pairOf('gateway-2') } })
    assert.equal(await statusOf(session), 200)
    assert.equal(shown(), 'gateway-2')
    await assertLives(watch, stubs)
  })

  test('a CA that does not fit refuses, a repaired one serves again; watches live', async () => {
    const { stubs, session, change } = await setUp(1, { healthCheck: { intervalSeconds: 300 } })
    const watch = await startWatch(session)
    const otherCA = createCA({ commonName: 'not the one' })
    const healthCheck = { intervalSeconds: 300, unhealthyThreshold: 1 }
    change({ healthCheck, clientConfig: { caData: base64(otherCA.certPem) } })
    const refused = await h2Request(session, [])
    assert.ok(refused.status === 502 || refused.status === 503, String(refused.status))
    assert.ok(!refused.body.includes('127.0.0.1'), 'no addresses in answers')
    await waitFor('the health check to see it', async () => (await statusOf(session)) === 503)
    change({ healthCheck })
    // Long before the next regular check.
    await waitFor('service', async () => (await statusOf(session)) === 200)
    await assertLives(watch, stubs)
  })

  test('rotated while a connection is being made: the request that waits for it is served', async () => {
    const stub = await startStub()
    stub.answer = answer
    const proxy = await startGate(stub.port)
    cleanups.push(stub.stop, proxy.stop)
    const servers = [{ endpoint: proxy.url }]
    const gateway = await startInProcess([clusterObject([stub], { clientCA, spec: { servers } })])
    const session = h2Connect({ port: gateway.port, serverName: 'prod.example.com', certificate: alice })
    cleanups.push(gateway.stop, () => session.destroy())
    assert.equal(await statusOf(session), 200)
    proxy.shut()
    const watching = startWatch(session) // a class of its own, so a connection of its own
    await waitFor('the connection', () => proxy.waiting() === 1)
    const clientConfig = { caData: base64(stub.caPem), bearerToken: base64('second-token') }
    gateway.apply([clusterObject([stub], { clientCA, spec: { servers, clientConfig } })])
    proxy.open()
    await assertLives(await watching, [stub])
  })
})

describe('clusters', () => {
  const HOSTS = ['a.example.com', 'b.example.com']
  const to = (host: string | undefined): string[] => [':authority', host ?? '']

  async function setUpTwo(): Promise<{
    stub: StubUpstream
    gateway: InProcessGateway
    sessions: ClientHttp2Session[]
  }> {
    const stub = await startStub()
    stub.answer = answer
    cleanups.push(stub.stop)
    const gateway = await startInProcess(HOSTS.map((name) => clusterObject([stub], { name, clientCA })))
    const sessions = HOSTS.map((serverName) => h2Connect({ port: gateway.port, serverName, certificate: alice }))
    cleanups.push(gateway.stop, () => {
      for (const session of sessions) session.destroy()
    })
    // Connected before anything changes.
    for (const [i, session] of sessions.entries()) assert.equal(await statusOf(session, to(HOSTS[i])), 200)
    return { stub, gateway, sessions }
  }

  test('a new one is served once it is checked, without a refusal before', async () => {
    const { stub, gateway } = await setUpTwo()
    const probes: SeenRequest[] = []
    stub.probe = (request) => probes.push(request)
    const name = 'c.example.com'
    gateway.apply([...HOSTS, name].map((each) => clusterObject([stub], { name: each, clientCA })))
    const session = h2Connect({ port: gateway.port, serverName: name, certificate: alice })
    const seen = stub.seen.length
    const status = statusOf(session, to(name))
    await waitFor('its check', () => probes.length === 3)
    assert.equal(stub.seen.length, seen)
    for (const probe of probes) reply(probe, 200, 'ok')
    assert.equal(await status, 200)
    session.destroy()
  })

  test('a removed one: 404, its watches end cleanly; others are not touched', async () => {
    const { stub, gateway, sessions } = await setUpTwo()
    const [a, b] = sessions as [ClientHttp2Session, ClientHttp2Session]
    const open = async (session: ClientHttp2Session, host: string | undefined): Promise<Watching> => {
      const stream = h2Open(session, [...to(host), ':path', '/api/v1/pods?watch=1'])
      const ended = h2Response(stream)
      await once(stream, 'data')
      return { stream, ended }
    }
    const watches = [await open(a, HOSTS[0]), await open(b, HOSTS[1])]
    gateway.apply([clusterObject([stub], { name: HOSTS[1] ?? '', clientCA })])
    assert.equal(await statusOf(a, to(HOSTS[0])), 404)
    assert.equal(await statusOf(b, to(HOSTS[1])), 200)
    const ended = await watches[0]?.ended
    assert.deepEqual([ended?.resetCode, ended?.body.toString()], [0, EVENT])
    await assertLives(watches[1] as Watching, [stub])
    assert.equal(await statusOf(b, to(HOSTS[1])), 200)
    gateway.apply(HOSTS.map((name) => clusterObject([stub], { name, clientCA })))
    assert.equal(await statusOf(a, to(HOSTS[0])), 200, 'back again')
  })

  const broken: [string, (good: UpstreamCluster) => unknown][] = [
    ['no spec', ({ spec: _, ...rest }) => rest],
    ['servers is no list', (good) => ({ ...good, spec: { ...good.spec, servers: 7 } })],
    ['a policy without rules', (good) => ({ ...good, spec: { ...good.spec, dispatchPolicies: [{}] } })],
    [
      'a certificate that is none',
      (good) => ({ ...good, spec: { ...good.spec, secureServing: { certData: base64('x'), keyData: base64('y') } } }),
    ],
    [
      'a key of another certificate',
      (good) => {
        const [one, two] = [clientPair(clientCA, 'one'), clientPair(clientCA, 'two')]
        const secureServing = { certData: base64(one.certPem), keyData: base64(two.keyPem) }
        return { ...good, spec: { ...good.spec, secureServing } }
      },
    ],
  ]
  for (const [what, breakIt] of broken) {
    test(`a broken one (${what}): its last good version and every other cluster stay in force`, async () => {
      const { stub, gateway, sessions } = await setUpTwo()
      const [a, b] = sessions as [ClientHttp2Session, ClientHttp2Session]
      const objects = HOSTS.map((name) => clusterObject([stub], { name, clientCA }))
      const bad = breakIt(objects[0] as UpstreamCluster) as UpstreamCluster
      const denied = clusterObject([stub], { name: HOSTS[1] ?? '', clientCA, spec: { dispatchPolicies: [READ_ONLY] } })
      gateway.apply([bad, denied])
      assert.equal(await statusOf(a, to(HOSTS[0])), 200)
      assert.equal(await statusOf(b, [...POST, ...to(HOSTS[1])]), 403, 'the change beside it is in force')
      const fresh = HOSTS.map((serverName) => h2Connect({ port: gateway.port, serverName, certificate: alice }))
      for (const [i, session] of fresh.entries()) assert.equal(await statusOf(session, to(HOSTS[i])), 200)
      for (const session of fresh) session.destroy()
      // Without SNI: the context that knows the client CAs of all clusters.
      const nameless = h2Connect({ port: gateway.port, certificate: alice })
      assert.equal(await statusOf(nameless, to(HOSTS[1])), 200)
      nameless.destroy()
      assert.ok(gateway.logged.some(({ level, fields }) => level === 'error' && fields['cluster'] === HOSTS[0]))
      gateway.apply(objects)
      assert.equal(await statusOf(b, [...POST, ...to(HOSTS[1])]), 200, 'a later change is not held up')
    })
  }

  const useless: [string, Partial<UpstreamClusterSpec>][] = [
    ['a server that is no URL', { servers: [{ endpoint: 'nonsense' }] }],
    ['an upstream CA that is none', { clientConfig: { caData: base64('not a certificate') } }],
    ['insecure beside a CA', { clientConfig: { insecure: true, caData: base64('not a certificate') } }],
    ['an upstream key that is none', { clientConfig: { certData: base64('x'), keyData: base64('y') } }],
    ['a client CA that is none', { secureServing: { clientCAData: base64(`${BEGIN}\nxxxx\n${END}\n`) } }],
    ['a global limit without its block', { flowControl: GLOBAL, dispatchPolicies: [{ ...ALLOW_ALL, ...LIMITED }] }],
  ]
  for (const [what, spec] of useless) {
    test(`one that cannot serve (${what}) does not affect others`, async () => {
      const { stub, gateway, sessions } = await setUpTwo()
      const [a, b] = sessions as [ClientHttp2Session, ClientHttp2Session]
      const [first = '', second = ''] = HOSTS
      gateway.apply([
        clusterObject([stub], { name: first, clientCA, spec }),
        clusterObject([stub], { name: second, clientCA }),
      ])
      await statusOf(a, to(first))
      for (const serverName of [second, undefined]) {
        const options = { port: gateway.port, certificate: alice }
        const session = h2Connect(serverName === undefined ? options : { ...options, serverName })
        assert.equal(await statusOf(session, to(second)), 200)
        session.destroy()
      }
      assert.equal(await statusOf(b, to(second)), 200)
      gateway.apply(HOSTS.map((name) => clusterObject([stub], { name, clientCA })))
      await waitFor('service', async () => (await statusOf(a, to(first))) === 200)
    })
  }
})

describe('under traffic', () => {
  test('200 random changes: no request fails, no watch is torn', async (context) => {
    const random = seeded(context, Number(process.env['SEED'] ?? Date.now() % 1_000_000))
    const { stubs, gateway, session } = await setUp(3)
    const failed: string[] = []
    let done = 0
    let traffic = true
    const request = async (): Promise<void> => {
      const head = random() < 0.3 ? POST : []
      const { status, resetCode } = await h2Request(session, head, head === POST ? Buffer.from('{}') : undefined)
      if (status !== 200 || resetCode !== 0) failed.push(`${head.join(' ')}: ${status}, reset ${resetCode}`)
      done++
    }
    const watch = async (): Promise<void> => {
      const { status, body, resetCode } = await h2Response(h2Open(session, [':path', '/api/v1/pods?watch=1']))
      // A watch may end, cleanly, when its endpoint is removed.
      if (status !== 200 || resetCode !== 0 || !body.toString().endsWith('\n')) failed.push(`watch: reset ${resetCode}`)
    }
    const loop = async (next: () => Promise<void>): Promise<void> => {
      while (traffic) await next()
    }
    const loops = [...Array.from({ length: 10 }, () => loop(request)), ...Array.from({ length: 5 }, () => loop(watch))]
    for (let i = 0; i < 200; i++) {
      const before = done
      gateway.apply(randomObjects(stubs, random))
      await waitFor('traffic', () => done > before + 5, { intervalMs: 1 })
    }
    traffic = false
    for (const stub of stubs) for (const { stream } of watchesOf(stub)) stream.end()
    // The watches that have just been opened, too.
    for (const stub of stubs) stub.answer = (seen) => reply(seen, 200, '{}\n')
    await Promise.all(loops)
    assert.deepEqual(failed, [])
    assert.ok(stubs.every((stub) => stub.seen.length > 0))
  })
})

type Random = () => number

/** Numbers in [0, 1) that come again with the same seed (mulberry32). */
function seeded(context: { diagnostic(text: string): void }, seed: number): Random {
  context.diagnostic(`SEED=${seed}`)
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Some version of the cluster that serves everything, and perhaps another cluster beside it. */
function randomObjects(stubs: readonly StubUpstream[], random: Random): UpstreamCluster[] {
  const oneOf = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T
  const used = stubs.filter(() => random() < 0.6)
  const servers = (used.length > 0 ? used : [oneOf(stubs)]).map(({ url }) => ({
    endpoint: url,
    weight: oneOf([1, 50, 100]),
    disabled: false,
  }))
  if (servers.length > 1 && random() < 0.3) Object.assign(servers[0] ?? {}, { disabled: true })
  const limit = oneOf([
    { name: 'wide', tokenBucket: { qps: 100_000, burst: 100_000 + Math.floor(random() * 100) } },
    { name: 'wide', maxRequestsInflight: { max: 1000 + Math.floor(random() * 100) } },
    { name: 'wide', exempt: {} },
  ])
  const main = clusterObject(stubs, {
    clientCA,
    spec: {
      servers,
      clientConfig: {
        caData: base64(stubs[0]?.caPem ?? ''),
        bearerToken: base64(oneOf(['token-1', 'token-2', 'token-3'])),
      },
      healthCheck: { intervalSeconds: oneOf([1, 5]) },
      degrade: oneOf([{}, { mode: 'Off' as const }, { mode: 'Freeze' as const, shadow: true }]),
      flowControl: { flowControlSchemas: [limit] },
      ...(random() < 0.5 && { podProtection: { shadow: random() < 0.5, timeoutSeconds: oneOf([1, 10]) } }),
      dispatchPolicies: [
        { ...ALLOW_ALL, flowControlSchemaName: 'wide', strategy: oneOf(['RoundRobin', 'Random', 'LeastRequest']) },
        ...(random() < 0.5 ? [READ_ONLY] : []),
      ],
    },
  })
  const other = clusterObject(stubs, { name: 'other.example.com', clientCA })
  return random() < 0.5
    ? [main]
    : oneOf([
        [main, other],
        [other, main],
      ])
}

interface Gate {
  readonly url: string
  /** From now on connections are taken, but nothing goes through. */
  shut(): void
  open(): void
  waiting(): number
  stop(): void
}

/** A TCP proxy that can hold connections back. */
async function startGate(port: number): Promise<Gate> {
  const sockets = new Set<Socket>()
  const waiting: (() => void)[] = []
  let isShut = false
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    const join = (): void => {
      const upstream = connect({ port, host: '127.0.0.1' })
      sockets.add(upstream)
      upstream.on('error', () => socket.destroy())
      socket.on('close', () => upstream.destroy())
      upstream.on('close', () => socket.destroy())
      socket.pipe(upstream).pipe(socket)
    }
    if (isShut) waiting.push(join)
    else join()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  return {
    url: `https://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`,
    shut: () => {
      isShut = true
    },
    open: () => {
      isShut = false
      for (const join of waiting.splice(0)) join()
    },
    waiting: () => waiting.length,
    stop: () => {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}
