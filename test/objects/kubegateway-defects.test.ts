// What KubeGateway gets wrong and no other test shows to be right here. docs/coming-from-kubegateway.md has the whole list, with
// the test for each; the last test here holds it to that.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import type { ClientHttp2Session } from 'node:http2'
import { connect as tcpConnect } from 'node:net'
import { join, resolve } from 'node:path'
import { afterEach, describe, mock, test } from 'node:test'
import { connect as tlsConnect } from 'node:tls'
import { checkUpstreamCluster } from '../../src/gateway/api/upstream-cluster/checks.ts'
import type { UpstreamCluster, UpstreamClusterSpec } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { createUpstreamClustersController } from '../../src/gateway/controllers/upstream-clusters.ts'
import { TlsContexts } from '../../src/gateway/io/listener/tls-contexts.ts'
import { createAccessReviewer } from '../../src/gateway/io/reviews/access-review.ts'
import { Upstreams } from '../../src/gateway/io/upstream/upstreams.ts'
import { ClusterTable } from '../../src/gateway/state/clusters.ts'
import { nodePemChecks } from '../../src/pki/io/pem-checks.ts'
import { createCA } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Request, valuesOf } from '../harness/clients/h2-client.ts'
import { http1Connect, http1Request, requestHead } from '../harness/clients/http1-client.ts'
import { openRaw } from '../harness/clients/raw-clients.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { ALLOW_ALL, base64, clientPair, clusterObject } from '../harness/objects/objects.ts'
import { freePorts } from '../harness/ports.ts'
import { localGuard } from '../harness/upstreams/local-guard.ts'
import { type SeenHttp1, startHttp1Stub } from '../harness/upstreams/stub-http1.ts'
import {
  reply,
  replyReview,
  type SeenRequest,
  type StubUpstream,
  startStub,
  stubServing,
} from '../harness/upstreams/stub-upstream.ts'
import { startUpgradeUpstream } from '../harness/upstreams/upgrade-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const PAGE = 'docs/coming-from-kubegateway.md'
const HOST = 'prod.example.com'
const EXEC = '/api/v1/namespaces/default/pods/web/exec?command=sh'
const POST = [':method', 'POST', ':path', '/api/v1/namespaces/default/pods']
const clientCA = createCA({ commonName: 'clients of prod' })
const alice = clientPair(clientCA, 'alice', ['dev'])

const cleanups: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

interface Scene {
  readonly stubs: StubUpstream[]
  /** The first one. */
  readonly stub: StubUpstream
  readonly gateway: InProcessGateway
  /** A connection of alice. */
  readonly session: ClientHttp2Session
  /** A connection without certificate. */
  readonly certless: ClientHttp2Session
  object(spec?: Partial<UpstreamClusterSpec>): UpstreamCluster
}

async function setUp(endpoints: number, spec: Partial<UpstreamClusterSpec> = {}): Promise<Scene> {
  const stubs: StubUpstream[] = []
  for (let i = 0; i < endpoints; i++) stubs.push(await startStub())
  const [stub] = stubs
  assert.ok(stub)
  const object: Scene['object'] = (more = {}) => clusterObject(stubs, { clientCA, spec: { ...spec, ...more } })
  const gateway = await startInProcess([object()])
  const session = h2Connect({ port: gateway.port, serverName: HOST, certificate: alice })
  const certless = h2Connect({ port: gateway.port, serverName: HOST })
  cleanups.push(...stubs.map((each) => () => each.stop()), gateway.stop, () => {
    session.destroy()
    certless.destroy()
  })
  return { stubs, stub, gateway, session, certless, object }
}

function upgradeHead(target: string, fields: readonly string[] = []): string {
  return requestHead(`GET ${target}`, ['Connection: Upgrade', 'Upgrade: SPDY/3.1', ...fields])
}

