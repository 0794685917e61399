// Heads that are larger than the next hop takes: the request that is too large is refused, and no other request ends. An upstream
// that behaves as Go's server does (golang.org/x/net/http2, readMetaFrame) ends a connection that brings one.

import assert from 'node:assert/strict'
import type { ClientHttp2Session, ClientHttp2Stream } from 'node:http2'
import { after, before, beforeEach, describe, test } from 'node:test'
import { headerListBytes } from '../../src/gateway/core/request/header-list.ts'
import { createCA, type KeyPair } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Open, h2Request } from '../harness/clients/h2-client.ts'
import { http1Connect, http1Request, requestHead } from '../harness/clients/http1-client.ts'
import { connectFrames } from '../harness/frames/frame-connection.ts'
import { answerHead, answerOk, type FrameUpstream, startFrameUpstream } from '../harness/frames/frame-upstream.ts'
import * as h2 from '../harness/frames/h2-frames.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { base64, clientPair, clusterObject } from '../harness/objects/objects.ts'
import { type Http1Stub, startHttp1Stub } from '../harness/upstreams/stub-http1.ts'
import { waitFor } from '../harness/wait.ts'

const HOST = 'prod.example.com'
const HTTP1_HOST = 'http1.example.com'
/** What Go's server announces: http.DefaultMaxHeaderBytes, and 32 for each of ten fields. */
const GO_LIMIT = 1024 * 1024 + 320
const OWN_LIMIT = 1024 * 1024
const WATCH = '/api/v1/pods?watch=1'
const WATCHES = 10

const clientCA: KeyPair = createCA({ commonName: 'clients' })
const alice = clientPair(clientCA, 'alice')
const mallory = clientPair(clientCA, 'mallory')
let upstream: FrameUpstream
let http1: Http1Stub
let gateway: InProcessGateway
let session: ClientHttp2Session
let watches: ClientHttp2Stream[] = []
let received = 0

before(async () => {
  upstream = await startFrameUpstream()
  upstream.greeting = h2.settings([h2.MAX_HEADER_LIST_SIZE, GO_LIMIT])
  http1 = await startHttp1Stub()
  gateway = await startInProcess([
    clusterObject([], {
      clientCA,
      spec: {
        servers: [{ endpoint: upstream.url }],
        clientConfig: { bearerToken: base64('gateway-token'), caData: base64(upstream.caPem) },
      },
    }),
    clusterObject([], {
      name: HTTP1_HOST,
      clientCA,
      spec: {
        servers: [{ endpoint: http1.url }],
        clientConfig: { bearerToken: base64('gateway-token'), caData: base64(http1.caPem) },
      },
    }),
  ])
  session = h2Connect({ port: gateway.port, serverName: HOST, certificate: alice })
})
after(async () => {
  session.destroy()
  await gateway.stop()
  await upstream.stop()
  await http1.stop()
})

/** Alice's watches, on the connections that mallory's requests use. */
beforeEach(async () => {
  for (const watch of watches) watch.close()
  upstream.requests.length = 0
  received = 0
  upstream.onRequest = (request) => {
    if (headerListBytes([...request.head]) > GO_LIMIT) {
      request.connection.send(h2.goaway(request.stream, h2.PROTOCOL_ERROR))
      request.connection.destroy()
    } else if (request.head.includes(WATCH)) request.connection.send(answerHead(request.stream, 200))
    else answerOk(request)
  }
  watches = Array.from({ length: WATCHES }, () => h2Open(session, [':path', WATCH]))
  for (const watch of watches) watch.on('data', () => received++)
  await waitFor('the watches', () => upstream.requests.length === WATCHES)
})

/** All of alice's watches are open, and get what comes. */
async function assertWatching(): Promise<void> {
  const open = upstream.requests.filter(({ head }) => head.includes(WATCH)).slice(0, WATCHES)
  const before = received
  for (const { connection, stream } of open) connection.send(h2.data(stream, 'event'))
  await waitFor('an event on every watch', () => received === before + WATCHES)
  assert.deepEqual(
    watches.filter(({ closed, destroyed }) => closed || destroyed),
    [],
  )
  assert.ok(upstream.connections.every(({ frames }) => !frames.some(({ type }) => type === h2.GOAWAY)))
}

