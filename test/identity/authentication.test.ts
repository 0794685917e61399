// Bearer tokens and `kubectl --as`: who the clusters say a client is, how long that is remembered, and what upstream is told.

import assert from 'node:assert/strict'
import type { ClientHttp2Session } from 'node:http2'
import { after, before, beforeEach, describe, test } from 'node:test'
import type { UpstreamClusterSpec } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { createCA } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Open, h2Request, type Response, valuesOf } from '../harness/clients/h2-client.ts'
import { http1Connect, http1Request, requestHead } from '../harness/clients/http1-client.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { base64, clientPair, clusterObject } from '../harness/objects/objects.ts'
import { type SeenHttp1, SWITCH, startHttp1Stub } from '../harness/upstreams/stub-http1.ts'
import {
  reply,
  replyReview,
  type SeenReview,
  type StubUpstream,
  startStub,
} from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const HOST = 'prod.example.com'
const OTHER = 'other.example.com'
const clientCA = createCA({ commonName: 'clients' })
const admin = clientPair(clientCA, 'admin', ['ops', 'dev'])
let first: StubUpstream
let second: StubUpstream
let gateway: InProcessGateway
let session: ClientHttp2Session
let tokens = 0

before(async () => {
  first = await startStub()
  second = await startStub()
  gateway = await startInProcess([])
  session = h2Connect({ port: gateway.port })
})
after(async () => {
  session.destroy()
  await gateway.stop()
  await first.stop()
  await second.stop()
})
beforeEach(async () => {
  for (const stub of [first, second]) {
    stub.seen.length = 0
    stub.reviews.length = 0
    stub.tokens.clear()
    stub.answer = (request) => reply(request, 200, '{}')
    stub.answerToken = undefined
    stub.answerAccess = (review) => replyReview(review, { allowed: true })
    stub.healthy = true
  }
  await serve()
})

/** HOST on the first stub, OTHER on the second; takes requests when it returns. */
async function serve(spec: Partial<UpstreamClusterSpec> = {}, stubs: readonly StubUpstream[] = [first]): Promise<void> {
  gateway.apply([
    clusterObject(stubs, { clientCA, spec }),
    clusterObject([second], { name: OTHER, clientCA, spec: { clientConfig: { insecure: true, bearerToken: 'eA==' } } }),
  ])
  await waitFor('both clusters', async () => {
    const statuses = [await ask('', [':path', '/warm-up']), await ask('', [':path', '/warm-up', ':authority', OTHER])]
    return statuses.every(({ status }) => status === 200 || status === 401)
  })
  first.seen.length = 0
  second.seen.length = 0
}

/** A token that nothing remembers. */
function freshToken(): string {
  return `token-${++tokens}`
}

function ask(token: string, head: readonly string[] = []): Promise<Response> {
  const authority = head.includes(':authority') ? [] : [':authority', HOST]
  const credential = token === '' ? [] : ['authorization', `Bearer ${token}`]
  return h2Request(session, [...head, ...authority, ...credential])
}

const utf8 = (values: readonly string[] | undefined): string[] =>
  (values ?? []).map((value) => Buffer.from(value, 'latin1').toString('utf8'))

/** The extras of a request, with their keys as kube-apiserver reads them: lower-cased, then percent-decoded. */
function extrasOf(raw: readonly string[]): Record<string, string[]> {
  const extras: Record<string, string[]> = {}
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i]?.toLowerCase() ?? ''
    if (!name.startsWith('impersonate-extra-')) continue
    const key = decodeURIComponent(name.slice('impersonate-extra-'.length))
    extras[key] = [...(extras[key] ?? []), ...utf8([raw[i + 1] ?? ''])]
  }
  return extras
}