describe('who is who', () => {
  test('Impersonate-Uid: not without a user, and not unless a review allows it (defect 2)', async () => {
    const { stub, session, certless } = await setUp(1)
    stub.tokens.set('of-carol', { username: 'carol', uid: 'uid-of-carol' })
    const token = ['authorization', 'Bearer of-carol']
    const forged = ['impersonate-uid', 'uid-of-admin']
    for (const [client, fields] of [
      [session, forged],
      [certless, forged],
      [certless, [...token, ...forged]],
    ] as const) {
      assert.equal((await h2Request(client, fields)).status, 400)
    }
    const asked: string[] = []
    let allowed = ['users']
    stub.answerAccess = (review) => {
      const { resource } = review.spec['resourceAttributes'] as { resource: string }
      asked.push(resource)
      replyReview(review, { allowed: allowed.includes(resource) })
    }
    const asBob = ['impersonate-user', 'bob', 'impersonate-uid', 'uid-of-bob']
    assert.equal((await h2Request(session, asBob)).status, 403, 'the user alone is allowed')
    assert.deepEqual(new Set(asked), new Set(['uids', 'users']))
    assert.equal(stub.seen.length, 0, 'nothing was forwarded')
    allowed = ['users', 'uids']
    assert.equal((await h2Request(certless, [...token, ...asBob])).status, 200)
    assert.equal((await h2Request(certless, token)).status, 200)
    assert.deepEqual(
      stub.seen.map((seen) => seen.values('impersonate-uid')),
      [['uid-of-bob'], ['uid-of-carol']],
    )
  })

  test('the client address is that of the connection, whatever is said in front of TLS or in fields (defect 6)', async () => {
    const stub = await startStub()
    const [port = 0] = await freePorts(1)
    const accessControl = { allow: [{ sourceIPs: ['203.0.113.7'] }] }
    const object = clusterObject([stub], { clientCA, spec: { accessControl } })
    const listen = [
      { host: '127.0.0.1', port: 0 },
      { host: '127.0.0.1', port },
    ]
    const gateway = await startInProcess([object], { listen })
    cleanups.push(stub.stop, gateway.stop)
    const v1 = 'PROXY TCP4 203.0.113.7 127.0.0.1 4711 443\r\n'
    const v2 = Buffer.from('0d0a0d0a000d0a515549540a2111000ccb0071077f000001126701bb', 'hex')
    for (const each of [gateway.port, port]) {
      for (const preface of [v1, v2]) assert.equal(await handshakeBehind(each, preface), 'no TLS')
      assert.equal(await handshakeBehind(each, ''), 'TLS', 'without, there is')
      const claims = ['X-Forwarded-For: 203.0.113.7', 'X-Real-IP: 203.0.113.7', 'Forwarded: for=203.0.113.7']
      const answer = await http1Request({ port: each, serverName: HOST, cert: alice }, requestHead('GET /api', claims))
      assert.equal(answer.status, 403)
    }
    assert.equal(stub.seen.length, 0)
  })

  test('a token that a review calls wrong is remembered, also when the review says why (defect 8)', async () => {
    const { stub, certless } = await setUp(1)
    const token = ['authorization', 'Bearer expired']
    stub.answerToken = (review) => replyReview(review, { error: 'token expired' })
    for (let i = 0; i < 5; i++) assert.equal((await h2Request(certless, token)).status, 401)
    assert.equal(stub.reviews.length, 1)
  })

  test('an allowed impersonation works for half a minute at most without another review (defect 8)', async () => {
    let nowMs = 0
    const asked: string[] = []
    const reviewer = createAccessReviewer(
      () => nowMs,
      () => undefined,
    )
    const review = async (name: string, allowed: boolean): Promise<string> => {
      const attributes = { verb: 'impersonate', group: '', resource: 'users', subresource: '', namespace: '', name }
      const user = { name: 'alice', uid: '', groups: [], extra: {} }
      const call = (): Promise<{ status: number; body: string }> => {
        asked.push(name)
        return Promise.resolve({ status: 201, body: JSON.stringify({ status: { allowed } }) })
      }
      return (await reviewer.review({ cluster: 'prod', epoch: 0, user, attributes }, call)).kind
    }
    assert.equal(await review('bob', true), 'allowed')
    nowMs = 29_999
    assert.equal(await review('bob', false), 'allowed')
    nowMs = 30_000
    assert.equal(await review('bob', false), 'denied')
    assert.equal(asked.length, 2)
  })

  test('the verdict of a deleted cluster about a token does not count for a new one of the same name (defect 8)', async () => {
    const { stubs, stub, gateway, certless } = await setUp(2)
    const [, other] = stubs
    assert.ok(other)
    const at = (each: StubUpstream): UpstreamCluster => clusterObject([each], { clientCA })
    const token = ['authorization', 'Bearer of-carol']
    stub.tokens.set('of-carol', { username: 'carol' })
    gateway.apply([])
    gateway.apply([at(stub)])
    assert.equal((await h2Request(certless, token)).status, 200)
    gateway.apply([])
    assert.equal((await h2Request(certless, token)).status, 404)
    gateway.apply([at(other)])
    assert.equal((await h2Request(certless, token)).status, 401)
    assert.deepEqual([other.reviews.length, other.seen.length], [1, 0])
  })

  test('all endpoints unhealthy: 503 with a token, known or not, never 401 (defect 15)', async () => {
    const { stub, certless } = await setUp(1, { healthCheck: { intervalSeconds: 0.05, unhealthyThreshold: 1 } })
    const known = ['authorization', 'Bearer of-carol']
    stub.tokens.set('of-carol', { username: 'carol' })
    assert.equal((await h2Request(certless, known)).status, 200)
    stub.healthy = false
    const refused = await waitFor('the endpoint to be out', async () => {
      const answer = await h2Request(certless, known)
      assert.notEqual(answer.status, 401)
      return answer.status === 503 && answer
    })
    const unknown = await h2Request(certless, ['authorization', 'Bearer of-dave'])
    assert.equal(unknown.status, 503)
    for (const { head } of [refused, unknown]) assert.deepEqual(valuesOf(head, 'retry-after'), [])
    assert.equal(stub.reviews.length, 1)
  })
})

