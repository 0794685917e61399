// HTTP/1.1 on either side: clients that speak it, and upstreams that speak nothing else.

import assert from 'node:assert/strict'
import type { ClientHttp2Session } from 'node:http2'
import { after, before, beforeEach, describe, test } from 'node:test'
import { createCA } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Open, h2Request, h2Response, valuesOf } from '../harness/clients/h2-client.ts'
import { type Http1Client, http1Connect, http1Request, requestHead } from '../harness/clients/http1-client.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { base64, clientPair, clusterObject } from '../harness/objects/objects.ts'
import { type Http1Stub, type SeenHttp1, startHttp1Stub } from '../harness/upstreams/stub-http1.ts'
import { reply, type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'
import { standsStill, waitFor } from '../harness/wait.ts'

const HOST = 'prod.example.com'
const TLS_HOST = 'http1.example.com'
const PLAIN_HOST = 'plain.example.com'
const clientCA = createCA({ commonName: 'clients' })
const alice = clientPair(clientCA, 'alice', ['dev'])
let stub: StubUpstream
let secure: Http1Stub
let plain: Http1Stub
let gateway: InProcessGateway
const open: Http1Client[] = []

before(async () => {
  stub = await startStub()
  secure = await startHttp1Stub()
  plain = await startHttp1Stub({ plain: true })
  const over1 = (name: string, { url, caPem }: Http1Stub) =>
    clusterObject([], {
      name,
      clientCA,
      spec: {
        servers: [{ endpoint: url }],
        clientConfig: {
          bearerToken: base64('gateway-token'),
          ...(url.startsWith('https') ? { caData: base64(caPem) } : {}),
        },
      },
    })
  gateway = await startInProcess([
    clusterObject([stub], { clientCA }),
    over1(TLS_HOST, secure),
    over1(PLAIN_HOST, plain),
  ])
})
after(async () => {
  await gateway.stop()
  await stub.stop()
  await secure.stop()
  await plain.stop()
})
beforeEach(() => {
  for (const client of open.splice(0)) client.destroy()
  stub.seen.length = 0
  stub.answer = (request) => reply(request, 200, '{"kind":"Stub"}')
  for (const http1 of [secure, plain]) {
    http1.seen.length = 0
    http1.answer = ({ message, response }) => {
      message.resume()
      message.on('end', () => response.end('{"kind":"Stub"}'))
    }
  }
})

async function connect(host = HOST): Promise<Http1Client> {
  const client = await http1Connect({ port: gateway.port, serverName: host, cert: alice })
  open.push(client)
  return client
}

/** Everything that a stub got of a body, as text, once it is complete. */
function bodyOf(source: NodeJS.ReadableStream): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    source.on('data', (chunk: Buffer) => chunks.push(chunk))
    source.on('end', () => resolve(Buffer.concat(chunks).toString()))
    source.on('error', reject)
  })
}

