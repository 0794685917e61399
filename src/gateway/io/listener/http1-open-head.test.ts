// Counts what node:http's parser keeps: incomplete heads and trailers, and nothing else.

import assert from 'node:assert/strict'
import { createServer, IncomingMessage } from 'node:http'
import { connect, createServer as createTcpServer, type Server, Socket } from 'node:net'
import { duplexPair } from 'node:stream'
import { afterEach, test } from 'node:test'
import { waitFor } from '../../../../test/harness/wait.ts'
import { addressCharge } from '../../../kit/core/shares/charge.ts'
import { OpenHeads } from '../../../kit/core/shares/open-heads.ts'
import { SharedResource } from '../../../kit/core/shares/shared-resource.ts'
import { Http1Feed } from './http1-feed.ts'
import { Http1OpenHead } from './http1-open-head.ts'

const KIB = 1024
const payer = { charge: addressCharge('127.0.0.1') }
const GET = 'GET / HTTP/1.1\r\nHost: a\r\n'
const POST = 'POST / HTTP/1.1\r\nHost: a\r\n'
const FIELD = `X-A: ${'y'.repeat(15_990)}\r\n`

const cleanups: (() => void)[] = []
afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup()
})

interface Scene {
  readonly socket: Socket
  /** Bytes currently reserved. */
  held(): number
  /** Number of reservations. */
  takes: number
  answers: number
}

async function setUp(maxHeaderBytes = 1024 * KIB): Promise<Scene> {
  const shared = new SharedResource('buffered-bytes', 64 * 1024 * KIB)
  const heads = new OpenHeads({ shared, refuse: () => assert.fail('there is room') })
  const { take } = shared
  const http = createServer({ maxHeaderSize: maxHeaderBytes })
  const tcp: Server = createTcpServer((socket) => {
    const head = new Http1OpenHead(heads.of(payer), maxHeaderBytes)
    http.prependListener('request', (request: IncomingMessage) => head.onMessage(request, request.method === 'POST'))
    http.emit('connection', socket)
    new Http1Feed(socket, payer, { head, onNoRoom: () => assert.fail('there is room') })
  })
  http.on('request', (request, response) => {
    request.resume()
    request.on('end', () => response.end())
  })
  await new Promise<void>((resolve) => tcp.listen(0, '127.0.0.1', resolve))
  const address = tcp.address()
  assert.ok(typeof address === 'object' && address !== null)
  const socket = connect(address.port, '127.0.0.1')
  const scene: Scene = { socket, held: () => shared.unknown.held, takes: 0, answers: 0 }
  shared.take = (charge, amount) => {
    scene.takes++
    return take.call(shared, charge, amount)
  }
  let text = ''
  socket.on('data', (chunk) => {
    text += chunk.toString()
    scene.answers = text.split('HTTP/1.1 200').length - 1
  })
  cleanups.push(() => {
    socket.destroy()
    tcp.close()
    http.close()
  })
  return scene
}

function holds(scene: Scene, least: number): Promise<true> {
  return waitFor(`${least} bytes to be held`, () => scene.held() >= least)
}

test('a head is counted until its end, and a small one is not', async () => {
  const scene = await setUp()
  scene.socket.write(`${GET}\r\n${GET}`)
  await waitFor('an answer', () => scene.answers === 1)
  assert.equal(scene.takes, 0)
  scene.socket.write(FIELD.repeat(10))
  await holds(scene, 160_000)
  assert.ok(scene.held() <= 176 * KIB, `${scene.held()}`)
  scene.socket.write('\r\n')
  await waitFor('an answer', () => scene.answers === 2)
  assert.equal(scene.held(), 0)
})

test('what comes behind other requests in the same piece is counted, and given back when the connection closes', async () => {
  const scene = await setUp()
  scene.socket.write(`${GET}\r\n`.repeat(20) + GET + FIELD.repeat(3))
  await holds(scene, 48_000)
  scene.socket.destroy()
  await waitFor('nothing to be held', () => scene.held() === 0)
})

test('in a large piece, what lies in front of the last end of a head does not count, and neither do bodies', () => {
  const shared = new SharedResource('buffered-bytes', 64 * 1024 * KIB)
  const heads = new OpenHeads({ shared, refuse: () => assert.fail('there is room') })
  const head = new Http1OpenHead(heads.of(payer), 1024 * KIB)
  const message = new IncomingMessage(new Socket())
  const parsed = (text: string, body = 0, complete = true): number => {
    message.complete = complete
    head.onMessage(message, body > 0)
    if (body > 0) message.push(Buffer.alloc(body))
    head.onParsed(Buffer.from(text))
    return shared.unknown.held
  }
  const whole = `${GET}${FIELD}\r\n`
  assert.equal(parsed(whole), 0)
  assert.equal(parsed(whole + GET), 0)
  assert.equal(parsed(whole + GET + FIELD.repeat(2)), 32 * KIB)
  assert.equal(head.isInMessage, false)
  assert.equal(parsed(whole + 'a'.repeat(40_000), 40_000, false), 16 * KIB, 'a little more than there is')
  assert.equal(head.isInMessage, true)
  head.onParsed(Buffer.alloc(1000))
  assert.equal(shared.unknown.held, 32 * KIB, 'nothing was passed on')
  message.push(Buffer.alloc(60_000))
  head.onParsed(Buffer.alloc(60_010))
  assert.equal(shared.unknown.held, 0)
  assert.equal(parsed(`${POST}\r\n1\r\na\r\n0\r\n${FIELD.repeat(2)}`, 1), 32 * KIB, 'trailers')
  head.end()
  assert.equal(shared.unknown.held, 0)
})