describe('objects', () => {
  const schema = (more: object): Partial<UpstreamClusterSpec> => ({
    flowControl: { flowControlSchemas: [{ name: 'all', ...more }] },
    dispatchPolicies: [{ ...ALLOW_ALL, flowControlSchemaName: 'all' }],
  })
  const { caPem } = { caPem: stubServing().ca.certPem }
  const harmless: [string, Partial<UpstreamClusterSpec>, string][] = [
    [
      'insecure beside a CA (defect 10)',
      { clientConfig: { insecure: true, bearerToken: 'eA==', caData: base64(caPem) } },
      'spec.clientConfig.insecure',
    ],
    [
      'globalCount without a global block (defect 11)',
      schema({ strategy: 'globalCount', maxRequestsInflight: { max: 1 } }),
      'spec.flowControl.flowControlSchemas[0].globalMaxRequestsInflight',
    ],
  ]
  for (const [what, spec, path] of harmless) {
    test(`${what}: a warning says what is in force instead, and the cluster is served`, async () => {
      const { stub, gateway } = await setUp(1)
      const object = clusterObject([stub], { name: 'doubtful.example.com', spec })
      const [problem, ...more] = checkUpstreamCluster(object, nodePemChecks, { serverRefusal: () => '' })
      assert.deepEqual(more, [])
      assert.deepEqual([problem?.severity, problem?.path], ['warning', path])
      assert.match(problem?.message ?? '', /has no effect/)
      gateway.apply([object])
      const session = h2Connect({ port: gateway.port, serverName: 'doubtful.example.com' })
      assert.equal((await h2Request(session, [':authority', 'doubtful.example.com'])).status, 200)
      session.destroy()
    })
  }

  const crashing: [string, Partial<UpstreamClusterSpec>, string][] = [
    ['a server that is no URL (defect 10)', { servers: [{ endpoint: 'https://[::1' }] }, 'spec.servers[0].endpoint'],
    [
      'a negative global maximum without a local one (defect 13)',
      schema({ strategy: 'globalCount', globalMaxRequestsInflight: { max: -1 } }),
      'spec.flowControl.flowControlSchemas[0].globalMaxRequestsInflight.max',
    ],
  ]
  for (const [what, spec, path] of crashing) {
    test(`${what}: the check says where, and in force it harms no other cluster`, async () => {
      const { stub, gateway, object, session } = await setUp(1)
      const bad = clusterObject([stub], { name: 'bad.example.com', spec })
      const errors = checkUpstreamCluster(bad, nodePemChecks).filter(({ severity }) => severity === 'error')
      assert.ok(
        errors.some((error) => error.path === path),
        errors.map((error) => error.path).join(', '),
      )
      gateway.apply([bad, object()])
      const wrong = h2Connect({ port: gateway.port, serverName: 'bad.example.com' })
      await h2Request(wrong, [':authority', 'bad.example.com'])
      wrong.destroy()
      assert.equal((await h2Request(session, [])).status, 200)
      gateway.apply([object()])
      assert.equal((await h2Request(session, [])).status, 200)
    })
  }

  test('a version that cannot be put in force changes nothing, one that can changes everything (defect 22)', async () => {
    const { stubs, gateway, object, session } = await setUp(2)
    const [first, second] = stubs
    assert.ok(first && second)
    gateway.apply([object({ servers: [{ endpoint: first.url }] })])
    const [one, two] = [clientPair(clientCA, 'one'), clientPair(clientCA, 'two')]
    const next = (key: string): UpstreamCluster =>
      object({
        servers: [{ endpoint: second.url }],
        secureServing: { clientCAData: base64(clientCA.certPem), certData: base64(one.certPem), keyData: base64(key) },
        dispatchPolicies: [{ rules: [{ verbs: ['list'], apiGroups: ['*'], resources: ['*'] }] }],
        degrade: { mode: 'ReadOnly' },
      })
    for (let i = 0; i < 3; i++) {
      gateway.apply([next(two.keyPem)])
      assert.equal((await h2Request(session, POST, Buffer.from('{}'))).status, 200)
      const fresh = h2Connect({ port: gateway.port, serverName: HOST, certificate: alice })
      assert.equal((await h2Request(fresh, POST, Buffer.from('{}'))).status, 200)
      fresh.destroy()
    }
    assert.deepEqual([first.seen.length, second.seen.length], [6, 0])
    gateway.apply([next(one.keyPem)])
    assert.equal((await h2Request(session, POST, Buffer.from('{}'))).status, 403)
    assert.equal((await h2Request(session, [])).status, 200)
    assert.deepEqual([first.seen.length, second.seen.length], [6, 1])
  })

  test('an older version that failed does not come back over a newer one (defect 20)', (context) => {
    context.after(() => mock.timers.reset())
    mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'setImmediate'] })
    const pair = clientPair(clientCA, 'serving')
    const clusters = new ClusterTable()
    const upstreams = new Upstreams(() => undefined, localGuard())
    context.after(() => upstreams.destroy())
    const quiet = (): void => undefined
    let failures = 0
    const controller = createUpstreamClustersController({
      clusters,
      upstreams,
      contexts: new TlsContexts({ cert: pair.certPem, key: pair.keyPem }),
      probes: { change: quiet },
      clock: { now: () => 0, monotonic: () => 0 },
      log: { debug: quiet, info: quiet, warn: quiet, error: () => failures++ },
    })
    const version = (revision: string, certificate: string): void => {
      const secureServing = { certData: base64(certificate), keyData: base64(pair.keyPem) }
      const servers = [{ endpoint: `https://127.0.0.1:${revision}` }]
      const object = clusterObject([], { spec: { servers, secureServing } })
      controller.follow(controller.compile({ clusters: new Map([[HOST, { object, revision }]]), problems: [] }))
    }
    const inForce = (): string | undefined => clusters.get(HOST)?.compiled.revision
    version('1', pair.certPem)
    version('2', 'broken')
    assert.deepEqual([inForce(), failures], ['1', 1])
    version('3', pair.certPem)
    // KubeGateway tries a failed one again after 5 s, from the copy that it had then.
    for (let second = 0; second < 600; second++) {
      mock.timers.tick(1_000)
      assert.deepEqual([inForce(), failures], ['3', 1])
    }
  })

  test('a rotated token of the gateway: in requests, reviews, health checks and upgrades (defect 19)', async () => {
    const stub = await startHttp1Stub()
    stub.answer = answerReviews
    const object = (token: string): UpstreamCluster =>
      clusterObject([], {
        clientCA,
        spec: {
          servers: [{ endpoint: stub.url }],
          clientConfig: { caData: base64(stub.caPem), bearerToken: base64(token) },
          healthCheck: { path: '/livez', intervalSeconds: 0.05 },
        },
      })
    const gateway = await startInProcess([object('first-token')])
    cleanups.push(stub.stop, gateway.stop)
    const options = { port: gateway.port, serverName: HOST }
    const ways = [
      '/livez',
      '/apis/authentication.k8s.io/v1/tokenreviews',
      '/apis/authorization.k8s.io/v1/subjectaccessreviews',
      '/api/v1/pods',
    ]
    for (const token of ['first-token', 'second-token', 'third-token']) {
      gateway.apply([object(token)])
      stub.seen.length = 0
      stub.upgrades.length = 0
      const user = [`Authorization: Bearer user-of-${token}`, `Impersonate-User: as-${token}`]
      assert.equal((await http1Request(options, requestHead('GET /api/v1/pods', user))).status, 200)
      const client = await http1Connect(options)
      client.send(upgradeHead(EXEC, user))
      assert.equal((await client.response()).status, 101)
      client.destroy()
      assert.deepEqual(stub.upgrades[0]?.values('authorization'), [`Bearer ${token}`])
      const sent = (path: string): string[] =>
        stub.seen.filter((seen) => seen.path === path).flatMap((seen) => seen.values('authorization'))
      for (const path of ways) await waitFor(path, () => sent(path).at(-1) === `Bearer ${token}`)
      // A health check may have been on its way at the change; nothing else was.
      for (const path of ways.slice(1)) assert.deepEqual(new Set(sent(path)), new Set([`Bearer ${token}`]), path)
    }
  })

  test('a removed cluster takes its upgraded sessions along (defect 18)', async () => {
    const upstream = await startUpgradeUpstream()
    const { gateway, object } = await setUp(1)
    cleanups.push(upstream.stop)
    gateway.apply([object({ servers: [{ endpoint: upstream.url }] })])
    const exec = await openRaw({ port: gateway.port, serverName: HOST, cert: alice, alpn: ['http/1.1'] })
    exec.send(upgradeHead(EXEC))
    await exec.until(/ 101 /)
    gateway.apply([])
    await waitFor('the session to end', () => exec.socket.destroyed)
    await waitFor('the upstream side to be closed', () => upstream.open.size === 0)
  })
})

