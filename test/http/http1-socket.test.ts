// The engine of HTTP/1.1 over a socket: what is held back goes on, and what is given away is whole.

import assert from 'node:assert/strict'
import { type Duplex, duplexPair } from 'node:stream'
import { afterEach, test } from 'node:test'
import type { TLSSocket } from 'node:tls'
import { createHttp1Server, type Http1Server } from '../../src/gateway/io/listener/http1/server.ts'
import { threadScheduler } from '../../src/gateway/io/scheduling/thread-scheduler.ts'
import type { HeaderList, Peer, Stream, StreamEvents } from '../../src/kit/api/stream.ts'
import type { ClientUpgrade } from '../../src/kit/api/upgrade.ts'
import { userCharge } from '../../src/kit/core/shares/charge.ts'
import { tickAll } from '../../src/kit/io/world/coarse-ticker.ts'
import { standsStill, waitFor } from '../harness/wait.ts'

const LIMITS = {
  maxHeaderBytes: 1024 * 1024,
  maxConcurrentStreams: 250,
  headerTimeoutMs: 10_000,
  idleTimeoutMs: 120_000,
}
const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'
const UPGRADE = 'GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'

class Request implements StreamEvents {
  readonly stream: Stream
  bytes = 0
  reset = ''

  constructor(stream: Stream) {
    this.stream = stream
  }

  onHeaders(): void {
    // Only responses have a second head.
  }
  onBody(chunk: Buffer): void {
    this.bytes += chunk.length
  }
  onTrailers(): void {
    // Not sent here.
  }
  onDrained(): void {
    // Nothing waits for it.
  }
  onReset(reason: string): void {
    this.reset = reason
  }
}

interface Scene {
  readonly client: Duplex
  readonly server: Http1Server
  readonly requests: Request[]
  readonly upgrades: ClientUpgrade[]
  text(): string
}

const sockets: Duplex[] = []
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy()
})

function open(): Scene {
  const [client, socket] = duplexPair()
  sockets.push(client, socket)
  const requests: Request[] = []
  const upgrades: ClientUpgrade[] = []
  const begun = (stream: Stream): Request => {
    const request = new Request(stream)
    requests.push(request)
    return request
  }
  const server = createHttp1Server(
    LIMITS,
    (_peer, stream) => begun(stream),
    (_peer, stream, _head, upgrade) => {
      upgrades.push(upgrade)
      return new Request(stream)
    },
  )
  server.serve(socket as TLSSocket, { charge: userCharge('prod', 'alice', 1) } as Peer)
  let received = ''
  client.on('data', (chunk: Buffer) => {
    received += chunk.toString('latin1')
  })
  client.on('error', () => undefined)
  return { client, server, requests, upgrades, text: () => received }
}

function answer(request: Request | undefined, fields: HeaderList = [], body = 'x'): void {
  request?.stream.headers([':status', '200', ...fields, 'content-length', `${body.length}`], false)
  request?.stream.body(Buffer.from(body), true)
}

test('a client whose answers wait for the first one is not read further, and goes on when that has come', async () => {
  const { client, requests, text } = open()
  client.write(GET.repeat(10))
  await waitFor('the first requests', () => requests.length === 10)
  // Many short fields: they take more memory than octets.
  const fields = Array.from({ length: 600 }, (_, n) => (n % 2 === 0 ? 'a' : ''))
  for (const request of requests.slice(1)) answer(request, fields)
  client.write(GET)
  client.write(GET)
  await standsStill('what is read', () => requests.length)
  assert.equal(requests.length, 10)
  answer(requests[0])
  await waitFor('the others', () => requests.length === 12)
  for (const request of requests.slice(10)) answer(request)
  await waitFor('all answers', () => text().split('HTTP/1.1 200').length === 13)
})

