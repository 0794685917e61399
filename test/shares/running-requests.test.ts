// Requests in flight and watches are divided among users: one who has all there is does not keep out another, and gives back as others come.

import assert from 'node:assert/strict'
import type { ClientHttp2Session, ClientHttp2Stream } from 'node:http2'
import { afterEach, describe, test } from 'node:test'
import type { SharesAnswer } from '../../src/admin/app/inside/shares.ts'
import type { UpstreamClusterSpec } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { createCA } from '../../src/pki/io/pki.ts'
import type { Config } from '../../src/process/config/config.ts'
import { h2Connect, h2Open, h2Request, type Response, valuesOf } from '../harness/clients/h2-client.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { clientPair, clusterObject } from '../harness/objects/objects.ts'
import { reply, type SeenRequest, type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const HOST = 'prod.example.com'
const clientCA = createCA({ commonName: 'clients of prod' })
const PODS = '/api/v1/namespaces/default/pods'
const HELD = `${PODS}/held`
const WATCH = `${PODS}?watch=true`
/** Each limit in these tests; the reserve is 2, and the part of the unknown 4. */
const CAPACITY = 16

const cleanups: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

interface Scene {
  readonly gateway: InProcessGateway
  readonly upstream: StubUpstream
  readonly held: SeenRequest[]
  /** A connection of a user, or an unauthenticated one. */
  connect(user: string, localAddress?: string): ClientHttp2Session
}

async function setUp(overrides: Partial<Config>, more: Partial<UpstreamClusterSpec> = {}): Promise<Scene> {
  const upstream = await startStub()
  const held: SeenRequest[] = []
  upstream.answer = (request) => {
    if (request.path.includes('held')) held.push(request)
    else if (request.path.includes('watch=')) {
      request.stream.respond([':status', '200', 'content-type', 'application/json'])
      request.stream.write(`${JSON.stringify({ type: 'BOOKMARK', object: {} })}\n`)
    } else reply(request, 200, '{}')
  }
  const spec = { authentication: { anonymous: true }, ...more }
  const gateway = await startInProcess([clusterObject([upstream], { clientCA, spec })], overrides)
  cleanups.push(upstream.stop, gateway.stop)
  const connect: Scene['connect'] = (user, localAddress) => {
    const session = h2Connect({
      port: gateway.port,
      serverName: HOST,
      ...(user === ''
        ? {}
        : { certificate: clientPair(clientCA, user, user.startsWith('system:node:') ? ['system:nodes'] : []) }),
      ...(localAddress === undefined ? {} : { localAddress }),
    })
    cleanups.push(() => session.destroy())
    return session
  }
  return { gateway, upstream, held, connect }
}

function get(session: ClientHttp2Session, path: string): Promise<Response> {
  return h2Request(session, [':method', 'GET', ':path', path])
}

function messageOf({ body }: Response): string {
  return String((JSON.parse(String(body)) as Record<string, unknown>)['message'])
}

/** Asks for more than there is, without waiting. @returns what was answered so far */
function hog(session: ClientHttp2Session, count: number): Response[] {
  const answered: Response[] = []
  for (let i = 0; i < count; i++) void get(session, `${HELD}${i}`).then((answer) => answered.push(answer))
  return answered
}

/** What is held of a limit, by all sources. */
async function heldOf(gateway: InProcessGateway, limit: string): Promise<number> {
  const answer = (await (await fetch(`http://127.0.0.1:${gateway.adminPort}/api/v1/shares`)).json()) as SharesAnswer
  return answer.limits.reduce((sum, one) => sum + (one.limit === limit ? one.held : 0), 0)
}

async function limited(gateway: InProcessGateway, limit: string, known: boolean): Promise<number> {
  const row = `portcullis_limited_total{limit="${limit}",known="${known}"} `
  const line = (await gateway.metrics()).split('\n').find((one) => one.startsWith(row))
  return line === undefined ? 0 : Number(line.slice(row.length))
}

describe('requests in flight', () => {
  test('a user who holds all there is does not keep out another one, and is told whose share it is', async () => {
    const { gateway, held, connect } = await setUp({ maxRequestsInflight: CAPACITY })
    const refused = hog(connect('mallory'), CAPACITY + 20)
    await waitFor('all that mallory may have', () => held.length === CAPACITY && refused.length === 20)
    const alice = connect('alice')
    for (let i = 0; i < 10; i++) assert.equal((await get(alice, PODS)).status, 200)
    const answer = refused[0]
    assert.ok(answer !== undefined)
    assert.equal(answer.status, 429)
    assert.match(
      messageOf(answer),
      /^user "mallory" of cluster "prod\.example\.com" has 16 of 16 requests in flight, and its fair share under contention is 16 \(--max-requests-inflight\); retry in [1-4] s$/,
    )
    assert.match(valuesOf(answer.head, 'retry-after').join(), /^[1-4]$/)
    assert.equal(await limited(gateway, 'requests-inflight', true), 20)
    assert.equal(await limited(gateway, 'requests-inflight', false), 0)
  })

  test('what the one gives back goes to the other, until each has a half', async () => {
    const { held, connect } = await setUp({ maxRequestsInflight: CAPACITY })
    const mallory = connect('mallory')
    hog(mallory, CAPACITY)
    await waitFor('all that mallory may have', () => held.length === CAPACITY)
    const alice = connect('alice')
    let own = 0
    for (let done = 0; done < CAPACITY / 2; done++) {
      const request = held.shift()
      if (request !== undefined) reply(request, 200, '{}')
      const before: number = held.length
      // Each as fast as the other.
      const asked = [get(mallory, `${HELD}-again`), get(alice, `${HELD}-alice`)]
      let refused = 0
      for (const one of asked) void one.then(({ status }) => (refused += status === 429 ? 1 : 0))
      await waitFor('both answers', () => held.length - before + refused === 2)
      own = held.filter(({ path }) => path.endsWith('alice')).length
    }
    assert.ok(own >= CAPACITY / 2 - 2, `${own} of ${CAPACITY}`)
  })

  test('who is not authenticated has a part of its own: addresses do not take from users, nor one from another', async () => {
    const { gateway, held, connect } = await setUp({ maxRequestsInflight: CAPACITY })
    const refused = hog(connect('', '127.0.0.2'), 40)
    await waitFor('all that the address may have', () => held.length === CAPACITY / 4 && refused.length === 36)
    assert.match(
      String(refused[0]?.body),
      /address 127\.0\.0\.2 has 4 of 4 requests in flight of unauthenticated clients/,
    )
    assert.equal(await limited(gateway, 'requests-inflight', false), 36)
    // Sixteen users with one request each, beside it.
    const users = Array.from({ length: CAPACITY }, (_, i) => hog(connect(`u${i}`), 1))
    await waitFor('all users', () => held.length === CAPACITY / 4 + CAPACITY)
    assert.deepEqual(users.flat(), [])
  })

  test('requests that wait for a token review are charged to their address', async () => {
    const { upstream, connect } = await setUp({ maxRequestsInflight: CAPACITY })
    upstream.answerToken = () => undefined
    const unknown = connect('')
    const codes: number[] = []
    for (let i = 0; i < 30; i++) {
      const asked = h2Request(unknown, [':method', 'GET', ':path', PODS, 'authorization', `Bearer invented-${i}`])
      void asked.then(({ status }) => codes.push(status))
    }
    await waitFor('the refusals', () => codes.length === 30 - CAPACITY / 4)
    assert.deepEqual(new Set(codes), new Set([429]))
    assert.equal((await get(connect('alice'), PODS)).status, 200)
  })

  test('spec.shares.weights says how large the share of a user is', async () => {
    const weights = [{ weight: 3, users: ['alice'] }]
    const { held, connect } = await setUp({ maxRequestsInflight: CAPACITY }, { shares: { weights } })
    const users = ['mallory', 'alice'].map((user) => ({ user, session: connect(user) }))
    const count = (user: string): number => held.filter(({ path }) => path.endsWith(user)).length
    let answered = 0
    const ask = (): number => {
      for (const { user, session } of users)
        void get(session, `${HELD}-${user}`).then(({ status }) => (answered += status === 429 ? 1 : 0))
      return users.length
    }
    let asked = 0
    // Both ask for more all the time, and the oldest ends.
    for (let i = 0; i < 8 * CAPACITY; i++) {
      if (held.length >= CAPACITY) {
        const request = held.splice(i % held.length, 1)[0]
        if (request !== undefined) reply(request, 200, '{}')
        asked--
      }
      asked += ask()
      await waitFor('answers', () => held.length + answered === asked)
    }
    const alice = count('alice')
    assert.ok(Math.abs(alice - (CAPACITY * 3) / 4) <= 3, `${alice} of ${CAPACITY}`)
  })

  test('a heartbeat of a node passes, whatever others hold', async () => {
    const { held, connect } = await setUp({ maxRequestsInflight: 1 })
    for (const user of ['a', 'b', 'c']) hog(connect(user), 3)
    await waitFor('all there is', () => held.length === 1)
    const node = connect('system:node:n1')
    const lease = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1'
    const put = await h2Request(node, [':method', 'PUT', ':path', lease], Buffer.from('{}'))
    assert.notEqual(put.status, 429)
  })
})

test('whatever becomes of requests, nothing is held when they are over', async () => {
  const { gateway, upstream, held, connect } = await setUp({ maxRequestsInflight: CAPACITY, maxWatches: CAPACITY })
  const users = ['', 'alice', 'bob'].map((user) => connect(user))
  upstream.answerToken = () => undefined
  const streams: ClientHttp2Stream[] = []
  const tokens = ['authorization', 'Bearer invented']
  for (let round = 0; round < 5; round++)
    for (const session of users)
      for (const fields of [
        ['GET', PODS],
        ['GET', WATCH],
        ['GET', `${HELD}${round}`],
        ['GET', '/api/v1/nodes?limit=x&labelSelector==='],
        ['POST', `${PODS}/a/exec`],
        ['DELETE', HELD],
        ['GET', HELD, ...tokens],
        ['GET', `${WATCH}&held`, ...tokens],
        ['GET', PODS, 'impersonate-user', 'carol'],
      ]) {
        const [method = '', path = '', ...rest] = fields
        const stream = h2Open(session, [':method', method, ':path', path, ...rest], { endStream: true })
        stream.on('error', () => undefined)
        stream.resume()
        streams.push(stream)
      }
  await waitFor('some are held', async () => held.length > 5 && (await heldOf(gateway, 'watches')) > 5)
  // Some are cancelled, some break upstream, some end with their connection.
  for (const [i, stream] of streams.entries()) if (i % 3 === 0) stream.close(8)
  upstream.breakConnections()
  users[1]?.close()
  for (const session of users) session.destroy()
  for (const limit of ['requests-inflight', 'watches'])
    await waitFor(`nothing of ${limit}`, async () => (await heldOf(gateway, limit)) === 0)
})

describe('watches', () => {
  interface Watch {
    readonly stream: ClientHttp2Stream
    readonly status: number
    ended(): boolean
  }

  async function watch(session: ClientHttp2Session): Promise<Watch> {
    const stream = h2Open(session, [':method', 'GET', ':path', WATCH], { endStream: true })
    let ended = false
    stream.on('end', () => (ended = true))
    const status = await new Promise<number>((resolve, reject) => {
      stream.on('response', (head) => resolve(Number(head[':status'])))
      stream.on('error', reject)
    })
    if (status === 200) await new Promise((resolve) => stream.once('data', resolve))
    stream.resume()
    return { stream, status, ended: () => ended }
  }

  test('who has more than a share gives up the oldest for others, cleanly, and cannot take it back', async () => {
    const { connect } = await setUp({ maxWatches: CAPACITY })
    const mallory = connect('mallory')
    const all: Watch[] = []
    for (let i = 0; i < CAPACITY; i++) all.push(await watch(mallory))
    assert.equal((await watch(mallory)).status, 429)
    const alice = connect('alice')
    const own: Watch[] = []
    for (let i = 0; i < CAPACITY / 2; i++) {
      own.push(await watch(alice))
      await waitFor('one ends for it', () => all.filter((one) => one.ended()).length === i + 1)
      assert.deepEqual(
        all.map((one) => one.ended()),
        all.map((_, n) => n <= i),
        'the oldest, one for each',
      )
    }
    assert.ok(own.every(({ status, ended }) => status === 200 && !ended()))
    assert.ok(
      all.every(({ stream }) => stream.rstCode === 0),
      'none is reset',
    )
    assert.equal((await watch(mallory)).status, 429, 'it has its share')
    assert.equal((await watch(alice)).status, 429, 'and so has she')
  })
})