describe('health', () => {
  test('the health path of the object is probed, and decides whether an endpoint is used (defect 25)', async () => {
    const path = '/livez?exclude=etcd'
    const { stub, gateway, session } = await setUp(1, {
      healthCheck: { path, intervalSeconds: 0.05, unhealthyThreshold: 2 },
    })
    assert.ok(stub.seen.some((seen) => seen.path === path))
    const changes = (): unknown[] =>
      gateway.logged.filter(({ message }) => message === 'endpoint health changed').map(({ fields }) => fields['to'])
    let status = 500
    stub.answer = (request) => reply(request, request.path === path ? status : 200, '{}')
    await waitFor('it to go', async () => (await h2Request(session, [])).status === 503)
    status = 200
    await waitFor('it to come', async () => (await h2Request(session, [])).status === 200)
    assert.deepEqual(changes(), ['healthy', 'unhealthy', 'healthy'], 'each change is told once')
  })
})

describe('what goes through', () => {
  test('escapes and the order of the query arrive as they were sent, upgrades too (defect 26)', async () => {
    const { stub, gateway, session, object } = await setUp(1)
    const upstream = await startHttp1Stub()
    cleanups.push(upstream.stop)
    const query = 'stdin=true&command=sh&command=-c&container=x%20y&command=echo+%2F&=&a;b'
    const target = `/api/v1/namespaces/a%2Fb/pods/p%2520/exec?${query}`
    const plain = target.replace('/exec?', '/log?')
    assert.equal((await h2Request(session, [':path', plain])).status, 200)
    const options = { port: gateway.port, serverName: HOST, cert: alice }
    assert.equal((await http1Request(options, requestHead(`GET ${plain}`))).status, 200)
    assert.deepEqual(
      stub.seen.map(({ path }) => path),
      [plain, plain],
    )
    gateway.apply([object({ servers: [{ endpoint: upstream.url }] })])
    const client = await http1Connect(options)
    client.send(upgradeHead(target))
    assert.equal((await client.response()).status, 101)
    client.destroy()
    assert.equal(upstream.upgrades[0]?.path, target)
    assert.equal((await h2Request(session, [':path', plain])).status, 200)
    assert.equal(upstream.seen.at(-1)?.path, plain)
  })

  test('Cache-Control is that of upstream, once, and none is added (defect 27)', async () => {
    const { stub, gateway, session } = await setUp(1)
    const options = { port: gateway.port, serverName: HOST, cert: alice }
    const both = async (): Promise<string[][]> => [
      valuesOf((await h2Request(session, [])).head, 'cache-control'),
      (await http1Request(options, requestHead('GET /api/v1/pods'))).values('cache-control'),
    ]
    for (const values of [['no-cache, private'], ['public, max-age=60'], []]) {
      const fields = values.flatMap((value) => ['cache-control', value])
      stub.answer = (request) => reply(request, 200, '{}', fields)
      assert.deepEqual(await both(), [values, values])
    }
    const refused = await h2Request(session, [':path', '/clusters/nobody/api'])
    assert.deepEqual(valuesOf(refused.head, 'cache-control'), ['no-cache, private'])
  })

  const deaths: [string, (request: SeenRequest) => void][] = [
    ['connection closed', ({ session }) => void session?.socket.destroy()],
    // close() would send END_STREAM first.
    ['stream reset', ({ stream }) => void stream.destroy(new Error('gone'))],
    // RFC 9113 section 8.1 has it only behind a complete answer.
    ['stream reset with NO_ERROR', ({ stream }) => void stream.destroy()],
  ]
  for (const [what, die] of deaths) {
    test(`${what} in the middle of a list: neither a clean end nor a Status behind it (defect 28)`, async () => {
      const { stub, gateway, session } = await setUp(1)
      // Longer than what is held until it is whole.
      const begin = `{"items":[\n${' '.repeat(100_000)}`
      for (const fields of [[], ['content-length', '1000000']]) {
        stub.answer = (request) => {
          request.stream.respond([':status', '200', 'content-type', 'application/json', ...fields])
          request.stream.write(begin, () => setImmediate(() => die(request)))
        }
        const h2 = await h2Request(session, [])
        assert.notEqual(h2.resetCode, 0)
        assert.ok(begin.startsWith(h2.body.toString()))
        const options = { port: gateway.port, serverName: HOST, cert: alice }
        const http1 = await http1Request(options, requestHead('GET /api/v1/pods'))
        assert.equal(http1.status, 200)
        assert.equal(http1.complete, false)
        assert.ok(!http1.body.includes('Status'))
      }
    })
  }
})