describe('a token', () => {
  test('is reviewed as the gateway, and upstream sees the whole user and not the token', async () => {
    const token = freshToken()
    const user = {
      username: 'system:serviceaccount:ns:builder',
      uid: 'a1b2-é',
      groups: ['system:serviceaccounts', 'system:serviceaccounts:ns', 'system:authenticated'],
      extra: {
        'authentication.kubernetes.io/pod-name': ['pod-1'],
        'authentication.kubernetes.io/credential-id': ['JTI=1'],
        scopes: ['a', 'b c', ''],
        'per%cent%2f': ['100%'],
        'Upper/Case': ['Value'],
        'upper/case': ['another'],
        'ünï·code key': ['wért'],
      },
    }
    first.tokens.set(token, user)
    assert.equal((await ask(token)).status, 200)
    const [review] = first.reviews
    assert.ok(review)
    assert.deepEqual(review.review, {
      kind: 'TokenReview',
      apiVersion: 'authentication.k8s.io/v1',
      spec: { token },
    })
    assert.equal(review.request.method, 'POST')
    assert.equal(review.request.path, '/apis/authentication.k8s.io/v1/tokenreviews')
    assert.deepEqual(review.request.values('authorization'), ['Bearer gateway-token'])
    assert.ok(!review.request.raw.some((text) => text.startsWith('impersonate-')))
    const [seen] = first.seen
    assert.ok(seen)
    assert.deepEqual(seen.values('impersonate-user'), [user.username])
    assert.deepEqual(utf8(seen.values('impersonate-uid')), [user.uid])
    assert.deepEqual(seen.values('impersonate-group'), user.groups)
    assert.deepEqual(extrasOf(seen.raw), user.extra)
    assert.deepEqual(seen.values('authorization'), ['Bearer gateway-token'])
    assert.ok(!seen.raw.some((text) => text.includes(token)))
    assert.ok(!JSON.stringify(gateway.logged).includes(token))
  })

  test('system:authenticated is added where the cluster did not', async () => {
    first.tokens.set('plain', { username: 'carol', groups: ['dev'] })
    await ask('plain')
    assert.deepEqual(first.seen[0]?.values('impersonate-group'), ['dev', 'system:authenticated'])
    assert.deepEqual(first.seen[0]?.values('impersonate-uid'), [])
  })

  const carol = { username: 'carol' }
  const rejected: [string, object | undefined][] = [
    ['no status', undefined],
    ['an empty status', {}],
    ['authenticated: false, with a user', { authenticated: false, user: carol }],
    ['a user without authenticated', { user: carol }],
    ['authenticated: "true"', { authenticated: 'true', user: carol }],
    ['authenticated: 1', { authenticated: 1, user: carol }],
    ['authenticated without user', { authenticated: true }],
    ['authenticated, user null', { authenticated: true, user: null }],
    ['authenticated, empty name', { authenticated: true, user: { username: '', groups: ['system:masters'] } }],
    ['authenticated, name no text', { authenticated: true, user: { username: 7 } }],
    ['an error', { error: 'token expired' }],
  ]
  for (const [name, status] of rejected) {
    test(`${name}: 401, nothing forwarded`, async () => {
      first.answerToken = (review) => replyReview(review, status ?? {})
      if (status === undefined) first.answerToken = ({ request }) => reply(request, 201, '{"kind":"TokenReview"}')
      const answer = await ask(freshToken())
      assert.equal(answer.status, 401)
      assert.equal(JSON.parse(answer.body.toString()).message, 'Unauthorized')
      assert.equal(first.seen.length, 0)
    })
  }

  const broken: [string, (review: SeenReview) => void][] = [
    ['500', ({ request }) => reply(request, 500, '{}')],
    ['503', ({ request }) => reply(request, 503, '{}')],
    ['429', ({ request }) => reply(request, 429, '{}', ['retry-after', '1'])],
    ['403', ({ request }) => reply(request, 403, '{}')],
    ['a redirect', ({ request }) => reply(request, 307, '', ['location', `${second.url}/`])],
    ['no JSON', ({ request }) => reply(request, 201, '<html>')],
    ['nothing at all', ({ request }) => reply(request, 201, '')],
    ['a reset', ({ request }) => request.stream.close(2)],
    ['a break in the middle', ({ request }) => request.session?.destroy()],
  ]
  for (const [name, answerToken] of broken) {
    test(`a review answered with ${name}: 503, not remembered`, async () => {
      const token = freshToken()
      first.answerToken = answerToken
      const answer = await ask(token)
      assert.equal(answer.status, 503)
      assert.deepEqual(valuesOf(answer.head, 'retry-after'), [])
      assert.equal(first.seen.length, 0)
      assert.equal(second.seen.length + second.reviews.length, 0)
      first.answerToken = undefined
      first.tokens.set(token, carol)
      // The endpoint may have to be found healthy again first.
      await waitFor('200', async () => (await ask(token)).status === 200)
    })
  }

  test('a review that one endpoint does not answer is asked of another', async () => {
    await serve({}, [first, second])
    const token = freshToken()
    first.answerToken = ({ request }) => reply(request, 503, '{}')
    second.tokens.set(token, carol)
    await waitFor('both endpoints', async () => {
      await ask('')
      return first.seen.length > 0 && second.seen.length > 0
    })
    assert.equal((await ask(token)).status, 200)
    for (let i = 0; first.reviews.length === 0 && i < 100; i++) {
      const next = freshToken()
      second.tokens.set(next, carol)
      assert.equal((await ask(next)).status, 200)
    }
    assert.equal(first.reviews.length, 1, 'the first was asked as well, and did not count')
  })

  test('audiences are asked for, and must be confirmed', async () => {
    await serve({ authentication: { audiences: ['gateway', 'api'] } })
    const confirm = (audiences: string[] | undefined): void => {
      first.answerToken = (review) => replyReview(review, { authenticated: true, user: carol, audiences })
    }
    confirm(undefined)
    assert.equal((await ask(freshToken())).status, 401, 'an audience-unaware server')
    assert.deepEqual(first.reviews[0]?.spec['audiences'], ['gateway', 'api'])
    confirm(['elsewhere'])
    assert.equal((await ask(freshToken())).status, 401)
    confirm(['elsewhere', 'api'])
    const token = freshToken()
    assert.equal((await ask(token)).status, 200)
    assert.equal(first.seen.length, 1)
    await serve({ authentication: { audiences: ['other'] } })
    assert.equal((await ask(token)).status, 401, 'an answer for other audiences does not count')
  })
})

