// Which endpoint a request goes to, and what happens to it when the endpoint is lost.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { ClientHttp2Session } from 'node:http2'
import { afterEach, describe, test } from 'node:test'
import { createServer } from 'node:tls'
import type { Strategy } from '../../src/gateway/api/upstream-cluster/strategies.ts'
import type { UpstreamClusterSpec } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { createCA } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Open, h2Request, h2Response, valuesOf } from '../harness/clients/h2-client.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { ALLOW_ALL, clientPair, clusterObject } from '../harness/objects/objects.ts'
import {
  reply,
  type SeenRequest,
  type StubUpstream,
  startStub,
  stubServing,
} from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const clientCA = createCA({ commonName: 'clients of prod' })
const alice = clientPair(clientCA, 'alice')
/** Checks so rare that they decide nothing after the first. */
const NO_CHECKS = { intervalSeconds: 300, unhealthyThreshold: 1000 }
/** Checks as often as a test wants to see them; objects of users have whole seconds. */
const OFTEN = { intervalSeconds: 0.05 }

const cleanups: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

interface Scene {
  readonly stubs: StubUpstream[]
  readonly gateway: InProcessGateway
  /** Several connections: none of them may run out of streams. */
  readonly sessions: readonly ClientHttp2Session[]
  change(spec: Partial<UpstreamClusterSpec>): void
}

async function setUp(endpoints: number, spec: Partial<UpstreamClusterSpec> = {}): Promise<Scene> {
  const stubs: StubUpstream[] = []
  for (let i = 0; i < endpoints; i++) stubs.push(await startStub())
  const object = (more: Partial<UpstreamClusterSpec>) =>
    clusterObject(stubs, { clientCA, spec: { healthCheck: NO_CHECKS, ...spec, ...more } })
  const gateway = await startInProcess([object({})])
  const options = { port: gateway.port, serverName: 'prod.example.com', certificate: alice }
  const sessions = [h2Connect(options), h2Connect(options), h2Connect(options)]
  cleanups.push(...stubs.map((stub) => () => stub.stop()), gateway.stop, () => {
    for (const session of sessions) session.destroy()
  })
  return { stubs, gateway, sessions, change: (next) => gateway.apply([object(next)]) }
}

function sessionOf(scene: Scene, i = 0): ClientHttp2Session {
  const session = scene.sessions[i % scene.sessions.length]
  assert.ok(session)
  return session
}

function stubOf(scene: Scene, i: number): StubUpstream {
  const stub = scene.stubs[i]
  assert.ok(stub)
  return stub
}

/** Lists, `atOnce` at a time; fails unless all are answered with 200. Returns how many each endpoint got. */
async function spread(scene: Scene, count: number, atOnce = 20): Promise<number[]> {
  for (const stub of scene.stubs) stub.seen.length = 0
  for (let sent = 0; sent < count; sent += atOnce) {
    const batch = Math.min(atOnce, count - sent)
    const responses = await Promise.all(Array.from({ length: batch }, (_, i) => h2Request(sessionOf(scene, i), [])))
    for (const { status, body } of responses) assert.equal(status, 200, body.toString())
  }
  return scene.stubs.map((stub) => stub.seen.length)
}

function withStrategy(strategy: Strategy): Partial<UpstreamClusterSpec> {
  return { dispatchPolicies: [{ ...ALLOW_ALL, strategy }] }
}

interface EndpointStatus {
  readonly url: string
  readonly state: string
  readonly ejected: boolean
  readonly inFlight: number
}

async function statusOf(scene: Scene): Promise<readonly EndpointStatus[]> {
  const response = await fetch(`http://127.0.0.1:${scene.gateway.adminPort}/debug/config`)
  const { clusters } = (await response.json()) as { clusters: { endpointStatus: EndpointStatus[] }[] }
  return clusters[0]?.endpointStatus ?? []
}