/** What came for /x, if anything, is a head and no trailers. */
function assertNoTrailers(): void {
  const seen = upstream.requests.find(({ head }) => head.includes('/x'))
  if (seen === undefined) return
  const heads = seen.connection.frames.filter(({ type, stream }) => stream === seen.stream && type === h2.HEADERS)
  assert.equal(heads.length, 1)
}

const asMallory = (host = HOST): { port: number; serverName: string; cert: KeyPair } => {
  return { port: gateway.port, serverName: host, cert: mallory }
}

/** A head of so many bytes by the count of HTTP/2, in 1,980 fields. */
function fieldsOf(bytes: number, host = HOST): string[] {
  const count = 1_980
  // What the gateway counts beside them: pseudo-header fields, and `host`.
  const rest = headerListBytes([':method', 'GET', ':path', WATCH, ':authority', host, ':scheme', 'https', 'host', host])
  const each = Math.floor((bytes - rest) / count)
  const last = bytes - rest - each * (count - 1)
  const field = (i: number, size: number): string => `x-${String(i).padStart(4, '0')}: ${'y'.repeat(size - 32 - 6)}`
  return Array.from({ length: count }, (_, i) => field(i, i === count - 1 ? last : each))
}

describe('a request head that is larger than upstream takes', () => {
  test('over HTTP/1.1, small in octets and large by the count of HTTP/2: 431, nothing is sent', async () => {
    const text = requestHead(`GET ${WATCH}`, fieldsOf(OWN_LIMIT + 1))
    assert.ok(text.length < OWN_LIMIT, 'by its octets it would pass')
    const answer = await http1Request(asMallory(), text)
    assert.equal(answer.status, 431)
    assert.equal(upstream.requests.length, WATCHES)
    await assertWatching()
  })

  for (const protocol of ['HTTP/1.1', 'HTTP/2']) {
    test(`over ${protocol}, because of what the gateway adds: a 431 that names the limit`, async () => {
      const lines = fieldsOf(OWN_LIMIT - 10)
      let status: number
      let body: string
      if (protocol === 'HTTP/1.1') {
        const answer = await http1Request(asMallory(), requestHead(`GET ${WATCH}`, lines))
        status = answer.status
        body = answer.body.toString()
      } else {
        const own = h2Connect({ port: gateway.port, serverName: HOST, certificate: mallory })
        const answer = await h2Request(own, [':path', WATCH, ...lines.flatMap((line) => line.split(': '))])
        own.destroy()
        status = answer.status
        body = answer.body.toString()
      }
      assert.equal(status, 431, body)
      const { kind, reason, message } = JSON.parse(body) as Record<string, string>
      assert.deepEqual([kind, reason], ['Status', 'RequestHeaderFieldsTooLarge'])
      assert.match(message ?? '', new RegExp(`larger than the ${GO_LIMIT} bytes that cluster "${HOST}" accepts`))
      assert.equal(upstream.requests.length, WATCHES)
      await assertWatching()
      const metrics = await gateway.metrics()
      assert.match(metrics, /portcullis_http2_heads_not_sent_total\{side="upstream"\} [1-9]/)
      assert.match(metrics, /portcullis_refusals_total\{[^}]*reason="headers-too-large"/)
    })
  }

  test('just within its limit: passes', async () => {
    const answer = await http1Request(asMallory(), requestHead(`GET ${WATCH}&x`, fieldsOf(OWN_LIMIT - 2_000)))
    assert.equal(answer.status, 200)
    await assertWatching()
  })

  test('over HTTP/1.1 to upstream: 431, and the endpoint stays healthy', async () => {
    for (let i = 0; i < 4; i++) {
      const lines = fieldsOf(OWN_LIMIT - 10, HTTP1_HOST)
      const answer = await http1Request(asMallory(HTTP1_HOST), requestHead('GET /api/v1/pods', lines, HTTP1_HOST))
      assert.equal(answer.status, 431)
      assert.match(answer.body.toString(), /larger than the 1048576 bytes/)
    }
    assert.equal(http1.seen.length, 0)
    const good = await http1Request(asMallory(HTTP1_HOST), requestHead('GET /api/v1/pods', [], HTTP1_HOST))
    assert.equal(good.status, 200)
  })

  test('in an upgrade: a 431 that names the limit, and upstream is not asked', async () => {
    const path = '/api/v1/namespaces/default/pods/p/exec?command=sh'
    // What such a head has beyond the one that `fieldsOf` expects.
    const more = headerListBytes(['connection', 'Upgrade', 'upgrade', 'websocket']) + path.length - WATCH.length
    const lines = ['Connection: Upgrade', 'Upgrade: websocket', ...fieldsOf(OWN_LIMIT - more - 10, HTTP1_HOST)]
    const answer = await http1Request(asMallory(HTTP1_HOST), requestHead(`GET ${path}`, lines, HTTP1_HOST))
    assert.equal(answer.status, 431)
    assert.match(answer.body.toString(), /larger than the 1048576 bytes that cluster /)
    const larger = ['Connection: Upgrade', 'Upgrade: websocket', ...fieldsOf(OWN_LIMIT - more + 1, HTTP1_HOST)]
    const refused = await http1Request(asMallory(HTTP1_HOST), requestHead(`GET ${path}`, larger, HTTP1_HOST))
    assert.deepEqual([refused.status, refused.body.length], [431, 0])
    assert.equal(http1.upgrades.length, 0)
  })
})

