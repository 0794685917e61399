// Requests that are given up as soon as they are sent (CVE-2023-44487, by way of a gateway): upstream never has more of them than its
// SETTINGS allow, those of others on the same connections go on, and who does it too often is told so.

import assert from 'node:assert/strict'
import type { ClientHttp2Session } from 'node:http2'
import { after, before, beforeEach, test } from 'node:test'
import { CANCELLED_REQUESTS } from '../../src/gateway/state/user-budgets.ts'
import { createCA, type KeyPair } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Request, type Response, valuesOf } from '../harness/clients/h2-client.ts'
import { connectFrames, type FrameConnection } from '../harness/frames/frame-connection.ts'
import {
  answerHead,
  answerOk,
  type FrameRequest,
  type FrameUpstream,
  startFrameUpstream,
} from '../harness/frames/frame-upstream.ts'
import * as h2 from '../harness/frames/h2-frames.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { base64, clientPair, clusterObject } from '../harness/objects/objects.ts'
import { waitFor } from '../harness/wait.ts'

const HOST = 'prod.example.com'
/** SETTINGS_MAX_CONCURRENT_STREAMS of upstream. */
const STREAMS = 20
const HELD = '/api/v1/held'
const CANCELLED = '/api/v1/cancelled'
/** Its answer begins, and does not end. */
const BEGUN = '/api/v1/begun'
const WATCH = '/api/v1/begun?watch=true'
/** Fewer than end a connection. */
const A_BURST = 200

const REFUSED = /portcullis_refusals_total\{[^}]*reason="too-many-cancelled"[^}]*\} [1-9]/

const clientCA: KeyPair = createCA({ commonName: 'clients' })
const alice = clientPair(clientCA, 'alice')
let upstream: FrameUpstream
let gateway: InProcessGateway
let session: ClientHttp2Session
const open: FrameConnection[] = []

before(async () => {
  upstream = await startFrameUpstream()
  upstream.greeting = h2.settings([h2.MAX_CONCURRENT_STREAMS, STREAMS])
})
after(() => upstream.stop())

beforeEach(async (t) => {
  upstream.requests.length = 0
  // Nothing is answered but what is not given up and not held.
  upstream.onRequest = (request) => {
    const { head, connection, stream } = request
    if (head.includes(BEGUN) || head.includes(WATCH)) {
      connection.send(answerHead(stream, 200, ['content-type', 'text/plain', 'x-large', 'y'.repeat(200)]))
    } else if (!head.includes(HELD) && !head.includes(CANCELLED)) answerOk(request)
  }
  const clientConfig = { bearerToken: base64('gateway-token'), caData: base64(upstream.caPem) }
  gateway = await startInProcess([
    clusterObject([], { clientCA, spec: { servers: [{ endpoint: upstream.url }], clientConfig } }),
  ])
  session = h2Connect({ port: gateway.port, serverName: HOST, certificate: alice })
  assert.ok('after' in t)
  t.after(async () => {
    for (const client of open.splice(0)) client.destroy()
    session.destroy()
    await gateway.stop()
  })
})

async function connect(cert?: KeyPair): Promise<FrameConnection> {
  const client = await connectFrames({ port: gateway.port, serverName: HOST, ...(cert !== undefined && { cert }) })
  open.push(client)
  return client
}

function head(path: string): Buffer {
  return h2.headerBlock([':method', 'GET', ':path', path, ':scheme', 'https', ':authority', HOST])
}

/** So many requests, each given up at once, on a connection of its own. */
async function cancel(count: number, cert?: KeyPair): Promise<FrameConnection> {
  const client = await connect(cert)
  const block = head(CANCELLED)
  for (let n = 0; n < count; n++) client.send(h2.headersFrames(2 * n + 1, block), h2.rstStream(2 * n + 1, h2.CANCEL))
  // What is behind them is answered when they have been read.
  client.send(h2.ping(1))
  await client.frame('the answer to PING', ({ type, flags }) => type === h2.PING && (flags & h2.ACK) !== 0)
  return client
}

const ask = (from = session): Promise<Response> => h2Request(from, [':path', '/api/v1/pods'])

function cancelled(): FrameRequest[] {
  return upstream.requests.filter(({ head }) => head.includes(CANCELLED))
}

