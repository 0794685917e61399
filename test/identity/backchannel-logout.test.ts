// A provider tells the gateway of a logout (OpenID Connect Back-Channel Logout 1.0): what ends, what does not, and what strangers can make of it.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { ClientHttp2Session, ClientHttp2Stream } from 'node:http2'
import { after, before, beforeEach, describe, test } from 'node:test'
import type { UpstreamCluster } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { LOGOUT_EVENT } from '../../src/gateway/core/logout/token-session.ts'
import { MAX_LOGOUT_BYTES } from '../../src/gateway/request/backchannel-logout.ts'
import { h2Connect, h2Open, h2Request, h2Response, type Response, valuesOf } from '../harness/clients/h2-client.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { clusterObject } from '../harness/objects/objects.ts'
import {
  startTokenIssuers,
  TEST_AUDIENCE,
  type TokenIssuers,
  type TokenOptions,
} from '../harness/servers/token-issuers.ts'
import { reply, replyReview, type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const PATH = '/clusters/-/backchannel-logout'
const FORM = 'application/x-www-form-urlencoded'
const FAILURES = 5

let issuers: TokenIssuers
let stub: StubUpstream
let gateway: InProcessGateway
const sessions: ClientHttp2Session[] = []
let users = 0

before(async () => {
  issuers = await startTokenIssuers()
  stub = await startStub()
  gateway = await startInProcess(objects(), { threads: 2 })
  for (const name of ['telling', 'too', 'silent', 'elsewhere']) {
    const token = issuers.token(name === 'elsewhere' ? 'other' : 'good', { aud: [TEST_AUDIENCE, 'second'] })
    await waitFor('the keys', async () => (await ask(name, token)) === 200)
  }
})
after(async () => {
  for (const session of sessions) session.destroy()
  await gateway?.stop()
  await stub?.stop()
  await issuers?.stop()
})
beforeEach(() => {
  stub.answer = (request) => {
    if (!request.path.includes('watch=1')) return reply(request, 200, '{}')
    request.stream.respond([':status', '200', 'content-type', 'application/json'])
    request.stream.write('{"type":"BOOKMARK"}\n')
  }
  stub.seen.length = 0
})

function object(
  name: string,
  issuer: string,
  backchannelLogout: boolean,
  audience = TEST_AUDIENCE,
  claimValidationRules: readonly { readonly claim: string; readonly requiredValue: string }[] = [],
): UpstreamCluster {
  const jwt = [
    {
      issuer: { url: issuers.url(issuer), certificateAuthority: issuers.ca, audiences: [audience] },
      claimMappings: { username: { claim: 'sub', prefix: 'oidc:' } },
      claimValidationRules,
      backchannelLogout,
    },
  ]
  return clusterObject([stub], { name, spec: { authentication: { jwt } } })
}

function objects(): UpstreamCluster[] {
  return [
    object('telling', 'good', true),
    object('too', 'good', true, 'second'),
    object('silent', 'good', false),
    object('elsewhere', 'other', true),
    // Its entry accepts no token, as when it has no keys.
    object('strict', 'good', true, TEST_AUDIENCE, [{ claim: 'hd', requiredValue: 'example.com' }]),
    federated(object('all', 'good', true)),
  ]
}

/** Hands logs over to `silent`, whose own issuer tells of no logout. */
function federated({ spec: { servers: _, clientConfig: __, ...spec }, ...object }: UpstreamCluster): UpstreamCluster {
  const federation = { resources: [{ version: 'v1', resource: 'pods' }] }
  return {
    ...object,
    spec: { ...spec, members: [{ name: 'silent', trustUsers: true }], federation },
  } as unknown as UpstreamCluster
}

/** Each test has its own: what has ended stays so. */
function newUser(): string {
  return `user-${++users}`
}

function connect(to: { readonly port: number } = gateway): ClientHttp2Session {
  const session = h2Connect({ port: to.port })
  sessions.push(session)
  return session
}

async function ask(cluster: string, token: string, session = connect()): Promise<number> {
  return (await h2Request(session, [':authority', cluster, 'authorization', `Bearer ${token}`])).status
}

async function watch(cluster: string, token: string): Promise<ClientHttp2Stream> {
  const head = [':authority', cluster, ':path', '/api/v1/pods?watch=1', 'authorization', `Bearer ${token}`]
  const stream = h2Open(connect(), head)
  await once(stream, 'data')
  return stream
}

function logoutToken(claims: Readonly<Record<string, unknown>>, options: TokenOptions = {}, issuer = 'good'): string {
  return issuers.token(issuer, { jti: 'j1', events: { [LOGOUT_EVENT]: {} }, sub: null, ...claims }, options)
}

interface Told extends Partial<Record<'type' | 'method' | 'path' | 'host', string>> {
  readonly body?: string
  readonly to?: { readonly port: number }
}

function tell(token: string, told: Told = {}): Promise<Response> {
  const { type = FORM, method = 'POST', path = PATH, host = 'gateway.example.com', to = gateway } = told
  const { body = new URLSearchParams({ logout_token: token }).toString() } = told
  const head = [':method', method, ':path', path, ':authority', host, 'content-type', type]
  return h2Request(connect(to), head, Buffer.from(body))
}

async function told(claims: Readonly<Record<string, unknown>>): Promise<void> {
  const { status, head, body } = await tell(logoutToken(claims))
  assert.equal(status, 200, String(body))
  assert.deepEqual(valuesOf(head, 'cache-control'), ['no-store'])
  // These objects are files.
  assert.deepEqual(JSON.parse(String(body)), { sessions: 'ended', inForce: 'this replica' })
}

test('the watches of the session end, on all threads and clusters, and its tokens are refused from then on', async () => {
  const sub = newUser()
  const aud = [TEST_AUDIENCE, 'second']
  const token = issuers.token('good', { sub, sid: 's1', aud })
  const next = issuers.token('good', { sub, sid: 's1', aud, jti: 'refreshed' })
  const others = issuers.token('good', { sub, sid: 's2' })
  const clusters = ['telling', 'telling', 'telling', 'telling', 'too']
  const watches = await Promise.all(clusters.map((name) => watch(name, token)))
  const stays = [await watch('telling', others), await watch('silent', token)]
  const ended = watches.map(h2Response)
  await told({ sub, sid: 's1', aud })
  for (const { resetCode } of await Promise.all(ended)) assert.equal(resetCode, 0, 'between two events')
  for (const refused of [token, next]) {
    const answer = await h2Request(connect(), [':authority', 'telling', 'authorization', `Bearer ${refused}`])
    assert.equal(answer.status, 401)
    assert.match(JSON.parse(String(answer.body)).message, /the session of the token has ended at its provider/)
    assert.equal(await ask('too', refused), 401)
  }
  // Another session; and a cluster whose issuer is not to tell it of logouts.
  for (const stream of stays) assert.equal(stream.closed, false)
  assert.equal(await ask('telling', others), 200)
  assert.equal(await ask('silent', token), 200)
  // GET /clusters names no cluster that would refuse it.
  const list = await h2Request(connect(), [':path', '/clusters', ':authority', 'x', 'authorization', `Bearer ${token}`])
  assert.deepEqual(JSON.parse(String(list.body)).clusters, [{ name: 'silent' }])
})

test('a log that a federated cluster has handed over ends with the session there', async () => {
  const sub = newUser()
  const token = issuers.token('good', { sub, sid: 's1' })
  const path = '/api/v1/namespaces/silent--default/pods/web/log?watch=1'
  const head = [':authority', 'all', ':path', path, 'authorization', `Bearer ${token}`]
  const stream = h2Open(connect(), head)
  await once(stream, 'data')
  await told({ sub, sid: 's1' })
  await waitFor('its end', () => stream.closed)
  assert.equal((await h2Request(connect(), head)).status, 401)
})

test('a token that only the cluster accepts, by its TokenReview, is refused and its watches end, too', async () => {
  const sub = newUser()
  const reviewed = ['s1', 's2'].map((sid) => issuers.token('good', { sub, sid }))
  stub.reviews.length = 0
  stub.answerToken = (review) => replyReview(review, { authenticated: true, user: { username: sub } })
  try {
    const watches = await Promise.all(reviewed.map((token) => watch('strict', token)))
    const ended = h2Response(watches[0] as ClientHttp2Stream)
    await told({ sub, sid: 's1' })
    assert.equal((await ended).resetCode, 0)
    assert.equal(watches[1]?.closed, false)
    assert.deepEqual(await Promise.all(reviewed.map((token) => ask('strict', token))), [401, 200])
    assert.deepEqual(new Set(stub.reviews.map(({ spec }) => spec['token'])), new Set(reviewed))
  } finally {
    stub.answerToken = undefined
  }
})

test('without a session: all of the user until then, and none after it', async () => {
  const sub = newUser()
  const now = Math.floor(Date.now() / 1000)
  const before = [issuers.token('good', { sub, sid: 's1' }), issuers.token('good', { sub, iat: now - 100 })]
  const stream = await watch('telling', before[0] ?? '')
  const ended = h2Response(stream)
  await told({ sub, iat: now })
  assert.equal((await ended).resetCode, 0)
  for (const token of before) assert.equal(await ask('telling', token), 401)
  assert.equal(await ask('telling', issuers.token('good', { sub, sid: 's1', iat: now + 1 })), 200)
})

test('the sid of another user, another audience and another issuer end nothing', async () => {
  const sub = newUser()
  const token = issuers.token('good', { sub, sid: 's1' })
  await told({ sub: newUser(), sid: 's1' })
  await told({ sub, sid: 's1', aud: 'second' })
  assert.equal((await tell(logoutToken({ sub, sid: 's1' }, {}, 'other'))).status, 200)
  assert.equal(await ask('telling', token), 200)
})

test('the same once more, and an old one, change nothing', async () => {
  const sub = newUser()
  const now = Math.floor(Date.now() / 1000)
  await told({ sub, iat: now - 10 })
  await told({ sub, iat: now - 10 })
  await told({ sub, iat: now - 60 })
  assert.equal(await ask('telling', issuers.token('good', { sub, iat: now - 20 })), 401)
  assert.equal(await ask('telling', issuers.token('good', { sub, iat: now - 5 })), 200)
  // Every token from before it has expired.
  await told({ sub, iat: now - 3 * 24 * 3600 })
})

test('a thread that starts later knows it', async () => {
  const sub = newUser()
  await told({ sub })
  for (const thread of [0, 1]) await gateway.crashThread(thread)
  const token = issuers.token('good', { sub, iat: Math.floor(Date.now() / 1000) - 60 })
  const other = issuers.token('good', { sub: newUser() })
  await waitFor('the threads', async () => (await ask('telling', other).catch(() => 0)) === 200)
  for (let n = 0; n < 8; n++) assert.equal(await ask('telling', token), 401)
})

test('it is answered at every host, and nowhere else', async () => {
  const sub = newUser()
  assert.equal((await tell(logoutToken({ sub }), { host: 'telling' })).status, 200)
  assert.equal((await tell(logoutToken({ sub }), { path: `${PATH}?x=1` })).status, 200)
  for (const method of ['GET', 'PUT']) assert.equal((await tell(logoutToken({ sub }), { method })).status, 404)
  for (const path of [
    `${PATH}/`,
    '/clusters/-/',
    '/clusters/-/Backchannel-Logout',
    '/clusters/--/backchannel-logout',
  ]) {
    assert.equal((await tell(logoutToken({ sub }), { path })).status, 404, path)
  }
  await tell(logoutToken({ sub }), { path: '/backchannel-logout', host: 'telling' })
  assert.equal(stub.seen.at(-1)?.path, '/backchannel-logout')
})

describe('refused, and nothing ends', () => {
  const now = (): number => Math.floor(Date.now() / 1000)
  const DEFECTS: Readonly<Record<string, (sub: string) => string>> = {
    'alg none': (sub) => logoutToken({ sub }, { by: 'none' }),
    'alg none, signed': (sub) => logoutToken({ sub }, { header: { alg: 'none' } }),
    'HS256 with the public key': (sub) => logoutToken({ sub }, { by: 'secret' }),
    'HS256 with the public key, said to be RS256': (sub) =>
      logoutToken({ sub }, { by: 'secret', header: { alg: 'RS256' } }),
    'a key of somebody else': (sub) => logoutToken({ sub }, { by: 'foreign' }),
    'critical extensions': (sub) => logoutToken({ sub }, { header: { crit: ['x'] } }),
    'another issuer': (sub) => logoutToken({ sub, iss: 'https://login.example.com' }),
    'no issuer': (sub) => logoutToken({ sub, iss: null }),
    'another audience': (sub) => logoutToken({ sub, aud: 'else' }),
    'no audience': (sub) => logoutToken({ sub, aud: null }),
    expired: (sub) => logoutToken({ sub, exp: now() - 1 }),
    'without end': (sub) => logoutToken({ sub, exp: null }),
    'not yet': (sub) => logoutToken({ sub, iat: now() + 3600 }),
    'without iat': (sub) => logoutToken({ sub, iat: null }),
    'without jti': (sub) => logoutToken({ sub, jti: null }),
    'with a nonce': (sub) => logoutToken({ sub, nonce: 'n' }),
    'without events': (sub) => logoutToken({ sub, events: null }),
    'another event': (sub) => logoutToken({ sub, events: { other: {} } }),
    'without session and user': () => logoutToken({}),
    'an ID token': (sub) => issuers.token('good', { sub }),
    'no token': () => 'token',
    'no token at all': () => '',
  }
  for (const [what, make] of Object.entries(DEFECTS)) {
    test(what, async () => {
      const sub = newUser()
      const { status, head, body } = await tell(make(sub))
      assert.equal(status, 400, String(body))
      assert.deepEqual(valuesOf(head, 'cache-control'), ['no-store'])
      assert.equal(JSON.parse(String(body)).error, 'invalid_request')
      assert.doesNotMatch(String(body), /eyJ/)
      assert.equal(await ask('telling', issuers.token('good', { sub })), 200)
    })
  }

  test('a stranger does not learn which issuers and audiences there are', async () => {
    const claims = [{}, { iss: 'https://login.example.com' }, { aud: 'else' }, { exp: 1 }]
    const texts = claims.map(async (more) =>
      String((await tell(logoutToken({ sub: 'x', ...more }, { by: 'foreign' }))).body),
    )
    assert.equal(new Set(await Promise.all(texts)).size, 1)
    assert.match(JSON.stringify(gateway.logged), /a logout token is not accepted/)
  })

  test('a body of another type, or with two tokens', async () => {
    const token = logoutToken({ sub: newUser() })
    assert.equal((await tell(token, { type: 'application/json' })).status, 400)
    assert.equal((await tell(token, { body: `logout_token=${token}&logout_token=${token}` })).status, 400)
    assert.equal((await tell(token, { body: `token=${token}` })).status, 400)
    assert.equal((await tell(token, { type: `${FORM}; charset=utf-8` })).status, 200)
  })

  test('a body that is too large', async () => {
    assert.equal((await tell('', { body: `logout_token=${'x'.repeat(MAX_LOGOUT_BYTES)}` })).status, 413)
  })

  test('a logout token is no credential', async () => {
    assert.equal(await ask('telling', logoutToken({ sub: newUser() })), 401)
  })

  test('nothing of a token is logged', () => assert.doesNotMatch(JSON.stringify(gateway.logged), /eyJ/))
})

test('unknown issuers make it ask nobody, and unknown keys hardly ever', async () => {
  const keys = `${new URL(issuers.url('good')).pathname}/keys`
  const before = issuers.asked.get(keys) ?? 0
  const total = [...issuers.asked.values()].reduce((sum, n) => sum + n, 0)
  for (let n = 0; n < 20; n++) await tell(logoutToken({ sub: 'x', iss: `${issuers.url('unknown')}${n}` }))
  assert.equal(
    [...issuers.asked.values()].reduce((sum, n) => sum + n, 0),
    total,
  )
  for (let n = 0; n < 20; n++)
    await tell(logoutToken({ sub: 'x', jti: String(n) }, { by: 'foreign', header: { kid: `k${n}` } }))
  assert.ok((issuers.asked.get(keys) ?? 0) - before <= 2)
})

test('forged tokens block their address; a good one gets through', async () => {
  const guarded = await startInProcess(objects(), { maxAuthenticationFailures: FAILURES })
  try {
    await waitFor('the keys', async () => (await tell(logoutToken({ sub: newUser() }), { to: guarded })).status === 200)
    await waitFor('the block', async () => {
      const forged = logoutToken({ sub: 'x', jti: String(Math.random()) }, { by: 'foreign' })
      return (await tell(forged, { to: guarded })).status === 429
    })
  } finally {
    await guarded.stop()
  }
})