test('what a connection has kept is not counted any more when it has ended', async () => {
  const { client, requests, server } = open()
  const before = threadScheduler.keptBytes
  client.write(GET.repeat(2))
  await waitFor('the requests', () => requests.length === 2)
  answer(requests[1], [], 'y'.repeat(100_000))
  client.write(GET.repeat(100))
  await waitFor('what is kept', () => threadScheduler.keptBytes > before)
  server.close()
  await waitFor('nothing to be kept', () => threadScheduler.keptBytes === before)
})

test('a body that is not taken is held back, and goes on as it is', async () => {
  const { client, requests } = open()
  const size = 3_000_000
  client.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${size}\r\n\r\n`)
  for (let sent = 0; sent < size; sent += 10_000) client.write(Buffer.alloc(10_000, 'x'))
  await waitFor('the request', () => requests.length === 1)
  const [request] = requests
  await standsStill('the body', () => request?.bytes ?? 0)
  assert.ok((request?.bytes ?? 0) < 500_000, `${request?.bytes}`)
  let credited = 0
  await waitFor('all of it', () => {
    const bytes = request?.bytes ?? 0
    request?.stream.credit(bytes - credited)
    credited = bytes
    return bytes === size
  })
})

test('an upgrade behind answers: they leave first, and the new owner gets all that follows, in order', async () => {
  const { client, requests, upgrades, text } = open()
  client.write(GET + GET)
  await waitFor('requests', () => requests.length === 2)
  for (const request of requests) answer(request, [], 'y'.repeat(30_000))
  client.write(`${UPGRADE}one `)
  client.write('two ')
  await waitFor('the upgrade', () => upgrades.length === 1)
  client.write('three')
  const [upgrade] = upgrades
  const socket = upgrade?.socket as Duplex
  let got = upgrade?.first.toString() ?? ''
  socket.on('data', (chunk: Buffer) => {
    got += chunk.toString()
  })
  socket.resume()
  await waitFor('all of it', () => got === 'one two three')
  socket.write('switched')
  await waitFor('the end', () => text().endsWith('switched'))
  assert.equal(text().split('y'.repeat(30_000)).length, 3)
  assert.ok(text().indexOf('switched') > text().lastIndexOf('y'))
})

test('answers that are complete are sent to a client that has finished writing', async () => {
  const { client, requests, text } = open()
  client.write(GET)
  await waitFor('the request', () => requests.length === 1)
  answer(requests[0])
  client.end()
  await waitFor('the answer', () => text().endsWith('\r\n\r\nx'))
})

test('a client that reads slowly, in the middle of its upload, gets all of an early answer', async () => {
  const { client, requests, text } = open()
  client.pause()
  client.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nsome')
  await waitFor('the request', () => requests.length === 1)
  const half = 'x'.repeat(50_000)
  requests[0]?.stream.headers([':status', '200', 'content-length', '100000'], false)
  for (const end of [false, true]) {
    requests[0]?.stream.body(Buffer.from(half), end)
    await new Promise(setImmediate)
  }
  for (let ms = 1000; ms < 60_000; ms += 1000) tickAll(performance.now() + ms)
  assert.ok(!client.destroyed)
  client.resume()
  await waitFor('all of the answer', () => text().endsWith(half + half))
  await waitFor('the end', () => client.readableEnded)
})

test('a client that pauses for minutes is waited for', async () => {
  const { client, requests, text } = open()
  client.pause()
  client.write(GET)
  await waitFor('the request', () => requests.length === 1)
  answer(requests[0], [], 'z'.repeat(2_000_000))
  await standsStill('what waits', () => requests[0]?.stream.queued ?? 0)
  for (let ms = 1000; ms < 600_000; ms += 1000) tickAll(performance.now() + ms)
  client.resume()
  await waitFor('all of it', () => text().length > 2_000_000)
  assert.equal(requests[0]?.reset, '')
})

test('close ends all connections, and their requests know', async () => {
  const { client, requests, server } = open()
  client.write(GET)
  await waitFor('the request', () => requests.length === 1)
  server.close()
  await waitFor('the end', () => requests[0]?.reset === 'connection')
})