test('upstream has no more streams than it allows, also of those that were reset and that it may not know of', async () => {
  const held = Array.from({ length: 5 }, () => h2Request(session, [':path', HELD]))
  await waitFor('requests of alice at upstream', () => upstream.requests.length === 5)
  // From here on upstream does not say what it has read.
  const silent = new Set<FrameConnection>()
  const atOnce = upstream.onRequest
  upstream.onRequest = (request) => {
    request.connection.answers = false
    silent.add(request.connection)
    atOnce(request)
  }
  for (const connection of upstream.connections) connection.answers = false
  await cancel(A_BURST, clientPair(clientCA, 'mallory'))
  assert.equal((await ask()).status, 200, 'alice gets a stream')
  const perConnection = new Map<FrameConnection, number>()
  for (const { connection } of upstream.requests) {
    perConnection.set(connection, (perConnection.get(connection) ?? 0) + 1)
  }
  for (const [, streams] of perConnection) assert.ok(streams <= STREAMS + 1, `${streams} streams on a connection`)
  // What was waiting goes on when upstream has answered.
  const before = upstream.requests.length
  const pinged = (connection: FrameConnection): Buffer | undefined =>
    connection.frames.find(({ type, flags }) => type === h2.PING && (flags & h2.ACK) === 0)?.payload
  await waitFor('a PING behind the resets', () => [...silent].some((connection) => pinged(connection) !== undefined))
  for (const connection of silent) {
    connection.answers = true
    const payload = pinged(connection)
    if (payload !== undefined) connection.send(h2.frame(h2.PING, h2.ACK, 0, payload))
  }
  await Promise.all(Array.from({ length: STREAMS }, () => ask()))
  assert.ok(upstream.requests.length >= before + STREAMS)
  for (const request of upstream.requests) if (request.head.includes(HELD)) answerOk(request)
  for (const answer of await Promise.all(held)) assert.deepEqual([answer.status, answer.resetCode], [200, 0])
})

/** Gives up requests, on one connection after the other, until another one of the same client is refused. */
async function cancelUntilRefused(cert: KeyPair | undefined): Promise<Response> {
  const own = h2Connect({ port: gateway.port, serverName: HOST, ...(cert !== undefined && { certificate: cert }) })
  try {
    return await waitFor(
      'a refusal',
      async () => {
        await cancel(A_BURST, cert)
        const answer = await ask(own)
        return answer.status === 429 ? answer : undefined
      },
      { timeoutMs: 60_000 },
    )
  } finally {
    own.destroy()
  }
}

test('only a user who cancels requests on many connections is refused, for a moment', async () => {
  const sinceMs = performance.now()
  const mallory = clientPair(clientCA, 'mallory')
  const refused = await cancelUntilRefused(mallory)
  assert.deepEqual(valuesOf(refused.head, 'retry-after'), ['1'])
  const { reason, message } = JSON.parse(refused.body.toString()) as Record<string, string>
  assert.equal(reason, 'TooManyRequests')
  const { perSecond, burst } = CANCELLED_REQUESTS
  assert.equal(
    message,
    `too many requests of user "mallory" of cluster "${HOST}" were cancelled before their answers were complete: ${perSecond} a second are allowed, ${burst} at once`,
  )
  assert.equal((await ask()).status, 200, 'alice is served')
  const seconds = Math.ceil((performance.now() - sinceMs) / 1000)
  const most = burst + perSecond * seconds + A_BURST
  assert.ok(cancelled().length <= most, `${cancelled().length} requests at upstream in ${seconds} s`)
  assert.match(await gateway.metrics(), REFUSED)
  const own = h2Connect({ port: gateway.port, serverName: HOST, certificate: mallory })
  await waitFor('mallory to be served again', async () => (await ask(own)).status === 200)
  own.destroy()
})

test('without a name it is the address that is refused', async () => {
  const refused = await cancelUntilRefused(undefined)
  assert.match(refused.body.toString(), /too many requests of address 127.0.0.1 were/)
  assert.equal((await ask()).status, 200, 'alice, from the same address, is served')
})

/** Begins so many requests, and gives each up (or makes the gateway do so) when its head has come. */
async function cancelAnswered(count: number, path: string, cert: KeyPair, smallHeads: boolean): Promise<void> {
  const client = await connect(cert)
  if (smallHeads) client.send(h2.settings([h2.MAX_HEADER_LIST_SIZE, 100]))
  const block = head(path)
  let next = 1
  let heads = 0
  const begin = (): void => {
    client.send(h2.headersFrames(next, block))
    next += 2
  }
  client.onFrame = ({ type, stream }) => {
    if (type !== h2.HEADERS) return
    heads++
    if (!smallHeads) client.send(h2.rstStream(stream, h2.CANCEL))
    if (next < 2 * count) begin()
  }
  for (let i = 0; i < 10; i++) begin()
  await waitFor('all heads', () => heads >= count || client.isClosed)
  client.destroy()
}

for (const [name, path, smallHeads] of [
  ['that were answered', BEGUN, false],
  ['whose head they do not take', BEGUN, true],
  ['that are watches', WATCH, false],
  ['that are watches whose head they do not take', WATCH, true],
] as const) {
  test(`a user who cancels requests ${name} is refused for a moment`, async () => {
    const cert = clientPair(clientCA, `mallory of ${name}`)
    const own = h2Connect({ port: gateway.port, serverName: HOST, certificate: cert })
    await waitFor(
      'refusals',
      async () => {
        await Promise.all(Array.from({ length: 4 }, () => cancelAnswered(A_BURST, path, cert, smallHeads)))
        // A client whose watches are refused may list.
        if (path === WATCH) assert.equal((await ask(own)).status, 200)
        return REFUSED.test(await gateway.metrics())
      },
      { timeoutMs: 60_000 },
    )
    own.destroy()
    assert.equal((await ask()).status, 200, 'alice is served')
  })
}
