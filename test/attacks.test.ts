// Attacks on the request path: whatever a client sends, upstream sees exactly the identity that was authenticated, or nothing.

import assert from 'node:assert/strict'
import type { ClientHttp2Session } from 'node:http2'
import { connect as tcpConnect } from 'node:net'
import { after, before, beforeEach, describe, test } from 'node:test'
import { createCA, type KeyPair } from '../src/io/pki.ts'
import { h2Connect, h2Request, valuesOf } from './harness/h2-client.ts'
import {
  CONTINUATION,
  END_STREAM,
  frame,
  GOAWAY,
  HEADERS,
  headerBlock,
  headersFrames,
  openFrames,
  PING,
  RST_STREAM,
  readFrames,
  rstStream,
  SETTINGS,
} from './harness/h2-frames.ts'
import { http1Connect, http1Request, requestHead } from './harness/http1-client.ts'
import { type InProcessGateway, startInProcess } from './harness/in-process.ts'
import { clientPair, clusterObject } from './harness/objects.ts'
import { openRaw, type RawConnection } from './harness/raw-clients.ts'
import { type Http1Stub, SWITCH, startHttp1Stub } from './harness/stub-http1.ts'
import { reply, replyReview, type SeenRequest, type StubUpstream, startStub } from './harness/stub-upstream.ts'
import { waitFor } from './harness/wait.ts'

const HOST = 'prod.example.com'
const EXEC_HOST = 'exec.example.com'
const EXEC = '/api/v1/namespaces/default/pods/p/exec?command=sh'
const clientCA: KeyPair = createCA({ commonName: 'clients of prod' })
const alice = clientPair(clientCA, 'alice', ['dev'])
const ALICE_GROUPS = ['dev', 'system:authenticated']
let stub: StubUpstream
let other: StubUpstream
let http1: Http1Stub
let gateway: InProcessGateway
let session: ClientHttp2Session

before(async () => {
  stub = await startStub()
  other = await startStub()
  http1 = await startHttp1Stub()
  gateway = await startInProcess(
    [
      clusterObject([stub], { clientCA, spec: { authentication: { tokenFailureTTLSeconds: 0 } } }),
      clusterObject([other], { name: 'other.example.com', clientCA }),
      clusterObject([], {
        name: EXEC_HOST,
        clientCA,
        spec: {
          servers: [{ endpoint: http1.url }],
          clientConfig: { bearerToken: Buffer.from('gateway-token').toString('base64'), insecure: true },
        },
      }),
    ],
    { headerTimeoutMs: 1_000 },
  )
  session = h2Connect({ port: gateway.port, serverName: HOST, certificate: alice })
})
after(async () => {
  session.destroy()
  await gateway.stop()
  await stub.stop()
  await other.stop()
  await http1.stop()
})
beforeEach(() => {
  stub.seen.length = 0
  other.seen.length = 0
  http1.upgrades.length = 0
  http1.seen.length = 0
  stub.answer = (request) => reply(request, 200, '{"kind":"Stub"}')
  stub.answerToken = undefined
  stub.answerAccess = (review) => replyReview(review, { allowed: false, reason: 'no' })
  stub.tokens.clear()
})

const asAlice = (): { port: number; serverName: string; cert: KeyPair } => ({
  port: gateway.port,
  serverName: HOST,
  cert: alice,
})

/** All that upstream was told about who sent the request. */
function identityOf(request: SeenRequest): Record<string, string[]> {
  const told: Record<string, string[]> = {}
  for (let i = 0; i + 1 < request.raw.length; i += 2) {
    const name = request.raw[i] ?? ''
    if (!/impersonate|x-remote|authorization|x-forwarded-user/.test(name)) continue
    told[name] = [...(told[name] ?? []), request.raw[i + 1] ?? '']
  }
  return told
}

const ALICE = {
  authorization: ['Bearer gateway-token'],
  'impersonate-user': ['alice'],
  'impersonate-group': ALICE_GROUPS,
}

/** Exactly alice, whose certificate also has a credential id. */
function assertAlice(request: SeenRequest | undefined): void {
  assert.ok(request, 'nothing was forwarded')
  const { 'impersonate-extra-authentication.kubernetes.io%2fcredential-id': credential, ...told } = identityOf(request)
  assert.deepEqual(told, ALICE)
  assert.match(credential?.join() ?? '', /^X509SHA256=[0-9a-f]{64}$/)
}

/** The gateway has closed the connection. */
function ended(connection: RawConnection, timeoutMs = 10_000): Promise<true> {
  return waitFor('the gateway to close the connection', () => connection.socket.destroyed && true, {
    timeoutMs,
    intervalMs: 10,
  })
}

/** The gateway still serves others. */
async function assertServing(): Promise<void> {
  const fresh = h2Connect({ port: gateway.port, serverName: HOST, certificate: alice })
  try {
    assert.equal((await h2Request(fresh, [])).status, 200)
  } finally {
    fresh.destroy()
  }
}

