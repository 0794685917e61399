// One connection of a client over HTTP/1.1: what is read and when, in which order answers leave and how they end, and when it is over.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Http1Side } from '../../../../../test/harness/frames/http1-side.ts'
import type { Received } from '../../../../../test/harness/frames/http2-sides.ts'
import { SERVER_LIMITS } from '../../../../http2/limits.ts'
import { HIGH_WATER_BYTES, type Stream } from '../../../../kit/api/stream.ts'
import { addressCharge, userCharge } from '../../../../kit/core/shares/charge.ts'

const KIB = 1024
const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'
const ADDRESS = addressCharge('127.0.0.1')
const ALICE = userCharge('prod', 'alice', 1)
const ALIVE = 'connection: keep-alive\r\nkeep-alive: timeout=120\r\n\r\n'
const CLOSE = 'connection: close\r\n\r\n'

function get(path: string): string {
  return `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`
}

function post(bytes: number, ...fields: string[]): string {
  return `POST / HTTP/1.1\r\nHost: a\r\n${fields.join('\r\n')}Content-Length: ${bytes}\r\n\r\n`
}

function streamOf(request: Received | undefined): Stream {
  assert.ok(request?.stream)
  return request.stream
}

function answer(request: Received | undefined, body: string): void {
  const stream = streamOf(request)
  stream.headers([':status', '200', 'content-length', `${body.length}`], false)
  stream.body(Buffer.from(body), true)
}

function answered(body: string, last = ALIVE): string {
  return `HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n${last}${body}`
}

