// Connections of clients and gateway threads: each thread gets its part, whichever of them accepts.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { ClientHttp2Session } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { createCA } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Request } from '../harness/clients/h2-client.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { clientPair, clusterObject } from '../harness/objects/objects.ts'
import { type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const THREADS = 4
/** Connections of one address in each thread. */
const LIMIT = 20
const clientCA = createCA({ commonName: 'clients' })
const certificate = clientPair(clientCA, 'a')
let stub: StubUpstream
let gateway: InProcessGateway

before(async () => {
  stub = await startStub()
  gateway = await startInProcess([clusterObject([stub], { clientCA })], { threads: THREADS })
})
after(async () => {
  await gateway.stop()
  await stub.stop()
})

/** Connections of each thread, as /metrics has them. */
async function held(): Promise<number[]> {
  const lines = (await gateway.metrics()).split('\n')
  const values = lines.filter((line) => line.startsWith('portcullis_thread_client_connections{'))
  return values.map((line) => Number(line.slice(line.lastIndexOf(' '))))
}

function connectAll(count: number): ClientHttp2Session[] {
  return Array.from({ length: count }, () =>
    h2Connect({ port: gateway.port, serverName: 'prod.example.com', certificate }),
  )
}

async function disconnect(sessions: readonly ClientHttp2Session[]): Promise<void> {
  for (const session of sessions) session.destroy()
  await waitFor('no connections', async () => (await held()).every((n) => n === 0))
}

describe('connections that come at once', () => {
  for (const count of [2 * THREADS, 16 * THREADS, 100 * THREADS]) {
    test(`${count} connections, ${THREADS} threads: ${count / THREADS} each`, async () => {
      const sessions = connectAll(count)
      const answers = await Promise.all(sessions.map((session) => h2Request(session, [])))
      assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]))
      assert.deepEqual(await held(), Array(THREADS).fill(count / THREADS))
      await disconnect(sessions)
    })
  }
})

test('what other clients leave free is filled first', async () => {
  const first = connectAll(4 * THREADS)
  for (const session of first) await h2Request(session, [])
  const gone = first.splice(0, 2 * THREADS)
  for (const session of gone) session.destroy()
  await waitFor('half of them gone', async () => (await held()).reduce((a, b) => a + b) === first.length)
  const second = connectAll(2 * THREADS)
  for (const session of second) assert.equal((await h2Request(session, [])).status, 200)
  assert.deepEqual(await held(), Array(THREADS).fill(4))
  await disconnect([...first, ...second])
})

test('a thread that has died: its connections are not counted, and its successor gets its part', async () => {
  const before = connectAll(2 * THREADS)
  for (const session of before) await h2Request(session, [])
  await gateway.crashThread(1)
  await waitFor('a successor', async () => {
    const metrics = await gateway.metrics()
    return metrics.includes('portcullis_thread_answers{thread="1"} 1') && (await held())[1] === 0
  })
  const after: ClientHttp2Session[] = []
  await waitFor('connections in the successor', async () => {
    const [session] = connectAll(1)
    if (session === undefined) return false
    after.push(session)
    await h2Request(session, [])
    const [a = 0, b = 0] = (await held()).toSorted((x, y) => x - y)
    return (await held())[1] !== 0 && b - a <= 1
  })
  await disconnect([...before, ...after])
})

describe('hostile clients', () => {
  before(async () => {
    await gateway.stop()
    const limits = { maxConnectionsPerAddress: LIMIT, headerTimeoutMs: 5_000 }
    gateway = await startInProcess([clusterObject([stub], { clientCA })], { threads: THREADS, ...limits })
  })

  function connectTcp(count: number): Socket[] {
    return Array.from({ length: count }, () => {
      const socket = connect(gateway.port, '127.0.0.1')
      socket.on('error', () => undefined)
      return socket
    })
  }

  const isServed = async (): Promise<void> => {
    const [session] = connectAll(1)
    assert.ok(session)
    assert.equal((await h2Request(session, [])).status, 200)
    await disconnect([session])
  }

  test('thousands of connections that open and close at once: nothing is left of them, others are served', async () => {
    for (let round = 0; round < 20; round++) {
      const sockets = connectTcp(LIMIT * THREADS)
      await Promise.all(sockets.map((socket) => Promise.race([once(socket, 'connect'), once(socket, 'close')])))
      for (const [i, socket] of sockets.entries()) {
        if (i % 2 === 0) socket.resetAndDestroy()
        else socket.destroy()
      }
    }
    await waitFor('no connections', async () => (await held()).every((n) => n === 0))
    await isServed()
  })

  test('connections on which nothing is ever sent: each thread closes its own when the handshake is overdue', async () => {
    const sockets = connectTcp(10 * THREADS)
    const closed = sockets.map((socket) => once(socket.resume(), 'close'))
    await waitFor('ten each', async () => (await held()).every((n) => n === 10))
    await Promise.all(closed)
    await waitFor('no connections', async () => (await held()).every((n) => n === 0))
    await isServed()
  })

  test('more connections than an address may have: as many as the threads allow together, the others are closed', async () => {
    const refused = async (): Promise<number> =>
      Number(/portcullis_client_connections_refused_total (\d+)\n/.exec(await gateway.metrics())?.[1])
    const refusedBefore = await refused()
    const sessions = connectAll(LIMIT * THREADS + 40)
    const answers = await Promise.all(sessions.map((session) => h2Request(session, [])))
    assert.equal(answers.filter(({ status }) => status === 200).length, LIMIT * THREADS)
    assert.deepEqual(await held(), Array(THREADS).fill(LIMIT))
    assert.equal((await refused()) - refusedBefore, 40)
    await disconnect(sessions)
    await isServed()
  })
})
