// Answers that their clients do not take are charged to the user who asked: what one user leaves is bounded, and others read on meanwhile.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { ClientHttp2Session } from 'node:http2'
import { Readable } from 'node:stream'
import { afterEach, test } from 'node:test'
import { connect, type TLSSocket } from 'node:tls'
import type { SharesAnswer } from '../../src/admin/app/inside/shares.ts'
import { WaitingAnswers } from '../../src/kit/core/shares/waiting-answers.ts'
import { createCA, type KeyPair } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Open, h2Request, h2Response } from '../harness/clients/h2-client.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { base64, clientPair, clusterObject } from '../harness/objects/objects.ts'
import { startStub } from '../harness/upstreams/stub-upstream.ts'
import { startUpgradeUpstream } from '../harness/upstreams/upgrade-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const HOST = 'prod.example.com'
const KIB = 1024
const MIB = 1024 * KIB
const CAPACITY = 4 * MIB
const PIECE = Buffer.alloc(64 * KIB, 'x')
const BODY_BYTES = 16 * MIB
const VICTIM_BYTES = 2 * MIB
const WATCH_BYTES = 100 * KIB
/** How long some answers are; others have BODY_BYTES. */
const BYTES: readonly [string, number][] = [
  ['watch', WATCH_BYTES],
  ['small', KIB],
  ['victim', VICTIM_BYTES],
]
const clientCA = createCA({ commonName: 'clients of prod' })

const cleanups: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

/** The stub has a session's memory for little more than what is under way. */
function* pieces(bytes: number): Generator<Buffer> {
  for (let left = bytes; left > 0; left -= PIECE.length) yield PIECE.subarray(0, Math.min(left, PIECE.length))
}

async function setUp(maxBufferedBytes = CAPACITY): Promise<InProcessGateway> {
  const upstream = await startStub()
  upstream.answer = ({ path, stream }) => {
    const [, bytes = BODY_BYTES] = BYTES.find(([name]) => path.includes(name)) ?? []
    stream.on('error', () => undefined)
    stream.respond([':status', '200', 'content-type', 'application/json'])
    Readable.from(pieces(bytes)).pipe(stream, { end: !path.includes('watch') })
  }
  const cluster = clusterObject([upstream], { clientCA })
  const gateway = await startInProcess([cluster], { maxBufferedBytes })
  cleanups.push(upstream.stop, gateway.stop)
  return gateway
}

/** The capacity and its reserve. */
function mostOf(capacity: number): number {
  return capacity + capacity / 8
}

async function held(gateway: InProcessGateway): Promise<number> {
  const answer = (await (await fetch(`http://127.0.0.1:${gateway.adminPort}/api/v1/shares`)).json()) as SharesAnswer
  return answer.limits.find((one) => one.limit === 'buffered-bytes' && one.known)?.held ?? -1
}

/** How often a user was refused, or lost an answer. */
async function limited(gateway: InProcessGateway): Promise<number> {
  const row = 'portcullis_limited_total{limit="buffered-bytes",known="true"} '
  const line = (await gateway.metrics()).split('\n').find((each) => each.startsWith(row))
  return Number(line?.slice(row.length) ?? 0)
}

async function readsAsVictim(gateway: InProcessGateway): Promise<void> {
  const session = h2Connect({ port: gateway.port, serverName: HOST, certificate: clientPair(clientCA, 'victim') })
  cleanups.push(() => session.destroy())
  for (let i = 0; i < 5; i++) {
    const { status, body, resetCode } = await h2Request(session, [':method', 'GET', ':path', `/api/v1/victim${i}`])
    assert.deepEqual([status, resetCode, body.length], [200, 0, VICTIM_BYTES])
  }
}

/** Its answers are not read: the gateway may send what the windows allow, and no more. */
async function fill(gateway: InProcessGateway): Promise<ClientHttp2Session[]> {
  const certificate = clientPair(clientCA, 'hog')
  const sessions = [1, 2].map(() =>
    h2Connect({ port: gateway.port, serverName: HOST, certificate, streamWindow: 16 * KIB }),
  )
  cleanups.push(() => {
    for (const session of sessions) session.destroy()
  })
  for (const session of sessions) {
    for (let i = 0; i < 60; i++) h2Open(session, [':method', 'GET', ':path', `/api/v1/pods${i}`])
  }
  await waitFor('a full memory', async () => (await held(gateway)) >= CAPACITY)
  return sessions
}

test('over HTTP/2: a user who reads nothing is bounded, is told so, and another one reads all', async () => {
  const gateway = await setUp()
  const sessions = await fill(gateway)
  const refused = await h2Request(sessions[0] ?? assert.fail(), [':method', 'GET', ':path', '/api/v1/small'])
  assert.equal(refused.status, 429)
  assert.match(refused.body.toString(), /hog.* of cluster .* buffered bytes.*--max-buffered-bytes\); retry in/)
  await readsAsVictim(gateway)
  const now = await held(gateway)
  assert.ok(now <= mostOf(CAPACITY), `${now} bytes`)
  for (const session of sessions) session.destroy()
  await waitFor('nothing is held', async () => (await held(gateway)) === 0)
})