describe('caching', () => {
  const carol = { username: 'carol' }

  test('50 requests with a new token at once: one review', async () => {
    for (const [user, status] of [
      [carol, 200],
      [undefined, 401],
    ] as const) {
      const token = freshToken()
      const held: SeenReview[] = []
      first.answerToken = (review) => held.push(review)
      first.reviews.length = 0
      const answers = Array.from({ length: 50 }, () => ask(token))
      await waitFor('the review', () => held.length > 0)
      // Everything sent before this answer has been read by the gateway, since it came on the same connection.
      await ask('')
      for (const review of held) replyReview(review, user === undefined ? {} : { authenticated: true, user })
      assert.deepEqual(new Set((await Promise.all(answers)).map((answer) => answer.status)), new Set([status]))
      assert.equal(first.reviews.length, 1)
    }
  })

  test('a client that leaves does not take the review of the others along', async () => {
    const token = freshToken()
    const held: SeenReview[] = []
    first.answerToken = (review) => held.push(review)
    const gone = h2Open(session, [':authority', HOST, 'authorization', `Bearer ${token}`])
    await waitFor('the review', () => held.length === 1)
    const waiting = ask(token)
    gone.close(8)
    await ask('')
    for (const review of held) replyReview(review, { authenticated: true, user: carol })
    assert.equal((await waiting).status, 200)
    assert.equal(first.reviews.length, 1)
    assert.equal(first.seen.filter((request) => request.values('impersonate-user')[0] === 'carol').length, 1)
  })

  test('a verified token, until its time is over: then a revoked one is 401', async () => {
    await serve({ authentication: { tokenSuccessTTLSeconds: 1 } })
    const token = freshToken()
    first.tokens.set(token, carol)
    for (let i = 0; i < 3; i++) assert.equal((await ask(token)).status, 200)
    assert.equal(first.reviews.length, 1)
    first.tokens.delete(token)
    await waitFor('401', async () => (await ask(token)).status === 401)
    assert.equal(first.reviews.length, 2)
  })

  test('a rejected token, until its time is over: then a good one is 200', async () => {
    await serve({ authentication: { tokenFailureTTLSeconds: 1 } })
    const token = freshToken()
    for (let i = 0; i < 3; i++) assert.equal((await ask(token)).status, 401)
    assert.equal(first.reviews.length, 1, 'a bad token does not hit upstream every time')
    first.tokens.set(token, carol)
    await waitFor('200', async () => (await ask(token)).status === 200)
    assert.equal(first.reviews.length, 2)
  })

  test('nothing, where the times are 0', async () => {
    await serve({ authentication: { tokenSuccessTTLSeconds: 0, tokenFailureTTLSeconds: 0 } })
    const token = freshToken()
    first.tokens.set(token, carol)
    for (let i = 0; i < 3; i++) assert.equal((await ask(token)).status, 200)
    first.tokens.delete(token)
    for (let i = 0; i < 3; i++) assert.equal((await ask(token)).status, 401)
    assert.equal(first.reviews.length, 6)
  })

  test('by cluster: the same token is two users', async (t) => {
    // Clusters of the same age, so that nothing but their names tells them apart.
    const fresh = await startInProcess([clusterObject([first]), clusterObject([second], { name: OTHER })])
    const client = h2Connect({ port: fresh.port })
    t.after(async () => {
      client.destroy()
      await fresh.stop()
    })
    const askAt = (authority: string): Promise<Response> =>
      h2Request(client, [':authority', authority, 'authorization', 'Bearer shared'])
    first.tokens.set('shared', carol)
    assert.equal((await askAt(HOST)).status, 200)
    assert.equal((await askAt(OTHER)).status, 401, 'known to one is not known to the other')
    second.tokens.set('shared', { username: 'dave' })
    second.seen.length = 0
    const later = await startInProcess([clusterObject([first]), clusterObject([second], { name: OTHER })])
    const again = h2Connect({ port: later.port })
    t.after(async () => {
      again.destroy()
      await later.stop()
    })
    for (const authority of [HOST, OTHER]) {
      await h2Request(again, [':authority', authority, 'authorization', 'Bearer shared'])
    }
    assert.deepEqual(first.seen.at(-1)?.values('impersonate-user'), ['carol'])
    assert.deepEqual(second.seen.at(-1)?.values('impersonate-user'), ['dave'])
  })

  test('a known token stays known while all endpoints are down; an unknown one is 503, not 401', async () => {
    const token = freshToken()
    first.tokens.set(token, carol)
    assert.equal((await ask(token)).status, 200)
    gateway.apply([clusterObject([first], { clientCA, spec: { servers: [{ endpoint: first.url, disabled: true }] } })])
    const known = await ask(token)
    assert.equal(known.status, 503)
    assert.match(known.body.toString(), /no endpoint of cluster/)
    const unknown = await ask(freshToken())
    assert.equal(unknown.status, 503)
    assert.match(unknown.body.toString(), /token could not be verified/)
    gateway.apply([clusterObject([first], { clientCA })])
    await waitFor('200', async () => (await ask(token)).status === 200)
    assert.equal(first.reviews.length, 1, 'remembered all the time')
  })

  test('the last endpoint is removed while a token is verified: an HTTP/1.1 upload is still read to its end', async (t) => {
    const token = freshToken()
    let asked: SeenReview | undefined
    first.answerToken = (review) => {
      asked = review
    }
    const client = await http1Connect({ port: gateway.port })
    t.after(() => client.destroy())
    const size = 16 * 1024 * 1024
    client.send(
      requestHead('POST /upload', [`Host: ${HOST}`, `Authorization: Bearer ${token}`, `Content-Length: ${size}`]),
    )
    const taken = new Promise<Error | null | undefined>((resolve) =>
      client.raw.socket.write(Buffer.alloc(size), resolve),
    )
    const review = await waitFor('the review', () => asked)
    gateway.apply([clusterObject([first], { clientCA, spec: { servers: [{ endpoint: first.url, disabled: true }] } })])
    replyReview(review, { authenticated: true, user: carol })
    assert.equal((await client.response()).status, 503)
    assert.equal((await taken) ?? undefined, undefined, 'the whole upload was taken')
  })
})