describe('small requests whose heads unpack to large ones', () => {
  const field = (at: number): string[] => ['x-packed', `${'y'.repeat(3_000)}${at}`]
  /** A field that enters the table, and so many references of one octet to it. */
  function packed(references: number): Buffer {
    const indexed = Buffer.concat([Buffer.from([0x40]), h2.headerBlock(field(0)).subarray(1)])
    const get = h2.headerBlock([':method', 'GET', ':path', `${WATCH}&packed`, ':scheme', 'https', ':authority', HOST])
    return Buffer.concat([get, indexed, Buffer.alloc(references, 0x80 | 62)])
  }

  test('are refused: 431, and counted', async () => {
    const client = await connectFrames({ port: gateway.port, serverName: HOST, cert: mallory })
    client.send(h2.headersFrames(1, packed(300)))
    assert.equal(await client.status(1), 431)
    client.send(h2.headersFrames(3, packed(10)))
    assert.equal(await client.status(3), 200, 'what unpacks to little passes')
    client.destroy()
    assert.match(await gateway.metrics(), /portcullis_http2_abuse_total\{side="client",kind="hpack-bomb"\} [1-9]/)
    await assertWatching()
  })

  test('or that are large: no more are given to a connection than it sends, and the watches on it go on', async () => {
    const [large] = [Buffer.concat([packed(0), h2.headerBlock(['x-large', 'z'.repeat(1_000_000)])])]
    // Upstream does not read for a while.
    const connections = new Set(upstream.requests.map(({ connection }) => connection))
    for (const { socket } of connections) socket.pause()
    const before = upstream.requests.length
    const client = await connectFrames({ port: gateway.port, serverName: HOST, cert: mallory })
    for (let n = 0; n < 85; n++) client.send(h2.headersFrames(2 * n + 1, large))
    client.send(h2.ping(1))
    await client.frame('the answer to PING', ({ type, flags }) => type === h2.PING && (flags & h2.ACK) !== 0)
    // What comes from upstream is read meanwhile: that is when the gateway looks at how much it has not sent.
    const open = upstream.requests.filter(({ head }) => head.includes(WATCH)).slice(0, WATCHES)
    for (const { connection, stream } of open) connection.send(h2.data(stream, 'event'))
    await waitFor('an event on every watch', () => received === WATCHES)
    for (const { socket } of connections) socket.resume()
    await waitFor('all of them', () => upstream.requests.length === before + 85, { timeoutMs: 30_000 })
    client.destroy()
    await assertWatching()
  })
})

