// Too much or too little from one client: its stream or connection ends, the others go on.

import assert from 'node:assert/strict'
import { connect as tcpConnect } from 'node:net'
import { describe, test } from 'node:test'
import { attackedGateway, ended, HIDDEN, HOST } from './harness/attacked-gateway.ts'
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
import { openRaw, type RawConnection } from './harness/raw-clients.ts'
import { reply, type SeenRequest } from './harness/stub-upstream.ts'
import { waitFor } from './harness/wait.ts'

const { stub, gateway, asAlice, assertServing } = await attackedGateway()

describe('too much of it', () => {
  const big = 'x'.repeat(2_000_000)

  test('HTTP/1.1: a header field of 2 MB: 431, the connection ends, others go on', async () => {
    const client = await http1Connect(asAlice)
    client.send(requestHead('GET /api/v1/pods', [`X-Big: ${big}`]))
    assert.equal((await client.response()).status, 431)
    await ended(client.raw)
    assert.equal(stub.seen.length, 0)
    await assertServing()
  })

  test('HTTP/1.1: more than 2,000 header fields: 431, the connection ends', async () => {
    const client = await http1Connect(asAlice)
    client.send(requestHead('GET /api/v1/pods', new Array<string>(2_100).fill('X-A: b')) + HIDDEN)
    assert.equal((await client.response()).status, 431)
    await ended(client.raw)
    assert.equal(stub.seen.length, 0)
  })

  test('HTTP/1.1: a head within the limits passes whole', async () => {
    const fields = Array.from({ length: 1_500 }, (_, i) => `X-${i}: ${i}`)
    const long = `/api/v1/pods?fieldSelector=${'y'.repeat(30_000)}`
    const answer = await http1Request(asAlice, requestHead(`GET ${long}`, fields))
    assert.equal(answer.status, 200)
    assert.equal(stub.seen[0]?.path, long)
    assert.deepEqual(stub.seen[0]?.values('x-1499'), ['1499'])
  })

  for (const [name, fields] of [
    ['a header field of 2 MB', ['x-big', big]],
    ['more than 2,000 header fields', new Array<string[]>(2_100).fill(['x-a', 'b']).flat()],
  ] as const) {
    test(`HTTP/2: ${name}: stream or connection ends, others go on`, async () => {
      const client = await openFrames(asAlice)
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
    const client = await openFrames(asAlice)
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
    const client = await openFrames(asAlice)
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
      const client = await openFrames(asAlice)
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
    const client = await http1Connect(asAlice)
    const drip = setInterval(() => client.send('x'), 50)
    client.send(`GET /api/v1/pods HTTP/1.1\r\nHost: ${HOST}\r\nX-Slow: `)
    await ended(client.raw).finally(() => clearInterval(drip))
    assert.equal(stub.seen.length, 0)
  })

  test('HTTP/1.1: a connection on which nothing comes ends', async () => {
    const client = await http1Connect(asAlice)
    await ended(client.raw)
  })

  test('HTTP/2: a connection on which no preface comes ends', async () => {
    const client = await openRaw({ ...asAlice, alpn: ['h2'] })
    await ended(client)
  })

  test('HTTP/2: a preface that comes a byte at a time: the connection ends', async () => {
    const client = await openRaw({ ...asAlice, alpn: ['h2'] })
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
