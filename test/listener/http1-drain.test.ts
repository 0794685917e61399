// What a drain does with connections over HTTP/1.1: those that are idle are closed, and no request or response is cut off.

import assert from 'node:assert/strict'
import { afterEach, beforeEach, mock, test } from 'node:test'
import type { Waiter } from '../../src/gateway/core/thread-time/accounts.ts'
import { type ControlListener, listenControl } from '../../src/gateway/io/listener/control-listener.ts'
import { threadScheduler } from '../../src/gateway/io/scheduling/thread-scheduler.ts'
import type { RequestHandler, StreamEvents } from '../../src/kit/api/stream.ts'
import { createCA, issueCertificate } from '../../src/pki/io/pki.ts'
import { type Http1Client, http1Connect, requestHead } from '../harness/clients/http1-client.ts'
import { waitFor } from '../harness/wait.ts'

/** More than the buffers of both ends take. */
const LARGE = Buffer.alloc(32 * 1024 * 1024, 'x')
const EVENTS: StreamEvents = {
  onHeaders: () => undefined,
  onBody: () => undefined,
  onTrailers: () => undefined,
  onDrained: () => undefined,
  onReset: () => undefined,
}
const ca = createCA({ commonName: 'control' })
const { certPem: cert, keyPem: key } = issueCertificate(ca, { commonName: 'control', usage: 'server' })
const serving = { cert, key }
let listener: ControlListener
const clients: Http1Client[] = []
let largeGiven = false

/** The answer is as large as the path says; it is given when the request is complete. */
const answer: RequestHandler = (_peer, stream, head, end) => {
  const body = head[3] === '/large' ? LARGE : Buffer.from('{}')
  const respond = (): void => {
    stream.headers([':status', '200', 'content-length', `${body.length}`], false)
    stream.body(body, true)
    if (body === LARGE) largeGiven = true
  }
  if (end) respond()
  return { ...EVENTS, onBody: (_chunk, isLast) => isLast && respond() }
}

beforeEach(async () => {
  listener = await listenControl({ host: '127.0.0.1', port: 0, serving, clientCA: ca.certPem, handler: answer })
})
afterEach(() => {
  mock.restoreAll()
  for (const client of clients.splice(0)) client.destroy()
  listener.close()
})

async function connect(): Promise<Http1Client> {
  const client = await http1Connect({ port: listener.port })
  clients.push(client)
  return client
}

/** One that has had an answer. */
async function connectIdle(): Promise<Http1Client> {
  const client = await connect()
  client.send(requestHead('GET /'))
  assert.equal((await client.response()).status, 200)
  return client
}

/** Until it has closed what it closes: an idle connection is among them. */
async function drain(): Promise<void> {
  const idle = await connectIdle()
  listener.drain()
  await idle.raw.closed
}

test('a response that is complete, and that the client has not read, arrives whole; then the connection ends', async () => {
  const slow = await connect()
  slow.raw.socket.pause()
  slow.send(requestHead('GET /large'))
  await waitFor('the response', () => largeGiven)
  await drain()
  slow.raw.socket.resume()
  const { complete, body } = await slow.response()
  assert.deepEqual([complete, body.length], [true, LARGE.length])
  await waitFor('the connection to end', () => {
    listener.drain()
    return slow.closed()
  })
})

test('a request whose head has come in part is served, and is the last of its connection', async () => {
  const client = await connectIdle()
  client.send('GET / HTTP/1.1\r\nHos')
  // A round trip behind it, over another connection: it has been read.
  await connectIdle()
  await drain()
  client.send('t: a\r\n\r\n')
  const { status, values } = await client.response()
  assert.deepEqual([status, values('connection')], [200, ['close']])
  await client.raw.closed
})

test('a request whose body has come in part is served', async () => {
  const client = await connectIdle()
  client.send(requestHead('POST /', ['Content-Length: 4']))
  client.send('ab')
  await connectIdle()
  await drain()
  client.send('cd')
  assert.equal((await client.response()).status, 200)
  await client.raw.closed
})

test('a request that waits for its turn of the thread is served', async () => {
  const client = await connectIdle()
  const waiting: Waiter[] = []
  const begin = mock.method(threadScheduler, 'begin', () => false)
  const wait = mock.method(threadScheduler, 'wait', (_account: unknown, waiter: Waiter) => void waiting.push(waiter))
  client.send(requestHead('GET /'))
  await waitFor('the request', () => waiting.length > 0)
  begin.mock.restore()
  wait.mock.restore()
  await drain()
  for (const waiter of waiting) waiter.work(Number.POSITIVE_INFINITY)
  const { status, values } = await client.response()
  assert.deepEqual([status, values('connection')], [200, ['close']])
})