describe('strategies', () => {
  test('RoundRobin: exactly even', async () => {
    assert.deepEqual(await spread(await setUp(3), 300), [100, 100, 100])
  })

  test('weights: exactly in proportion; 0 gets nothing', async () => {
    const scene = await setUp(4)
    const weights = [100, 50, 0, 150]
    scene.change({ servers: scene.stubs.map(({ url }, i) => ({ endpoint: url, weight: weights[i] ?? 0 })) })
    assert.deepEqual(await spread(scene, 300), [100, 50, 0, 150])
  })

  test('a subset: its policy uses nothing else, even when the subset is down', async () => {
    const scene = await setUp(3)
    const urls = scene.stubs.map(({ url }) => url)
    const reads = { rules: [{ verbs: ['list'], apiGroups: ['*'], resources: ['*'] }], upstreamSubset: urls.slice(1) }
    scene.change({ dispatchPolicies: [reads, ALLOW_ALL] })
    assert.deepEqual(await spread(scene, 100), [0, 50, 50])
    scene.change({
      dispatchPolicies: [reads, ALLOW_ALL],
      servers: urls.map((endpoint, i) => ({ endpoint, disabled: i > 0 })),
    })
    assert.equal((await h2Request(sessionOf(scene), [])).status, 503)
    assert.equal((await h2Request(sessionOf(scene), [':path', '/version'])).status, 200)
  })

  test('Random: every endpoint gets some', async () => {
    const counts = await spread(await setUp(2, withStrategy('Random')), 400)
    assert.ok(
      counts.every((count) => count > 100),
      counts.join(' '),
    )
  })

  test('LeastRequest: a slow endpoint gets what it can take', async () => {
    const scene = await setUp(2, withStrategy('LeastRequest'))
    const held: SeenRequest[] = []
    stubOf(scene, 0).answer = (request) => held.push(request)
    const answered: number[] = []
    // One after the other; those that the slow one takes are not waited for.
    const responses: Promise<void>[] = []
    for (let i = 0; i < 100; i++) {
      responses.push(h2Request(sessionOf(scene), []).then(({ status }) => void answered.push(status)))
      await waitFor('the request', () => answered.length + held.length === i + 1, { intervalMs: 1 })
    }
    assert.equal(held.length, 1, 'while one waits there, the idle one takes all others')
    for (const request of held) reply(request, 200, '{}')
    await Promise.all(responses)
    assert.ok(answered.every((status) => status === 200))
  })

  test('Affinity: a client keeps to one endpoint; only those of a lost one move, and they come back', async () => {
    const scene = await setUp(3, withStrategy('Affinity'))
    const names = Array.from({ length: 24 }, (_, i) => `user-${i}`)
    const pairs = names.map((name) => clientPair(clientCA, name))
    /** Endpoint of each user, by two connections of each. */
    const homes = async (): Promise<number[]> => {
      for (const stub of scene.stubs) stub.seen.length = 0
      for (const certificate of [...pairs, ...pairs]) {
        const session = h2Connect({ port: scene.gateway.port, serverName: 'prod.example.com', certificate })
        const responses = await Promise.all([h2Request(session, []), h2Request(session, [])])
        session.destroy()
        assert.ok(responses.every(({ status }) => status === 200))
      }
      return names.map((name) => {
        const at = scene.stubs.map(
          ({ seen }) => seen.filter((one) => one.values('impersonate-user')[0] === name).length,
        )
        assert.deepEqual([...at].sort(), [0, 0, 4], `${name} on ${at.join(' ')}`)
        return at.indexOf(4)
      })
    }
    const before = await homes()
    assert.deepEqual([...new Set(before)].sort(), [0, 1, 2], 'clients spread')
    scene.change({ servers: scene.stubs.map(({ url }, i) => ({ endpoint: url, disabled: i === 0 })) })
    const without = await homes()
    for (const [i, home] of without.entries()) {
      if (before[i] === 0) assert.notEqual(home, 0)
      else assert.equal(home, before[i], `${names[i]} moved without need`)
    }
    scene.change({})
    assert.deepEqual(await homes(), before)
  })

  test('RoundRobin stays exact when endpoints are disabled and enabled', async () => {
    const scene = await setUp(3)
    const servers = (disabled: number): UpstreamClusterSpec['servers'] =>
      scene.stubs.map(({ url }, i) => ({ endpoint: url, disabled: i === disabled }))
    for (let i = 0; i < 30; i++) {
      scene.change({ servers: servers(i % 4) }) // 3 = none
      const enabled = i % 4 === 3 ? 3 : 2
      const counts = await spread(scene, 10 * enabled, 7)
      for (const [at, count] of counts.entries()) assert.equal(count, at === i % 4 ? 0 : 10)
    }
  })

  test('RoundRobin continues where it was when the object changes', async () => {
    const scene = await setUp(3)
    const total = [0, 0, 0]
    for (let i = 0; i < 60; i++) {
      scene.change({ healthCheck: { ...NO_CHECKS, timeoutSeconds: 3 + (i % 2) } })
      const counts = await spread(scene, 1)
      for (const [at, count] of counts.entries()) total[at] = (total[at] ?? 0) + count
    }
    assert.deepEqual(total, [20, 20, 20])
  })
})

