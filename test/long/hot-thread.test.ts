// Two busy clients that share a gateway thread while the other one idles: one of them is asked to go, and they do not meet again.

import assert from 'node:assert/strict'
import type { ClientHttp2Session } from 'node:http2'
import { after, before, test } from 'node:test'
import { createCA } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Request } from '../harness/clients/h2-client.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { clientPair, clusterObject } from '../harness/objects/objects.ts'
import { type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

/** Requests that each busy client has under way. */
const STREAMS = 16
const clientCA = createCA({ commonName: 'clients' })
const certificate = clientPair(clientCA, 'a')
let stub: StubUpstream
let gateway: InProcessGateway
let stopped = false
const sessions = new Set<ClientHttp2Session>()

before(async () => {
  stub = await startStub()
  gateway = await startInProcess([clusterObject([stub], { clientCA })], { threads: 2 })
})
after(async () => {
  stopped = true
  for (const session of sessions) session.destroy()
  await gateway.stop()
  await stub.stop()
})

async function byThread(metric: string): Promise<number[]> {
  const lines = (await gateway.metrics()).split('\n').filter((line) => line.startsWith(`portcullis_${metric}{thread=`))
  return lines.map((line) => Number(line.slice(line.lastIndexOf(' '))))
}

function connect(): ClientHttp2Session {
  const session = h2Connect({ port: gateway.port, serverName: 'prod.example.com', certificate })
  sessions.add(session)
  session.once('close', () => sessions.delete(session))
  return session
}

/** Requests without a pause; after GOAWAY on a new connection. */
async function work(first: ClientHttp2Session, statuses: Set<number>): Promise<void> {
  let session = first
  const follow = (): void =>
    void session.once('goaway', () => {
      session = connect()
      follow()
    })
  follow()
  const one = async (): Promise<void> => {
    while (!stopped) {
      const { status } = await h2Request(session, [])
      // It remembers every request, and there are millions.
      stub.seen.length = 0
      if (!stopped) statuses.add(status)
    }
  }
  await Promise.all(Array.from({ length: STREAMS }, one))
}

test('one of them moves, no request fails, and each thread has a part of the requests', async () => {
  const ofThread: ClientHttp2Session[][] = [[], []]
  for (let i = 0; i < 6; i++) {
    const before = await byThread('thread_client_connections')
    const session = connect()
    await h2Request(session, [])
    const after = await byThread('thread_client_connections')
    ofThread[after.findIndex((count, thread) => count > (before[thread] ?? 0))]?.push(session)
  }
  assert.deepEqual(
    ofThread.map(({ length }) => length),
    [3, 3],
  )
  const statuses = new Set<number>()
  const busy = (ofThread[0] ?? []).slice(0, 2)
  const working = busy.map((session) => work(session, statuses))
  await waitFor('all requests in one thread', async () => {
    const [hot = 0, idle = 0] = await byThread('thread_request_rate')
    return hot > 400 && idle === 0
  })
  await waitFor(
    'requests in both',
    async () => {
      const [first = 0, second = 0] = await byThread('thread_request_rate')
      return Math.min(first, second) > 0.25 * Math.max(first, second)
    },
    { timeoutMs: 240_000 },
  )
  assert.match(await gateway.metrics(), /portcullis_client_connections_drained_total\{reason="balance"\} [1-9]/)
  stopped = true
  await Promise.all(working)
  assert.deepEqual(statuses, new Set([200]))
})