describe('HTTP/1.1 clients', () => {
  test('keep-alive: many requests on one connection', async () => {
    const client = await connect()
    for (let i = 0; i < 20; i++) {
      client.send(requestHead(`GET /api/v1/pods?n=${i}`))
      const answer = await client.response()
      assert.equal(answer.status, 200)
      assert.equal(answer.body.toString(), '{"kind":"Stub"}')
    }
    assert.equal(client.closed(), false)
    assert.deepEqual(
      stub.seen.map(({ path }) => path),
      Array.from({ length: 20 }, (_, i) => `/api/v1/pods?n=${i}`),
    )
  })

  test('Connection: close closes behind the answer', async () => {
    const client = await connect()
    client.send(requestHead('GET /api/v1/pods', ['Connection: close']))
    const answer = await client.response()
    assert.deepEqual(answer.values('connection'), ['close'])
    await waitFor('the end', () => client.closed())
  })

  test('pipelined requests are answered in their order', async () => {
    const held: (() => void)[] = []
    stub.answer = (request) => held.push(() => reply(request, 200, request.path))
    const client = await connect()
    client.send([1, 2, 3].map((n) => requestHead(`GET /n/${n}`)).join(''))
    await waitFor('the first request', () => held.length > 0)
    // As many as come without an answer; the last of them is answered first.
    const release = setInterval(() => held.pop()?.(), 5)
    for (const n of [1, 2, 3]) assert.equal((await client.response()).body.toString(), `/n/${n}`)
    clearInterval(release)
  })

  test('a connection has no more requests open than over HTTP/2: one more is answered, and is its last', async () => {
    const limit = 250
    let release = (): void => undefined
    stub.answer = (request) => {
      const answer = (): void => reply(request, 200, request.path)
      if (request.path === '/n/0') release = answer
      else answer()
    }
    const client = await connect()
    client.send(Array.from({ length: limit + 50 }, (_, n) => requestHead(`GET /n/${n}`)).join(''))
    // Answers leave in the order of the requests: none is out before the first.
    await waitFor('as many as are taken', () => stub.seen.length > limit)
    release()
    for (let n = 0; n <= limit; n++) {
      const answer = await client.response()
      assert.equal(answer.body.toString(), `/n/${n}`)
      assert.equal(answer.values('connection').includes('close'), n === limit)
    }
    await client.raw.closed
    assert.equal(stub.seen.length, limit + 1)
  })

  test('bodies: with a length, in chunks, empty, and on GET', async () => {
    const bodies: Promise<string>[] = []
    stub.answer = (request) => {
      bodies.push(bodyOf(request.stream))
      void bodies.at(-1)?.then(() => reply(request, 201, '{}'))
    }
    const client = await connect()
    client.send(`${requestHead('POST /a', ['Content-Length: 5'])}hello`)
    assert.equal((await client.response()).status, 201)
    client.send(requestHead('PUT /b', ['Transfer-Encoding: chunked']))
    for (const piece of ['3\r\nabc\r\n', '2;ext=1\r\nde\r\n', '1\r', '\nf\r\n0\r\n\r\n']) client.send(piece)
    assert.equal((await client.response()).status, 201)
    client.send(requestHead('POST /c', ['Content-Length: 0']))
    assert.equal((await client.response()).status, 201)
    client.send(`${requestHead('GET /d', ['Content-Length: 2'])}{}`)
    assert.equal((await client.response()).status, 201)
    assert.deepEqual(await Promise.all(bodies), ['hello', 'abcdef', '', '{}'])
    assert.deepEqual(
      stub.seen.map((request) => request.values('content-length')),
      [['5'], [], ['0'], ['2']],
    )
  })

  test('HEAD and answers without a body leave the connection in step', async () => {
    const statuses = ['204', '304', '200']
    stub.answer = ({ stream, method }) => {
      if (method === 'HEAD') stream.respond([':status', '200', 'content-length', '42'], { endStream: true })
      else stream.respond([':status', statuses.shift() ?? ''], { endStream: true })
    }
    const client = await connect()
    client.send(requestHead('HEAD /a'))
    const head = await client.response({ noBody: true })
    assert.deepEqual(head.values('content-length'), ['42'])
    for (const status of [204, 304, 200]) {
      client.send(requestHead('GET /b'))
      const answer = await client.response()
      assert.equal(answer.status, status)
      assert.equal(answer.body.length, 0)
    }
    client.send(requestHead('HEAD /clusters/nobody/api'))
    assert.equal((await client.response({ noBody: true })).status, 404)
    client.send(requestHead('GET /clusters/nobody/api'))
    assert.equal((await client.response()).status, 404)
  })

  test('a length stays a length, what has none is chunked; fields keep their order and duplicates', async () => {
    stub.answer = ({ stream }) => {
      const fields = ['set-cookie', 'a=1', 'warning', '299 - "a"', 'set-cookie', 'b=2', 'warning', '299 - "b"']
      stream.respond([':status', '200', 'date', 'Thu, 01 Jan 1970 00:00:00 GMT', ...fields, 'content-length', '4'])
      stream.end('body')
    }
    const client = await connect()
    client.send(requestHead('GET /a'))
    const sized = await client.response()
    assert.deepEqual(sized.values('content-length'), ['4'])
    assert.deepEqual(sized.values('transfer-encoding'), [])
    assert.deepEqual(sized.values('set-cookie'), ['a=1', 'b=2'])
    assert.deepEqual(sized.values('warning'), ['299 - "a"', '299 - "b"'])
    assert.deepEqual(sized.values('date'), ['Thu, 01 Jan 1970 00:00:00 GMT'])
    assert.equal(sized.values('audit-id').length, 1)
    stub.answer = (request) => reply(request, 200, 'streamed')
    client.send(requestHead('GET /b'))
    const chunked = await client.response()
    assert.deepEqual(chunked.values('transfer-encoding'), ['chunked'])
    assert.equal(chunked.body.toString(), 'streamed')
  })

  test('request fields keep their order, duplicates and bytes', async () => {
    const fields = ['Accept: a', 'X-One: 1', 'accept: b', 'X-Latin: \xe9\xff', 'X-Empty:']
    await http1Request(
      { port: gateway.port, serverName: HOST, cert: alice },
      Buffer.from(requestHead('GET /a', fields), 'latin1'),
    )
    assert.deepEqual(stub.seen[0]?.values('accept'), ['a', 'b'])
    assert.deepEqual(stub.seen[0]?.values('x-latin'), ['\xe9\xff'])
    assert.deepEqual(stub.seen[0]?.values('x-empty'), [''])
  })

  test('fields that should occur once and occur twice are passed on', async () => {
    stub.answer = ({ stream }) => {
      stream.respond([
        ':status',
        '200',
        'etag',
        'a',
        'etag',
        'b',
        'x-content-type-options',
        '1',
        'location',
        'c',
        'location',
        'c',
      ])
      stream.end()
    }
    const once = ['user-agent', 'if-match', 'content-type', 'range', 'referer']
    const fields = once.flatMap((name) => [`${name}: 1`, `${name}: 2`])
    const client = await connect()
    client.send(requestHead('GET /a', fields))
    const answer = await client.response()
    assert.equal(answer.status, 200)
    assert.deepEqual(answer.values('etag'), ['a', 'b'])
    const session = h2Connect({ port: gateway.port, serverName: HOST, certificate: alice })
    const same = await h2Request(session, [':authority', HOST, ...once.flatMap((name) => [name, '1', name, '2'])])
    session.destroy()
    assert.equal(same.status, 200)
    assert.deepEqual(valuesOf(same.head, 'etag'), ['a', 'b'])
    assert.deepEqual(valuesOf(same.head, 'location'), ['c', 'c'])
    for (const name of once) {
      for (const seen of stub.seen) assert.deepEqual(seen.values(name), ['1', '2'])
    }
    assert.equal(stub.seen.length, 2)
  })

  test('Expect: 100-continue: upstream says when', async () => {
    let invite: (() => void) | undefined
    stub.answer = (request) => {
      invite = () => request.stream.additionalHeaders({ ':status': 100 })
      void bodyOf(request.stream).then((body) => reply(request, 200, body))
    }
    const client = await connect()
    client.send(requestHead('POST /a', ['Expect: 100-continue', 'Content-Length: 5']))
    await waitFor('the request', () => invite !== undefined)
    assert.deepEqual(stub.seen[0]?.values('expect'), ['100-continue'])
    assert.equal(client.raw.text(), '', 'the gateway does not say it for upstream')
    invite?.()
    assert.equal((await client.response()).status, 100)
    client.send('hello')
    assert.equal((await client.response()).body.toString(), 'hello')
  })

  test('Expect: 100-continue, and upstream refuses: the connection ends, and the body is not read as a request', async () => {
    stub.answer = (request) => reply(request, 413, '{}')
    const client = await connect()
    client.send(requestHead('POST /a', ['Expect: 100-continue', 'Content-Length: 40']))
    const answer = await client.response()
    assert.equal(answer.status, 413)
    assert.deepEqual(answer.values('connection'), ['close'])
    client.send(requestHead('GET /hidden'))
    await waitFor('the end', () => client.closed())
    assert.equal(stub.seen.length, 1)
  })

  test('trailers of an answer pass, those of a request do not', async () => {
    let trailers: unknown
    stub.answer = (request) => {
      request.stream.on('trailers', (_headers: unknown, _flags: unknown, raw?: unknown[]) => {
        trailers = raw?.map(String)
      })
      request.stream.resume()
      request.stream.on('end', () => {
        request.stream.respond([':status', '200'], { waitForTrailers: true })
        request.stream.on('wantTrailers', () => request.stream.sendTrailers({ 'x-out': '2' }))
        request.stream.end('body')
      })
    }
    const client = await connect()
    client.send(
      `${requestHead('POST /a', ['Transfer-Encoding: chunked', 'Trailer: X-In'])}1\r\nx\r\n0\r\nX-In: 1\r\n\r\n`,
    )
    const answer = await client.response()
    assert.equal(answer.body.toString(), 'body')
    assert.deepEqual(answer.trailers, ['x-out', '2'])
    assert.equal(trailers, undefined)
  })

  test('HTTP/1.0: no chunks, the end of the connection is the end of the body', async () => {
    const client = await connect()
    client.send(`GET /a HTTP/1.0\r\nHost: ${HOST}\r\n\r\n`)
    await waitFor('the end', () => client.closed())
    const answer = await client.response()
    assert.deepEqual(answer.values('transfer-encoding'), [])
    assert.equal(answer.body.toString(), '{"kind":"Stub"}')
    const kept = await connect()
    stub.answer = (request) => reply(request, 200, 'body', ['content-length', '4'])
    for (let i = 0; i < 2; i++) {
      kept.send(`GET /a HTTP/1.0\r\nHost: ${HOST}\r\nConnection: keep-alive\r\n\r\n`)
      assert.equal((await kept.response()).body.toString(), 'body')
    }
  })

  test('a watch: each event as it comes', async () => {
    stub.answer = ({ stream }) => {
      stream.respond([':status', '200', 'content-type', 'application/json'])
      stream.write('{"type":"ADDED"}\n')
    }
    const client = await connect()
    client.send(requestHead('GET /api/v1/pods?watch=1'))
    await client.raw.until(/ADDED/)
    stub.seen[0]?.stream.write('{"type":"MODIFIED"}\n')
    await client.raw.until(/MODIFIED/)
    stub.seen[0]?.stream.end()
    const answer = await client.response()
    assert.equal(answer.complete, true)
  })

  test('a client that leaves has left for upstream, too', async () => {
    let closed = 0
    stub.answer = ({ stream }) => {
      stream.on('close', () => closed++)
      stream.respond([':status', '200'])
      stream.write('{}\n')
    }
    const client = await connect()
    client.send(requestHead('GET /api/v1/pods?watch=1'))
    await client.raw.until(/\{\}/)
    client.destroy()
    await waitFor('the end at upstream', () => closed === 1)
    assert.notEqual(stub.seen[0]?.stream.rstCode, 0)
  })

  test('a client that leaves in the middle of its body: upstream does not get a complete one', async () => {
    let ended = false
    let closed = false
    stub.answer = ({ stream }) => {
      stream.on('end', () => {
        ended ||= stream.rstCode === 0
      })
      stream.on('close', () => {
        closed = true
      })
      stream.resume()
    }
    const client = await connect()
    client.send(`${requestHead('POST /a', ['Content-Length: 100'])}half`)
    await waitFor('the request', () => stub.seen.length === 1)
    client.destroy()
    await waitFor('the end at upstream', () => closed)
    assert.equal(ended, false)
  })

  for (const [name, fields] of [
    ['chunks', []],
    ['a length', ['content-length', '1000000']],
  ] as const) {
    test(`upstream breaks in the middle of an answer with ${name}: no clean end`, async () => {
      stub.answer = ({ stream, session }) => {
        stream.respond([':status', '200', ...fields])
        stream.write('{"items":[', () => setImmediate(() => session?.destroy()))
      }
      const client = await connect()
      client.send(requestHead('GET /api/v1/pods'))
      const answer = await client.response()
      assert.equal(answer.complete, false)
      assert.ok(!client.raw.text().endsWith('0\r\n\r\n'))
    })
  }

  test('a client that does not read holds back upstream', async () => {
    let written = 0
    stub.answer = ({ stream }) => {
      stream.respond([':status', '200'])
      const chunk = Buffer.alloc(64 * 1024)
      const pump = (): void => {
        do written += chunk.length
        while (written < 300_000_000 && stream.write(chunk))
      }
      stream.on('drain', pump)
      pump()
    }
    const client = await connect()
    client.raw.socket.pause()
    client.send(requestHead('GET /api/v1/pods'))
    await standsStill('what upstream writes', () => written)
    assert.ok(written < 60_000_000, `${written} bytes were taken for a client that reads none`)
  })

  test('an upload that is refused at once: the client can still read why', async () => {
    const client = await connect()
    const size = 20_000_000
    // As many clients do: nothing is read before everything is written.
    const { socket } = client.raw
    socket.pause()
    client.send(requestHead('POST /clusters/nobody/api', [`Content-Length: ${size}`]))
    for (let sent = 0; sent < size; sent += 1_000_000) {
      if (!socket.write(Buffer.alloc(1_000_000, 'x'))) {
        await waitFor('the upload to go on', () => socket.destroyed || socket.writableLength === 0, { intervalMs: 1 })
      }
    }
    socket.resume()
    const answer = await client.response()
    assert.equal(answer.status, 404)
    assert.match(answer.body.toString(), /no cluster is served under/)
    await waitFor('the end', () => client.closed())
  })
})