describe('identity in header fields', () => {
  const dropped: [string, string[]][] = [
    ['front-proxy fields', ['X-Remote-User: admin', 'X-REMOTE-GROUP: system:masters', 'x-remote-uid: 0']],
    ['front-proxy extras', ['X-Remote-Extra-Scopes: all', 'x-Remote-eXtra-Foo%2fbar: x']],
    ['an empty Impersonate-User is none', ['Impersonate-User:']],
    ['impersonation fields of the future', ['Impersonate-Tenant: root', 'IMPERSONATE-X-Y: z']],
    ['Connection lists the identity', ['Connection: Impersonate-User, x-foo', 'X-Foo: 1']],
    ['Connection lists it in other letters', ['Connection: IMPERSONATE-user , impersonate-GROUP,keep-alive']],
    [
      'several Connection lines',
      ['Connection: keep-alive', 'Connection: impersonate-group', 'connection: authorization'],
    ],
    ['Connection lists extras', ['Connection: impersonate-extra-authentication.kubernetes.io%2fcredential-id']],
    ['Basic credentials', ['Authorization: Basic YWRtaW46YWRtaW4=']],
    ['two Authorization lines', ['Authorization: Basic eA==', 'authorization: Basic eQ==']],
    ['credentials for a proxy', ['Proxy-Authorization: Bearer x', 'Proxy-Connection: keep-alive']],
  ]
  for (const [name, fields] of dropped) {
    test(`HTTP/1.1: ${name}: dropped`, async () => {
      const answer = await http1Request(asAlice(), requestHead('GET /api/v1/pods', fields))
      assert.equal(answer.status, 200)
      assert.equal(stub.seen.length, 1)
      assertAlice(stub.seen[0])
      for (const gone of ['connection', 'x-foo', 'proxy-authorization', 'proxy-connection']) {
        assert.deepEqual(stub.seen[0]?.values(gone), [])
      }
    })
  }

  const refused: [string, string[]][] = [
    ['a uid without a user', ['Impersonate-Uid: 0']],
    ['a uid in other letters', ['IMPERSONATE-UID: 0']],
    ['a group without a user', ['Impersonate-Group: system:masters']],
    ['several groups', ['impersonate-group: a', 'Impersonate-Group: system:masters']],
    ['an extra without a user', ['Impersonate-Extra-Scopes: all']],
    ['a group beside an empty user', ['Impersonate-User:', 'Impersonate-Group: system:masters']],
    ['bytes that are no UTF-8', ['Impersonate-User: \xff\xfe']],
  ]
  for (const [name, fields] of refused) {
    test(`HTTP/1.1: ${name}: 400, nothing forwarded`, async () => {
      const answer = await http1Request(asAlice(), Buffer.from(requestHead('GET /api/v1/pods', fields), 'latin1'))
      assert.equal(answer.status, 400)
      assert.equal(stub.seen.length, 0)
    })
    test(`HTTP/2: ${name}: 400, nothing forwarded`, async () => {
      const list = fields.flatMap((field) => {
        const colon = field.indexOf(':')
        return [field.slice(0, colon).toLowerCase(), field.slice(colon + 1).trim()]
      })
      assert.equal((await h2Request(session, list)).status, 400)
      assert.equal(stub.seen.length, 0)
    })
  }

  test('HTTP/2: fields that speak for somebody else are dropped', async () => {
    const list = ['x-remote-user', 'admin', 'x-remote-group', 'system:masters', 'impersonate-tenant', 'root']
    assert.equal((await h2Request(session, list)).status, 200)
    assertAlice(stub.seen[0])
  })

  test('a user whom access reviews refuse: 403, nothing forwarded', async () => {
    const answer = await http1Request(
      asAlice(),
      requestHead('GET /api/v1/pods', ['Impersonate-User: admin', 'Impersonate-Uid: 7']),
    )
    assert.equal(answer.status, 403)
    assert.equal(stub.seen.length, 0)
  })

  test('of two users the first counts, and only that one is reviewed and sent', async () => {
    const asked: unknown[] = []
    stub.answerAccess = (review) => {
      const { resource, name } = review.spec['resourceAttributes'] as Record<string, string>
      asked.push([resource, name])
      replyReview(review, { allowed: name === 'bob' })
    }
    const fields = ['Impersonate-User: bob', 'impersonate-user: admin', 'IMPERSONATE-USER: root']
    const answer = await http1Request(asAlice(), requestHead('GET /api/v1/pods', fields))
    assert.equal(answer.status, 200)
    assert.deepEqual(asked, [['users', 'bob']])
    assert.deepEqual(identityOf(stub.seen[0] as SeenRequest), {
      authorization: ['Bearer gateway-token'],
      'impersonate-user': ['bob'],
      'impersonate-group': ['system:authenticated'],
    })
  })
})

describe('header injection', () => {
  for (const [name, value] of [
    ['CR LF', 'a\r\n b'],
    ['CR', 'a\rImpersonate-User: admin'],
    ['LF', 'a\nImpersonate-User: admin'],
    ['NUL', 'a\0b'],
    ['DEL', 'a\x7fb'],
    ['ESC', 'a\x1bb'],
  ]) {
    test(`HTTP/1.1: ${name} in a value: 400 and the connection ends`, async () => {
      const client = await http1Connect(asAlice())
      client.send(requestHead('GET /api/v1/pods', [`X-Foo: ${value}`]))
      assert.equal((await client.response()).status, 400)
      await ended(client.raw)
      assert.equal(stub.seen.length, 0)
    })
  }

  const request = [':method', 'GET', ':path', '/api/v1/pods', ':scheme', 'https', ':authority', HOST]
  for (const [name, list] of [
    ['CR LF in a value', [...request, 'x-foo', 'a\r\nimpersonate-user: admin']],
    ['LF in a value', [...request, 'x-foo', 'a\nb']],
    ['NUL in a value', [...request, 'x-foo', 'a\0b']],
    ['an upper-case name', [...request, 'Impersonate-User', 'admin']],
    ['a name with a space', [...request, 'impersonate-user ', 'admin']],
    ['a name with a colon', [...request, 'x:impersonate-user', 'admin']],
    ['a name with CR LF', [...request, 'x\r\nimpersonate-user', 'admin']],
    ['an empty name', [...request, '', 'admin']],
    ['connection', [...request, 'connection', 'impersonate-user']],
    ['transfer-encoding', [...request, 'transfer-encoding', 'chunked']],
    ['upgrade', [...request, 'upgrade', 'websocket']],
    ['a pseudo-header field behind others', [...request.slice(2), 'x-foo', '1', ':method', 'GET']],
    ['two paths', [...request, ':path', '/api/v1/secrets']],
    ['a status', [...request, ':status', '200']],
    ['no path', [':method', 'GET', ':scheme', 'https', ':authority', HOST]],
    ['an empty path', [':method', 'GET', ':path', '', ':scheme', 'https', ':authority', HOST]],
    ['a path with CR LF', [':method', 'GET', ':path', '/a\r\nx: y', ':scheme', 'https', ':authority', HOST]],
    ['a method with a space', [':method', 'GET /x', ':path', '/', ':scheme', 'https', ':authority', HOST]],
    ['host beside another authority', [...request, 'host', 'other.example.com']],
    ['two content-lengths', [...request, 'content-length', '0', 'content-length', '5']],
  ] as const) {
    test(`HTTP/2: ${name}: refused, or at least not forwarded`, async () => {
      const client = await openFrames(asAlice())
      client.send(headersFrames(1, headerBlock(list)))
      await waitFor('a reset, a refusal or the end', () =>
        readFrames(client.received()).some(
          ({ type, stream }) => ((type === RST_STREAM || type === HEADERS) && stream === 1) || type === GOAWAY,
        ),
      )
      client.destroy()
      // A malformed field may be left out (RFC 9113 section 8.2.1 wants the request refused); a malformed request may not pass.
      if (stub.seen.length > 0) {
        assert.match(name, /in a value|a name with|an empty name/)
        assertAlice(stub.seen[0])
        assert.ok(!stub.seen[0]?.raw.some((text) => text.includes('admin') || text === 'x-foo'))
      }
      assert.ok(stub.seen.length <= 1)
      assert.equal(other.seen.length, 0)
    })
  }

  type TokenUser = { username: string; uid?: string; groups?: string[]; extra?: Record<string, string[]> }
  const bad: [string, TokenUser][] = [
    ['name with CR LF', { username: 'eve\r\nImpersonate-Group: system:masters' }],
    ['name with LF', { username: 'eve\nadmin' }],
    ['name with NUL', { username: 'eve\0' }],
    ['name with a space at the end', { username: 'admin ' }],
    ['no name', { username: '' }],
    ['group with CR LF', { username: 'eve', groups: ['a\r\nImpersonate-Group: system:masters'] }],
    ['uid with LF', { username: 'eve', uid: '1\n2' }],
    ['extra with NUL', { username: 'eve', extra: { scopes: ['a\0'] } }],
  ]
  for (const [name, user] of bad) {
    test(`a token whose user has a ${name}: 401, nothing forwarded`, async () => {
      stub.answerToken = (review) => replyReview(review, { authenticated: true, user })
      const client = h2Connect({ port: gateway.port, serverName: HOST })
      const answer = await h2Request(client, ['authorization', `Bearer ${name}`])
      client.destroy()
      assert.equal(answer.status, 401)
      assert.equal(stub.seen.length, 0)
    })
  }

  for (const name of ['eve\r\nImpersonate-Group: system:masters', 'eve\nx', 'eve\0admin', ' eve']) {
    test(`a certificate for ${JSON.stringify(name)}: 401, nothing forwarded`, async () => {
      const client = h2Connect({ port: gateway.port, serverName: HOST, certificate: clientPair(clientCA, name) })
      const answer = await h2Request(client, [])
      client.destroy()
      assert.equal(answer.status, 401)
      assert.equal(stub.seen.length, 0)
    })
  }

  test('an extra key with CR LF arrives escaped, as one name', async () => {
    stub.tokens.set('t', { username: 'eve', extra: { 'a\r\nimpersonate-group': ['v'] } })
    const client = h2Connect({ port: gateway.port, serverName: HOST })
    await h2Request(client, ['authorization', 'Bearer t'])
    client.destroy()
    assert.deepEqual(stub.seen[0]?.values('impersonate-extra-a%0d%0aimpersonate-group'), ['v'])
    assert.deepEqual(stub.seen[0]?.values('impersonate-group'), ['system:authenticated'])
  })

  test('names beyond ASCII arrive as UTF-8 bytes', async () => {
    stub.tokens.set('utf8', { username: 'Zoë 王, O=x/%2F', groups: ['größe'] })
    const client = h2Connect({ port: gateway.port, serverName: HOST })
    await h2Request(client, ['authorization', 'Bearer utf8'])
    client.destroy()
    const utf8 = (values: string[] | undefined): string[] =>
      (values ?? []).map((value) => Buffer.from(value, 'latin1').toString('utf8'))
    assert.deepEqual(utf8(stub.seen[0]?.values('impersonate-user')), ['Zoë 王, O=x/%2F'])
    assert.deepEqual(utf8(stub.seen[0]?.values('impersonate-group')), ['größe', 'system:authenticated'])
  })
})