describe('how a token is sent', () => {
  const USER = { username: 'carol' }
  const forms: [string, string, string][] = [
    ['Bearer', 'Bearer T', 'carol'],
    ['lower case', 'bearer T', 'carol'],
    ['upper case', 'BEARER T', 'carol'],
    ['something behind it', 'Bearer T more', 'carol'],
    ['two spaces: no token', 'Bearer  T', 'system:anonymous'],
    ['no token', 'Bearer', 'system:anonymous'],
    ['Basic', 'Basic VDpU', 'system:anonymous'],
    ['another scheme', 'Digest T', 'system:anonymous'],
    ['no scheme', 'T', 'system:anonymous'],
    ['an empty field', '', 'system:anonymous'],
  ]
  for (const [name, value, user] of forms) {
    test(name, async () => {
      first.tokens.set('T', USER)
      const head = requestHead('GET /api/v1/pods', [`Authorization: ${value}`])
      assert.equal((await http1Request({ port: gateway.port }, head)).status, 200)
      assert.deepEqual(first.seen[0]?.values('impersonate-user'), [user])
      assert.deepEqual(first.seen[0]?.values('authorization'), ['Bearer gateway-token'])
    })
  }

  test('an invalid credential is 401 where anonymous is off', async () => {
    await serve({ authentication: { anonymous: false } })
    for (const value of ['Basic VDpU', 'Bearer  T', 'Bearer', '']) {
      const head = requestHead('GET /api/v1/pods', [`Authorization: ${value}`])
      assert.equal((await http1Request({ port: gateway.port }, head)).status, 401)
    }
    assert.equal(first.seen.length, 0)
  })

  test('a token that is not a string: 401', async () => {
    const head = Buffer.from(requestHead('GET /api/v1/pods', ['Authorization: Bearer \xff\xfe']), 'latin1')
    assert.equal((await http1Request({ port: gateway.port }, head)).status, 401)
    assert.equal(first.seen.length + first.reviews.length, 0)
  })

  test('the first of two fields counts', async () => {
    first.tokens.set('T', USER)
    const fields = ['Authorization: Bearer T', 'Authorization: Bearer unknown']
    await http1Request({ port: gateway.port }, requestHead('GET /api/v1/pods', fields))
    assert.deepEqual(first.seen[0]?.values('impersonate-user'), ['carol'])
    assert.deepEqual(
      first.reviews.map(({ spec }) => spec['token']),
      [],
      'and it was known',
    )
  })
})

