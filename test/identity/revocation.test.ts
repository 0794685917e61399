// spec.authentication.revoked: what is named there is refused at once, on whatever connection, by whatever memory, however
// the credential is written; and no other client is.

import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import type { ClientHttp2Session, ClientHttp2Stream } from 'node:http2'
import { after, before, beforeEach, describe, test } from 'node:test'
import { connect as tlsConnect } from 'node:tls'
import type { Revocation, UpstreamCluster } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { certificateHashes, revocableTokenHash, tokenHashes } from '../../src/gateway/io/reviews/credential-hashes.ts'
import { createCA, issueCertificate, type KeyPair } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Open, h2Request, h2Response, type Response } from '../harness/clients/h2-client.ts'
import { type Http1Client, http1Connect, http1Request, requestHead } from '../harness/clients/http1-client.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { base64, clientPair, clusterObject } from '../harness/objects/objects.ts'
import { type Http1Stub, type SeenHttp1, startHttp1Stub } from '../harness/upstreams/stub-http1.ts'
import { reply, replyReview, type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const HOST = 'prod.example.com'
const EXEC_HOST = 'exec.example.com'
const EXEC = '/api/v1/namespaces/default/pods/p/exec?command=sh'
const clientCA = createCA({ commonName: 'clients' })
const alice = clientPair(clientCA, 'alice', ['dev'])
const alicesOther = clientPair(clientCA, 'alice', ['dev'])
const bob = clientPair(clientCA, 'bob')
const nameless = issueCertificate(clientCA, { commonName: '', organizations: ['dev'], usage: 'client' })

let stub: StubUpstream
let http1: Http1Stub
let gateway: InProcessGateway
const open: { destroy(): void }[] = []

before(async () => {
  stub = await startStub()
  http1 = await startHttp1Stub()
  gateway = await startInProcess([])
})
after(async () => {
  for (const one of open) one.destroy()
  await gateway.stop()
  await stub.stop()
  await http1.stop()
})
beforeEach(async () => {
  for (const one of open.splice(0)) one.destroy()
  stub.answer = (request) => reply(request, 200, '{}')
  stub.answerAccess = (review) => replyReview(review, { allowed: true })
  stub.tokens.clear()
  stub.tokens.set('carols', { username: 'carol' })
  stub.tokens.set('daves', { username: 'dave' })
  http1.upgrades.length = 0
  http1.answer = answerHttp1
  gateway.apply(objects([]))
  const session = connect(bob)
  await waitFor('both clusters', async () => {
    const statuses = [await ask(session, HOST), await ask(session, EXEC_HOST)]
    return statuses.every(({ status }) => status === 200)
  })
  stub.seen.length = 0
  stub.reviews.length = 0
})

function objects(revoked: readonly Revocation[]): UpstreamCluster[] {
  const authentication = { revoked }
  return [
    clusterObject([stub], { clientCA, spec: { authentication } }),
    clusterObject([], {
      name: EXEC_HOST,
      clientCA,
      spec: {
        servers: [{ endpoint: http1.url }],
        clientConfig: { insecure: true, bearerToken: base64('gateway-token') },
        authentication,
      },
    }),
  ]
}

function revoke(...revoked: Revocation[]): void {
  gateway.apply(objects(revoked))
}

/** Without SNI, so that it can ask for any cluster. */
function connect(certificate?: KeyPair, port = gateway.port): ClientHttp2Session {
  const session = h2Connect({ port, ...(certificate === undefined ? {} : { certificate }) })
  open.push(session)
  return session
}

function ask(session: ClientHttp2Session, host = HOST, head: readonly string[] = []): Promise<Response> {
  return h2Request(session, [':authority', host, ...head])
}

function withToken(token: string): string[] {
  return ['authorization', `Bearer ${token}`]
}

function watch(session: ClientHttp2Session, head: readonly string[] = []): ClientHttp2Stream {
  return h2Open(session, [':authority', HOST, ':path', '/api/v1/pods?watch=1', ...head])
}

/** Watches stay open; everything else is answered. */
function holdWatches(): void {
  stub.answer = (request) => {
    if (request.path.includes('slow')) return
    if (!request.path.includes('watch=1')) return reply(request, 200, '{}')
    request.stream.respond([':status', '200', 'content-type', 'application/json'])
    request.stream.write('{"type":"BOOKMARK"}\n')
  }
}

/**
 * Clients have the first event of their watches. That upstream has seen the requests would not do: one that is cut before anything of its answer has
 * arrived is reset.
 */
async function begun(...watches: readonly ClientHttp2Stream[]): Promise<void> {
  await Promise.all(watches.map((stream) => once(stream, 'data')))
}

function answerHttp1({ path, message, response }: SeenHttp1): void {
  const chunks: Buffer[] = []
  message.on('data', (chunk: Buffer) => chunks.push(chunk))
  message.on('end', () => {
    if (!path.endsWith('/tokenreviews')) return response.end('{}')
    const { spec } = JSON.parse(Buffer.concat(chunks).toString()) as { spec: { token: string } }
    const status = { authenticated: true, user: { username: `user of ${spec.token}` } }
    return response.writeHead(201).end(JSON.stringify({ spec, status }))
  })
}

async function exec(client: KeyPair | undefined, fields: readonly string[] = []): Promise<Http1Client> {
  const connection = await http1Connect({ port: gateway.port, serverName: EXEC_HOST, ...(client && { cert: client }) })
  open.push(connection)
  const upgrade = ['Connection: Upgrade', 'Upgrade: websocket', ...fields]
  connection.send(requestHead(`GET ${EXEC}`, [`Host: ${EXEC_HOST}`, ...upgrade]))
  return connection
}

function fingerprint(pair: KeyPair): string {
  return new X509Certificate(pair.certPem).fingerprint256.replaceAll(':', '').toLowerCase()
}

function messageOf({ body }: { body: Buffer }): string {
  return (JSON.parse(body.toString()) as { message: string }).message
}

describe('a certificate', () => {
  test('that is revoked is refused on the connection it was good on a moment ago, and on a new one', async () => {
    const kept = connect(alice)
    assert.equal((await ask(kept)).status, 200)
    revoke({ certificateFingerprint: fingerprint(alice) })
    const refused = await ask(kept)
    assert.equal(refused.status, 401)
    assert.equal(messageOf(refused), 'Unauthorized: the client certificate is revoked')
    const { status } = await ask(connect(alice))
    assert.equal(status, 401)
    assert.equal((await ask(connect(alicesOther))).status, 200, 'another certificate of the same user')
    assert.equal((await ask(connect(bob))).status, 200)
  })

  test('is not made good by a token beside it, nor served as anonymous', async () => {
    revoke({ certificateFingerprint: fingerprint(alice) })
    assert.equal((await ask(connect(alice), HOST, withToken('carols'))).status, 401)
    assert.equal(stub.reviews.length, 0)
    assert.equal((await ask(connect())).status, 200, 'who shows none is anonymous')
  })

  test('that names no user does not get around it either', async () => {
    assert.equal((await ask(connect(nameless))).status, 200)
    revoke({ certificateFingerprint: fingerprint(nameless) })
    assert.equal((await ask(connect(nameless))).status, 401)
  })

  test('by the part of it that is signed', async () => {
    const der = new X509Certificate(alice.certPem).raw
    const [whole, signed = ''] = certificateHashes(der)
    assert.equal(whole, fingerprint(alice))
    revoke({ certificateFingerprint: signed })
    assert.equal((await ask(connect(alice))).status, 401)
    assert.equal((await ask(connect(bob))).status, 200)
  })

  test('resumed: the session of before brings no identity back', async () => {
    const options = { host: '127.0.0.1', port: gateway.port, ALPNProtocols: ['http/1.1'], rejectUnauthorized: false }
    const pair = { cert: alice.certPem, key: alice.keyPem }
    const speak = (ticket: Buffer | undefined): Promise<{ answer: string; ticket: Buffer | undefined }> =>
      new Promise((resolve, reject) => {
        const socket = tlsConnect({ ...options, ...pair, ...(ticket && { session: ticket }) }, () => {
          socket.write(requestHead('GET /api/v1/pods', [`Host: ${HOST}`, 'Connection: close']))
        })
        let text = ''
        let session: Buffer | undefined
        socket.on('session', (given: Buffer) => {
          session = given
        })
        socket.on('data', (chunk: Buffer) => {
          text += chunk.toString()
        })
        socket.on('error', reject)
        socket.on('close', () => resolve({ answer: text.slice(0, 12), ticket: session ?? socket.getSession() }))
      })
    const first = await speak(undefined)
    assert.equal(first.answer, 'HTTP/1.1 200')
    revoke({ certificateFingerprint: fingerprint(alice) })
    assert.equal((await speak(first.ticket)).answer, 'HTTP/1.1 401')
  })

  test('its watches and its short requests end; those of others run on', async () => {
    holdWatches()
    const theirs = watch(connect(alice))
    const others = watch(connect(bob))
    const ended = h2Response(theirs)
    await begun(theirs, others)
    const short = ask(connect(alice), HOST, [':path', '/api/v1/slow'])
    await waitFor('the short one', () => stub.seen.length === 3)
    revoke({ certificateFingerprint: fingerprint(alice) })
    assert.equal((await ended).resetCode, 0, 'between two events')
    assert.notEqual((await short).resetCode, 0)
    await waitFor('upstream to hear of it', () => stub.seen.filter(({ stream }) => stream.destroyed).length === 2)
    assert.equal(others.closed, false)
    revoke({ certificateFingerprint: fingerprint(alice) }, { user: 'carol' })
    assert.equal((await ask(connect(bob))).status, 200)
    assert.equal(others.closed, false, 'a change that is not about them')
  })

  test('an exec that runs is cut', async () => {
    const theirs = await exec(alice)
    assert.equal((await theirs.response()).status, 101)
    const others = await exec(bob)
    assert.equal((await others.response()).status, 101)
    revoke({ certificateFingerprint: fingerprint(alice) })
    await theirs.raw.closed
    await waitFor('upstream to hear of it', () => http1.upgrades[0]?.closed() === true)
    assert.equal(http1.upgrades[1]?.closed(), false)
    others.send('still there')
    await others.raw.until(/still there$/)
  })
})

describe('a user', () => {
  test('is out with every certificate and every token', async () => {
    stub.tokens.set('alices', { username: 'alice' })
    const [first, second, third] = [connect(alice), connect(alicesOther), connect()]
    assert.equal((await ask(third, HOST, withToken('alices'))).status, 200)
    revoke({ user: 'alice' })
    for (const session of [first, second]) {
      const refused = await ask(session)
      assert.equal(refused.status, 401)
      assert.equal(messageOf(refused), 'Unauthorized: user "alice" is revoked')
    }
    assert.equal((await ask(third, HOST, withToken('alices'))).status, 401)
    assert.equal((await ask(third, HOST, withToken('carols'))).status, 200)
  })

  test('may be impersonated, but may not impersonate', async () => {
    const as = ['impersonate-user', 'bob']
    assert.equal((await ask(connect(alice), HOST, as)).status, 200)
    holdWatches()
    const theirs = watch(connect(alice), as)
    const ended = h2Response(theirs)
    await begun(theirs)
    revoke({ user: 'alice' })
    assert.equal((await ended).resetCode, 0, 'what runs as bob ends, too')
    assert.equal((await ask(connect(alice), HOST, as)).status, 401)
    assert.equal((await ask(connect(bob), HOST, ['impersonate-user', 'alice'])).status, 200)
  })

  test('who is revoked while the answer about impersonation is awaited does not get through', async () => {
    let answer = (): void => undefined
    stub.answerAccess = (review) => {
      answer = () => replyReview(review, { allowed: true })
    }
    const pending = ask(connect(alice), HOST, ['impersonate-user', 'erin'])
    await waitFor('the question', () => stub.reviews.length === 1)
    revoke({ user: 'alice' })
    answer()
    assert.equal((await pending).status, 401)
    assert.equal(stub.seen.filter(({ path }) => path === '/api/v1/pods').length, 0)
  })

  test('who is revoked while the token is reviewed does not get through', async () => {
    let answer = (): void => undefined
    stub.answerToken = (review) => {
      answer = () => replyReview(review, { authenticated: true, user: { username: 'frank' } })
    }
    const pending = ask(connect(), HOST, withToken('franks'))
    await waitFor('the question', () => stub.reviews.length === 1)
    revoke({ user: 'frank' })
    answer()
    stub.answerToken = undefined
    assert.equal((await pending).status, 401)
  })

  test('system:anonymous can be revoked', async () => {
    revoke({ user: 'system:anonymous' })
    assert.equal((await ask(connect())).status, 401)
    assert.equal((await ask(connect(bob))).status, 200)
  })
})

describe('a token', () => {
  test('that is remembered is refused nevertheless, before anybody is asked', async () => {
    const token = 'fresh-token'
    stub.tokens.set(token, { username: 'carol' })
    const session = connect()
    assert.equal((await ask(session, HOST, withToken(token))).status, 200)
    assert.equal((await ask(session, HOST, withToken(token))).status, 200)
    assert.equal(stub.reviews.length, 1)
    revoke({ tokenHash: revocableTokenHash(token) })
    const refused = await ask(session, HOST, withToken(token))
    assert.equal(refused.status, 401)
    assert.equal(messageOf(refused), 'Unauthorized: the token is revoked')
    assert.equal((await ask(connect(), HOST, withToken(token))).status, 401)
    stub.healthy = false
    assert.equal((await ask(connect(), HOST, withToken(token))).status, 401)
    stub.healthy = true
    assert.equal(stub.reviews.length, 1)
    assert.equal((await ask(session, HOST, withToken('daves'))).status, 200)
    revoke()
    assert.equal((await ask(session, HOST, withToken(token))).status, 200, 'until it no longer is')
  })

  test('its watches end', async () => {
    holdWatches()
    const session = connect()
    const theirs = watch(session, withToken('carols'))
    const others = watch(session, withToken('daves'))
    const ended = h2Response(theirs)
    await begun(theirs, others)
    revoke({ tokenHash: revocableTokenHash('carols') })
    assert.equal((await ended).resetCode, 0)
    assert.equal(others.closed, false)
  })

  test('in the form of a WebSocket subprotocol', async () => {
    const protocol = (token: string): string =>
      `Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.${Buffer.from(token).toString('base64url')}, v5.channel.k8s.io`
    const before = await exec(undefined, [protocol('erins')])
    assert.equal((await before.response()).status, 101)
    const others = await exec(undefined, [protocol('daves')])
    assert.equal((await others.response()).status, 101)
    revoke({ tokenHash: revocableTokenHash('erins') })
    await before.raw.closed
    const again = await exec(undefined, [protocol('erins')])
    assert.equal((await again.response()).status, 401)
    const inHeader = await exec(undefined, ['Authorization: Bearer erins'])
    assert.equal((await inHeader.response()).status, 401)
    assert.equal(others.closed(), false)
  })

  test('a JWT that is written another way is the same', async () => {
    const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
    const claims = `${part({ alg: 'ES256' })}.${part({ sub: 'carol', jti: 'x' })}`
    const token = `${claims}.${Buffer.alloc(64, 7).toString('base64url')}`
    const variants = [
      token,
      // The last character has four bits that are not used.
      `${token.slice(0, -1)}${String.fromCharCode(token.charCodeAt(token.length - 1) + 1)}`,
      `${claims}.${Buffer.alloc(64, 8).toString('base64url')}`,
      token.replace('.', '.\t'),
    ]
    for (const variant of variants) stub.tokens.set(variant, { username: 'carol' })
    for (const variant of variants) assert.equal((await ask(connect(), HOST, withToken(variant))).status, 200, variant)
    const asJson = JSON.stringify({ payload: 'x', protected: 'y', signature: 'z' })
    stub.tokens.set(asJson, { username: 'carol' })
    const kept = connect()
    assert.equal((await ask(kept, HOST, withToken(asJson))).status, 200)
    revoke({ tokenHash: revocableTokenHash(token) })
    for (const variant of variants) assert.equal((await ask(connect(), HOST, withToken(variant))).status, 401, variant)
    assert.equal((await ask(connect(), HOST, withToken(asJson))).status, 401, 'cannot be recognised')
    assert.equal((await ask(kept, HOST, withToken(asJson))).status, 401, 'nor where it was remembered')
    revoke({ tokenHash: tokenHashes(token)[0] ?? '' })
    assert.equal((await ask(connect(), HOST, withToken(token))).status, 401, 'by its whole text')
  })
})

test('every thread ends what runs, at once', async (t) => {
  const threaded = await startInProcess(objects([]), { threads: 2 })
  t.after(() => threaded.stop())
  holdWatches()
  const sessions = Array.from({ length: 12 }, () => connect(alice, threaded.port))
  await waitFor('the cluster', async () => {
    return (await Promise.all(sessions.map((session) => ask(session)))).every(({ status }) => status === 200)
  })
  stub.seen.length = 0
  const watches = sessions.map((session) => watch(session))
  const ends = watches.map(h2Response)
  const theirs = watch(connect(bob, threaded.port))
  await begun(...watches, theirs)
  threaded.apply(objects([{ user: 'alice' }]))
  await threaded.applied()
  for (const { resetCode } of await Promise.all(ends)) assert.equal(resetCode, 0)
  assert.equal(theirs.closed, false)
  assert.equal((await ask(connect(alice, threaded.port))).status, 401)
})

test('a keep-alive connection of HTTP/1.1 is answered 401, and closed', async () => {
  const client = await http1Connect({ port: gateway.port, serverName: HOST, cert: alice })
  open.push(client)
  client.send(requestHead('GET /api/v1/pods'))
  assert.equal((await client.response()).status, 200)
  revoke({ certificateFingerprint: fingerprint(alice) })
  client.send(requestHead('GET /api/v1/pods'))
  const refused = await client.response()
  assert.equal(refused.status, 401)
  assert.deepEqual(refused.values('connection'), ['close'])
  assert.equal((await http1Request({ port: gateway.port, cert: bob }, requestHead('GET /api/v1/pods'))).status, 200)
})
