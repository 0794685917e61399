// Unused connections, and addresses that have too many of them: they end, or do not begin, and others are served.

import assert from 'node:assert/strict'
import { type Socket, connect as tcpConnect } from 'node:net'
import { after, afterEach, before, describe, test } from 'node:test'
import { listenControl } from '../../src/gateway/io/listener/control-listener.ts'
import { startPlainServer } from '../../src/gateway/io/listener/http-plain.ts'
import { createCA, issueCertificate, type KeyPair } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Request } from '../harness/clients/h2-client.ts'
import { http1Connect, requestHead } from '../harness/clients/http1-client.ts'
import { connectFrames } from '../harness/frames/frame-connection.ts'
import * as h2 from '../harness/frames/h2-frames.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { clientPair, clusterObject } from '../harness/objects/objects.ts'
import { reply, type SeenRequest, type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const HOST = 'prod.example.com'
const WATCH = '/api/v1/pods?watch=1'
const PER_ADDRESS = 50

const clientCA: KeyPair = createCA({ commonName: 'clients' })
const alice = clientPair(clientCA, 'alice')
let stub: StubUpstream
let gateway: InProcessGateway
let watching: SeenRequest[] = []

before(async () => {
  stub = await startStub()
  stub.answer = (request) => {
    if (!request.path.includes('watch')) reply(request, 200, '{}')
    else {
      request.stream.respond([':status', '200', 'content-type', 'application/json'])
      request.stream.write('{"first":true}\n')
      watching.push(request)
    }
  }
  gateway = await startInProcess([clusterObject([stub], { clientCA })], {
    idleTimeoutMs: 1_000,
    maxConnectionsPerAddress: PER_ADDRESS,
  })
})
after(async () => {
  await gateway.stop()
  await stub.stop()
})
afterEach(() => {
  watching = []
})

const asAlice = (): { port: number; serverName: string; cert: KeyPair } => {
  return { port: gateway.port, serverName: HOST, cert: alice }
}

function head(path: string): Buffer {
  return h2.headerBlock([':method', 'GET', ':path', path, ':scheme', 'https', ':authority', HOST])
}

describe('a connection on which no request runs', () => {
  test('HTTP/2, before its first request: GOAWAY, and the end', async () => {
    const client = await connectFrames(asAlice())
    await client.closed
    assert.equal(client.goawayCode, h2.NO_ERROR)
    assert.match(await gateway.metrics(), /portcullis_http2_timeouts_total\{side="client",frame="headers"\} [1-9]/)
  })

  test('HTTP/2, after its last request: GOAWAY, and the end, however often it sends PING', async () => {
    const client = await connectFrames(asAlice())
    client.send(h2.headersFrames(1, head('/api/v1/pods')))
    assert.equal(await client.status(1), 200)
    const pings = setInterval(() => client.send(h2.ping(7)), 200)
    await client.closed.finally(() => clearInterval(pings))
    assert.equal(client.goawayCode, h2.NO_ERROR)
  })

  test('HTTP/2, a request that comes while it is drained is served', async () => {
    const client = await connectFrames(asAlice())
    let asked = false
    client.onFrame = ({ type }) => {
      // Before the answer to the PING behind GOAWAY: a request that was on its way.
      if (type !== h2.GOAWAY || asked) return
      asked = true
      client.send(h2.headersFrames(1, head('/api/v1/pods')))
    }
    assert.equal(await client.status(1), 200)
    await client.closed
  })

  test('HTTP/1.1, after its last request: the end', async () => {
    const client = await http1Connect(asAlice())
    client.send(requestHead('GET /api/v1/pods'))
    assert.equal((await client.response()).status, 200)
    await client.raw.closed
  })

  test('a watch keeps its connection open, over HTTP/2 and HTTP/1.1', async () => {
    const second = await connectFrames(asAlice())
    second.send(h2.headersFrames(1, head(WATCH)))
    const first = await http1Connect(asAlice())
    first.send(requestHead(`GET ${WATCH}`))
    await waitFor('both watches', () => watching.length === 2)
    // Opened later, and idle: when it ends, the others would have ended, too.
    for (let i = 0; i < 2; i++) await (await connectFrames(asAlice())).closed
    for (const { stream } of watching) stream.write('{"second":true}\n')
    await first.raw.until(/second/)
    await waitFor('the second event', () => (second.dataBytes.get(1) ?? 0) > '{"first":true}\n'.length)
    assert.deepEqual([second.isClosed, second.goawayCode], [false, undefined])
    for (const { stream } of watching) stream.end()
    await Promise.all([first.raw.closed, second.closed])
  })
})

/** So many TCP connections, and how many of them the server has closed. */
async function openMany(port: number, count: number): Promise<{ closed(): number; destroy(): void }> {
  const sockets: Socket[] = []
  let closed = 0
  const opened = Array.from({ length: count }, () => {
    const socket = tcpConnect({ host: '127.0.0.1', port })
    sockets.push(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => closed++)
    socket.resume()
    return new Promise<void>((resolve) => socket.once('connect', resolve).once('close', () => resolve()))
  })
  await Promise.all(opened)
  return {
    closed: () => closed,
    destroy() {
      for (const socket of sockets) socket.destroy()
    },
  }
}

describe('more connections of one address than it may have', () => {
  test('are closed on arrival, counted and logged, and others are served', async () => {
    await waitFor('connections of before to be gone', async () => {
      return !/portcullis_client_connections\{[^}]*\} [1-9]/.test(await gateway.metrics())
    })
    const many = await openMany(gateway.port, 300)
    await waitFor('those above the limit to be closed', () => many.closed() >= 300 - PER_ADDRESS)
    assert.equal(many.closed(), 300 - PER_ADDRESS)
    const other = h2Connect({ port: gateway.port, serverName: HOST, certificate: alice, localAddress: '127.0.0.2' })
    assert.equal((await h2Request(other, [])).status, 200)
    other.destroy()
    assert.match(await gateway.metrics(), /portcullis_client_connections_refused_total 250/)
    const told = gateway.logged.filter(({ message }) => message.includes('--max-connections-per-address'))
    assert.deepEqual(
      told.map(({ fields }) => fields),
      [{ address: '127.0.0.1' }],
    )
    many.destroy()
    await waitFor('a place for the address', async () => {
      const client = h2Connect({ port: gateway.port, serverName: HOST, certificate: alice })
      const { status } = await h2Request(client, [])
      client.destroy()
      return status === 200
    })
  })

  test('on the ports of the control plane and of the webhooks', async () => {
    const ca = createCA({ commonName: 'control' })
    const { certPem: cert, keyPem: key } = issueCertificate(ca, { commonName: 'control', usage: 'server' })
    const listener = await listenControl({
      host: '127.0.0.1',
      port: 0,
      serving: { cert, key },
      clientCA: ca.certPem,
      handler: () => assert.fail('nothing is asked'),
    })
    const many = await openMany(listener.port, 300)
    await waitFor('those above the limit to be closed', () => many.closed() >= 44)
    assert.deepEqual([many.closed(), listener.connections()], [44, 256])
    many.destroy()
    listener.close()
  })

  test('on the admin port', async () => {
    const answer = { code: 200, contentType: 'text/plain', body: 'ok' }
    const server = await startPlainServer({ host: '127.0.0.1', port: 0 }, () => Promise.resolve(answer))
    const many = await openMany(server.port, 100)
    await waitFor('those above the limit to be closed', () => many.closed() >= 36)
    assert.equal(many.closed(), 36)
    // They send nothing: the oldest of them gives way to a new one, of the same address too.
    for (const localAddress of ['127.0.0.1', '127.0.0.2']) {
      const socket = tcpConnect({ host: '127.0.0.1', port: server.port, localAddress })
      let text = ''
      socket.on('data', (chunk) => {
        text += String(chunk)
      })
      socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
      await waitFor(`an answer to ${localAddress}`, () => text.includes('200 OK'))
      socket.destroy()
    }
    many.destroy()
    await server.stop()
  })
})