describe('answers', () => {
  test('an answer that is there in one turn is one write, with the octets that upstream sent', () => {
    const side = new Http1Side()
    side.send(GET)
    const stream = streamOf(side.requests[0])
    stream.headers([':status', '200', 'x-latin', '\xe9\xff', 'content-length', '8'], false)
    stream.body(Buffer.from('body'), false)
    stream.body(Buffer.from('more'), true)
    assert.equal(side.take(), `HTTP/1.1 200 OK\r\nx-latin: \xe9\xff\r\ncontent-length: 8\r\n${ALIVE}bodymore`)
  })

  test('a head without a body is sent at once; the body follows in chunks, and trailers behind it', () => {
    const side = new Http1Side()
    side.send(GET)
    const stream = streamOf(side.requests[0])
    stream.headers([':status', '200', 'transfer-encoding', 'identity', 'connection', 'x'], false)
    assert.equal(side.take(), `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n${ALIVE}`)
    stream.body(Buffer.from('event'), false)
    assert.equal(side.take(), '5\r\nevent\r\n')
    stream.trailers(['x-sum', '7'])
    assert.equal(side.take(), '0\r\nx-sum: 7\r\n\r\n')
    side.send(GET)
    assert.equal(side.requests.length, 2)
  })

  test('answers leave in the order of the requests, whole', () => {
    const side = new Http1Side()
    side.send(get('/0') + get('/1') + get('/2'))
    answer(side.requests[2], 'two')
    answer(side.requests[1], 'x'.repeat(200_000))
    assert.equal(side.take(), '')
    assert.ok(streamOf(side.requests[1]).queued === 200_000)
    answer(side.requests[0], 'zero')
    assert.equal(side.takeAll(), answered('zero') + answered('x'.repeat(200_000)) + answered('two'))
    assert.equal(streamOf(side.requests[1]).queued, 0)
    assert.ok(side.connection.isIdle)
  })

  for (const [what, head, body] of [
    ['more than its length', ['content-length', '3'], 'four'],
    ['less than its length', ['content-length', '5'], 'four'],
  ] as const) {
    test(`${what} of a body: the connection ends, so that nothing of it is taken for another answer`, () => {
      const side = new Http1Side()
      side.send(GET + GET)
      const stream = streamOf(side.requests[0])
      stream.headers([':status', '200', ...head], false)
      stream.body(Buffer.from(body), true)
      assert.ok(side.aborted)
      assert.equal(side.requests[1]?.reset, 'connection')
    })
  }

  test('a length, and no body: nothing of it is sent, because the next answer would be taken for the body', () => {
    const side = new Http1Side()
    side.send(GET + GET)
    streamOf(side.requests[0]).headers([':status', '200', 'content-length', '5'], true)
    assert.ok(side.aborted)
    assert.equal(side.takeAll(), '')
  })

  for (const fields of [
    ['x', 'a\r\nb: c'],
    ['x', 'a\nb'],
    ['x', 'a\0'],
    ['x', '\u0100'],
    ['x', '\u560a'],
    ['x y', 'a'],
    ['x\r\ny', 'a'],
    ['content-length', '1', 'content-length', '1'],
    ['content-length', '+1'],
    ['content-length', ''],
  ]) {
    test(`${JSON.stringify(fields)} in an answer: the connection ends, and none of it is sent`, () => {
      for (const inTurn of [true, false]) {
        const side = new Http1Side()
        side.send(inTurn ? GET : GET + GET)
        const last = side.requests.at(-1)
        streamOf(last).headers([':status', '200', ...fields], false)
        if (!inTurn) answer(side.requests[0], 'first')
        assert.ok(side.aborted)
        assert.ok(!side.takeAll().includes('x'))
      }
    })
  }

  test('a response without a body has none, whatever it says; one that ends with its head says so', () => {
    const side = new Http1Side()
    side.send(`HEAD / HTTP/1.1\r\nHost: a\r\n\r\n${GET}${GET}${GET}`)
    const [head, notModified, empty, last] = side.requests
    streamOf(head).headers([':status', '200', 'content-length', '4'], false)
    streamOf(head).body(Buffer.from('body'), true)
    streamOf(notModified).headers([':status', '304', 'content-length', '4'], true)
    streamOf(empty).headers([':status', '200'], true)
    answer(last, 'last')
    assert.equal(
      side.takeAll(),
      `HTTP/1.1 200 OK\r\ncontent-length: 4\r\n${ALIVE}HTTP/1.1 304 Not Modified\r\ncontent-length: 4\r\n${ALIVE}` +
        `HTTP/1.1 200 OK\r\ncontent-length: 0\r\n${ALIVE}${answered('last')}`,
    )
  })

  test('100 (Continue) in its turn, and none over HTTP/1.0; other interim responses are dropped', () => {
    const side = new Http1Side()
    side.send(GET + post(1))
    streamOf(side.requests[1]).headers([':status', '103', 'link', 'x'], false)
    streamOf(side.requests[1]).headers([':status', '100'], false)
    assert.equal(side.take(), '')
    answer(side.requests[0], 'first')
    assert.equal(side.take(), `${answered('first')}HTTP/1.1 100 Continue\r\n\r\n`)
    const older = new Http1Side()
    older.send('POST / HTTP/1.0\r\nContent-Length: 1\r\n\r\n')
    streamOf(older.requests[0]).headers([':status', '100'], false)
    assert.equal(older.take(), '')
  })

  test('a body that is not taken waits in its stream, which hears as it goes', () => {
    const side = new Http1Side()
    side.send(GET)
    const stream = streamOf(side.requests[0])
    const memory: number[] = []
    stream.meter = { onQueued: (bytes) => memory.push(bytes) }
    stream.headers([':status', '200'], false)
    for (let n = 0; n < 10; n++) stream.body(Buffer.alloc(30_000, 'x'), false)
    assert.ok(stream.queued > 200_000 && stream.queued < 300_000, `${stream.queued}`)
    side.take()
    assert.ok(stream.queued > 64_000)
    assert.equal(side.requests[0]?.drained, 0)
    side.takeAll()
    assert.equal(stream.queued, 0)
    assert.ok((side.requests[0]?.drained ?? 0) >= 1)
    assert.equal(memory.at(-1), 0)
    const sizes = side.text.split('\r\n').filter((line) => /^[0-9a-f]+$/.test(line))
    assert.equal(
      sizes.reduce((sum, size) => sum + Number.parseInt(size, 16), 0),
      300_000,
    )
  })
})

