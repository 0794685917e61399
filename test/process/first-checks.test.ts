// Requests for clusters whose servers have not been checked yet: after a start with hundreds of clusters, and for new ones.

import assert from 'node:assert/strict'
import type { ClientHttp2Session } from 'node:http2'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { afterEach, describe, test } from 'node:test'
import type { UpstreamCluster } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { createCA } from '../../src/pki/io/pki.ts'
import type { Config } from '../../src/process/config/config.ts'
import { h2Connect, h2Open, h2Request, h2Response } from '../harness/clients/h2-client.ts'
import { http1Connect, requestHead } from '../harness/clients/http1-client.ts'
import { openRaw, type RawConnection } from '../harness/clients/raw-clients.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { base64, clientPair, clusterObject } from '../harness/objects/objects.ts'
import { reply, type SeenRequest, type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'
import { startUpgradeUpstream } from '../harness/upstreams/upgrade-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const clientCA = createCA({ commonName: 'clients' })
const alice = clientPair(clientCA, 'alice')
/** The timeout of checks and drains: longer than any test takes. */
const FOR_EVER_SECONDS = 60

const cleanups: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

/** Holds the checks of each cluster, known by its token, until they are answered. */
class Checks {
  readonly #held = new Map<string, SeenRequest[]>()
  readonly #answered = new Set<string>()

  constructor(stub: StubUpstream) {
    stub.probe = (request) => {
      const [token = ''] = request.values('authorization')
      const cluster = token.replace('Bearer ', '')
      if (this.#answered.has(cluster)) reply(request, 200, 'ok')
      else this.#held.set(cluster, [...(this.#held.get(cluster) ?? []), request])
    }
  }

  get begun(): number {
    return this.#held.size
  }

  /** Answers those of a cluster from now on. */
  answer(cluster: string): void {
    this.#answered.add(cluster)
    for (const request of this.#held.get(cluster) ?? []) reply(request, 200, 'ok')
  }
}

function cluster(stub: StubUpstream, name: string, spec: Partial<UpstreamCluster['spec']> = {}): UpstreamCluster {
  const clientConfig = { caData: base64(stub.caPem), bearerToken: base64(name) }
  const healthCheck = { timeoutSeconds: FOR_EVER_SECONDS }
  return clusterObject([stub], { name, clientCA, spec: { clientConfig, healthCheck, ...spec } })
}

/** A server that accepts connections and says nothing: cheaper than hundreds of handshakes, of which some would be too late on a busy machine. */
async function startDeaf(): Promise<{ endpoint: string; connections: Set<Socket> }> {
  const connections = new Set<Socket>()
  const server = createServer((socket) => connections.add(socket.on('error', () => undefined)))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanups.push(() => {
    for (const socket of connections) socket.destroy()
    server.close()
  })
  return { endpoint: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, connections }
}

const to = (name: string, path = '/api/v1/pods'): string[] => [':authority', name, ':path', path]

describe('a start with hundreds of clusters', () => {
  const names = Array.from({ length: 300 }, (_, i) => `c${i}.example.com`)
  const [first = '', last = '', other = '', silent = ''] = [0, 299, 298, 297].map((i) => names[i])

  for (const threads of [undefined, 2]) {
    test(`opens the ports before all are checked; a request waits for its own (threads: ${threads ?? 'none'})`, async () => {
      const stub = await startStub()
      cleanups.push(stub.stop)
      const checks = new Checks(stub)
      checks.answer(first)
      const deaf = await startDeaf()
      const heard = [first, last, other, silent]
      const objects = names.map((name) =>
        cluster(stub, name, heard.includes(name) ? {} : { servers: [{ endpoint: deaf.endpoint }] }),
      )
      const gateway = await startInProcess(objects, threads === undefined ? {} : { threads })
      cleanups.push(gateway.stop)
      const begun = checks.begun + deaf.connections.size
      assert.ok(begun < names.length, `${begun} checks have begun`)
      assert.equal((await fetch(`http://127.0.0.1:${gateway.adminPort}/readyz`)).status, 200)
      const session = h2Connect({ port: gateway.port, certificate: alice })
      cleanups.push(() => session.destroy())

      const [late, never] = [h2Request(session, to(last)), h2Request(session, to(silent))]
      const { status, body } = await h2Request(session, to(first))
      assert.equal(status, 200, `one that is checked does not wait: ${body}`)
      assert.deepEqual(
        stub.seen.map(({ values }) => values('authorization')),
        [[`Bearer ${first}`]],
      )
      checks.answer(last)
      assert.equal((await late).status, 200)
      // As always to a server of which nothing is known, once that has been waited for in vain.
      const given = await never
      assert.equal(given.status, 200, given.body.toString())
      assert.equal((await h2Request(session, to(silent))).status, 200)
      checks.answer(other)
      assert.equal((await h2Request(session, to(other))).status, 200)
    })
  }
})

interface Scene {
  readonly stub: StubUpstream
  readonly checks: Checks
  readonly gateway: InProcessGateway
  readonly session: ClientHttp2Session
}

const OLD = 'old.example.com'
const NEW = 'new.example.com'

/** A gateway in service that gets a new cluster. */
async function setUp(overrides: Partial<Config> = {}, spec: Partial<UpstreamCluster['spec']> = {}): Promise<Scene> {
  const stub = await startStub()
  cleanups.push(stub.stop)
  const checks = new Checks(stub)
  checks.answer(OLD)
  const gateway = await startInProcess([cluster(stub, OLD)], { drainTimeoutMs: FOR_EVER_SECONDS * 1000, ...overrides })
  const session = h2Connect({ port: gateway.port, certificate: alice })
  cleanups.push(gateway.stop, () => session.destroy())
  gateway.apply([cluster(stub, OLD), cluster(stub, NEW, spec)])
  return { stub, checks, gateway, session }
}

describe('a request that waits for the first check', () => {
  test('HTTP/1.1, a write with its body, and a watch', async () => {
    const { stub, checks, gateway, session } = await setUp()
    const client = await http1Connect({ port: gateway.port, cert: alice })
    cleanups.push(() => client.destroy())
    client.send(requestHead('GET /api/v1/pods', [], NEW))
    const body: Buffer[] = []
    stub.answer = (request) => {
      request.stream.on('data', (chunk: Buffer) => body.push(chunk))
      reply(request, 200, '{}\n')
    }
    const write = h2Request(session, [':method', 'POST', ...to(NEW)], Buffer.from('{"kind":"Pod"}'))
    const watch = h2Request(session, to(NEW, '/api/v1/pods?watch=1'))
    assert.equal((await h2Request(session, to(OLD))).status, 200)
    assert.equal(stub.seen.length, 1)
    checks.answer(NEW)
    assert.deepEqual([(await client.response()).status, (await write).status, (await watch).status], [200, 200, 200])
    await waitFor('the body', () => Buffer.concat(body).toString() === '{"kind":"Pod"}')
  })

  test('an upgrade', async () => {
    const upstream = await startUpgradeUpstream()
    upstream.held = []
    const { gateway } = await setUp({}, { servers: [{ endpoint: upstream.url }] })
    cleanups.push(upstream.stop)
    const exec = await openRaw({ port: gateway.port, cert: alice, alpn: ['http/1.1'] })
    cleanups.push(() => exec.destroy())
    exec.send(
      `GET /api/v1/namespaces/default/pods/web/exec?command=sh HTTP/1.1\r\nHost: ${NEW}\r\n` +
        'Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n',
    )
    await waitFor('the check', () => upstream.held?.length === 1)
    assert.equal(upstream.open.size, 0)
    for (const response of upstream.held) response.end('ok')
    await exec.until(/ 101 /)
  })

  test('with a token: it is not shown to a server that is not known to serve', async () => {
    const { stub, checks, gateway } = await setUp()
    stub.tokens.set('t', { username: 'carol' })
    const session = h2Connect({ port: gateway.port })
    cleanups.push(() => session.destroy())
    const answer = h2Request(session, [...to(NEW), 'authorization', 'Bearer t'])
    const wrong = h2Request(session, [...to(NEW), 'authorization', 'Bearer wrong'])
    assert.equal((await h2Request(session, to(OLD))).status, 200, 'anonymous')
    assert.equal(stub.reviews.length, 0)
    checks.answer(NEW)
    assert.deepEqual([(await answer).status, (await wrong).status], [200, 401])
    assert.equal(stub.reviews.length, 2)
  })

  test('is refused at once for a wrong certificate', async () => {
    const { gateway } = await setUp()
    const session = h2Connect({ port: gateway.port, certificate: clientPair(createCA({ commonName: 'no' }), 'alice') })
    cleanups.push(() => session.destroy())
    assert.equal((await h2Request(session, to(NEW))).status, 401)
  })

  test('is decided by the object in force afterwards', async () => {
    const { stub, checks, gateway, session } = await setUp()
    const answer = h2Request(session, to(NEW))
    const old = cluster(stub, OLD)
    assert.equal((await h2Request(session, to(OLD))).status, 200)
    gateway.apply([old, cluster(stub, NEW, { dispatchPolicies: [{ rules: [{ verbs: ['create'] }] }] })])
    checks.answer(NEW)
    assert.equal((await answer).status, 403)
  })

  test('is decided by the object in force afterwards, for a token, too', async () => {
    const { stub, checks, gateway } = await setUp()
    stub.tokens.set('t', { username: 'carol' })
    const session = h2Connect({ port: gateway.port })
    cleanups.push(() => session.destroy())
    const answer = h2Request(session, [...to(NEW), 'authorization', 'Bearer t'])
    assert.equal((await h2Request(session, to(OLD))).status, 200)
    const next = await startStub()
    cleanups.push(next.stop)
    next.tokens.set('t', { username: 'carol' })
    gateway.apply([cluster(stub, OLD), cluster(next, NEW)])
    checks.answer(NEW)
    assert.equal((await answer).status, 200)
    assert.deepEqual(
      [stub.reviews.length, next.reviews.length, next.seen.length],
      [0, 2, 1],
      'once more, for other servers',
    )
  })

  test('gives the share of a session back when the client leaves', async () => {
    const { checks, gateway, session } = await setUp({ maxWatches: 4 })
    const open = async (): Promise<RawConnection> => {
      const exec = await openRaw({ port: gateway.port, cert: alice, alpn: ['http/1.1'] })
      cleanups.push(() => exec.destroy())
      exec.send(
        `GET /api/v1/namespaces/default/pods/web/exec?command=sh HTTP/1.1\r\nHost: ${NEW}\r\n` +
          'Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n',
      )
      return exec
    }
    const waiting = [await open(), await open(), await open(), await open()]
    const refused = await open()
    await refused.until(/ 429 /)
    for (const exec of waiting) exec.destroy()
    await waitFor('room', async () => {
      const answer = h2Request(session, to(NEW, '/api/v1/pods?watch=1'))
      await h2Request(session, to(OLD))
      if ((await Promise.race([answer, undefined])) !== undefined) return false
      checks.answer(NEW)
      return (await answer).status === 200
    })
  })

  test('holds a share of its user, and gives it back when the client leaves', async () => {
    const most = 8
    const { checks, session } = await setUp({ maxRequestsInflight: most })
    const waiting = Array.from({ length: 4 * most }, () => h2Open(session, to(NEW)))
    const statuses = waiting.map(async (stream) => (await h2Response(stream)).status)
    const refused = await Promise.all(statuses.slice(most))
    assert.ok(refused.every((status) => status === 429))
    assert.equal((await h2Request(session, to(OLD))).status, 200, 'that is not for others')
    for (const stream of waiting) stream.close()
    await Promise.all(statuses)
    assert.equal((await h2Request(session, to(OLD))).status, 200)
    const again = Array.from({ length: most }, () => h2Request(session, to(NEW)))
    assert.equal((await h2Request(session, to(OLD))).status, 200)
    checks.answer(NEW)
    for (const { status } of await Promise.all(again)) assert.equal(status, 200)
  })

  test('is served in a drain', async () => {
    const { checks, gateway, session } = await setUp()
    const answer = h2Request(session, to(NEW))
    assert.equal((await h2Request(session, to(OLD))).status, 200)
    const stopped = gateway.stop()
    checks.answer(NEW)
    assert.equal((await answer).status, 200)
    session.close()
    await stopped
  })
})
