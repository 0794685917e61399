// Small answers are held until they are whole: an endpoint that dies in the middle of one costs a read nothing.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { ClientHttp2Session, ClientHttp2Stream } from 'node:http2'
import { describe, type TestContext, test } from 'node:test'
import { MINIMUM_RETRIES } from '../../src/gateway/core/endpoints/retry-budget.ts'
import { heldBytes, MAX_ALL_HELD_BYTES, MAX_HELD_BYTES } from '../../src/gateway/request/held-answer.ts'
import { REPEATED_READS } from '../../src/gateway/state/user-budgets.ts'
import { createCA } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Open, h2Request, h2Response, valuesOf } from '../harness/clients/h2-client.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { base64, clientPair, clusterObject } from '../harness/objects/objects.ts'
import { type SeenHttp1, startHttp1Stub } from '../harness/upstreams/stub-http1.ts'
import { reply, type SeenRequest, type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const JSON_TYPE = ['content-type', 'application/json']
const PROTOBUF_TYPE = ['content-type', 'application/vnd.kubernetes.protobuf']
const WHOLE = Buffer.from(JSON.stringify({ kind: 'Pod', data: 'x'.repeat(20_000) }))
const LENGTH = ['content-length', String(WHOLE.length)]

interface World {
  readonly stubs: readonly [StubUpstream, StubUpstream]
  readonly gateway: InProcessGateway
  readonly session: ClientHttp2Session
  connect(): ClientHttp2Session
  answer(answer: (request: SeenRequest) => void): void
  seen(): number
}

async function setUp(t: TestContext): Promise<World> {
  const stubs = [await startStub(), await startStub()] as const
  const gateway = await startInProcess([clusterObject(stubs)])
  const sessions: ClientHttp2Session[] = []
  const connect = (): ClientHttp2Session => {
    const session = h2Connect({ port: gateway.port })
    sessions.push(session)
    return session
  }
  t.after(async () => {
    for (const session of sessions) session.destroy()
    await gateway.stop()
    for (const stub of stubs) await stub.stop()
    assert.equal(heldBytes(), 0, 'nothing is held any more')
  })
  const session = connect()
  await waitFor('both endpoints', async () => {
    await h2Request(session, [])
    return stubs.every(({ seen }) => seen.length > 0)
  })
  for (const { seen } of stubs) seen.length = 0
  return {
    stubs,
    gateway,
    session,
    connect,
    answer: (answer) => {
      for (const stub of stubs) stub.answer = answer
    },
    seen: () => stubs.reduce((sum, { seen }) => sum + seen.length, 0),
  }
}

/** The first of all requests gets `broken`, the others `whole`. */
function firstBroken(broken: (request: SeenRequest) => void, whole: (request: SeenRequest) => void) {
  let requests = 0
  return (request: SeenRequest): void => (requests++ === 0 ? broken : whole)(request)
}

/** Head, then a part of the body, then this. */
function cutOff(fields: readonly string[], part: Buffer, cut: (request: SeenRequest) => void) {
  return (request: SeenRequest): void => {
    request.stream.respond([':status', '200', ...fields])
    request.stream.write(part, () => setImmediate(() => cut(request)))
  }
}

const kill = ({ session }: SeenRequest): void => void session?.socket.destroy()
/** Unlike `close`, it does not end the answer before. */
const reset = ({ stream }: SeenRequest): void => void stream.destroy(new Error('broken'))

async function metric(gateway: InProcessGateway, line: string): Promise<number> {
  const found = (await gateway.metrics()).split('\n').find((each) => each.startsWith(line))
  return Number(found?.slice(found.lastIndexOf(' ') + 1) ?? 0)
}

describe('an endpoint that dies in the middle of a small answer', () => {
  const part = WHOLE.subarray(0, 9_000)
  const cases: [string, readonly string[], (request: SeenRequest) => void][] = [
    ['with a length', [...JSON_TYPE, ...LENGTH], kill],
    ['text, with a length', ['content-type', 'text/plain', ...LENGTH], kill],
    ['without a length, JSON', JSON_TYPE, kill],
    ['without a length, Protobuf', PROTOBUF_TYPE, kill],
    ['with a length, by a reset', [...JSON_TYPE, ...LENGTH], reset],
    ['without a length, by a reset', JSON_TYPE, reset],
  ]
  for (const [name, fields, cut] of cases) {
    test(`${name}: another one is asked, and the client sees one whole answer`, async (t) => {
      const { gateway, session, answer, stubs } = await setUp(t)
      const whole = (request: SeenRequest): void => reply(request, 200, WHOLE.toString(), ['x-from', 'whole'])
      answer(firstBroken(cutOff([...fields, 'x-from', 'broken'], part, cut), whole))
      const got = await h2Request(session, [])
      assert.equal(got.status, 200)
      assert.equal(got.resetCode, 0)
      assert.deepEqual(valuesOf(got.head, 'x-from'), ['whole'])
      assert.ok(got.body.equals(WHOLE))
      assert.deepEqual(
        stubs.map(({ seen }) => seen.length),
        [1, 1],
      )
      assert.equal(
        await metric(gateway, 'portcullis_upstream_retries_total{cluster="prod.example.com",cause="read"}'),
        1,
      )
      assert.equal(await metric(gateway, 'portcullis_apiserver_request_aborts_total'), 0)
    })
  }

  test('all but the end has come, too', async (t) => {
    const { session, answer } = await setUp(t)
    const whole = (request: SeenRequest): void => reply(request, 200, WHOLE.toString())
    answer(firstBroken(cutOff(JSON_TYPE, WHOLE, kill), whole))
    const got = await h2Request(session, [])
    assert.deepEqual([got.status, got.resetCode, got.body.equals(WHOLE)], [200, 0, true])
  })

  test('only its head has come, too', async (t) => {
    const { session, answer, seen } = await setUp(t)
    answer(
      firstBroken(cutOff([...JSON_TYPE, ...LENGTH], Buffer.alloc(0), kill), (request) => reply(request, 201, 'ok')),
    )
    const got = await h2Request(session, [])
    assert.deepEqual([got.status, got.resetCode, got.body.toString(), seen()], [201, 0, 'ok', 2])
  })

  test('all of them: 502, and nothing of the partial responses', async (t) => {
    const { session, answer, seen } = await setUp(t)
    answer(cutOff([...JSON_TYPE, ...LENGTH], part, reset))
    const got = await h2Request(session, [])
    assert.deepEqual([got.status, got.resetCode, seen()], [502, 0, 2])
    assert.equal(JSON.parse(got.body.toString()).kind, 'Status')
  })

  test('over HTTP/1.1', async (t) => {
    const stubs = [await startHttp1Stub(), await startHttp1Stub()]
    const gateway = await startInProcess([
      clusterObject([], {
        spec: {
          servers: stubs.map(({ url }) => ({ endpoint: url })),
          clientConfig: { insecure: true, bearerToken: base64('gateway-token') },
        },
      }),
    ])
    const session = h2Connect({ port: gateway.port })
    t.after(async () => {
      session.destroy()
      await gateway.stop()
      for (const stub of stubs) await stub.stop()
      assert.equal(heldBytes(), 0)
    })
    await waitFor('both endpoints', async () => {
      await h2Request(session, [])
      return stubs.every(({ seen }) => seen.length > 0)
    })
    for (const fields of [{ 'content-length': String(WHOLE.length) }, {}]) {
      let requests = 0
      const answer = ({ response }: SeenHttp1): void => {
        response.writeHead(200, { 'content-type': 'application/json', ...fields })
        if (requests++ > 0) response.end(WHOLE)
        else response.write(part, () => setImmediate(() => response.socket?.destroy()))
      }
      for (const stub of stubs) stub.answer = answer
      const got = await h2Request(session, [])
      assert.deepEqual([got.status, got.resetCode, requests, got.body.equals(WHOLE)], [200, 0, 2, true])
      for (const method of ['HEAD', 'GET']) {
        for (const stub of stubs) stub.answer = ({ response }) => void response.writeHead(304, { etag: '"1"' }).end()
        const short = await h2Request(session, [':method', method])
        assert.deepEqual([short.status, short.resetCode, valuesOf(short.head, 'etag')], [304, 0, ['"1"']])
      }
    }
  })
})

describe('the retries of a cluster', () => {
  const broken = cutOff([...JSON_TYPE, ...LENGTH], WHOLE.subarray(0, 100), reset)

  test('are not spent where no endpoint is left to ask', async (t) => {
    const { gateway, session, answer, stubs } = await setUp(t)
    gateway.apply([clusterObject([stubs[0]])])
    answer(broken)
    // Everything breaks, and no other endpoint can be asked: so often that it would take all there is.
    for (let asked = 0; asked <= MINIMUM_RETRIES; asked += 100) {
      const got = await Promise.all(Array.from({ length: 100 }, () => h2Request(session, [])))
      for (const { status } of got) assert.equal(status, 502)
    }
    answer((request) => reply(request, 200, WHOLE.toString()))
    gateway.apply([clusterObject(stubs)])
    stubs[1].seen.length = 0
    await waitFor('the other endpoint', async () => {
      await h2Request(session, [])
      return stubs[1].seen.length > 0
    })
    answer(firstBroken(broken, (request) => reply(request, 200, WHOLE.toString())))
    assert.equal((await h2Request(session, [])).status, 200)
    assert.equal(await metric(gateway, 'portcullis_upstream_retries_total'), 1)
  })

  test('are not for one user: whose single streams break again and again takes a part of them', async (t) => {
    const clientCA = createCA({ commonName: 'clients' })
    const { gateway, answer, stubs, seen } = await setUp(t)
    gateway.apply([clusterObject(stubs, { clientCA })])
    const of = (name: string): ClientHttp2Session => {
      const session = h2Connect({ port: gateway.port, certificate: clientPair(clientCA, name) })
      t.after(() => session.destroy())
      return session
    }
    const [mallory, alice] = [of('mallory'), of('alice')]
    let retried = 0
    answer((request) => {
      if (request.values('impersonate-user').includes('mallory')) broken(request)
      else if (retried++ === 0) broken(request)
      else reply(request, 200, WHOLE.toString())
    })
    const before = seen()
    const { burst, perSecond } = REPEATED_READS
    const asked = 2 * burst
    const sinceMs = performance.now()
    for (let i = 0; i < asked; i += 100) {
      await Promise.all(Array.from({ length: 100 }, () => h2Request(mallory, [])))
    }
    const again = await metric(gateway, 'portcullis_upstream_retries_total')
    assert.equal(seen() - before, asked + again)
    const most = burst + perSecond * Math.ceil((performance.now() - sinceMs) / 1000)
    assert.ok(again >= burst && again <= most, `${again} of ${asked} were sent again`)
    assert.equal((await h2Request(alice, [])).status, 200, 'a read of alice is sent again')
    assert.equal(retried, 2)
  })
})

describe('what is streamed', () => {
  test('a larger response: truncated, reset, and requested once', async (t) => {
    const { session, answer, seen } = await setUp(t)
    const large = Buffer.alloc(MAX_HELD_BYTES + 1, 'x')
    for (const fields of [JSON_TYPE, [...JSON_TYPE, 'content-length', String(2 * large.length)]]) {
      const before = seen()
      answer(cutOff(fields, large, kill))
      const got = await h2Request(session, [])
      assert.equal(got.status, 200)
      assert.notEqual(got.resetCode, 0)
      assert.equal(seen(), before + 1)
    }
  })

  test('the answer to a write: never asked for again', async (t) => {
    const { session, answer, seen } = await setUp(t)
    answer(cutOff([...JSON_TYPE, ...LENGTH], WHOLE.subarray(0, 100), kill))
    const got = await h2Request(session, [':method', 'POST'], Buffer.from('{}'))
    assert.equal(got.status, 200)
    assert.notEqual(got.resetCode, 0)
    assert.equal(seen(), 1)
  })

  test('the answer of a backend through proxy, and a log: never asked for again', async (t) => {
    const { session, answer, seen } = await setUp(t)
    answer(cutOff(['content-type', 'text/plain', 'content-length', '10'], Buffer.from('a'), reset))
    for (const path of ['/api/v1/namespaces/a/pods/p/proxy/', '/api/v1/namespaces/a/pods/p/log']) {
      const before = seen()
      const got = await h2Request(session, [':path', path])
      assert.equal(got.status, 200)
      assert.notEqual(got.resetCode, 0)
      assert.equal(seen(), before + 1)
    }
  })

  for (const [name, path, type, ...length] of [
    ['an object that comes slowly, of unknown length', '/api/v1/pods', 'application/json'],
    ['an object that comes slowly, and says its length', '/api/v1/pods', 'application/json', 'content-length', '11'],
    ['text of unknown length', '/api/v1/pods', 'text/plain'],
    ['a log', '/api/v1/namespaces/a/pods/p/log?follow=true', 'application/json'],
    ['what is no resource', '/metrics', 'application/json'],
  ] as const) {
    test(name, async (t) => {
      const { session, answer } = await setUp(t)
      const open: SeenRequest[] = []
      answer((request) => {
        open.push(request)
        request.stream.respond([':status', '200', 'content-type', type, ...length])
        request.stream.write('{"begin":')
      })
      const stream = h2Open(session, [':path', path])
      const [first] = (await once(stream, 'data')) as [Buffer]
      assert.equal(first.toString(), '{"begin":')
      const whole = h2Response(stream)
      open[0]?.stream.end('1}')
      assert.equal((await whole).resetCode, 0)
    })
  }
})

test('a head behind which nothing comes for a while, and no length, is passed on', async (t) => {
  const { session, answer } = await setUp(t)
  const open: SeenRequest[] = []
  answer((request) => {
    open.push(request)
    request.stream.respond([':status', '200', ...JSON_TYPE])
  })
  const stream = h2Open(session, [])
  await once(stream, 'response')
  const whole = h2Response(stream)
  open[0]?.stream.end('{}')
  assert.equal((await whole).body.toString(), '{}')
})

describe('answers that were held arrive as they were sent', () => {
  test('at any size, in any pieces', async (t) => {
    const { session, answer } = await setUp(t)
    const sizes = [0, 1, 4_096, 5_000, 32_768, MAX_HELD_BYTES - 1, MAX_HELD_BYTES, MAX_HELD_BYTES + 1, 3_000_000]
    for (const size of sizes) {
      const body = Buffer.from(Array.from({ length: size }, (_, i) => (i * 7) % 251))
      for (const fields of [[], ['content-length', String(size)]]) {
        for (const piece of [1_000, 20_000]) {
          answer(({ stream }) => {
            stream.respond([':status', '200', ...JSON_TYPE, ...fields])
            for (let at = 0; at < size; at += piece) stream.write(body.subarray(at, at + piece))
            stream.end()
          })
          const got = await h2Request(session, [])
          assert.equal(got.resetCode, 0)
          assert.ok(got.body.equals(body), `${size} bytes in pieces of ${piece}, ${fields}`)
        }
      }
    }
  })

  test('HEAD, 304, trailers', async (t) => {
    const { session, answer } = await setUp(t)
    answer(({ stream }) => {
      stream.respond([':status', '200', ...JSON_TYPE, 'content-length', '42'], { endStream: true })
    })
    const head = await h2Request(session, [':method', 'HEAD'])
    assert.deepEqual([head.status, head.resetCode, valuesOf(head.head, 'content-length')], [200, 0, ['42']])
    answer(({ stream }) => stream.respond([':status', '304', 'etag', '"7"'], { endStream: true }))
    assert.equal((await h2Request(session, [])).status, 304)
    answer(({ stream }) => {
      stream.respond([':status', '200', ...JSON_TYPE], { waitForTrailers: true })
      stream.on('wantTrailers', () => stream.sendTrailers({ 'x-sum': '7' }))
      stream.end('{}')
    })
    const got = await h2Request(session, [])
    assert.deepEqual([got.body.toString(), got.trailers], ['{}', ['x-sum', '7']])
  })

  test('what is held for a client is released when it disconnects', async (t) => {
    const { session, answer } = await setUp(t)
    const open: SeenRequest[] = []
    let closed = 0
    answer((request) => {
      open.push(request)
      request.stream.respond([':status', '200', ...JSON_TYPE, ...LENGTH])
      request.stream.write(WHOLE.subarray(0, 9_000))
      request.stream.on('close', () => closed++)
    })
    const stream = h2Open(session, [])
    await waitFor('something to be held', () => heldBytes() > 9_000)
    stream.close(8)
    await waitFor('upstream to hear of it', () => closed === 1)
    assert.equal(heldBytes(), 0)
  })

  test('no more of them than fit: the others are passed on', async (t) => {
    const { connect, answer } = await setUp(t)
    const part = Buffer.alloc(60_000)
    answer(({ stream }) => {
      stream.respond([':status', '200', ...JSON_TYPE, 'content-length', String(part.length + 1)])
      stream.write(part)
    })
    const fitting = Math.floor(MAX_ALL_HELD_BYTES / part.length)
    const streams: ClientHttp2Stream[] = []
    let begun = 0
    let most = 0
    const sessions = [connect(), connect()]
    for (let i = 0; i < fitting + 20; i++) {
      const stream = h2Open(sessions[i % 2] ?? assert.fail(), [])
      stream.on('response', () => {
        begun++
        most = Math.max(most, heldBytes())
      })
      stream.resume()
      streams.push(stream)
    }
    // Those that do not fit at once, all others after a while.
    await waitFor('all of them', () => begun === streams.length)
    assert.ok(most <= MAX_ALL_HELD_BYTES, `${most} bytes were held`)
    for (const stream of streams) stream.close(8)
    await waitFor('nothing to be held', () => heldBytes() === 0)
  })
})