/** What a proxy that reads the first part differently would take for a request of its own. */
const HIDDEN = `GET /smuggled HTTP/1.1\r\nHost: ${HOST}\r\nConnection: close\r\n\r\n`

describe('request smuggling on HTTP/1.1', () => {
  const post = (fields: string[], body: string): string => requestHead('POST /api/v1/pods', fields) + body
  const chunkedThenHidden = `0\r\n\r\n${HIDDEN}`
  const hidden = `${HIDDEN.length.toString(16)}\r\n${HIDDEN}\r\n0\r\n\r\n`

  const malformed: [string, string][] = [
    ['TE and CL', post(['Transfer-Encoding: chunked', 'Content-Length: 6'], chunkedThenHidden)],
    ['CL and TE', post(['Content-Length: 6', 'Transfer-Encoding: chunked'], chunkedThenHidden)],
    ['CL 0 and TE', post(['Content-Length: 0', 'Transfer-Encoding: chunked'], hidden)],
    ['two different CLs', post(['Content-Length: 0', `Content-Length: ${HIDDEN.length}`], HIDDEN)],
    ['two equal CLs', post(['Content-Length: 5', 'Content-Length: 5'], `hello${HIDDEN}`)],
    ['a list of CLs', post([`Content-Length: 0, ${HIDDEN.length}`], HIDDEN)],
    ['CL with a sign', post(['Content-Length: +5'], `hello${HIDDEN}`)],
    ['negative CL', post(['Content-Length: -1'], HIDDEN)],
    ['hexadecimal CL', post(['Content-Length: 0x5'], `hello${HIDDEN}`)],
    ['CL with two numbers', post(['Content-Length: 0 5'], HIDDEN)],
    ['CL beyond 64 bits', post(['Content-Length: 18446744073709551621'], `hello${HIDDEN}`)],
    ['empty CL', post(['Content-Length:'], HIDDEN)],
    ['TE xchunked', post(['Transfer-Encoding: xchunked'], chunkedThenHidden)],
    ['TE with vertical tab', post(['Transfer-Encoding: \x0bchunked'], chunkedThenHidden)],
    ['TE chunked, identity', post(['Transfer-Encoding: chunked, identity'], chunkedThenHidden)],
    ['TE identity, chunked', post(['Transfer-Encoding: identity, chunked'], chunkedThenHidden)],
    ['TE gzip, chunked', post(['Transfer-Encoding: gzip, chunked'], chunkedThenHidden)],
    ['TE twice', post(['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'], chunkedThenHidden)],
    ['TE chunked, then identity', post(['Transfer-Encoding: chunked', 'Transfer-Encoding: x'], chunkedThenHidden)],
    ['TE in quotes', post(['Transfer-Encoding: "chunked"'], chunkedThenHidden)],
    ['TE with a parameter', post(['Transfer-Encoding: chunked;q=0'], chunkedThenHidden)],
    ['empty TE', post(['Transfer-Encoding:'], chunkedThenHidden)],
    ['space before the colon of TE', post(['Transfer-Encoding : chunked'], chunkedThenHidden)],
    ['space before the colon of CL', post([`Content-Length : ${HIDDEN.length}`], HIDDEN)],
    ['tab before a colon', post(['X-Foo\t: bar'], '')],
    ['obs-fold', post(['X-Foo: bar', ' Transfer-Encoding: chunked'], chunkedThenHidden)],
    ['obs-fold with a tab', post(['X-Foo: bar', '\tbaz'], '')],
    ['a first line that begins with a space', `GET /a HTTP/1.1\r\n X: y\r\nHost: ${HOST}\r\n\r\n`],
    ['a line without a colon', post(['X-Foo'], '')],
    ['an empty field name', post([': bar'], '')],
    ['bare LF behind the request line', `GET /a HTTP/1.1\nHost: ${HOST}\r\n\r\n`],
    ['bare LF behind a field', `GET /a HTTP/1.1\r\nHost: ${HOST}\nContent-Length: ${HIDDEN.length}\r\n\r\n${HIDDEN}`],
    ['bare LF at the end of the head', `GET /a HTTP/1.1\r\nHost: ${HOST}\r\n\n${HIDDEN}`],
    ['bare LF everywhere', `GET /a HTTP/1.1\nHost: ${HOST}\n\n${HIDDEN}`],
    ['bare CR in a field', post([`X-Foo: a\rContent-Length: ${HIDDEN.length}`], HIDDEN)],
    ['no Host', 'GET /api/v1/pods HTTP/1.1\r\n\r\n'],
    ['two versions', `GET /a HTTP/1.1 HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`],
    ['tab in the request line', `GET\t/a HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`],
    ['a lower-case method', `get /a HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`],
    ['an unknown method', `SMUGGLE /a HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`],
    ['NUL in the target', `GET /a\0b HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`],
    ['HTTP/0.9', 'GET /a\r\n\r\n'],
    ['HTTP/2 preface where HTTP/1.1 was negotiated', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['HTTP/3.0', `GET /a HTTP/3.0\r\nHost: ${HOST}\r\n\r\n`],
    ['TE on HTTP/1.0', `POST /a HTTP/1.0\r\nHost: ${HOST}\r\nTransfer-Encoding: chunked\r\n\r\n${hidden}`],
  ]
  for (const [name, bytes] of malformed) {
    test(`${name}: 400, the connection ends, nothing forwarded`, async () => {
      const client = await http1Connect(asAlice())
      client.send(Buffer.from(bytes, 'latin1'))
      await ended(client.raw)
      assert.match(client.raw.text(), /^HTTP\/1\.1 400 /)
      assert.equal(client.raw.text().match(/HTTP\/1\.1 /g)?.length, 1, 'one answer')
      assert.deepEqual(
        stub.seen.map(({ path }) => path),
        [],
      )
    })
  }

  for (const hosts of [
    [`Host: ${HOST}`, 'Host: other.example.com'],
    [`Host: x@${HOST}`],
    [`Host: ${HOST}/x`],
    [`Host: ${HOST} x`],
    [`Host: ${HOST}?x`],
  ]) {
    test(`${hosts.join(', ')}: 400, nothing forwarded`, async () => {
      assert.equal((await http1Request(asAlice(), requestHead('GET /api/v1/pods', hosts))).status, 400)
      assert.equal(stub.seen.length, 0)
      assert.equal(other.seen.length, 0)
    })
  }

  const brokenBodies: [string, string][] = [
    ['a chunk size beyond 64 bits', `1${'0'.repeat(16)}5\r\nhello\r\n0\r\n\r\n`],
    ['a negative chunk size', `-5\r\nhello\r\n0\r\n\r\n${HIDDEN}`],
    ['a chunk size with 0x', `0x5\r\nhello\r\n0\r\n\r\n${HIDDEN}`],
    ['a chunk size with a space', `5 \r\nhello\r\n0\r\n\r\n${HIDDEN}`],
    ['an empty chunk size', `\r\nhello\r\n0\r\n\r\n${HIDDEN}`],
    ['bare LF behind a chunk size', `5\nhello\r\n0\r\n\r\n${HIDDEN}`],
    ['bare LF behind a chunk', `5\r\nhello\n0\r\n\r\n${HIDDEN}`],
    ['bare LF at the end', `5\r\nhello\r\n0\n\n${HIDDEN}`],
    ['bare CR behind a chunk size', `5\rhello\r\n0\r\n\r\n${HIDDEN}`],
    ['LF in a chunk extension', `5;a=b\nhello\r\n0\r\n\r\n${HIDDEN}`],
    ['a chunk that is longer than it says', `4\r\nhello\r\n0\r\n\r\n${HIDDEN}`],
    ['a trailer with a space before the colon', `0\r\nX-Foo : bar\r\n\r\n${HIDDEN}`],
  ]
  for (const [name, body] of brokenBodies) {
    test(`${name}: the connection ends, upstream gets no complete request`, async () => {
      let complete = 0
      stub.answer = (request) => {
        request.stream.on('end', () => {
          if (request.stream.rstCode !== 0) return
          complete++
          reply(request, 200, '{}')
        })
        request.stream.resume()
      }
      const client = await http1Connect(asAlice())
      client.send(post(['Transfer-Encoding: chunked'], body))
      await ended(client.raw)
      assert.ok(!/^HTTP\/1\.1 2/.test(client.raw.text()), client.raw.text())
      await waitFor('upstream to hear of it', () => stub.seen.every(({ stream }) => stream.closed || stream.destroyed))
      assert.equal(complete, 0)
      assert.ok(!stub.seen.some(({ path }) => path === '/smuggled'))
    })
  }

  test('a chunk size beyond 32 bits is not cut off', async () => {
    const client = await http1Connect(asAlice())
    stub.answer = (request) => {
      const chunks: Buffer[] = []
      request.stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.stream.on('data', () => {
        if (Buffer.concat(chunks).includes('smuggled')) reply(request, 200, '{"all":"body"}')
      })
    }
    client.send(post(['Transfer-Encoding: chunked'], `100000005\r\nhello\r\n0\r\n\r\n${HIDDEN}`))
    assert.equal((await client.response()).body.toString(), '{"all":"body"}')
    await ended(client.raw)
    assert.equal(stub.seen.length, 1)
  })

  test('a request in the body of another is a body', async () => {
    const bodies: string[] = []
    stub.answer = (request) => {
      const chunks: Buffer[] = []
      request.stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.stream.on('end', () => {
        bodies.push(Buffer.concat(chunks).toString())
        reply(request, 200, '{}')
      })
    }
    const client = await http1Connect(asAlice())
    client.send(post([`Content-Length: ${HIDDEN.length}`], HIDDEN))
    assert.equal((await client.response()).status, 200)
    client.send(post(['Transfer-Encoding: Chunked'], hidden))
    assert.equal((await client.response()).status, 200)
    client.destroy()
    assert.deepEqual(bodies, [HIDDEN, HIDDEN])
    assert.deepEqual(
      stub.seen.map(({ path }) => path),
      ['/api/v1/pods', '/api/v1/pods'],
    )
  })

  test('behind a refusal that did not wait for the body the connection ends', async () => {
    const client = await http1Connect(asAlice())
    const head = requestHead('POST /clusters/nobody/api', [`Content-Length: ${HIDDEN.length + 10}`])
    client.send(head + HIDDEN)
    assert.equal((await client.response()).status, 404)
    client.send(`0123456789${HIDDEN}`)
    await ended(client.raw)
    assert.equal(client.raw.text().match(/HTTP\/1\.1 /g)?.length, 1, 'one answer')
    assert.equal(stub.seen.length, 0)
  })

  test('an answer with Content-Length to a HEAD does not shift the next one', async () => {
    stub.answer = ({ stream, method }) => {
      stream.respond([':status', '200', 'content-length', '50'], { endStream: method === 'HEAD' })
      if (method !== 'HEAD') stream.end('x'.repeat(50))
    }
    const client = await http1Connect(asAlice())
    client.send(requestHead('HEAD /api/v1/pods') + requestHead('GET /api/v1/pods'))
    assert.equal((await client.response({ noBody: true })).status, 200)
    assert.equal((await client.response()).body.toString(), 'x'.repeat(50))
    client.destroy()
  })
})

describe('too much of it', () => {
  const big = 'x'.repeat(2_000_000)

  test('HTTP/1.1: a header field of 2 MB: 431, the connection ends, others go on', async () => {
    const client = await http1Connect(asAlice())
    client.send(requestHead('GET /api/v1/pods', [`X-Big: ${big}`]))
    assert.equal((await client.response()).status, 431)
    await ended(client.raw)
    assert.equal(stub.seen.length, 0)
    await assertServing()
  })

  test('HTTP/1.1: more than 2,000 header fields: 431, the connection ends', async () => {
    const client = await http1Connect(asAlice())
    client.send(requestHead('GET /api/v1/pods', new Array<string>(2_100).fill('X-A: b')) + HIDDEN)
    assert.equal((await client.response()).status, 431)
    await ended(client.raw)
    assert.equal(stub.seen.length, 0)
  })

  test('HTTP/1.1: a head within the limits passes whole', async () => {
    const fields = Array.from({ length: 1_500 }, (_, i) => `X-${i}: ${i}`)
    const long = `/api/v1/pods?fieldSelector=${'y'.repeat(30_000)}`
    const answer = await http1Request(asAlice(), requestHead(`GET ${long}`, fields))
    assert.equal(answer.status, 200)
    assert.equal(stub.seen[0]?.path, long)
    assert.deepEqual(stub.seen[0]?.values('x-1499'), ['1499'])
  })

  for (const [name, fields] of [
    ['a header field of 2 MB', ['x-big', big]],
    ['more than 2,000 header fields', new Array<string[]>(2_100).fill(['x-a', 'b']).flat()],
  ] as const) {
    test(`HTTP/2: ${name}: stream or connection ends, others go on`, async () => {
      const client = await openFrames(asAlice())
      const list = [':method', 'GET', ':path', '/api/v1/pods', ':scheme', 'https', ':authority', HOST, ...fields]
      client.send(headersFrames(1, headerBlock(list)))
      await waitFor(
        'the end of stream or connection',
        () =>
          client.socket.destroyed ||
          readFrames(client.received()).some(({ type }) => type === RST_STREAM || type === GOAWAY),
      )
      client.destroy()
      assert.equal(stub.seen.length, 0)
      await assertServing()
    })
  }

  test('HTTP/2: CONTINUATIONs without end: the connection ends, others go on', async () => {
    const client = await openFrames(asAlice())
    client.send(frame(HEADERS, END_STREAM, 1, headerBlock([':method', 'GET'])))
    const piece = frame(CONTINUATION, 0, 1, headerBlock(['x-a', 'y'.repeat(1_000)]))
    await waitFor('the end of the connection', () => {
      if (client.socket.destroyed) return true
      for (let i = 0; i < 100; i++) client.send(piece)
      return false
    })
    assert.equal(stub.seen.length, 0)
    await assertServing()
  })

  test('HTTP/2: 5,000 streams opened and reset at once: upstream sees a bounded number, others go on', async () => {
    const held: SeenRequest[] = []
    stub.answer = (request) => held.push(request)
    const client = await openFrames(asAlice())
    const block = headerBlock([':method', 'GET', ':path', '/api/v1/pods', ':scheme', 'https', ':authority', HOST])
    for (let stream = 1; stream < 10_000; stream += 2) {
      client.send(Buffer.concat([headersFrames(stream, block), rstStream(stream, 8)]))
    }
    await waitFor(
      'GOAWAY or the end',
      () => client.socket.destroyed || readFrames(client.received()).some(({ type }) => type === GOAWAY),
    )
    client.destroy()
    assert.ok(stub.seen.length <= 1_100, `${stub.seen.length} requests at upstream`)
    await waitFor('upstream to be rid of them', () => held.every(({ stream }) => stream.closed || stream.destroyed))
    stub.answer = (request) => reply(request, 200, '{}')
    await assertServing()
  })

  test('HTTP/2: a PING flood, a SETTINGS flood and a flood of empty DATA leave others alone', async () => {
    const block = headerBlock([':method', 'POST', ':path', '/api/v1/pods', ':scheme', 'https', ':authority', HOST])
    const floods = [frame(PING, 0, 0, Buffer.alloc(8)), frame(SETTINGS, 0, 0), frame(0, 0, 1)]
    const clients: RawConnection[] = []
    for (const piece of floods) {
      const client = await openFrames(asAlice())
      clients.push(client)
      client.send(headersFrames(1, block, 0))
      const many = Buffer.concat(new Array<Buffer>(1_000).fill(piece))
      for (let i = 0; i < 50; i++) client.send(many)
    }
    await assertServing()
    for (const client of clients) {
      await waitFor(
        'the flood to be taken or cut off',
        () => client.socket.destroyed || client.socket.writableLength === 0,
      )
      client.destroy()
    }
    await assertServing()
  })
})

describe('too little of it', () => {
  test('HTTP/1.1: a head that comes a byte at a time: the connection ends', async () => {
    const client = await http1Connect(asAlice())
    const drip = setInterval(() => client.send('x'), 50)
    client.send(`GET /api/v1/pods HTTP/1.1\r\nHost: ${HOST}\r\nX-Slow: `)
    await ended(client.raw).finally(() => clearInterval(drip))
    assert.equal(stub.seen.length, 0)
  })

  test('HTTP/1.1: a connection on which nothing comes ends', async () => {
    const client = await http1Connect(asAlice())
    await ended(client.raw)
  })

  test('HTTP/2: a connection on which no preface comes ends', async () => {
    const client = await openRaw({ ...asAlice(), alpn: ['h2'] })
    await ended(client)
  })

  test('HTTP/2: a preface that comes a byte at a time: the connection ends', async () => {
    const client = await openRaw({ ...asAlice(), alpn: ['h2'] })
    const preface = [...'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n']
    const drip = setInterval(() => client.send(preface.shift() ?? ''), 300)
    await ended(client).finally(() => clearInterval(drip))
  })

  for (const [name, first] of [
    ['never begins', Buffer.alloc(0)],
    ['stops in the middle', Buffer.from([22, 3, 1, 2, 0, 1, 0, 1])],
  ] as const) {
    test(`a TLS handshake that ${name}: the connection ends`, async () => {
      const socket = tcpConnect({ host: '127.0.0.1', port: gateway.port })
      socket.on('error', () => undefined)
      socket.on('data', () => undefined)
      socket.write(first)
      await waitFor('the gateway to close the connection', () => socket.destroyed, { timeoutMs: 15_000 })
    })
  }

  test('plain HTTP on the TLS port: the connection ends, nothing is served', async () => {
    const socket = tcpConnect({ host: '127.0.0.1', port: gateway.port })
    let text = ''
    socket.on('error', () => undefined)
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1')
    })
    socket.write(requestHead('GET /api/v1/pods'))
    await waitFor('the gateway to close the connection', () => socket.destroyed)
    assert.ok(!text.includes('200'))
    assert.equal(stub.seen.length, 0)
  })
})