/** Whether a TLS handshake succeeds on a connection that begins with `preface`. */
async function handshakeBehind(port: number, preface: string | Buffer): Promise<'TLS' | 'no TLS'> {
  const socket = tcpConnect({ host: '127.0.0.1', port })
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  if (preface.length > 0) socket.write(preface)
  const secure = tlsConnect({ socket, servername: HOST, rejectUnauthorized: false })
  const outcome = await new Promise<'TLS' | 'no TLS'>((resolve) => {
    secure.on('error', () => resolve('no TLS'))
    secure.on('close', () => resolve('no TLS'))
    secure.on('secureConnect', () => resolve('TLS'))
  })
  secure.destroy()
  socket.destroy()
  return outcome
}

/** Every token is valid, and every user may impersonate every other. */
function answerReviews({ path, message, response }: SeenHttp1): void {
  const chunks: Buffer[] = []
  message.on('data', (chunk: Buffer) => chunks.push(chunk))
  message.on('end', () => {
    if (path.endsWith('/tokenreviews')) {
      const { spec } = JSON.parse(Buffer.concat(chunks).toString()) as { spec: { token: string } }
      const status = { authenticated: true, user: { username: spec.token } }
      response.writeHead(201).end(JSON.stringify({ status }))
    } else if (path.endsWith('/subjectaccessreviews')) response.writeHead(201).end('{"status":{"allowed":true}}')
    else response.end('{}')
  })
}