describe('large uploads are held back, and arrive whole', () => {
  const SIZE = 200_000_000
  const targets: [string, () => { host: string; whenSeen: (take: (body: NodeJS.ReadableStream) => void) => void }][] = [
    [
      'HTTP/2 upstream',
      () => ({
        host: HOST,
        whenSeen: (take) => {
          stub.answer = (request) => {
            take(request.stream)
            request.stream.on('end', () => reply(request, 200, 'taken'))
          }
        },
      }),
    ],
    ['HTTP/1.1 upstream', () => ({ host: TLS_HOST, whenSeen: (take) => takeWith(secure, take) })],
    ['plain upstream', () => ({ host: PLAIN_HOST, whenSeen: (take) => takeWith(plain, take) })],
  ]
  function takeWith(http1: Http1Stub, take: (body: NodeJS.ReadableStream) => void): void {
    http1.answer = ({ message, response }) => {
      take(message)
      message.on('end', () => response.end('taken'))
    }
  }

  for (const [name, target] of targets) {
    test(name, async () => {
      const { host, whenSeen } = target()
      let body: NodeJS.ReadableStream | undefined
      whenSeen((stream) => {
        body = stream
        stream.pause()
      })
      const client = await connect(host)
      const { socket } = client.raw
      client.send(requestHead('POST /a', [`Host: ${host}`, `Content-Length: ${SIZE}`]))
      const chunk = Buffer.alloc(1_000_000, 'x')
      let sent = 0
      const pump = (): void => {
        do {
          sent += chunk.length
        } while (socket.write(chunk) && sent < SIZE)
        if (sent < SIZE) socket.once('drain', pump)
      }
      pump()
      await waitFor('the request', () => body !== undefined)
      await standsStill('the upload', () => sent - socket.writableLength)
      assert.ok(sent < 60_000_000, `${sent} bytes were taken that upstream reads none of`)
      let received = 0
      body?.on('data', (piece: Buffer) => {
        received += piece.length
      })
      body?.resume()
      assert.equal((await client.response()).body.toString(), 'taken')
      assert.equal(received, SIZE)
    })
  }
})