describe('bodies of requests', () => {
  for (const [charge, most] of [
    [ADDRESS, SERVER_LIMITS.initialConnectionWindowBytes],
    [ALICE, HIGH_WATER_BYTES],
  ] as const) {
    test(`${charge.known ? 'more of a user' : 'little of an unauthenticated client'} is read before it is taken`, () => {
      const side = new Http1Side({ charge })
      side.send(post(1024 * KIB))
      for (let n = 0; n < 256; n++) side.send(Buffer.alloc(4096, 'x'))
      const [request] = side.requests
      const first = request?.body.length ?? 0
      assert.ok(first >= most && first < most + 4096, `${first}`)
      streamOf(request).credit(first)
      side.goOn()
      assert.ok((request?.body.length ?? 0) >= 2 * first - 4096)
    })
  }

  test('it goes on further when the client is known', () => {
    const side = new Http1Side({ charge: ADDRESS })
    side.send(post(1024 * KIB) + 'x'.repeat(70_000))
    assert.equal(side.connection.held, true)
    side.peer.charge = ALICE
    streamOf(side.requests[0]).credit(1)
    assert.equal(side.connection.held, false)
  })

  test('an answer that is complete before its request is sent to its end at once, and the rest is dropped', () => {
    const side = new Http1Side()
    side.send(`${post(1000)}some`)
    answer(side.requests[0], 'refused')
    assert.equal(side.take(), answered('refused', CLOSE))
    assert.ok(side.outputEnded && !side.closed)
    side.send('x'.repeat(900))
    assert.equal(side.requests[0]?.body, 'some')
    assert.ok(!side.closed)
    side.send(`${'x'.repeat(96)}${GET}`)
    assert.ok(side.closed && !side.aborted)
    assert.equal(side.requests.length, 1)
  })

  test('who goes on for long, or stops, has had time to read it', () => {
    for (const goesOn of [true, false]) {
      const side = new Http1Side()
      side.send(post(1_000_000))
      side.pass(100_000)
      answer(side.requests[0], 'refused')
      side.take()
      let ms = 0
      for (; !side.aborted && ms < 20_000; ms += 1000) {
        side.pass(1000)
        side.nowMs += 900
        if (goesOn) side.send('x')
        side.nowMs -= 900
      }
      assert.ok(goesOn ? ms >= SERVER_LIMITS.lateBodyMs && ms < 15_000 : ms <= 3000, `${ms}`)
    }
  })

  test('who is slow to read it gets all of it: the time to go begins behind its last byte', () => {
    const side = new Http1Side()
    side.send(`${post(1_000_000)}some`)
    const body = 'x'.repeat(60 * KIB)
    answer(side.requests[0], body)
    side.pass(60_000)
    assert.ok(!side.aborted)
    assert.equal(side.takeAll(), answered(body, CLOSE))
    side.pass(3000)
    assert.ok(side.aborted)
  })

  test('a client that goes in the middle: the request is reset, and its answer goes nowhere', () => {
    const side = new Http1Side()
    side.send(`${post(10)}half`)
    side.connection.onSocketClosed()
    assert.equal(side.requests[0]?.reset, 'connection')
    answer(side.requests[0], 'late')
    assert.equal(side.take(), '')
  })

  test('a body that breaks its framing behind the answer: the answer stays readable', () => {
    const side = new Http1Side()
    side.send('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n')
    answer(side.requests[0], 'refused')
    side.send(`zz\r\n${GET}`)
    assert.equal(side.take(), answered('refused', CLOSE))
    assert.ok(!side.aborted)
    assert.equal(side.requests.length, 1)
    side.pass(3000)
    assert.ok(side.aborted)
  })
})

describe('what is read', () => {
  test('as many requests as are allowed to wait, and one more, which is the last', () => {
    const side = new Http1Side({ limits: { maxConcurrentStreams: 3 } })
    side.send(GET.repeat(10))
    assert.equal(side.requests.length, 4)
    for (const request of side.requests) answer(request, 'x')
    assert.equal(side.takeAll(), answered('x').repeat(3) + answered('x', CLOSE))
    assert.ok(side.closed)
  })

  test('no further requests of a client that takes no answers', () => {
    const side = new Http1Side()
    const large = 'x'.repeat(40_000)
    for (let n = 0; n < 10; n++) {
      side.send(GET)
      const request = side.requests[n]
      if (request !== undefined) answer(request, large)
    }
    const { length } = side.requests
    assert.ok(length >= 2 && length < 5, `${length}`)
    assert.ok(side.unread > 0)
    side.takeAll()
    side.goOn()
    assert.ok(side.requests.length > length)
  })

  test('an upgrade gets what came behind it; behind a pending request it ends the connection', () => {
    const ask = 'GET /exec HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n'
    const side = new Http1Side()
    side.send(`${ask}first${GET}`)
    assert.equal(side.upgraded?.list[3], '/exec')
    assert.equal(side.upgraded?.first, `first${GET}`)
    assert.equal(side.requests.length, 0)
    const behind = new Http1Side()
    behind.send(GET + ask)
    assert.ok(behind.aborted && behind.upgraded === undefined)
  })

  test('one that may not be granted is an ordinary request', () => {
    for (const [version, ...fields] of [
      ['1.0', 'Connection: Upgrade', 'Upgrade: websocket'],
      ['1.1', 'Upgrade: websocket'],
      ['1.1', 'Connection: Upgrade', 'Upgrade: h2c'],
      ['1.1', 'Connection: Upgrade', 'Upgrade: websocket', 'Upgrade: spdy/3.1'],
      ['1.1', 'Connection: Upgrade', 'Upgrade: websocket', 'Content-Length: 1'],
    ]) {
      const side = new Http1Side()
      side.send(`GET / HTTP/${version}\r\nHost: a\r\n${fields.join('\r\n')}\r\n\r\n`)
      assert.equal(side.requests.length, 1, fields.join())
      assert.equal(side.upgraded, undefined)
    }
  })

  test('a malformed request gets its answer, and nothing behind it is read', () => {
    for (const [text, status] of [
      ['GET / HTTP/1.1\r\n\r\n', 400],
      ['CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n', 501],
      [`GET /${'x'.repeat(70_000)} HTTP/1.1\r\n`, 431],
      [`GET / HTTP/1.1\r\n${'a: b\r\n'.repeat(2_100)}`, 431],
      [`GET / HTTP/1.1\r\n${'a: b\r\n'.repeat(1_950)}`, 431],
      ['\r\n\r\n', 400],
    ] as const) {
      const side = new Http1Side()
      side.send(text + GET)
      assert.match(
        side.take(),
        new RegExp(`^HTTP/1.1 ${status} [^\\r]*\\r\\nConnection: close\\r\\nContent-Length: 0\\r\\n\\r\\n$`),
      )
      assert.ok(side.closed)
      assert.equal(side.requests.length, 0)
    }
  })

  test('behind requests without an answer it ends the connection: no answer is read as that of another', () => {
    const side = new Http1Side()
    side.send(`${GET}nonsense\r\n`)
    assert.ok(side.aborted)
    assert.equal(side.requests[0]?.reset, 'connection')
  })
})