describe('health checks', () => {
  test('an unhealthy endpoint gets no traffic until it has recovered', async () => {
    const scene = await setUp(2, { healthCheck: OFTEN })
    stubOf(scene, 0).healthy = false
    await waitFor('the check to fail', async () => (await statusOf(scene))[0]?.state === 'unhealthy')
    assert.deepEqual(await spread(scene, 40), [0, 40])
    stubOf(scene, 0).healthy = true
    await waitFor('the check to pass', async () => (await statusOf(scene))[0]?.state === 'healthy')
    assert.deepEqual(await spread(scene, 40), [20, 20])
  })

  test('thresholds: one failure changes nothing, and neither does one success', async () => {
    const healthCheck = { ...OFTEN, unhealthyThreshold: 3, healthyThreshold: 3 }
    const scene = await setUp(1, { healthCheck })
    const stub = stubOf(scene, 0)
    let probes = 0
    let pattern: (n: number) => boolean = (n) => n % 3 === 0 // two failures, one success ...
    stub.probe = (request) => reply(request, pattern(probes++) ? 200 : 500, '')
    const changes = (): unknown[] =>
      scene.gateway.logged
        .filter(({ message }) => message === 'endpoint health changed')
        .map(({ fields }) => fields['to'])
    await waitFor('ten probes', () => probes > 10)
    assert.deepEqual(changes(), ['healthy'])
    pattern = () => false
    await waitFor('the third failure', () => changes().length === 2)
    probes = 0
    pattern = (n) => n % 3 !== 0 // a failure, two successes ...
    await waitFor('ten more', () => probes > 10)
    assert.deepEqual(changes(), ['healthy', 'unhealthy'])
  })

  test('all unhealthy: 503 without Retry-After, and without addresses', async () => {
    const scene = await setUp(2, { healthCheck: OFTEN })
    for (const stub of scene.stubs) stub.healthy = false
    await waitFor('the checks', async () => (await statusOf(scene)).every(({ state }) => state === 'unhealthy'))
    const refused = await h2Request(sessionOf(scene), [])
    assert.equal(refused.status, 503)
    assert.deepEqual(valuesOf(refused.head, 'retry-after'), [])
    assert.ok(!refused.body.includes('127.0.0.1'))
  })

  test('a broken connection is followed by a check, and a storm of them does not put it off', async () => {
    const scene = await setUp(1, { healthCheck: { intervalSeconds: 300, unhealthyThreshold: 1 } })
    await spread(scene, 1)
    await stubOf(scene, 0).stop()
    const send = async (): Promise<boolean> => (await h2Request(sessionOf(scene), [])).status === 503
    await waitFor('the check to fail, under constant traffic', send, { intervalMs: 5 })
  })

  test('a check that is not answered in time counts as failed', async () => {
    const scene = await setUp(1, { healthCheck: { ...OFTEN, timeoutSeconds: 0.05 } })
    stubOf(scene, 0).probe = () => undefined
    await waitFor('the check to fail', async () => (await statusOf(scene))[0]?.state === 'unhealthy')
    assert.equal((await h2Request(sessionOf(scene), [])).status, 503, 'it has never answered')
  })

  test('one that is late does not count while requests are answered, and by itself it does not end them', async () => {
    const scene = await setUp(1, { healthCheck: { ...OFTEN, timeoutSeconds: 1 } })
    await waitFor('the first check', async () => (await statusOf(scene))[0]?.state === 'healthy')
    let late = 0
    stubOf(scene, 0).probe = () => void late++
    const send = async (): Promise<number> => (await h2Request(sessionOf(scene), [])).status
    await waitFor('twice as many checks as fail an endpoint', async () => {
      assert.equal(await send(), 200)
      return late > 4
    })
    assert.equal((await statusOf(scene))[0]?.state, 'healthy')
    await waitFor('checks without requests', async () => (await statusOf(scene))[0]?.state === 'unhealthy')
    assert.equal(await send(), 200)
  })
})