describe('a token as WebSocket subprotocol', () => {
  const PREFIX = 'base64url.bearer.authorization.k8s.io.'
  const encode = (token: string): string => PREFIX + Buffer.from(token).toString('base64url')

  test('counts, and is not sent on', async (t) => {
    const stub = await startHttp1Stub()
    const reviewed: string[] = []
    stub.answer = (request) => answerReview(request, reviewed)
    stub.answerUpgrade = ({ socket }) => void socket.write(SWITCH)
    const local = await startInProcess([
      clusterObject([], {
        spec: {
          servers: [{ endpoint: stub.url }],
          clientConfig: { insecure: true, bearerToken: base64('gateway-token') },
          authentication: { tokenFailureTTLSeconds: 0 },
        },
      }),
    ])
    t.after(async () => {
      await local.stop()
      await stub.stop()
    })
    const upgrade = async (fields: string[]): Promise<number> => {
      const client = await http1Connect({ port: local.port })
      client.send(requestHead('GET /api/v1/namespaces/a/pods/p/exec', ['Connection: Upgrade', ...fields]))
      const { status } = await client.response()
      client.destroy()
      return status
    }
    const websocket = 'Upgrade: websocket'
    const good = encode('wörks')
    assert.equal(await upgrade([websocket, `Sec-WebSocket-Protocol: ${good}, v5.channel.k8s.io`]), 101)
    assert.deepEqual(reviewed, ['wörks'])
    assert.deepEqual(stub.upgrades[0]?.values('sec-websocket-protocol'), ['v5.channel.k8s.io'])
    assert.deepEqual(
      stub.upgrades[0]?.values('impersonate-user'),
      ['user of wörks'].map((text) => latin1(text)),
    )
    const lines = ['Sec-WebSocket-Protocol: v4.channel.k8s.io', `Sec-WebSocket-Protocol: ${good}`]
    assert.equal(await upgrade([websocket, ...lines]), 101)
    assert.deepEqual(stub.upgrades[1]?.values('sec-websocket-protocol'), ['v4.channel.k8s.io'])
    assert.equal(stub.upgrades.length, 2)

    assert.equal(await upgrade([websocket, `Sec-WebSocket-Protocol: ${good}`]), 401, 'another must remain')
    assert.equal(await upgrade([websocket, `Sec-WebSocket-Protocol: ${good}, ${encode('b')}, x`]), 401)
    assert.equal(await upgrade([websocket, `Sec-WebSocket-Protocol: ${PREFIX}%%%, x`]), 401)
    assert.equal(await upgrade([websocket, `Sec-WebSocket-Protocol: ${good}==, x`]), 401, 'no padding')
    assert.equal(await upgrade([websocket, `Sec-WebSocket-Protocol: ${encode('bad')}, x`]), 401)
    assert.equal(stub.upgrades.length, 2)

    const both = [websocket, 'Authorization: Bearer header', `Sec-WebSocket-Protocol: ${good}, x`]
    assert.equal(await upgrade(both), 101)
    assert.deepEqual(stub.upgrades[2]?.values('impersonate-user'), ['user of header'])
    assert.deepEqual(stub.upgrades[2]?.values('sec-websocket-protocol'), ['x'], 'not sent on either')

    const ordinary = requestHead('GET /api/v1/pods', [`Sec-WebSocket-Protocol: ${good}, x`])
    assert.equal((await http1Request({ port: local.port }, ordinary)).status, 200)
    assert.deepEqual(stub.seen.at(-1)?.values('impersonate-user'), ['system:anonymous'], 'no WebSocket, no token')
    assert.deepEqual(stub.seen.at(-1)?.values('sec-websocket-protocol'), ['x'])
  })

  const latin1 = (text: string): string => Buffer.from(text, 'utf8').toString('latin1')

  /** Every token but `bad` authenticates the user of its name. */
  function answerReview({ path, message, response }: SeenHttp1, reviewed: string[]): void {
    const chunks: Buffer[] = []
    message.on('data', (chunk: Buffer) => chunks.push(chunk))
    message.on('end', () => {
      if (!path.endsWith('/tokenreviews')) {
        response.end('{}')
        return
      }
      const { spec } = JSON.parse(Buffer.concat(chunks).toString()) as { spec: { token: string } }
      reviewed.push(spec.token)
      const status = spec.token === 'bad' ? {} : { authenticated: true, user: { username: `user of ${spec.token}` } }
      response.writeHead(201).end(JSON.stringify({ spec, status }))
    })
  }
})