test('beside it, a slow reader gets all of a list, and its watch goes on', async () => {
  const gateway = await setUp()
  const certificate = clientPair(clientCA, 'slow')
  const slow = h2Connect({ port: gateway.port, serverName: HOST, certificate, streamWindow: 16 * KIB })
  cleanups.push(() => slow.destroy())
  const list = h2Open(slow, [':method', 'GET', ':path', '/api/v1/pods'])
  const watch = h2Open(slow, [':method', 'GET', ':path', '/api/v1/pods?watch=true'])
  await waitFor('both wait', async () => (await held(gateway)) > WATCH_BYTES)
  await fill(gateway)
  // The hog has lost some, and asks again.
  await fill(gateway)
  const { body, resetCode } = await h2Response(list)
  assert.deepEqual([resetCode, body.length], [0, BODY_BYTES])
  let watched = 0
  watch.on('data', (chunk: Buffer) => (watched += chunk.length))
  await waitFor('all events', () => watched === WATCH_BYTES)
  assert.equal(watch.closed, false)
})

test('over HTTP/1.1 as well', async () => {
  const capacity = 2 * MIB
  const gateway = await setUp(capacity)
  const sockets = Array.from({ length: 10 }, () => unreadHttp1(gateway, clientPair(clientCA, 'hog')))
  // Who is above it loses connections, and has less then.
  await waitFor('a full memory', async () => (await held(gateway)) >= capacity || (await limited(gateway)) > 0)
  await readsAsVictim(gateway)
  assert.ok((await held(gateway)) <= mostOf(capacity))
  for (const socket of sockets) socket.destroy()
  await waitFor('nothing is held', async () => (await held(gateway)) === 0)
})

function unreadHttp1(
  gateway: InProcessGateway,
  { certPem, keyPem }: KeyPair,
  text: string | Buffer = `GET /api/v1/pods HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`,
): TLSSocket {
  const socket = connect({
    host: '127.0.0.1',
    port: gateway.port,
    servername: HOST,
    ALPNProtocols: ['http/1.1'],
    rejectUnauthorized: false,
    cert: certPem,
    key: keyPem,
  })
  socket.on('error', () => undefined)
  socket.on('secureConnect', () => socket.write(text))
  cleanups.push(() => void socket.destroy())
  return socket
}

test('what is sent to a client over an upgraded connection is charged as well', async () => {
  const upstream = await startUpgradeUpstream()
  const cluster = clusterObject([], {
    clientCA,
    spec: {
      servers: [{ endpoint: upstream.url }],
      clientConfig: { caData: base64(upstream.caPem), bearerToken: base64('gateway-token') },
    },
  })
  const capacity = MIB / 2
  const gateway = await startInProcess([cluster], { maxBufferedBytes: capacity })
  cleanups.push(upstream.stop, gateway.stop)
  const exec =
    'POST /api/v1/namespaces/default/pods/web/exec?command=sh HTTP/1.1\r\n' +
    `Host: ${HOST}\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nContent-Length: 0\r\n\r\n`
  // Upstream sends it back, and it is not read.
  const echoed = Buffer.concat([Buffer.from(exec), Buffer.alloc(BODY_BYTES)])
  const sockets = Array.from({ length: 16 }, () => unreadHttp1(gateway, clientPair(clientCA, 'hog'), echoed))
  await waitFor('some that are ended', async () => (await limited(gateway)) > 0)
  assert.ok((await held(gateway)) <= mostOf(capacity))
  for (const socket of sockets) socket.destroy()
  await waitFor('nothing is held', async () => (await held(gateway)) === 0)
})

test('short answers that are taken as they come are not charged, though some are written in a later turn', async (t) => {
  const gateway = await setUp(256 * MIB)
  const charge = t.mock.method(WaitingAnswers.prototype, 'charge')
  const add = t.mock.method(WaitingAnswers.prototype, 'add')
  const session = h2Connect({ port: gateway.port, serverName: HOST, certificate: clientPair(clientCA, 'alice') })
  cleanups.push(() => session.destroy())
  // As of Go's clients: what holds an answer up otherwise is the window of the connection.
  await once(session, 'connect')
  session.setLocalWindowSize(16 * MIB)
  for (let i = 0; i < 50; i++) {
    const answers = Array.from({ length: 200 }, () => h2Request(session, [':method', 'GET', ':path', '/api/v1/small']))
    for (const { status } of await Promise.all(answers)) assert.equal(status, 200)
  }
  assert.ok(add.mock.callCount() > 0)
  assert.equal(charge.mock.callCount(), 0)
  assert.equal(await held(gateway), 0)
})

test('one slow reader has all the time it needs', async () => {
  const gateway = await setUp()
  const certificate = clientPair(clientCA, 'slow')
  const session = h2Connect({ port: gateway.port, serverName: HOST, certificate, streamWindow: 16 * KIB })
  cleanups.push(() => session.destroy())
  const stream = h2Open(session, [':method', 'GET', ':path', '/api/v1/pods'])
  await waitFor('something waits', async () => (await held(gateway)) > 0)
  await readsAsVictim(gateway)
  const { body, resetCode } = await h2Response(stream)
  assert.deepEqual([resetCode, body.length], [0, BODY_BYTES])
  await waitFor('nothing is held', async () => (await held(gateway)) === 0)
})