describe('passive ejection', () => {
  test('an endpoint that refuses connections costs no request, and is left alone for a while', async () => {
    const scene = await setUp(3)
    await spread(scene, 30)
    await stubOf(scene, 0).stop()
    await waitFor('the ejection', async () => {
      assert.equal((await spread(scene, 40))[0], 0)
      const ejected = (await statusOf(scene)).map((endpoint) => endpoint.ejected)
      assert.deepEqual(ejected.slice(1), [false, false])
      return ejected[0] === true
    })
  })

  test('never more than half, and still no request is lost', async () => {
    const scene = await setUp(4)
    await spread(scene, 40)
    for (const i of [0, 1, 2]) await stubOf(scene, i).stop()
    let most = 0
    await waitFor('two ejections', async () => {
      assert.deepEqual(await spread(scene, 40), [0, 0, 0, 40])
      most = Math.max(most, (await statusOf(scene)).filter(({ ejected }) => ejected).length)
      return most >= 2
    })
    for (let i = 0; i < 10; i++) {
      assert.deepEqual(await spread(scene, 40), [0, 0, 0, 40])
      assert.ok((await statusOf(scene)).filter(({ ejected }) => ejected).length <= 2)
    }
  })

  test('one goes down while the other is still ejected: no request is lost', async () => {
    const scene = await setUp(2)
    await spread(scene, 20)
    const [first, second] = [stubOf(scene, 0), stubOf(scene, 1)]
    await first.stop()
    await waitFor('the ejection', async () => {
      assert.deepEqual(await spread(scene, 20), [0, 20])
      return (await statusOf(scene))[0]?.ejected === true
    })
    const again = await startStub(first.port)
    cleanups.push(again.stop)
    scene.stubs[0] = again
    await second.stop()
    for (let i = 0; i < 5; i++) assert.deepEqual(await spread(scene, 20), [20, 0])
  })

  test('never the last one: it is tried, and serves as soon as it can', async () => {
    const scene = await setUp(1)
    const stub = stubOf(scene, 0)
    await spread(scene, 1)
    await stub.stop()
    for (let i = 0; i < 10; i++) assert.equal((await h2Request(sessionOf(scene), [])).status, 502)
    assert.equal((await statusOf(scene))[0]?.ejected, false)
    const again = await startStub(stub.port)
    cleanups.push(again.stop)
    assert.equal((await h2Request(sessionOf(scene), [])).status, 200)
  })
})