describe('the end', () => {
  test('a drain: requests that have come are answered, and the last answer says so', () => {
    const side = new Http1Side()
    side.send(GET + GET)
    side.serving.draining = true
    answer(side.requests[0], 'first')
    side.send(GET)
    answer(side.requests[1], 'second')
    assert.equal(side.takeAll(), answered('first') + answered('second', CLOSE))
    assert.equal(side.requests.length, 2)
    assert.ok(side.closed)
  })

  test('a head that does not come: 408, also when none begins; between two requests it is silence that counts', () => {
    for (const begin of ['', 'GET / HTT']) {
      const side = new Http1Side()
      side.send(begin)
      side.pass(9000)
      assert.ok(!side.closed)
      side.pass(2000)
      assert.match(side.take(), /^HTTP\/1.1 408 /)
      assert.ok(side.closed)
    }
    const side = new Http1Side()
    side.send(GET)
    side.pass(1_000_000)
    answer(side.requests[0], 'x')
    side.takeAll()
    side.pass(119_000)
    assert.ok(!side.closed)
    side.pass(3000)
    assert.ok(side.closed && !side.aborted)
    assert.equal(side.take(), '')
  })

  test('trailers that do not come end the connection', () => {
    const side = new Http1Side()
    side.send('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nx')
    side.pass(11_000)
    assert.ok(side.aborted)
  })

  test('a head that waits in the gateway is not late', () => {
    const side = new Http1Side()
    side.send('GET / HTT')
    side.isWaiting = true
    side.pass(60_000)
    side.isWaiting = false
    side.pass(5000)
    side.send('P/1.1\r\nHost: a\r\n\r\n')
    assert.equal(side.requests.length, 1)
  })

  test('a body that the end of the connection ends: it never looks complete, and no request is read behind it', () => {
    const side = new Http1Side()
    const old = 'GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n'
    side.send(old)
    streamOf(side.requests[0]).headers([':status', '200'], false)
    streamOf(side.requests[0]).body(Buffer.from('a part'), false)
    side.send(old)
    assert.equal(side.requests.length, 1)
    side.connection.onSocketClosed()
    assert.equal(side.requests[0]?.reset, 'connection')
    assert.ok(side.aborted)
  })

  test('HTTP/1.0: kept alive if asked for and if the end can be told, else the connection ends the body', () => {
    const side = new Http1Side()
    side.send('GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n')
    answer(side.requests[0], 'x')
    side.send('GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n')
    const stream = streamOf(side.requests[1])
    stream.headers([':status', '200'], false)
    stream.body(Buffer.from('body'), true)
    assert.equal(side.takeAll(), `${answered('x')}HTTP/1.1 200 OK\r\n${CLOSE}body`)
    assert.ok(side.closed && !side.aborted)
    const broken = new Http1Side()
    broken.send('GET / HTTP/1.0\r\n\r\n')
    streamOf(broken.requests[0]).headers([':status', '200'], false)
    streamOf(broken.requests[0]).reset('internal')
    assert.ok(broken.aborted, 'not a clean end')
  })
})