for (const [name, host, of] of [
  ['HTTP/1.1 upstreams', TLS_HOST, () => secure],
  ['plain HTTP upstreams', PLAIN_HOST, () => plain],
] as const) {
  describe(name, () => {
    let session: ClientHttp2Session
    before(() => {
      session = h2Connect({ port: gateway.port, serverName: host, certificate: alice })
    })
    after(() => session.destroy())
    const h2 = (head: readonly string[], body?: Buffer) => h2Request(session, [...head, ':authority', host], body)
    const answerWith = (answer: (request: SeenHttp1) => void): void => {
      of().answer = answer
    }

    test('a request arrives as it was sent, under the identity of the client', async () => {
      const path = '/api/v1/namespaces/a%2Fb/../pods?x=1&&y'
      const answer = await h2([':path', path, 'accept', 'a', 'accept', 'b', 'te', 'trailers', 'x-remote-user', 'admin'])
      assert.equal(answer.status, 200)
      assert.equal(answer.body.toString(), '{"kind":"Stub"}')
      const [seen] = of().seen
      assert.ok(seen)
      assert.equal(seen.path, path)
      assert.deepEqual(seen.values('host'), [`127.0.0.1:${of().port}`])
      assert.deepEqual(seen.values('accept'), ['a', 'b'])
      assert.deepEqual(seen.values('impersonate-user'), ['alice'])
      assert.deepEqual(seen.values('impersonate-group'), ['dev', 'system:authenticated'])
      // A credential is not sent in clear text.
      assert.deepEqual(seen.values('authorization'), host === PLAIN_HOST ? [] : ['Bearer gateway-token'])
      for (const gone of ['x-remote-user', 'te', 'upgrade']) assert.deepEqual(seen.values(gone), [])
    })

    test('names beyond ASCII arrive as UTF-8 bytes', async () => {
      const zoe = h2Connect({ port: gateway.port, serverName: host, certificate: clientPair(clientCA, 'Zoë 王') })
      assert.equal((await h2Request(zoe, [':authority', host])).status, 200)
      zoe.destroy()
      const [value = ''] = of().seen[0]?.values('impersonate-user') ?? []
      assert.equal(Buffer.from(value, 'latin1').toString(), 'Zoë 王')
    })

    test('HTTP/1.1 clients: kept alive, chunks, HEAD', async () => {
      answerWith(({ message, response, method }) => {
        response.sendDate = false
        if (method === 'HEAD') response.writeHead(200, { 'content-length': 42 }).end()
        else void bodyOf(message).then((body) => response.end(`got ${body}`))
      })
      const client = await connect(host)
      const hosts = [`Host: ${host}`]
      client.send(`${requestHead('POST /a', [...hosts, 'Transfer-Encoding: chunked'])}2\r\nab\r\n1\r\nc\r\n0\r\n\r\n`)
      assert.equal((await client.response()).body.toString(), 'got abc')
      client.send(requestHead('HEAD /a', hosts))
      assert.deepEqual((await client.response({ noBody: true })).values('content-length'), ['42'])
      client.send(`${requestHead('PUT /a', [...hosts, 'Content-Length: 2'])}ab`)
      assert.equal((await client.response()).body.toString(), 'got ab')
      client.send(requestHead('POST /a', [...hosts, 'Content-Length: 0']))
      assert.equal((await client.response()).body.toString(), 'got ')
      assert.deepEqual(of().seen.at(-1)?.values('content-length'), ['0'])
    })

    test('HEAD, 204, 304 and repeated fields for HTTP/2 clients', async () => {
      answerWith(({ response, method, path }) => {
        if (method === 'HEAD') response.writeHead(200, { 'content-length': 42 }).end()
        else
          response
            .writeHead(Number(path.slice(1)), [
              'warning',
              '299 - "a"',
              'set-cookie',
              'a',
              'warning',
              '299 - "b"',
              'set-cookie',
              'b',
            ])
            .end()
      })
      const head = await h2([':method', 'HEAD'])
      assert.deepEqual([head.status, valuesOf(head.head, 'content-length'), head.resetCode], [200, ['42'], 0])
      for (const status of [204, 304, 200]) {
        const answer = await h2([':path', `/${status}`])
        assert.deepEqual([answer.status, answer.body.length, answer.resetCode], [status, 0, 0])
        assert.deepEqual(valuesOf(answer.head, 'warning'), ['299 - "a"', '299 - "b"'])
        assert.deepEqual(valuesOf(answer.head, 'set-cookie'), ['a', 'b'])
        for (const gone of ['connection', 'keep-alive', 'transfer-encoding']) {
          assert.deepEqual(valuesOf(answer.head, gone), [])
        }
      }
    })

    test('Expect: 100-continue: the client does not wait for ever', async () => {
      answerWith(({ message, response }) => void bodyOf(message).then((body) => response.end(body)))
      const client = await connect(host)
      client.send(requestHead('POST /a', [`Host: ${host}`, 'Expect: 100-continue', 'Content-Length: 5']))
      assert.equal((await client.response()).status, 100)
      client.send('hello')
      assert.equal((await client.response()).body.toString(), 'hello')
    })

    test('trailers of an answer', async () => {
      answerWith(({ response }) => {
        response.writeHead(200, { trailer: 'x-sum' })
        response.write('body')
        response.addTrailers({ 'x-sum': '7' })
        response.end()
      })
      assert.deepEqual((await h2([])).trailers, ['x-sum', '7'])
      const client = await connect(host)
      client.send(requestHead('GET /a', [`Host: ${host}`]))
      assert.deepEqual((await client.response()).trailers, ['x-sum', '7'])
    })

    test('a watch: each event as it comes; a client that leaves has left for upstream, too', async () => {
      let closed = false
      answerWith(({ response }) => {
        response.writeHead(200, { 'content-type': 'application/json' })
        response.write('{"type":"ADDED"}\n')
        response.on('close', () => {
          closed = true
        })
      })
      const stream = h2Open(session, [':authority', host, ':path', '/api/v1/pods?watch=1'])
      let text = ''
      stream.on('data', (chunk: Buffer) => {
        text += chunk.toString()
      })
      await waitFor('the first event', () => text.includes('ADDED'))
      of().seen[0]?.response.write('{"type":"MODIFIED"}\n')
      await waitFor('the second event', () => text.includes('MODIFIED'))
      stream.close(8)
      await waitFor('the end at upstream', () => closed)
    })

    test('a client that does not read holds back upstream, and gets it all in the end', async () => {
      const size = 200_000_000
      const chunk = Buffer.alloc(1_000_000)
      let written = 0
      answerWith(({ response }) => {
        const pump = (): void => {
          do written += chunk.length
          while (response.write(chunk) && written < size)
          if (written < size) response.once('drain', pump)
          else response.end()
        }
        pump()
      })
      const stream = h2Open(session, [':authority', host])
      stream.pause()
      await standsStill('what upstream writes', () => written)
      assert.ok(written < 60_000_000, `${written} bytes were taken for a client that reads none`)
      let received = 0
      stream.on('data', (piece: Buffer) => {
        received += piece.length
      })
      const whole = h2Response(stream)
      stream.resume()
      assert.equal((await whole).resetCode, 0)
      assert.equal(received, size)
    })

    test('upstream breaks in the middle of an answer: a reset, never a clean end', async () => {
      for (const fields of [{}, { 'content-length': 1_000_000 }]) {
        answerWith(({ response }) => {
          response.writeHead(200, fields)
          response.write('{"items":[')
          setImmediate(() => response.destroy())
        })
        const answer = await h2([])
        assert.equal(answer.status, 200)
        assert.notEqual(answer.resetCode, 0)
      }
    })

    test('upstream closes without an answer: 502, and a write was sent once', async () => {
      answerWith(({ message }) => void message.socket.destroy())
      const answer = await h2([':method', 'POST'], Buffer.from('{}'))
      assert.equal(answer.status, 502)
      assert.equal(of().seen.length, 1)
    })

    test('an answer that HTTP/2 cannot carry ends its stream, and nothing else', async () => {
      for (const head of ['600 Odd', '999 Odd']) {
        answerWith(({ message }) => void message.socket.end(`HTTP/1.1 ${head}\r\nContent-Length: 1\r\n\r\nx`))
        const answer = await h2([])
        assert.ok(answer.resetCode !== 0 || answer.status === 502, `${head}: ${answer.status}`)
      }
      answerWith(({ response }) => response.end('{}'))
      await waitFor('200', async () => (await h2([])).status === 200)
    })

    test('connections are reused, and as many as there are requests at once', async () => {
      const held: (() => void)[] = []
      answerWith(({ response }) => held.push(() => response.end('{}')))
      // The endpoint may still have to recover from the breaks of other tests.
      await waitFor('a healthy endpoint', async () => {
        const stream = h2Response(h2Open(session, [':authority', host]))
        const release = setInterval(() => held.pop()?.(), 5)
        const { status } = await stream
        clearInterval(release)
        return status === 200
      })
      held.length = 0
      const answers = Array.from({ length: 20 }, () => h2([]))
      await waitFor('all of them', () => held.length === 20)
      for (const release of held) release()
      for (const answer of await Promise.all(answers)) assert.equal(answer.status, 200)
      const before = of().connections()
      answerWith(({ response }) => response.end('{}'))
      for (let i = 0; i < 50; i++) assert.equal((await h2([])).status, 200)
      assert.ok(of().connections() <= before, 'no new connections')
    })
  })
}
