// Honest clients that do much at once: no limit against floods may hit them.

import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, test } from 'node:test'
import { createCA, type KeyPair } from '../../src/pki/io/pki.ts'
import { connectFrames, type FrameConnection } from '../harness/frames/frame-connection.ts'
import * as h2 from '../harness/frames/h2-frames.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { clientPair, clusterObject } from '../harness/objects/objects.ts'
import { reply, type SeenRequest, type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const HOST = 'prod.example.com'
const clientCA: KeyPair = createCA({ commonName: 'clients of prod' })
const [alice, bob] = [clientPair(clientCA, 'alice'), clientPair(clientCA, 'bob')]
let stub: StubUpstream
let gateway: InProcessGateway
let counters: string

before(async () => {
  stub = await startStub()
  gateway = await startInProcess([clusterObject([stub], { clientCA })])
})
after(async () => {
  await gateway.stop()
  await stub.stop()
})
beforeEach(async () => {
  stub.seen.length = 0
  stub.answer = (request) => reply(request, 200, '{}')
  counters = await abuseCounters()
})
afterEach(async () => {
  assert.equal(await abuseCounters(), counters, 'nothing of it was taken for an attack')
})

/** All counters of abuse, as text. */
async function abuseCounters(): Promise<string> {
  return ((await gateway.metrics()).match(/^portcullis_http2_abuse_total.*$/gm) ?? []).join('\n')
}

function open(settings: readonly (readonly [number, number])[] = [], cert = alice): Promise<FrameConnection> {
  return connectFrames({ port: gateway.port, serverName: HOST, cert, settings })
}

function head(method: string, path: string, ...fields: string[]): Buffer {
  return h2.headerBlock([':method', method, ':path', path, ':scheme', 'https', ':authority', HOST, ...fields])
}

const WATCH = head('GET', '/api/v1/pods?watch=1')

async function assertAlive(client: FrameConnection, stream: number): Promise<void> {
  stub.answer = (request) => reply(request, 200, '{}')
  client.send(h2.headersFrames(stream, head('GET', '/api/v1/pods')))
  assert.equal(await client.status(stream), 200)
  assert.equal(client.goawayCode, undefined)
  client.destroy()
}

test('1,000 watches on four connections, all cancelled at once', async () => {
  const held: SeenRequest[] = []
  stub.answer = (request) => {
    held.push(request)
    request.stream.respond([':status', '200'])
    request.stream.write('{"type":"ADDED"}\n')
  }
  const clients = await Promise.all([open(), open(), open(), open()])
  const streams = Array.from({ length: 250 }, (_, i) => 2 * i + 1)
  for (const client of clients) client.send(...streams.map((stream) => h2.headersFrames(stream, WATCH)))
  await waitFor('1,000 watches at upstream', () => held.length === 1_000)
  for (const client of clients) for (const stream of streams) await client.status(stream)
  for (const client of clients) client.send(...streams.map((stream) => h2.rstStream(stream, h2.CANCEL)))
  await waitFor('upstream to hear of it', () => held.every(({ stream }) => stream.closed || stream.destroyed))
  await Promise.all(clients.map((client) => assertAlive(client, 501)))
})

test('250 watches opened and cancelled three times over on one connection', async () => {
  // A user may end 1,000 at once, which alice has just done.
  const client = await open([], bob)
  for (let round = 0; round < 3; round++) {
    const held: SeenRequest[] = []
    stub.answer = (request) => {
      held.push(request)
      request.stream.respond([':status', '200'])
    }
    const streams = Array.from({ length: 250 }, (_, i) => 2 * (250 * round + i) + 1)
    client.send(...streams.map((stream) => h2.headersFrames(stream, WATCH)))
    await waitFor('the watches at upstream', () => held.length === 250)
    client.send(...streams.map((stream) => h2.rstStream(stream, h2.CANCEL)))
    await waitFor('upstream to hear of it', () => held.every(({ stream }) => stream.closed || stream.destroyed))
  }
  await assertAlive(client, 1_501)
})

test('a download of 50 MB whose window is given back after every frame, on two levels', async () => {
  const size = 50_000_000
  stub.answer = ({ stream }) => {
    stream.respond([':status', '200'])
    stream.end(Buffer.alloc(size))
  }
  const client = await open()
  client.onFrame = ({ type, payload }) => {
    if (type !== h2.DATA || payload.length === 0) return
    client.frames.length = 0 // 50 MB need not be kept
    client.send(h2.windowUpdate(0, payload.length), h2.windowUpdate(1, payload.length))
  }
  client.send(h2.headersFrames(1, head('GET', '/api/v1/pods')))
  await waitFor('all of it', () => client.dataBytes.get(1) === size)
  client.onFrame = () => undefined
  await assertAlive(client, 3)
})

test('the same in pieces of 4 KiB, as Go gives windows back', async () => {
  const size = 20_000_000
  stub.answer = ({ stream }) => {
    stream.respond([':status', '200'])
    stream.end(Buffer.alloc(size))
  }
  const client = await open()
  client.onFrame = ({ type, payload }) => {
    if (type !== h2.DATA) return
    client.frames.length = 0
    for (let left = payload.length; left > 0; left -= 4_096) {
      const bytes = Math.min(left, 4_096)
      client.send(h2.windowUpdate(0, bytes), h2.windowUpdate(1, bytes))
    }
  }
  client.send(h2.headersFrames(1, head('GET', '/api/v1/pods')))
  await waitFor('all of it', () => client.dataBytes.get(1) === size)
  client.onFrame = () => undefined
  await assertAlive(client, 3)
})

test('an upload in 20,000 frames of one byte', async () => {
  let received = 0
  stub.answer = (request) => {
    request.stream.on('data', (chunk: Buffer) => {
      received += chunk.length
    })
    request.stream.on('end', () => reply(request, 201, '{}'))
  }
  const client = await open()
  client.send(h2.headersFrames(1, head('POST', '/api/v1/pods'), 0))
  for (let i = 0; i < 200; i++) client.send(...new Array<Buffer>(100).fill(h2.data(1, 'x')))
  client.send(h2.data(1, '', h2.END_STREAM))
  assert.equal(await client.status(1), 201)
  assert.equal(received, 20_000)
  await assertAlive(client, 3)
})

test('250 uploads that are refused before they are sent: frames under way are not an error', async () => {
  const client = await open([[h2.INITIAL_WINDOW_SIZE, 1_000_000]])
  const refused = head('POST', '/api/v1/pods', 'impersonate-uid', 'without a user')
  const streams = Array.from({ length: 250 }, (_, i) => 2 * i + 1)
  client.send(...streams.map((stream) => h2.headersFrames(stream, refused, 0)))
  for (const stream of streams) assert.equal(await client.status(stream), 400)
  // Written before the resets were read.
  for (let round = 0; round < 12; round++) {
    client.send(...streams.map((stream) => h2.data(stream, 'x'.repeat(100), round === 11 ? h2.END_STREAM : 0)))
  }
  await assertAlive(client, 501)
})

test('5,000 quick requests, 100 at a time, none cancelled', async () => {
  const client = await open()
  const block = head('GET', '/api/v1/namespaces/default/pods/p')
  let next = 1
  let done = 0
  const send = (): void => {
    client.send(h2.headersFrames(next, block))
    next += 2
  }
  client.onFrame = ({ type, flags }) => {
    if ((type !== h2.DATA && type !== h2.HEADERS) || (flags & h2.END_STREAM) === 0) return
    done++
    if (next < 10_000) send()
  }
  for (let i = 0; i < 100; i++) send()
  await waitFor('5,000 answers', () => done === 5_000)
  client.onFrame = () => undefined
  await assertAlive(client, 10_001)
})

test('a client that pings every few milliseconds', async () => {
  const client = await open()
  for (let i = 0; i < 100; i++) {
    client.send(h2.ping(i))
    await client.frame('the answer', ({ type, payload }) => type === h2.PING && payload.readUInt32BE(4) === i)
  }
  await assertAlive(client, 1)
})
