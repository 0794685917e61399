// A replica that joins gets its part of the connections within one age, behind a load balancer that knows nothing of HTTP; no request
// fails, and watches go on. The age is short here; everything else is as it ships.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type ClientHttp2Session, constants } from 'node:http2'
import { connect, createServer, type Socket } from 'node:net'
import { after, before, test } from 'node:test'
import { createCA } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Open, h2Request } from '../harness/clients/h2-client.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { clientPair, clusterObject } from '../harness/objects/objects.ts'
import { reply, type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const HOST = 'prod.example.com'
const AGE_MS = 4_000
const CLIENTS = 30
const clientCA = createCA({ commonName: 'clients' })
const certificate = clientPair(clientCA, 'a')

let stub: StubUpstream
const replicas: InProcessGateway[] = []
const clients: Client[] = []
const cleanups: (() => void)[] = []
let balancer: Balancer

before(async () => {
  stub = await startStub()
  stub.answer = (request) => {
    if (!request.path.includes('watch=1')) reply(request, 200, '{}')
    else request.stream.respond([':status', '200', 'content-type', 'application/json'])
  }
  await join()
  await join()
  balancer = await startBalancer()
})
after(async () => {
  for (const cleanup of cleanups) cleanup()
  for (const client of clients) client.close()
  await balancer.stop()
  for (const replica of replicas) await replica.stop()
  await stub.stop()
})

async function join(): Promise<void> {
  replicas.push(await startInProcess([clusterObject([stub], { clientCA })], { maxConnectionAgeMs: AGE_MS }))
}

interface Balancer {
  readonly port: number
  /** Connections of each replica. */
  held(): number[]
  stop(): Promise<void>
}

/** Each connection to the replica with the fewest: HAProxy's leastconn, and that of most others. */
function startBalancer(): Promise<Balancer> {
  const open = replicas.map((): Set<Socket> => new Set())
  const server = createServer((client) => {
    while (open.length < replicas.length) open.push(new Set())
    const least = open.reduce((best, sockets) => (sockets.size < best.size ? sockets : best))
    const target = connect(replicas[open.indexOf(least)]?.port ?? 0, '127.0.0.1')
    least.add(client)
    client.on('error', () => target.destroy())
    target.on('error', () => client.destroy())
    client.on('close', () => {
      least.delete(client)
      target.destroy()
    })
    target.on('close', () => client.destroy())
    client.pipe(target).pipe(client)
  })
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      resolve({
        port: typeof address === 'object' && address !== null ? address.port : 0,
        held: () => open.map((sockets) => sockets.size),
        async stop() {
          for (const sockets of open) for (const socket of sockets) socket.destroy()
          server.close()
          await once(server, 'close')
        },
      })
    })
  })
}

/** As Go's: after GOAWAY the next request goes on a new connection, and what runs goes on. */
class Client {
  readonly statuses = new Map<number, number>()
  stopped = false
  #session: ClientHttp2Session | undefined
  readonly #all = new Set<ClientHttp2Session>()

  get session(): ClientHttp2Session {
    if (this.#session !== undefined) return this.#session
    const session = h2Connect({ port: balancer.port, serverName: HOST, certificate })
    const leave = (): void => {
      if (this.#session === session) this.#session = undefined
    }
    session.once('goaway', leave)
    session.once('close', () => {
      leave()
      this.#all.delete(session)
    })
    this.#all.add(session)
    this.#session = session
    return session
  }

  async run(): Promise<void> {
    while (!this.stopped) {
      const { session } = this
      const { status, resetCode } = await h2Request(session, [])
      // A GOAWAY that comes before the request has left: nghttp2 drops it, and Go's client sends it on another connection.
      if (resetCode === constants.NGHTTP2_REFUSED_STREAM && session !== this.#session) continue
      this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }

  close(): void {
    this.stopped = true
    for (const session of this.#all) session.destroy()
  }
}

test('a third replica has its part after one age; no request fails, no event of a watch is lost', async () => {
  for (let i = 0; i < CLIENTS; i++) clients.push(new Client())
  const running = clients.map((client) => client.run())
  await waitFor('an answer for each', () => clients.every(({ statuses }) => statuses.size > 0))
  assert.deepEqual(balancer.held(), [CLIENTS / 2, CLIENTS / 2])

  const watcher = new Client()
  cleanups.push(() => watcher.close())
  const watch = h2Open(watcher.session, [':path', '/api/v1/pods?watch=1'])
  let received = ''
  let ended = false
  watch.on('data', (chunk: Buffer) => {
    received += chunk.toString()
  })
  watch.on('close', () => {
    ended = true
  })
  await once(watch, 'response')
  let events = 0
  const writing = setInterval(() => {
    for (const { path, stream } of stub.seen) if (path.includes('watch=1')) stream.write(`${events++}\n`)
  }, 50)
  cleanups.push(() => clearInterval(writing))

  await join()
  await waitFor('connections to the third', () => {
    const held = balancer.held()
    const part = CLIENTS / replicas.length
    return held.length === 3 && held.every((count) => Math.abs(count - part) <= 2)
  })
  await waitFor('requests through the third', async () =>
    /apiserver_request_total\{[^}]*code="200"\} \d+/.test((await replicas[2]?.metrics()) ?? ''),
  )
  clearInterval(writing)
  await waitFor('all events', () => received === Array.from({ length: events }, (_, n) => `${n}\n`).join(''))
  assert.equal(ended, false, 'the watch runs on its old connection')

  for (const client of clients) client.stopped = true
  await Promise.all(running)
  const statuses = new Set(clients.flatMap((client) => [...client.statuses.keys()]))
  assert.deepEqual(statuses, new Set([200]))
})