test('trailers are counted', async () => {
  for (const parts of [1, 2]) {
    const scene = await setUp()
    const message = `${POST}Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n${FIELD.repeat(3)}`
    if (parts === 1) scene.socket.write(message)
    else for (let at = 0; at < message.length; at += 7000) scene.socket.write(message.slice(at, at + 7000))
    await holds(scene, 48_000)
    scene.socket.write('\r\n')
    await waitFor('an answer', () => scene.answers === 1)
    assert.equal(scene.held(), 0)
  }
})

test('bodies are not counted, however long they are', async () => {
  const scene = await setUp()
  const chunk = (size: number): string => `${size.toString(16)}\r\n${'a'.repeat(size)}\r\n`
  const chunks = `${chunk(3000).repeat(100)}${chunk(60_000).repeat(20)}0\r\n\r\n`
  scene.socket.write(`${POST}Transfer-Encoding: chunked\r\n\r\n${chunks}`)
  scene.socket.write(`${POST}Content-Length: 2000000\r\n\r\n${'a'.repeat(2_000_000)}`)
  await waitFor('answers', () => scene.answers === 2)
  assert.equal(scene.takes, 0)
})

test('it is never more than the parser may keep', async () => {
  const scene = await setUp(64 * KIB)
  // Lines before a request line are not kept.
  scene.socket.write('\r\n'.repeat(500_000))
  await holds(scene, 64 * KIB)
  scene.socket.write(`${GET}\r\n`)
  await waitFor('an answer', () => scene.answers === 1)
  assert.equal(scene.held(), 0)
  assert.ok(scene.takes <= 4, `${scene.takes}`)
})

test('a large field that comes byte by byte is given to the parser in few pieces, and all of it', async () => {
  const shared = new SharedResource('buffered-bytes', 64 * 1024 * KIB)
  const heads = new OpenHeads({ shared, refuse: () => assert.fail('there is room') })
  const [sending, socket] = duplexPair()
  const given: Buffer[] = []
  socket.on('data', (piece: Buffer) => void given.push(Buffer.from(piece)))
  const head = new Http1OpenHead(heads.of(payer), 1024 * KIB)
  const counted = { head, onNoRoom: () => assert.fail('there is room') }
  const feed = new Http1Feed(
    Object.assign(socket, { destroySoon: () => undefined }) as unknown as Socket,
    payer,
    counted,
  )
  const begun = `${GET}X-A: ${'y'.repeat(20_000)}`
  const bytes = 100_000
  socket.emit('data', Buffer.from(begun))
  const sum = (): number => given.reduce((all, { length }) => all + length, 0)
  await waitFor('the beginning', () => sum() === begun.length)
  const before = given.length
  for (let n = 0; n < bytes; n++) {
    // The feed pauses the socket until its turn: meanwhile it delivers nothing.
    if (socket.isPaused()) await waitFor('a turn', () => !socket.isPaused())
    socket.emit('data', Buffer.from('z'))
  }
  socket.emit('data', Buffer.from('\r\n'))
  await waitFor('all', () => sum() === begun.length + bytes + 2)
  assert.equal(Buffer.concat(given).toString(), `${begun}${'z'.repeat(bytes)}\r\n`)
  assert.ok(given.length - before <= bytes / 4096 + 2, `${given.length - before}`)
  feed.end()
  sending.destroy()
})

test('a head that comes byte by byte is served, and so is what comes behind it', async () => {
  const scene = await setUp()
  scene.socket.setNoDelay(true)
  scene.socket.write(`${GET}X-A: ${'y'.repeat(20_000)}`)
  for (const octet of `${'z'.repeat(50)}\r\n\r\n${POST}Content-Length: 3\r\n\r\nabc`) {
    await new Promise((resolve) => scene.socket.write(octet, resolve))
    await new Promise(setImmediate)
  }
  await waitFor('answers', () => scene.answers === 2)
  assert.equal(scene.held(), 0)
})

test('a large head with a body that comes in the same piece, and then byte by byte', async () => {
  const scene = await setUp()
  scene.socket.setNoDelay(true)
  scene.socket.write(`${POST}X-A: ${'y'.repeat(20_000)}\r\nContent-Length: 30050\r\n\r\n${'b'.repeat(30_000)}`)
  for (let n = 0; n < 50; n++) {
    await new Promise((resolve) => scene.socket.write('c', resolve))
    await new Promise(setImmediate)
  }
  await waitFor('an answer', () => scene.answers === 1)
})
