// The memory of large heads and of bodies is divided among users, and those who are not authenticated have less: what one fills, others have room
// beside.

import assert from 'node:assert/strict'
import type { ClientHttp2Session, ClientHttp2Stream } from 'node:http2'
import { afterEach, test } from 'node:test'
import type { SharesAnswer } from '../../src/admin/app/inside/shares.ts'
import { createCA } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Open, h2Request, type Response } from '../harness/clients/h2-client.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { clientPair, clusterObject } from '../harness/objects/objects.ts'
import { reply, type SeenRequest, type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const HOST = 'prod.example.com'
const PODS = '/api/v1/namespaces/default/pods'
const KIB = 1024
/** The bytes for users; the reserve is an eighth, and the part of the unknown a quarter. */
const CAPACITY = 1024 * KIB
const HEAD = 64 * KIB
const clientCA = createCA({ commonName: 'clients of prod' })

const cleanups: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

interface Scene {
  readonly gateway: InProcessGateway
  readonly upstream: StubUpstream
  readonly held: SeenRequest[]
  connect(user: string, localAddress?: string): ClientHttp2Session
}

async function setUp(): Promise<Scene> {
  const upstream = await startStub()
  const held: SeenRequest[] = []
  upstream.answer = (request) => {
    if (request.path.includes('held')) held.push(request)
    else reply(request, 200, '{}')
  }
  upstream.answerToken = () => undefined
  const gateway = await startInProcess([clusterObject([upstream], { clientCA })], { maxBufferedBytes: CAPACITY })
  cleanups.push(upstream.stop, gateway.stop)
  const connect: Scene['connect'] = (user, localAddress) => {
    const session = h2Connect({
      port: gateway.port,
      serverName: HOST,
      ...(user === '' ? {} : { certificate: clientPair(clientCA, user) }),
      ...(localAddress === undefined ? {} : { localAddress }),
    })
    cleanups.push(() => session.destroy())
    return session
  }
  return { gateway, upstream, held, connect }
}

function largeHead(session: ClientHttp2Session, path: string, ...fields: string[]): Promise<Response> {
  return h2Request(session, [':method', 'GET', ':path', path, 'x-large', 'y'.repeat(HEAD), ...fields])
}

async function heldBytes(gateway: InProcessGateway, known: boolean): Promise<number> {
  const answer = (await (await fetch(`http://127.0.0.1:${gateway.adminPort}/api/v1/shares`)).json()) as SharesAnswer
  return answer.limits.find((one) => one.limit === 'buffered-bytes' && one.known === known)?.held ?? -1
}

test('large heads that wait for a token review fill the part of the unknown, and no more', async () => {
  const { gateway, connect } = await setUp()
  const refused: string[] = []
  for (let connection = 0; connection < 4; connection++) {
    const session = connect('', `127.0.0.${connection + 2}`)
    for (let i = 0; i < 10; i++) {
      const asked = largeHead(session, PODS, 'authorization', `Bearer invented-${connection}-${i}`)
      void asked.then((answer) => answer.status === 429 && refused.push(String(answer.body)))
    }
  }
  await waitFor('refusals', () => refused.length >= 40 - 5)
  const unknown = await heldBytes(gateway, false)
  assert.ok(unknown > 0 && unknown <= (CAPACITY / 4) * 1.125, `${unknown}`)
  assert.match(refused[0] ?? '', /buffered bytes of unauthenticated clients.*--max-buffered-bytes\); retry in/)
  assert.equal((await largeHead(connect('alice', '127.0.0.2'), PODS)).status, 200, 'users have their own')
  assert.equal(await heldBytes(gateway, true), 0)
})

test('a user who fills the memory with heads leaves room for another one', async () => {
  const { gateway, held, connect } = await setUp()
  const mallory = connect('mallory')
  const codes: number[] = []
  for (let i = 0; i < 30; i++) void largeHead(mallory, `${PODS}/held${i}`).then(({ status }) => codes.push(status))
  await waitFor('refusals', () => codes.length > 0 && codes.length + held.length === 30)
  assert.deepEqual(new Set(codes), new Set([429]))
  const alice = connect('alice')
  for (let i = 0; i < 5; i++) assert.equal((await largeHead(alice, PODS)).status, 200)
  for (const request of held) reply(request, 200, '{}')
  await waitFor('nothing is held', async () => (await heldBytes(gateway, true)) === 0)
})

test('bodies that come before it is known who sends them', async () => {
  const { gateway, connect } = await setUp()
  const session = connect('')
  const streams: ClientHttp2Stream[] = []
  for (let i = 0; i < 20; i++) {
    const head = [':method', 'POST', ':path', PODS, 'authorization', `Bearer invented-${i}`]
    const stream = h2Open(session, head, { endStream: false })
    stream.on('error', () => undefined)
    stream.resume()
    stream.write(Buffer.alloc(60 * KIB, 0x20))
    streams.push(stream)
  }
  await waitFor('some of them', async () => (await heldBytes(gateway, false)) > 60 * KIB)
  // All of them have come: the connection's window is open again for those that were dropped.
  const probe = h2Request(connect('alice'), [':method', 'POST', ':path', PODS], Buffer.alloc(60 * KIB, 0x20))
  assert.equal((await probe).status, 200)
  assert.ok((await heldBytes(gateway, false)) <= (CAPACITY / 4) * 1.125)
  for (const stream of streams) stream.close(8)
  await waitFor('nothing is held', async () => (await heldBytes(gateway, false)) === 0)
})

test('where there is no room to keep a body for sending it again, it is sent once', async () => {
  const { gateway, held, connect } = await setUp()
  const mallory = connect('mallory')
  for (let i = 0; i < 30; i++) void largeHead(mallory, `${PODS}/held${i}`)
  await waitFor('a full memory', async () => (await heldBytes(gateway, true)) > CAPACITY - 2 * HEAD)
  const sent = h2Request(mallory, [':method', 'POST', ':path', PODS], Buffer.alloc(200 * KIB, 0x20))
  assert.equal((await sent).status, 200)
  for (const request of held) reply(request, 200, '{}')
  await waitFor('nothing is held', async () => (await heldBytes(gateway, true)) === 0)
})