describe('a broken connection', () => {
  test('under 500 concurrent reads and 100 writes: no read fails, no write is sent twice', async () => {
    const scene = await setUp(2)
    const held: SeenRequest[][] = [[], []]
    for (const [i, stub] of scene.stubs.entries()) stub.answer = (request) => held[i]?.push(request)
    const reads = Array.from({ length: 500 }, (_, i) => h2Request(sessionOf(scene, i), ['x-id', `read-${i}`]))
    const post = [':method', 'POST', ':path', '/api/v1/namespaces/default/pods']
    const writes = Array.from({ length: 100 }, (_, i) =>
      h2Request(sessionOf(scene, i), [...post, 'x-id', `write-${i}`], Buffer.from('{"kind":"Pod"}')),
    )
    await waitFor('all of them upstream', () => scene.stubs.reduce((sum, { seen }) => sum + seen.length, 0) === 600)
    for (const stub of scene.stubs) stub.answer = (request) => reply(request, 200, '{}')
    const lost = stubOf(scene, 0)
    assert.ok(lost.seen.length > 250)
    lost.breakConnections()
    for (const request of held[1] ?? []) reply(request, 200, '{}')

    for (const { status, resetCode } of await Promise.all(reads)) assert.deepEqual([status, resetCode], [200, 0])
    const codes = (await Promise.all(writes)).map(({ status }) => status)
    assert.ok(codes.every((code) => code === 200 || code === 502))
    assert.ok(codes.includes(502) && codes.includes(200), 'the writes on the lost connection fail, the others do not')
    const sent = new Map<string, number>()
    for (const stub of scene.stubs)
      for (const request of stub.seen) {
        const [id = ''] = request.values('x-id')
        sent.set(id, (sent.get(id) ?? 0) + 1)
      }
    for (const [id, times] of sent)
      assert.ok(times <= (id.startsWith('write') ? 1 : 2), `${id} was sent ${times} times`)
    assert.ok((await statusOf(scene)).every(({ inFlight }) => inFlight === 0))
  })

  test('after GOAWAY, in the middle of a list: a reset, never a clean end', async () => {
    const scene = await setUp(1)
    let begun: SeenRequest | undefined
    stubOf(scene, 0).answer = (request) => {
      begun = request
      request.stream.respond([':status', '200', 'content-type', 'application/json'])
      request.stream.write('{"items":[\n')
    }
    const stream = h2Open(sessionOf(scene), [])
    const response = h2Response(stream)
    await once(stream, 'data')
    begun?.session?.goaway(0)
    // An answer to this PING shows that the client has the GOAWAY, which was sent before.
    await new Promise<void>((resolve) => begun?.session?.ping(() => resolve()))
    begun?.session?.socket.destroy()
    assert.notEqual((await response).resetCode, 0)
  })

  test('a server that takes connections and closes them: 502, and not for ever', async () => {
    const scene = await setUp(1)
    const stub = stubOf(scene, 0)
    await spread(scene, 1)
    await stub.stop()
    const { pair } = stubServing()
    let taken = 0
    const closing = createServer({ cert: pair.certPem, key: pair.keyPem, ALPNProtocols: ['h2'] }, (socket) => {
      taken++
      socket.on('error', () => undefined)
      socket.end()
    })
    closing.on('tlsClientError', () => undefined)
    await new Promise<void>((resolve) => closing.listen(stub.port, '127.0.0.1', resolve))
    cleanups.push(() => void closing.close())
    assert.equal((await h2Request(sessionOf(scene), [])).status, 502)
    const forOne = taken
    assert.ok(forOne >= 1 && forOne < 10, `${forOne} connections for one request`)
    assert.equal((await h2Request(sessionOf(scene), [])).status, 502)
  })

  test('an answer of upstream is an answer, whatever its code: not sent again', async () => {
    const scene = await setUp(2)
    for (const code of [500, 502, 503, 429]) {
      for (const stub of scene.stubs) {
        stub.seen.length = 0
        stub.answer = (request) => reply(request, code, '{"kind":"Status"}', ['retry-after', '1'])
      }
      const got = await h2Request(sessionOf(scene), [])
      assert.deepEqual([got.status, got.body.toString()], [code, '{"kind":"Status"}'])
      assert.deepEqual(valuesOf(got.head, 'retry-after'), ['1'])
      assert.equal(
        scene.stubs.reduce((sum, { seen }) => sum + seen.length, 0),
        1,
      )
    }
  })
})
