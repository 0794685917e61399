// Clients that are asked to open another connection while the gateway goes on: by age and by chance. Whatever runs goes on.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { ClientHttp2Session } from 'node:http2'
import { afterEach, describe, test } from 'node:test'
import { createCA } from '../../src/pki/io/pki.ts'
import type { Config } from '../../src/process/config/config.ts'
import { h2Connect, h2Open, h2Request, h2Response } from '../harness/clients/h2-client.ts'
import { http1Connect, requestHead } from '../harness/clients/http1-client.ts'
import { openRaw } from '../harness/clients/raw-clients.ts'
import { connectFrames } from '../harness/frames/frame-connection.ts'
import { GOAWAY, HEADERS, headerBlock, headersFrames } from '../harness/frames/h2-frames.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { clientPair, clusterObject } from '../harness/objects/objects.ts'
import { reply, type SeenRequest, type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'
import { startUpgradeUpstream } from '../harness/upstreams/upgrade-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const HOST = 'prod.example.com'
const clientCA = createCA({ commonName: 'clients' })
const certificate = clientPair(clientCA, 'a')
const WATCH = '/api/v1/pods?watch=true'
const LARGEST_STREAM_ID = 2 ** 31 - 1
/** Ages are looked at once a second. */
const AGE_MS = 500

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

interface Set {
  readonly gateway: InProcessGateway
  readonly stub: StubUpstream
  connect(): ClientHttp2Session
  /** Writes one event to every watch. */
  event(n: number): void
}

async function setUp(overrides: Partial<Config>, endpoint?: string): Promise<Set> {
  const stub = await startStub()
  cleanups.push(() => stub.stop())
  stub.answer = (request) => {
    if (!request.path.includes('watch=true')) reply(request, 200, '{}')
    else request.stream.respond([':status', '200', 'content-type', 'application/json'])
  }
  const spec = endpoint === undefined ? {} : { servers: [{ endpoint }] }
  const gateway = await startInProcess([clusterObject([stub], { clientCA, spec })], overrides)
  cleanups.push(() => gateway.stop())
  return {
    gateway,
    stub,
    connect() {
      const session = h2Connect({ port: gateway.port, serverName: HOST, certificate })
      cleanups.push(() => session.destroy())
      return session
    },
    event(n) {
      for (const { path, stream } of stub.seen)
        if (path.includes('watch=true') && !stream.destroyed) stream.write(`{"n":${n}}\n`)
    },
  }
}

async function drained({ gateway }: Set, reason: string): Promise<number> {
  const line = (await gateway.metrics())
    .split('\n')
    .find((text) => text.startsWith(`portcullis_client_connections_drained_total{reason="${reason}"}`))
  return Number(line?.split(' ')[1] ?? 0)
}

describe('--max-connection-age', () => {
  test('HTTP/2: GOAWAY in two steps; a watch goes on until it ends, then the connection closes', async () => {
    const set = await setUp({ maxConnectionAgeMs: AGE_MS })
    const session = set.connect()
    const lastIds: number[] = []
    session.on('goaway', (_code, lastStreamId) => lastIds.push(lastStreamId))
    const watch = h2Open(session, [':path', WATCH])
    const ended = h2Response(watch)
    await once(watch, 'response')
    await waitFor('two GOAWAYs', () => lastIds.length === 2)
    assert.deepEqual(lastIds, [LARGEST_STREAM_ID, 1])
    for (let n = 0; n < 3; n++) {
      const next = once(watch, 'data')
      set.event(n)
      assert.equal(String((await next)[0]), `{"n":${n}}\n`)
    }
    assert.equal(session.destroyed, false)
    const closed = once(session, 'close')
    for (const { stream } of set.stub.seen) stream.end()
    assert.equal((await ended).resetCode, 0, 'a clean end')
    await closed
    assert.equal(await drained(set, 'age'), 1)
  })

  test('requests one after the other: none fails over any number of connections', async () => {
    const set = await setUp({ maxConnectionAgeMs: AGE_MS })
    let session = set.connect()
    let connections = 1
    const renew = (): void => {
      const mine = session
      mine.once('goaway', () => {
        if (session === mine) session = set.connect()
        connections++
        renew()
      })
    }
    renew()
    const statuses = new Map<number, number>()
    while (connections < 4) {
      const { status } = await h2Request(session, [])
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
    assert.deepEqual([...statuses.keys()], [200])
  })

  test('HTTP/1.1: Connection: close with the next answer', async () => {
    const set = await setUp({ maxConnectionAgeMs: AGE_MS })
    const client = await http1Connect({ port: set.gateway.port, serverName: HOST, cert: certificate })
    cleanups.push(() => client.destroy())
    await waitFor('Connection: close', async () => {
      client.send(requestHead('GET /api/v1/pods'))
      const answer = await client.response()
      assert.equal(answer.status, 200)
      return answer.values('connection').includes('close')
    })
    await client.raw.closed
  })

  test('HTTP/1.1: requests that are pipelined behind each other are all answered, and the last answer closes', async () => {
    const set = await setUp({ maxConnectionAgeMs: AGE_MS })
    const held: SeenRequest[] = []
    set.stub.answer = (request) => void held.push(request)
    const client = await http1Connect({ port: set.gateway.port, serverName: HOST, cert: certificate })
    cleanups.push(() => client.destroy())
    const paths = ['/api/v1/a', '/api/v1/b', '/api/v1/c']
    for (const path of paths) client.send(requestHead(`POST ${path}`, ['Content-Length: 0']))
    await waitFor('all of them upstream', () => held.length === paths.length)
    await waitFor('its age', async () => (await drained(set, 'age')) === 1)
    for (const request of held) reply(request, 200, request.path)
    for (const [i, path] of paths.entries()) {
      const answer = await client.response()
      assert.deepEqual([answer.status, answer.body.toString()], [200, path])
      assert.equal(answer.values('connection').includes('close'), i === paths.length - 1)
    }
    await client.raw.closed
  })

  test('an upgraded connection (exec) goes on', async () => {
    const upstream = await startUpgradeUpstream()
    cleanups.push(() => upstream.stop())
    const set = await setUp({ maxConnectionAgeMs: AGE_MS }, upstream.url)
    const exec = await openRaw({ port: set.gateway.port, serverName: HOST, cert: certificate, alpn: ['http/1.1'] })
    cleanups.push(() => exec.destroy())
    exec.send(
      'GET /api/v1/namespaces/default/pods/web/exec?command=sh HTTP/1.1\r\nHost: prod.example.com\r\n' +
        'Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n',
    )
    await exec.until(/ 101 /)
    await waitFor('its age', async () => (await drained(set, 'age')) === 1)
    exec.send('still here')
    await exec.until(/still here/)
  })

  test('a client that takes no notice: served until the second GOAWAY, then only what it had begun', async () => {
    const set = await setUp({ maxConnectionAgeMs: AGE_MS })
    const client = await connectFrames({ port: set.gateway.port, serverName: HOST, cert: certificate })
    cleanups.push(() => client.socket.destroy())
    // PING is not answered: the second step comes after a second at most, and a tick.
    client.answers = false
    const head = (path: string): Buffer =>
      headerBlock([':method', 'GET', ':path', path, ':scheme', 'https', ':authority', HOST])
    client.send(headersFrames(1, head(WATCH)))
    assert.equal(await client.status(1), 200)
    const isGoaway = ({ type }: { type: number }): boolean => type === GOAWAY
    await client.frame('GOAWAY', isGoaway)
    client.send(headersFrames(3, head('/api/v1/pods')))
    assert.equal(await client.status(3), 200)
    const last = await client.frame('the second GOAWAY', (f) => isGoaway(f) && f.payload.readUInt32BE(0) === 3)
    assert.ok(client.frames.indexOf(last) > 0)
    client.send(headersFrames(5, head('/api/v1/pods')))
    const atStub = set.stub.seen.length
    const [watch] = set.stub.seen
    set.event(1)
    await waitFor('an event', () => client.dataBytes.get(1))
    assert.equal(set.stub.seen.length, atStub)
    watch?.stream.end()
    await client.closed
    assert.equal(
      client.frames.some(({ type, stream }) => type === HEADERS && stream === 5),
      false,
    )
  })
})

describe('--goaway-chance', () => {
  test('the request is answered, and so are those beside it; the client gets GOAWAY', async () => {
    const set = await setUp({ goawayChance: 1 })
    for (let round = 0; round < 3; round++) {
      const session = set.connect()
      const goaway = once(session, 'goaway')
      const answers = await Promise.all(Array.from({ length: 20 }, () => h2Request(session, [])))
      assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]))
      assert.equal((await goaway)[0], 0, 'NO_ERROR')
      await waitFor('the end of the connection', () => session.destroyed)
    }
    assert.equal(await drained(set, 'chance'), 3)
  })

  test('HTTP/1.1 is left alone, as by kube-apiserver', async () => {
    const set = await setUp({ goawayChance: 1 })
    const client = await http1Connect({ port: set.gateway.port, serverName: HOST, cert: certificate })
    cleanups.push(() => client.destroy())
    for (let i = 0; i < 3; i++) {
      client.send(requestHead('GET /api/v1/pods'))
      assert.equal((await client.response()).values('connection').includes('close'), false)
    }
    assert.equal(await drained(set, 'chance'), 0)
  })
})
