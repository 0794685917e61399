// A thread's time is divided among its users: a user with few requests is served before what another has asked for in bulk, however much
// of that came first. What counts is whose request is served when, not how long it takes.

import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import type { SharesAnswer } from '../../src/admin/app/inside/shares.ts'
import type { RequestRecord } from '../../src/gateway/api/request-record.ts'
import { ThreadTop } from '../../src/insight/app/observers.ts'
import { createCA, type KeyPair } from '../../src/pki/io/pki.ts'
import { type Http1Client, http1Connect, requestHead } from '../harness/clients/http1-client.ts'
import { connectFrames, type FrameConnection } from '../harness/frames/frame-connection.ts'
import { HEADERS, headerBlock, headersFrames, settings } from '../harness/frames/h2-frames.ts'
import { startInProcess } from '../harness/gateways/in-process.ts'
import { clientPair, clusterObject } from '../harness/objects/objects.ts'
import { startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const HOST = 'prod.example.com'
const clientCA = createCA({ commonName: 'clients of prod' })
const mallory = clientPair(clientCA, 'mallory')
const alice = clientPair(clientCA, 'alice')
const REQUEST = headerBlock([':method', 'GET', ':path', '/api/v1/pods', ':authority', HOST, ':scheme', 'https'])
/** What a connection may have open. */
const STREAMS = 250
const PIPELINED = 150

interface World {
  /** Users of the requests that were served, in order. */
  readonly served: string[]
  open(cert: KeyPair): Promise<FrameConnection>
  metrics(): Promise<string>
  shares(): Promise<SharesAnswer>
  openHttp1(cert: KeyPair): Promise<Http1Client>
}

/** A gateway whose policies let no request pass: what a request costs is the gateway's own work. */
async function setUp(t: TestContext): Promise<World> {
  const served: string[] = []
  const count = ThreadTop.prototype.requestEnded
  t.mock.method(ThreadTop.prototype, 'requestEnded', function counted(this: ThreadTop, record: RequestRecord) {
    served.push(record.user)
    Reflect.apply(count, this, [record])
  })
  const stub = await startStub()
  const gateway = await startInProcess([clusterObject([stub], { clientCA, spec: { dispatchPolicies: [] } })])
  const connections: FrameConnection[] = []
  t.after(async () => {
    for (const connection of connections) connection.destroy()
    await gateway.stop()
    await stub.stop()
  })
  return {
    served,
    metrics: () => gateway.metrics(),
    shares: async () =>
      (await fetch(`http://127.0.0.1:${gateway.adminPort}/api/v1/shares`)).json() as Promise<SharesAnswer>,
    async openHttp1(cert) {
      const connection = await http1Connect({ port: gateway.port, serverName: HOST, cert })
      t.after(() => connection.destroy())
      connection.send(requestHead('GET /api/v1/pods'))
      assert.equal((await connection.response()).status, 403)
      return connection
    },
    async open(cert) {
      const connection = await connectFrames({ port: gateway.port, serverName: HOST, cert })
      connections.push(connection)
      // The connection is known to be of this user.
      connection.send(settings(), headersFrames(1, REQUEST))
      assert.equal(await connection.status(1), 403)
      return connection
    },
  }
}

function requests(first: number, count: number): Buffer {
  return Buffer.concat(Array.from({ length: count }, (_, i) => headersFrames(first + 2 * i, REQUEST)))
}

function heads(connection: FrameConnection): number {
  return connection.frames.filter(({ type }) => type === HEADERS).length
}

describe('light before heavy', () => {
  for (const count of [1, 20]) {
    test(`a request behind ${count * STREAMS} of another user on ${count} connections is served among the first of them`, async (t) => {
      const world = await setUp(t)
      const attackers: FrameConnection[] = []
      for (let i = 0; i < count; i++) attackers.push(await world.open(mallory))
      const victim = await world.open(alice)
      const burst = requests(3, STREAMS)
      world.served.length = 0
      for (const attacker of attackers) attacker.send(burst)
      victim.send(requests(3, 1))
      await waitFor('every answer', () => world.served.length === count * STREAMS + 1)
      const before = world.served.indexOf('alice')
      t.diagnostic(`${before} of ${count * STREAMS} were served before it`)
      assert.ok(before <= (count * STREAMS) / 2, `${before} of ${count * STREAMS} were served before it`)
      // Nothing is lost.
      await waitFor('all answers', () => attackers.every((attacker) => heads(attacker) === 1 + STREAMS))
      await victim.end(3)
      // The log names the user, and that others had to wait.
      assert.match(await world.metrics(), /^portcullis_limited_total\{limit="thread-time",known="true"\} [1-9]/m)
      const { limits } = await world.shares()
      const time = limits.find(({ limit, known }) => limit === 'thread-time' && known)
      assert.equal(time?.largest[0]?.source, 'user "mallory" of cluster "prod.example.com"')
    })
  }

  test('nor do pipelined requests over HTTP/1.1 come first, and each has its answer, in order', async (t) => {
    const world = await setUp(t)
    const attackers = await Promise.all(Array.from({ length: 20 }, () => world.openHttp1(mallory)))
    const victim = await world.open(alice)
    const paths = Array.from({ length: PIPELINED }, (_, i) => `/api/v1/namespaces/n${i}`)
    const burst = paths.map((path) => requestHead(`GET ${path}`)).join('')
    world.served.length = 0
    for (const attacker of attackers) attacker.send(burst)
    victim.send(requests(3, 1))
    await waitFor('every answer', () => world.served.length === 20 * PIPELINED + 1)
    const before = world.served.indexOf('alice')
    t.diagnostic(`${before} of ${20 * PIPELINED} were served before it`)
    assert.ok(before <= 10 * PIPELINED, `${before} of ${20 * PIPELINED} were served before it`)
    for (const attacker of attackers.slice(-3)) {
      for (const path of paths) {
        const { status, body } = await attacker.response()
        assert.equal(status, 403)
        assert.ok(body.toString().includes(path.slice(path.lastIndexOf('/') + 1)), `${path} is answered in its turn`)
      }
    }
  })
})