describe('redirects', () => {
  for (const status of [301, 302, 307, 308]) {
    test(`${status} is passed on, not followed`, async () => {
      const location = `${other.url}/api/v1/secrets`
      stub.answer = (request) => reply(request, status, '', ['location', location])
      const answer = await h2Request(session, [])
      assert.equal(answer.status, status)
      assert.deepEqual(valuesOf(answer.head, 'location'), [location])
      assert.equal(stub.seen.length, 1)
      assert.equal(other.seen.length, 0)
    })
  }
})

describe('upgrades', () => {
  const exec = () => http1Connect({ port: gateway.port, serverName: EXEC_HOST, cert: alice })
  const upgradeTo = (protocol: string, fields: string[] = [], target = EXEC): string =>
    requestHead(`POST ${target}`, [`Host: ${EXEC_HOST}`, 'Connection: Upgrade', `Upgrade: ${protocol}`, ...fields])

  for (const protocol of ['websocket', 'SPDY/3.1', 'WebSocket']) {
    test(`${protocol}: after 101 the connections are one, under the identity of the client`, async () => {
      const client = await exec()
      client.send(`${upgradeTo(protocol, ['Impersonate-Tenant: x', 'X-Remote-User: admin'])}first`)
      assert.equal((await client.response()).status, 101)
      client.send('second')
      await client.raw.until(/\r\n\r\nfirstsecond$/)
      const [seen] = http1.upgrades
      assert.ok(seen)
      assert.equal(seen.path, EXEC)
      assert.deepEqual(seen.values('impersonate-user'), ['alice'])
      assert.deepEqual(seen.values('impersonate-group'), ALICE_GROUPS)
      assert.deepEqual(seen.values('authorization'), ['Bearer gateway-token'])
      assert.deepEqual(seen.values('connection'), ['Upgrade'])
      assert.deepEqual(seen.values('upgrade'), [protocol])
      assert.deepEqual(seen.values('x-remote-user'), [])
      client.destroy()
      await waitFor('upstream to hear of the end', () => seen.closed())
    })
  }

  for (const answer of [
    'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno',
    'HTTP/1.1 403 Forbidden\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n',
    'HTTP/1.1 307 Temporary Redirect\r\nLocation: https://127.0.0.1:1/\r\nContent-Length: 2\r\n\r\nno',
    'HTTP/1.1 500 Oh\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 2\r\n\r\nno',
    'HTTP/1.1 200 OK\r\n\r\nno',
  ]) {
    test(`${answer.slice(9, 12)} instead of 101: an answer, then the end; nothing behind it is forwarded`, async () => {
      http1.answerUpgrade = ({ socket }) => {
        socket.write(answer)
        if (!/length|chunked/i.test(answer)) socket.end()
      }
      const client = await exec()
      client.send(upgradeTo('websocket') + HIDDEN)
      const got = await client.response()
      assert.equal(got.status, Number(answer.slice(9, 12)))
      assert.equal(got.body.toString(), 'no')
      assert.deepEqual(got.values('connection'), ['close'])
      assert.deepEqual(got.values('upgrade'), [])
      client.send(HIDDEN)
      await ended(client.raw)
      await waitFor('the connection to upstream to end', () => http1.upgrades[0]?.closed() === true)
      assert.equal(http1.upgrades[0]?.received(), '')
      assert.equal(client.raw.text().match(/HTTP\/1\.1 /g)?.length, 1, 'one answer')
      assert.equal(http1.seen.length, 0)
    })
  }

  test('an answer other than 101 that breaks off is not ended cleanly', async () => {
    http1.answerUpgrade = ({ socket }) => {
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n')
      setImmediate(() => socket.destroy())
    }
    const client = await exec()
    client.send(upgradeTo('websocket'))
    assert.equal((await client.response()).complete, false)
  })

  test('upstream closes without an answer: 502, the connection ends', async () => {
    http1.answerUpgrade = ({ socket }) => void socket.destroy()
    const client = await exec()
    client.send(upgradeTo('websocket'))
    const got = await client.response()
    assert.equal(got.status, 502)
    assert.ok(!got.body.toString().includes(String(http1.port)))
    await ended(client.raw)
    assert.equal(http1.upgrades.length, 1, 'sent once')
  })

  test('101 without having been asked is no upgrade', async () => {
    http1.answer = ({ message }) => void message.socket.write(SWITCH)
    const client = await exec()
    client.send(requestHead('GET /api/v1/pods', [`Host: ${EXEC_HOST}`]))
    assert.equal((await client.response()).status, 502)
    client.destroy()
  })

  test('an upgrade with a body is none', async () => {
    const client = await exec()
    client.send(`${upgradeTo('websocket', ['Content-Length: 5'])}hello`)
    assert.equal((await client.response()).status, 400)
    client.destroy()
    assert.equal(http1.upgrades.length, 0)
    assert.equal(http1.seen.length, 0)
  })

  for (const protocol of ['h2c', 'HTTP/2.0', 'TLS/1.0', 'foo', 'websocket, h2c']) {
    test(`Upgrade: ${protocol} is ignored, as RFC 9110 section 7.8 allows`, async () => {
      const fields = [`Connection: Upgrade, HTTP2-Settings`, `Upgrade: ${protocol}`, 'HTTP2-Settings: AAMAAABkAARAAAAA']
      const answer = await http1Request(asAlice(), requestHead('GET /api/v1/pods', fields))
      assert.equal(answer.status, 200)
      for (const gone of ['upgrade', 'connection', 'http2-settings']) assert.deepEqual(stub.seen[0]?.values(gone), [])
      assertAlice(stub.seen[0])
    })
  }

  test('exec without an upgrade, and over HTTP/2: 400', async () => {
    const client = await exec()
    client.send(requestHead(`POST ${EXEC}`, [`Host: ${EXEC_HOST}`]))
    assert.equal((await client.response()).status, 400)
    client.destroy()
    assert.equal((await h2Request(session, [':method', 'POST', ':path', EXEC])).status, 400)
    assert.equal(stub.seen.length + http1.seen.length + http1.upgrades.length, 0)
  })

  test('an upgrade that is refused ends the connection, and what is behind it is no request', async () => {
    const client = await http1Connect(asAlice())
    const head = requestHead(`POST ${EXEC}`, ['Host: nobody.example.com', 'Connection: Upgrade', 'Upgrade: websocket'])
    client.send(head + HIDDEN)
    assert.equal((await client.response()).status, 404)
    client.send(HIDDEN)
    await ended(client.raw)
    assert.equal(stub.seen.length + http1.upgrades.length, 0)
  })

  test('CONNECT: no tunnel over HTTP/1.1, none over HTTP/2', async () => {
    const client = await http1Connect(asAlice())
    client.send(`CONNECT 127.0.0.1:${other.port} HTTP/1.1\r\nHost: ${HOST}\r\n\r\n${HIDDEN}`)
    await ended(client.raw)
    assert.ok(!client.raw.text().startsWith('HTTP/1.1 2'))
    for (const list of [
      [':method', 'CONNECT', ':authority', HOST],
      [':method', 'CONNECT', ':protocol', 'websocket', ':path', EXEC, ':scheme', 'https', ':authority', HOST],
    ]) {
      const frames = await openFrames(asAlice())
      frames.send(headersFrames(1, headerBlock(list), 0))
      await waitFor('an answer', () =>
        readFrames(frames.received()).some(
          ({ type, stream }) => type === GOAWAY || (stream === 1 && (type === HEADERS || type === RST_STREAM)),
        ),
      )
      // A status of the 2xx kind would be an open tunnel; `:status 200` is one byte, 0x88, in HPACK's static table.
      const head = readFrames(frames.received()).find(({ type }) => type === HEADERS)
      assert.notEqual(head?.payload[0], 0x88)
      frames.destroy()
    }
    assert.equal(stub.seen.length + other.seen.length, 0)
  })

  test('a client that leaves during the upgrade gives back its place', async () => {
    const flow = { flowControlSchemas: [{ name: 'one', maxRequestsInflight: { max: 1 } }] }
    const limited = await startInProcess([
      clusterObject([], {
        name: EXEC_HOST,
        clientCA,
        spec: {
          servers: [{ endpoint: http1.url }],
          clientConfig: { insecure: true, bearerToken: 'eA==' },
          flowControl: flow,
          dispatchPolicies: [
            { rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }], flowControlSchemaName: 'one' },
          ],
        },
      }),
    ])
    try {
      const open = () => http1Connect({ port: limited.port, serverName: EXEC_HOST, cert: alice })
      http1.answerUpgrade = () => undefined
      const first = await open()
      first.send(upgradeTo('websocket'))
      await waitFor('the upgrade at upstream', () => http1.upgrades.length === 1)
      const second = await open()
      second.send(upgradeTo('websocket'))
      assert.equal((await second.response()).status, 429)
      first.destroy()
      await waitFor('the end at upstream', () => http1.upgrades[0]?.closed())
      http1.answerUpgrade = ({ socket }) => void socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n')
      const third = await waitFor('a free place', async () => {
        const client = await open()
        client.send(upgradeTo('websocket'))
        const { status } = await client.response()
        client.destroy()
        return status !== 429 && status
      })
      assert.equal(third, 403)
    } finally {
      await limited.stop()
    }
  })
})

