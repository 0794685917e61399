// The request path against stub upstreams: what a real kube-apiserver cannot be made to do on command.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { ClientHttp2Session } from 'node:http2'
import { after, before, beforeEach, describe, test } from 'node:test'
import { createCA, type KeyPair } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Open, h2Request, h2Response, valuesOf } from '../harness/clients/h2-client.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { clientPair, clusterObject } from '../harness/objects/objects.ts'
import { reply, type SeenRequest, type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'
import { standsStill, waitFor } from '../harness/wait.ts'

const clientCA: KeyPair = createCA({ commonName: 'clients of prod' })
const alice = clientPair(clientCA, 'alice', ['dev', 'ops'])
let first: StubUpstream
let second: StubUpstream
let gateway: InProcessGateway
let session: ClientHttp2Session

before(async () => {
  first = await startStub()
  second = await startStub()
  gateway = await startInProcess([clusterObject([first, second], { clientCA })])
  session = h2Connect({ port: gateway.port, serverName: 'prod.example.com', certificate: alice })
})
after(async () => {
  session.destroy()
  await gateway.stop()
  await first.stop()
  await second.stop()
})
beforeEach(() => {
  for (const stub of [first, second]) {
    stub.seen.length = 0
    stub.answer = (request) => reply(request, 200, '{"kind":"Stub"}')
  }
})

function answerBoth(answer: (request: SeenRequest) => void): void {
  first.answer = answer
  second.answer = answer
}

function allSeen(): SeenRequest[] {
  return [...first.seen, ...second.seen]
}

describe('forwarding', () => {
  test('a request arrives as it was sent, under the identity of the certificate', async () => {
    const answer = await h2Request(session, [
      ':path',
      '/api/v1/namespaces/a%2Fb/pods?labelSelector=x&limit=5',
      'accept',
      'application/json',
    ])
    assert.equal(answer.status, 200)
    const [seen] = allSeen()
    assert.ok(seen)
    assert.equal(seen.path, '/api/v1/namespaces/a%2Fb/pods?labelSelector=x&limit=5', 'raw target, not re-encoded')
    assert.deepEqual(seen.values('impersonate-user'), ['alice'])
    assert.deepEqual(seen.values('impersonate-group'), ['dev', 'ops', 'system:authenticated'])
    assert.deepEqual(seen.values('authorization'), ['Bearer gateway-token'])
    assert.deepEqual(seen.values('accept'), ['application/json'])
    assert.equal(seen.values('audit-id').length, 1)
    assert.equal(seen.values('x-forwarded-for').at(-1), '127.0.0.1')
  })

  test('requests of one connection spread over the endpoints', async () => {
    await Promise.all(Array.from({ length: 100 }, () => h2Request(session, [])))
    assert.equal(first.seen.length, 50)
    assert.equal(second.seen.length, 50)
  })

  test('HEAD, interim responses, trailers and repeated fields pass', async () => {
    answerBoth(({ stream, method }) => {
      stream.additionalHeaders({ ':status': 103, link: '</x>' })
      if (method === 'HEAD') {
        stream.respond([':status', '200', 'content-length', '42'], { endStream: true })
        return
      }
      stream.respond([':status', '200', 'warning', '299 - "a"', 'warning', '299 - "b"'], { waitForTrailers: true })
      stream.on('wantTrailers', () => stream.sendTrailers({ 'x-sum': '7' }))
      stream.end('body')
    })
    const got = await h2Request(session, [])
    assert.deepEqual(
      got.interim.map((head) => valuesOf(head, ':status')),
      [['103']],
    )
    assert.deepEqual(valuesOf(got.head, 'warning'), ['299 - "a"', '299 - "b"'])
    assert.equal(got.body.toString(), 'body')
    assert.deepEqual(got.trailers, ['x-sum', '7'])
    const head = await h2Request(session, [':method', 'HEAD'])
    assert.equal(head.status, 200)
    assert.deepEqual(valuesOf(head.head, 'content-length'), ['42'])
  })

  test('bodies stream both ways', async () => {
    const body = Buffer.alloc(5_000_000, 'x')
    answerBoth(({ stream }) => {
      stream.respond([':status', '200'])
      stream.pipe(stream)
    })
    const got = await h2Request(session, [':method', 'POST'], body)
    assert.equal(got.body.length, body.length)
    assert.ok(got.body.equals(body))
  })

  test('a client that does not read holds back upstream, not the memory of the gateway', async () => {
    let written = 0
    answerBoth(({ stream }) => {
      stream.respond([':status', '200'])
      const chunk = Buffer.alloc(64 * 1024)
      const pump = (): void => {
        do written += chunk.length
        while (written < 200_000_000 && stream.write(chunk))
      }
      stream.on('drain', pump)
      pump()
    })
    const stream = h2Open(session, [])
    stream.pause()
    await once(stream, 'response')
    await standsStill('what upstream writes', () => written)
    assert.ok(written < 20_000_000, `${written} bytes were taken for a client that reads none`)
    stream.close(8)
  })

  for (const code of [8, 0])
    test(`a client that resets with code ${code} is reset upstream too`, async () => {
      let closed = 0
      answerBoth(({ stream }) => {
        stream.respond([':status', '200'])
        stream.write('{}\n')
        stream.on('close', () => closed++)
      })
      const stream = h2Open(session, [':path', '/api/v1/pods?watch=1'])
      await once(stream, 'data')
      stream.close(code)
      await waitFor('the end upstream', () => closed === 1)
    })
})

describe('when upstream breaks', () => {
  test('in the middle of a list: a reset, never a clean end', async () => {
    answerBoth(({ stream, session: upstream }) => {
      stream.respond([':status', '200', 'content-type', 'application/json'])
      stream.write(`{"items":[\n${' '.repeat(100_000)}`, () => upstream?.socket.destroy())
    })
    const got = await h2Request(session, [])
    assert.equal(got.status, 200)
    assert.notEqual(got.resetCode, 0)
  })

  test('a watch between two events ends cleanly, inside an event it is reset', async () => {
    const breakAfter = (text: string) => {
      answerBoth(({ stream }) => {
        stream.respond([':status', '200', 'content-type', 'application/json'])
        stream.write(text, () => setImmediate(() => stream.session?.destroy()))
      })
      return h2Request(session, [':path', '/api/v1/pods?watch=1'])
    }
    const clean = await breakAfter('{"type":"ADDED"}\n')
    assert.equal(clean.resetCode, 0)
    assert.equal(clean.body.toString(), '{"type":"ADDED"}\n')
    const torn = await breakAfter('{"type":"AD')
    assert.notEqual(torn.resetCode, 0)
  })

  test('REFUSED_STREAM: sent to the other endpoint, whatever the method, body and all', async () => {
    let refusals = 0
    const refuseOnce = (request: SeenRequest): void => {
      if (refusals++ === 0) request.stream.close(7)
      else {
        const chunks: Buffer[] = []
        request.stream.on('data', (chunk: Buffer) => chunks.push(chunk))
        request.stream.on('end', () => reply(request, 201, Buffer.concat(chunks).toString()))
      }
    }
    answerBoth(refuseOnce)
    const got = await h2Request(session, [':method', 'POST'], Buffer.from('{"kind":"Pod"}'))
    assert.equal(got.status, 201)
    assert.equal(got.body.toString(), '{"kind":"Pod"}')
    assert.equal(first.seen.length, 1)
    assert.equal(second.seen.length, 1)
  })

  test('a read without an answer is repeated once elsewhere, a write never', async () => {
    answerBoth(({ stream }) => stream.close(2))
    const read = await h2Request(session, [])
    assert.equal(read.status, 502)
    assert.equal(allSeen().length, 2, 'each endpoint once')
    first.seen.length = 0
    second.seen.length = 0
    const write = await h2Request(session, [':method', 'POST'], Buffer.from('{}'))
    assert.equal(write.status, 502)
    assert.equal(allSeen().length, 1, 'a write that may have been seen is not sent again')
    assert.equal(valuesOf(write.head, 'retry-after').length, 0)
    assert.ok(!write.body.includes('127.0.0.1'), 'no addresses in answers')
  })

  test('GOAWAY: running streams finish, later requests take a new connection', async () => {
    const open: SeenRequest[] = []
    answerBoth((request) => {
      open.push(request)
      request.stream.respond([':status', '200'])
      request.stream.write('begin')
    })
    const stream = h2Open(session, [])
    await once(stream, 'data')
    const answer = h2Response(stream)
    for (const stub of [first, second]) for (const upstream of stub.sessions()) upstream.goaway(0)
    answerBoth((request) => reply(request, 200, 'new'))
    const later = await Promise.all(Array.from({ length: 10 }, () => h2Request(session, [])))
    assert.ok(later.every((response) => response.status === 200))
    open[0]?.stream.end('end')
    assert.equal((await answer).resetCode, 0)
  })

  test('no endpoint ready: 503 without Retry-After', async () => {
    gateway.apply([
      clusterObject([first, second], { clientCA, spec: { servers: [{ endpoint: first.url, disabled: true }] } }),
    ])
    const got = await h2Request(session, [])
    assert.equal(got.status, 503)
    assert.equal(valuesOf(got.head, 'retry-after').length, 0)
    gateway.apply([clusterObject([first, second], { clientCA })])
    await waitFor('an answer', async () => (await h2Request(session, [])).status === 200)
  })
})