interface Row {
  readonly number: number
  /** The last cell. */
  readonly shownBy: string
}

/** The rows of the tables whose first cell is a number. */
function defectRows(page: string): Row[] {
  return page.split('\n').flatMap((line) => {
    const cells = line
      .slice(1, -1)
      .split(/(?<!\\)\|/)
      .map((cell) => cell.trim())
    return line.startsWith('|') && /^\d+$/.test(cells[0] ?? '')
      ? [{ number: Number(cells[0]), shownBy: cells.at(-1) ?? '' }]
      : []
  })
}

/** Whether a string in the code of a test file has `name`: the text of a test, or of a row from which one is made. */
function hasTestNamed(source: string, name: string): boolean {
  return source
    .split('\n')
    .filter((line) => !/^\s*(\/\/|\*|\/\*)/.test(line))
    .some((line) =>
      [...line.matchAll(/'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|`((?:[^`\\]|\\.)*)`/g)].some((literal) =>
        (literal[1] ?? literal[2] ?? literal[3] ?? '').includes(name),
      ),
    )
}

test('every defect of KubeGateway has its row, and every row a test that exists', () => {
  const rows = defectRows(readFileSync(join(ROOT, PAGE), 'utf8'))
  assert.deepEqual(
    rows.map(({ number }) => number),
    rows.map((_, i) => i + 1),
    'in order, without a gap',
  )
  assert.ok(rows.length >= 33)
  for (const { number, shownBy } of rows) {
    if (/^out of scope: .{20,}/.test(shownBy)) continue
    const references = [...shownBy.matchAll(/`((?:test|src)\/[\w./-]+\.test\.ts)`: `([^`]+)`/g)]
    assert.ok(references.length > 0, `defect ${number} names no test`)
    for (const [, file = '', name = ''] of references) {
      assert.ok(existsSync(join(ROOT, file)), `defect ${number}: no file ${file}`)
      assert.ok(hasTestNamed(readFileSync(join(ROOT, file), 'utf8'), name), `defect ${number}: ${file} has no ${name}`)
    }
  }
})