describe('targets', () => {
  const raw = [
    '/api/v1/namespaces/a/../../v1/secrets',
    '/api/v1/namespaces/a/%2e%2e/%2E%2e/secrets',
    '/api/v1/namespaces/a%2F..%2Fb/pods',
    '//api/v1/pods',
    '/api//v1///pods',
    '/api/v1\\..\\pods',
    '/api/v1/pods/',
    '/api/v1/pods;x=y',
    '/api/v1/pods?watch=0&x=%zz&&=',
    '/./api/v1/pods',
    '/api/v1/pods%00',
    '/api/v1/pods%0d%0aX-Foo:%20bar',
    '/api/v1/%70ods',
    '/%63lusters/other.example.com/api/v1/pods',
    '//clusters/other.example.com/api/v1/pods',
    '/./clusters/other.example.com/api/v1/pods',
  ]
  for (const target of raw) {
    test(`${target} goes on as it came`, async () => {
      assert.equal((await h2Request(session, [':path', target])).status, 200)
      assert.deepEqual(
        stub.seen.map(({ path }) => path),
        [target],
      )
      const answer = await http1Request(asAlice(), requestHead(`GET ${target}`))
      assert.equal(answer.status, 200)
      assert.equal(stub.seen[1]?.path, target)
      assert.equal(other.seen.length, 0)
    })
  }

  test('the path prefix goes away, what is behind it stays', async () => {
    for (const rest of ['/../other.example.com/api', '/%2e%2e/x', '//api', '/clusters/other.example.com/api', '?x=1']) {
      stub.seen.length = 0
      assert.equal((await h2Request(session, [':path', `/clusters/${HOST}${rest}`])).status, 200)
      assert.equal(stub.seen[0]?.path, rest.startsWith('/') ? rest : `/${rest}`)
    }
    assert.equal(other.seen.length, 0)
  })

  test('a prefix that names no cluster, or another one than SNI', async () => {
    for (const target of ['/clusters/../api', `/clusters/${HOST}%2fapi`, '/clusters/', '/clusters//api']) {
      assert.equal((await h2Request(session, [':path', target])).status, 404, target)
    }
    assert.equal((await h2Request(session, [':path', '/clusters/other.example.com/api'])).status, 421)
    assert.equal(stub.seen.length + other.seen.length, 0)
  })

  test('absolute-form: its host counts, and origin-form goes on', async () => {
    const target = `GET https://${HOST}/api/v1/../pods?x=y`
    assert.equal((await http1Request(asAlice(), requestHead(target, ['Host: other.example.com']))).status, 200)
    assert.equal(stub.seen[0]?.path, '/api/v1/../pods?x=y')
    const elsewhere = requestHead('GET https://other.example.com/api/v1/pods')
    assert.equal((await http1Request(asAlice(), elsewhere)).status, 421)
    assert.equal((await http1Request(asAlice(), requestHead(`GET https://x@${HOST}/api`))).status, 200)
    assert.equal(stub.seen.length, 2)
    assert.equal(other.seen.length, 0)
  })

  test('the decision is made on the very target that goes on', async () => {
    const rules = [{ verbs: ['*'], apiGroups: [''], resources: ['pods'], namespaces: ['a'] }]
    const strict = await startInProcess([clusterObject([stub], { clientCA, spec: { dispatchPolicies: [{ rules }] } })])
    const client = h2Connect({ port: strict.port, serverName: HOST, certificate: alice })
    try {
      for (const target of [
        '/api/v1/namespaces/a/pods/../secrets',
        '/api/v1/namespaces/a/../kube-system/pods',
        '/api/v1/namespaces/a/%2e%2e/kube-system/pods',
        '/api/v1/namespaces/a%2f..%2fkube-system/pods',
        '/api/v1/namespaces/a/pods/x/../../secrets',
        '/api/v1/namespaces/a/pods%2fx/exec',
        '/api/v1/namespaces/A/pods',
        '/api/v1/namespaces/a\\pods',
        '/API/v1/namespaces/a/pods',
        '/x/../api/v1/namespaces/a/pods',
      ]) {
        const { status } = await h2Request(client, [':path', target])
        // A name is a name, also `..`; what matters is that nothing is resolved on the way.
        if (status !== 403) assert.deepEqual([status, stub.seen.at(-1)?.path], [200, target])
        assert.ok(status === 403 || target.startsWith('/api/v1/namespaces/a/pods'), `${target}: ${status}`)
      }
      assert.equal((await h2Request(client, [':path', '/api/v1/namespaces/a/pods'])).status, 200)
    } finally {
      client.destroy()
      await strict.stop()
    }
  })

  test('OPTIONS and TRACE are requests like others: never reflected by the gateway', async () => {
    stub.answer = (request) => reply(request, 405, '{}')
    for (const method of ['OPTIONS', 'TRACE']) {
      const answer = await http1Request(
        asAlice(),
        requestHead(`${method} /api/v1/pods`, ['Authorization: Basic c2VjcmV0']),
      )
      assert.equal(answer.status, 405)
      assert.equal(answer.body.toString(), '{}')
      assert.equal(stub.seen.at(-1)?.method, method)
    }
    assert.equal((await http1Request(asAlice(), requestHead('OPTIONS *'))).status, 405)
    assert.equal(stub.seen.at(-1)?.path, '*')
  })
})