describe('acting as another user', () => {
  let asAdmin: ClientHttp2Session
  before(() => {
    asAdmin = h2Connect({ port: gateway.port, serverName: HOST, certificate: admin })
  })
  after(() => asAdmin.destroy())

  const as = (fields: readonly string[], head: readonly string[] = []): Promise<Response> =>
    h2Request(asAdmin, [':authority', HOST, ...head, ...fields])

  let people = 0
  /** A user that no remembered review speaks of. */
  const newUser = (): string => `somebody-${++people}`

  const attributesOf = ({ spec }: SeenReview): unknown => spec['resourceAttributes']
  const attributes = (over: Record<string, string>): Record<string, string> => ({
    verb: 'impersonate',
    group: '',
    resource: 'users',
    subresource: '',
    namespace: '',
    name: '',
    ...over,
  })

  test('every item is reviewed, as the gateway and about the requester; upstream sees the other user only', async () => {
    const bob = newUser()
    const answer = await as([
      'impersonate-user',
      bob,
      'impersonate-group',
      'g1',
      'impersonate-group',
      'g2',
      'impersonate-uid',
      'uid-7',
      'impersonate-extra-scopes',
      'a',
      'impersonate-extra-scopes',
      'b',
      'impersonate-extra-example.com%2fkey',
      'c',
    ])
    assert.equal(answer.status, 200)
    const userextras = { group: 'authentication.k8s.io', resource: 'userextras' }
    const expected = [
      attributes({ name: bob }),
      attributes({ resource: 'groups', name: 'g1' }),
      attributes({ resource: 'groups', name: 'g2' }),
      attributes({ ...userextras, subresource: 'scopes', name: 'a' }),
      attributes({ ...userextras, subresource: 'scopes', name: 'b' }),
      attributes({ ...userextras, subresource: 'example.com/key', name: 'c' }),
      attributes({ group: 'authentication.k8s.io', resource: 'uids', name: 'uid-7' }),
    ]
    const byText = (a: unknown, b: unknown): number => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)
    assert.deepEqual(first.reviews.map(attributesOf).sort(byText), expected.sort(byText))
    for (const { request, spec, review } of first.reviews) {
      assert.equal(request.path, '/apis/authorization.k8s.io/v1/subjectaccessreviews')
      assert.equal(review['kind'], 'SubjectAccessReview')
      assert.deepEqual(request.values('authorization'), ['Bearer gateway-token'])
      assert.ok(!request.raw.some((text) => text.startsWith('impersonate-')), 'sent as the gateway')
      assert.equal(spec['user'], 'admin')
      assert.deepEqual(spec['groups'], ['ops', 'dev', 'system:authenticated'])
      assert.ok(JSON.stringify(spec['extra']).includes('X509SHA256='))
    }
    const [seen] = first.seen
    assert.ok(seen)
    assert.deepEqual(seen.values('impersonate-user'), [bob])
    assert.deepEqual(seen.values('impersonate-group'), ['g1', 'g2', 'system:authenticated'])
    assert.deepEqual(seen.values('impersonate-uid'), ['uid-7'])
    assert.deepEqual(extrasOf(seen.raw), { scopes: ['a', 'b'], 'example.com/key': ['c'] })
    assert.ok(!seen.raw.includes('admin'))
  })

  test('an allowed impersonation is remembered for the requester only', async () => {
    const bob = newUser()
    await as(['impersonate-user', bob])
    await as(['impersonate-user', bob])
    assert.equal(first.reviews.length, 1)
    first.answerAccess = (review) => replyReview(review, { allowed: false })
    const anonymous = await h2Request(session, [':authority', HOST, 'impersonate-user', bob])
    assert.equal(anonymous.status, 403)
    assert.equal(first.reviews.at(-1)?.spec['user'], 'system:anonymous')
    assert.equal(first.seen.length, 2)
  })

  test('one denied item is enough: 403 with user, verb, resource and reason', async () => {
    first.answerAccess = (review) => {
      const { name } = attributesOf(review) as { name: string }
      replyReview(review, name === 'system:masters' ? { allowed: false, reason: 'not you' } : { allowed: true })
    }
    const answer = await as(['impersonate-user', newUser(), 'impersonate-group', 'system:masters'])
    assert.equal(answer.status, 403)
    const status = JSON.parse(answer.body.toString()) as { reason: string; message: string }
    assert.equal(status.reason, 'Forbidden')
    assert.equal(
      status.message,
      'groups "system:masters" is forbidden: User "admin" cannot impersonate resource "groups" in API group "" at the cluster scope: not you',
    )
    assert.equal(first.seen.length, 0)
  })

  test('a service account: asked for by namespace and name, with its groups', async () => {
    await as(['impersonate-user', 'system:serviceaccount:ns-1:sa.x'])
    const expected = attributes({ resource: 'serviceaccounts', namespace: 'ns-1', name: 'sa.x' })
    assert.deepEqual(first.reviews.map(attributesOf), [expected])
    assert.deepEqual(first.seen[0]?.values('impersonate-group'), [
      'system:serviceaccounts',
      'system:serviceaccounts:ns-1',
      'system:authenticated',
    ])
  })

  test('names beyond ASCII', async () => {
    const name = `Zoë 王 ${newUser()}`
    await as(['impersonate-user', Buffer.from(name, 'utf8').toString('latin1')])
    assert.deepEqual(first.reviews.map(attributesOf), [attributes({ name })])
    assert.deepEqual(utf8(first.seen[0]?.values('impersonate-user')), [name])
  })

  const noAnswers: [string, (review: SeenReview) => void][] = [
    ['500', ({ request }) => reply(request, 500, '{}')],
    ['403', ({ request }) => reply(request, 403, '{"status":{"allowed":true}}')],
    ['no JSON', ({ request }) => reply(request, 201, 'allowed')],
    ['null', ({ request }) => reply(request, 201, 'null')],
    ['no status', ({ request }) => reply(request, 201, '{}')],
    ['a reset', ({ request }) => request.stream.close(2)],
  ]
  for (const [name, answerAccess] of noAnswers) {
    test(`a review answered with ${name}: 503, nothing forwarded, not remembered`, async () => {
      const bob = newUser()
      first.answerAccess = answerAccess
      assert.equal((await as(['impersonate-user', bob])).status, 503)
      assert.equal(first.seen.length, 0)
      first.answerAccess = (review) => replyReview(review, { allowed: true })
      await waitFor('200', async () => (await as(['impersonate-user', bob])).status === 200)
    })
  }

  for (const status of [{}, { allowed: 'true' }, { allowed: 1 }, { allowed: true, denied: true }, { denied: true }]) {
    test(`${JSON.stringify(status)} is not accepted`, async () => {
      first.answerAccess = (review) => replyReview(review, status)
      assert.equal((await as(['impersonate-user', newUser()])).status, 403)
      assert.equal(first.seen.length, 0)
    })
  }

  test('more values than anybody needs: 400, and no review', async () => {
    const groups = Array.from({ length: 300 }, (_, i) => ['impersonate-group', `g${i}`]).flat()
    assert.equal((await as(['impersonate-user', newUser(), ...groups])).status, 400)
    assert.equal(first.reviews.length, 0)
  })

  test('the rules of the cluster are those for the other user', async () => {
    const everything = { verbs: ['*'], apiGroups: ['*'], resources: ['*'] }
    await serve({
      dispatchPolicies: [
        { rules: [{ ...everything, users: ['admin'] }] },
        { rules: [{ verbs: ['*'], nonResourceURLs: ['*'] }] },
      ],
    })
    assert.equal((await as([])).status, 200)
    const bob = newUser()
    const answer = await as(['impersonate-user', bob])
    assert.equal(answer.status, 403)
    assert.ok(answer.body.toString().includes(bob))
    assert.equal(first.seen.length, 1)
  })

  test('a bad credential is 401 before anything is asked', async () => {
    const answer = await ask('an unknown token', ['impersonate-user', newUser()])
    assert.equal(answer.status, 401)
    assert.ok(!first.reviews.some(({ review }) => review['kind'] === 'SubjectAccessReview'))
  })
})
