// How far a request body is read over HTTP/1.1 before it is consumed.

import assert from 'node:assert/strict'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { test } from 'node:test'
import { waitFor } from '../../../../test/harness/wait.ts'
import { SERVER_LIMITS } from '../../../http2/limits.ts'
import { type Charge, HIGH_WATER_BYTES, type Peer, type StreamEvents } from '../../../kit/api/stream.ts'
import { addressCharge, userCharge } from '../../../kit/core/shares/charge.ts'
import { type Http1Connection, Http1Stream } from './http1-stream.ts'

const PIECE = Buffer.alloc(4096)
const PIECES = 256
const ADDRESS = addressCharge('127.0.0.1')
const ALICE = userCharge('prod', 'alice', 1)

const IDLE: Http1Connection = {
  peer: { charge: ALICE } as Peer,
  server: { draining: false },
  draining: false,
  closing: false,
  refused: false,
  answering: 1,
  newest: undefined,
  head: undefined,
}

/** A client that uploads a MiB that is never consumed. */
function upload(charge: Charge): {
  peer: { charge: Charge }
  stream: Http1Stream
  request: IncomingMessage
  response: ServerResponse
  bytes(): number
} {
  const request = new IncomingMessage(new Socket())
  const response = new ServerResponse(request)
  const peer = { charge } as Peer
  const connection: Http1Connection = { ...IDLE, peer, newest: response }
  const stream = new Http1Stream(request, response, connection, false)
  let bytes = 0
  const events: StreamEvents = {
    onHeaders: () => undefined,
    onBody: (chunk) => {
      bytes += chunk.length
    },
    onTrailers: () => undefined,
    onDrained: () => undefined,
    onReset: () => undefined,
  }
  stream.start(events)
  for (let i = 0; i < PIECES; i++) request.push(PIECE)
  return { peer, stream, request, response, bytes: () => bytes }
}

test('little is read ahead for an unauthenticated client, more for a user', async () => {
  const [stranger, user] = [upload(ADDRESS), upload(ALICE)]
  await waitFor('both to be held back', () => stranger.request.isPaused() && user.request.isPaused())
  assert.equal(stranger.bytes(), roundUp(SERVER_LIMITS.initialConnectionWindowBytes))
  assert.equal(user.bytes(), HIGH_WATER_BYTES)
})

test('it goes on as its bytes are taken, and further when the client is known', async () => {
  const { peer, stream, request, bytes } = upload(ADDRESS)
  await waitFor('it to be held back', () => request.isPaused())
  const first = bytes()
  stream.credit(first)
  await waitFor('as much again', () => request.isPaused() && bytes() > first)
  assert.equal(bytes(), 2 * first)
  peer.charge = ALICE
  stream.credit(first)
  await waitFor('a lot more', () => request.isPaused() && bytes() > 2 * first)
  assert.equal(bytes(), 2 * first + HIGH_WATER_BYTES)
})

test('an answer that is complete before its request is sent to its end at once, and the rest is dropped', async () => {
  const { stream, request, response, bytes } = upload(ALICE)
  await waitFor('it to be held back', () => request.isPaused())
  const before = bytes()
  stream.headers([':status', '403'], false)
  stream.body(Buffer.from('refused'), true)
  assert.equal(response.writableEnded, true)
  assert.equal(response.shouldKeepAlive, false)
  request.push(null)
  await waitFor('the rest to be taken', () => request.readableEnded)
  assert.equal(bytes(), before)
})

function roundUp(bytes: number): number {
  return Math.ceil(bytes / PIECE.length) * PIECE.length
}

/** What a response writes to its socket, write by write. */
async function written(answer: (stream: Http1Stream) => void): Promise<string[]> {
  const writes: string[] = []
  const socket = new Duplex({
    read: () => undefined,
    write(chunk, encoding, done) {
      writes.push(Buffer.from(chunk, encoding).toString('latin1'))
      done()
    },
    writev(chunks, done) {
      writes.push(chunks.map(({ chunk, encoding }) => Buffer.from(chunk, encoding).toString('latin1')).join(''))
      done()
    },
    decodeStrings: false,
  })
  const request = new IncomingMessage(socket as Socket)
  request.method = 'GET'
  const response = new ServerResponse(request)
  response.assignSocket(socket as Socket)
  const stream = new Http1Stream(request, response, { ...IDLE, newest: response }, true)
  answer(stream)
  await new Promise((resolve) => setImmediate(resolve))
  return writes
}

test('the head of an answer has the octets that upstream sent, whether its body has come or not', async () => {
  const head = [':status', '200', 'x-latin', '\xe9\xff', 'content-length', '4']
  const [first = ''] = await written((stream) => stream.headers(head, false))
  assert.match(first, /x-latin: \xe9\xff\r\n/)
  const all = await written((stream) => {
    stream.headers(head, false)
    stream.body(Buffer.from('body'), true)
  })
  assert.match(all.join(''), /x-latin: \xe9\xff\r\ncontent-length: 4\r\n.*\r\nbody$/s)
})

test('an answer that is there in one turn is one write, or three TLS records and system calls would carry it', async () => {
  const writes = await written((stream) => {
    stream.headers([':status', '200', 'content-length', '8'], false)
    stream.body(Buffer.from('body'), false)
    stream.body(Buffer.from('more'), true)
  })
  assert.equal(writes.length, 1)
})

test('a head without a body is sent at once', async () => {
  const writes = await written((stream) => stream.headers([':status', '200', 'transfer-encoding', 'chunked'], false))
  assert.equal(writes.length, 1)
})