describe('request trailers', () => {
  test('over HTTP/1.1, 110,000 of them: the connection ends, and the watches go on', async () => {
    const client = await http1Connect(asMallory())
    client.send(`${requestHead('POST /x', ['Transfer-Encoding: chunked'])}1\r\nx\r\n0\r\n`)
    client.send(`${'X-T: y\r\n'.repeat(110_000)}\r\n`)
    await waitFor('the end', () => client.closed())
    assertNoTrailers()
    await assertWatching()
  })

  test('over HTTP/1.1, 1,900 of them: they are left out, and the connection goes on', async () => {
    const client = await http1Connect(asMallory())
    // Not before the end of the request: the connection would close behind an early answer.
    const atOnce = upstream.onRequest
    upstream.onRequest = (request) => {
      if (!request.head.includes('/x')) atOnce(request)
      else void request.connection.end(request.stream).then(() => answerOk(request))
    }
    client.send(`${requestHead('POST /x', ['Transfer-Encoding: chunked'])}1\r\nx\r\n0\r\n`)
    client.send(`${`X-T: ${'y'.repeat(400)}\r\n`.repeat(1_900)}\r\n`)
    assert.equal((await client.response()).status, 200)
    assertNoTrailers()
    client.send(requestHead('GET /next'))
    assert.equal((await client.response()).status, 200)
    client.destroy()
    await assertWatching()
  })

  test('over HTTP/2: those that are allowed are left out, others reset their stream', async () => {
    const client = await connectFrames({ port: gateway.port, serverName: HOST, cert: mallory })
    const head = h2.headerBlock([':method', 'POST', ':path', '/x', ':scheme', 'https', ':authority', HOST])
    const trailers = (bytes: number): Buffer => h2.headerBlock(['x-t', 'y'.repeat(bytes)])
    // Not before the end of the request: the stream would be reset behind an early answer.
    const atOnce = upstream.onRequest
    upstream.onRequest = (request) => {
      if (!request.head.includes('/x')) atOnce(request)
      else {
        const ended = request.connection.end(request.stream)
        void ended.then(() => answerOk(request)).catch(() => undefined)
      }
    }
    client.send(h2.headersFrames(1, head, 0), h2.data(1, 'body'), h2.headersFrames(1, trailers(1_000_000)))
    assert.equal(await client.status(1), 200)
    client.send(h2.headersFrames(3, head, 0), h2.data(3, 'body'), h2.headersFrames(3, trailers(OWN_LIMIT)))
    assert.equal(await client.reset(3), h2.PROTOCOL_ERROR)
    client.send(h2.headersFrames(5, head, 0), h2.data(5, 'body', h2.END_STREAM))
    assert.equal(await client.status(5), 200)
    client.destroy()
    assertNoTrailers()
    await assertWatching()
  })
})

describe('an answer', () => {
  test('with a head of 10 MiB (from a pod, through kube-apiserver): 502, and the watches go on', async () => {
    const watching = upstream.onRequest
    upstream.onRequest = (request) => {
      if (request.head.includes(WATCH) || !request.head.includes('/large?watch=1')) watching(request)
      else {
        const piece = h2.headerBlock(['x-large', 'y'.repeat(16_000)])
        const { connection, stream } = request
        connection.send(h2.frame(h2.HEADERS, 0, stream, h2.headerBlock([':status', '200'])))
        for (let i = 0; i < 650; i++) connection.send(h2.frame(h2.CONTINUATION, 0, stream, piece))
        connection.send(h2.frame(h2.CONTINUATION, h2.END_HEADERS, stream))
      }
    }
    const answer = await h2Request(session, [':path', '/large?watch=1'])
    assert.equal(answer.status, 502)
    await assertWatching()
  })

  test('with a head larger than the client accepts: 502, and the connection of the client goes on', async () => {
    const client = await connectFrames({
      port: gateway.port,
      serverName: HOST,
      cert: mallory,
      settings: [[h2.MAX_HEADER_LIST_SIZE, 2_000]],
    })
    const watching = upstream.onRequest
    upstream.onRequest = (request) => {
      if (!request.head.includes('/large')) watching(request)
      else {
        request.connection.send(answerHead(request.stream, 200, ['x-large', 'y'.repeat(2_000)]))
        request.connection.send(h2.data(request.stream, 'body'))
      }
    }
    const head = (path: string): Buffer =>
      h2.headerBlock([':method', 'GET', ':path', path, ':scheme', 'https', ':authority', HOST])
    client.send(h2.headersFrames(1, head('/large')))
    assert.equal(await client.status(1), 502)
    await client.end(1)
    const large = upstream.requests.find((request) => request.head.includes('/large'))
    assert.ok(large !== undefined)
    await waitFor('upstream to be told', () => large.connection.resets().some(({ stream }) => stream === large.stream))
    client.send(h2.headersFrames(3, head('/small')))
    assert.equal(await client.status(3), 200)
    client.destroy()
    assert.match(await gateway.metrics(), /portcullis_http2_heads_not_sent_total\{side="client"\} [1-9]/)
    await assertWatching()
  })
})