describe('what strangers learn and reach', () => {
  const ADMIN_PATHS = ['/metrics', '/debug/config', '/debug/pprof/', '/debug/flags/v', '/readyz', '/livez', '/configz']

  test('no admin handler on the proxy port, whatever Host says', async () => {
    for (const path of ADMIN_PATHS) {
      for (const host of ['127.0.0.1', `127.0.0.1:${gateway.port}`, '[::1]', 'localhost', '0', '']) {
        const answer = await http1Request({ port: gateway.port }, requestHead(`GET ${path}`, [`Host: ${host}`]))
        assert.equal(answer.status, 404, `${path} of ${host}`)
        assert.match(answer.body.toString(), /no cluster is served under/)
      }
    }
    const put = requestHead('PUT /debug/flags/v', ['Host: 127.0.0.1', 'Content-Length: 1'])
    assert.equal((await http1Request({ port: gateway.port }, `${put}5`)).status, 404)
  })

  test('with a default cluster they are requests for it', async () => {
    const single = await startInProcess([clusterObject([stub], { clientCA, spec: { default: true } })])
    try {
      for (const path of ADMIN_PATHS.filter((path) => path !== '/readyz')) {
        const answer = await http1Request({ port: single.port }, requestHead(`GET ${path}`, ['Host: 127.0.0.1']))
        assert.equal(answer.body.toString(), '{"kind":"Stub"}')
        assert.deepEqual(stub.seen.at(-1)?.values('impersonate-user'), ['system:anonymous'])
      }
    } finally {
      await single.stop()
    }
  })

  test('metric series do not grow with what clients invent', async () => {
    const series = async (): Promise<string[]> =>
      (await gateway.metrics())
        .split('\n')
        .filter((line) => !/^#|^portcullis_(nodejs|process)/.test(line))
        .map((line) => line.replace(/ [^ ]*$/, ''))
    const word = (i: number): string => `invented${i}`
    const send = async (from: number, to: number): Promise<void> => {
      for (let i = from; i < to; i++) {
        await h2Request(session, [':path', `/apis/${word(i)}/v1/${word(i)}/n/${word(i)}`, 'user-agent', word(i)])
        await h2Request(session, [':path', `/${word(i)}?${word(i)}`, ':method', i % 2 === 0 ? 'GET' : 'PATCH'])
        await h2Request(session, [':path', `/${word(i)}`, ':authority', `${word(i)}.example.com`])
        await http1Request({ port: gateway.port }, requestHead(`OPTIONS /${word(i)}`, [`Host: ${word(i)}`]))
      }
    }
    stub.answer = (request) => reply(request, 404, '{}')
    await send(0, 150)
    const before = await series()
    await send(1_000, 1_150)
    const known = new Set(before)
    assert.deepEqual(
      (await series()).filter((line) => !known.has(line)),
      [],
      'full: nothing invented is taken up any more',
    )
  })

  test('errors tell no address of upstream', async () => {
    const gone = await startStub()
    const lonely = await startInProcess([clusterObject([gone], { clientCA })])
    const client = h2Connect({ port: lonely.port, serverName: HOST })
    try {
      const answers = []
      gone.answer = ({ stream }) => stream.close(2)
      answers.push(await h2Request(client, []))
      gone.answer = ({ session: upstream }) => upstream?.destroy()
      answers.push(await h2Request(client, []))
      await gone.stop()
      answers.push(await h2Request(client, []))
      answers.push(await h2Request(client, ['authorization', 'Bearer unseen']))
      answers.push(
        await waitFor('the endpoint to count as gone', async () => {
          const answer = await h2Request(client, [])
          return answer.body.includes('no endpoint') && answer
        }),
      )
      for (const answer of answers) {
        assert.ok(answer.status >= 502, String(answer.status))
        const text = `${answer.head.join(' ')} ${answer.body}`
        assert.ok(!text.includes('127.0.0.1') && !text.includes(String(gone.port)), text)
        assert.doesNotMatch(text, /ECONN|errno|socket|tls|\.ts:/i)
      }
    } finally {
      client.destroy()
      await lonely.stop()
    }
  })
})
