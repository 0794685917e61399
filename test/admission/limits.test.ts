// Flow control under concurrency: every limit exact to one request, and everything that is taken comes back.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { ClientHttp2Session, ClientHttp2Stream } from 'node:http2'
import { afterEach, describe, test } from 'node:test'
import type {
  DispatchPolicy,
  FlowControlSchema,
  UpstreamCluster,
  UpstreamClusterSpec,
} from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { createCA } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Open, h2Request, h2Response, type Response, valuesOf } from '../harness/clients/h2-client.ts'
import { openRaw } from '../harness/clients/raw-clients.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { ALLOW_ALL, clientPair, clusterObject } from '../harness/objects/objects.ts'
import { reply, type SeenRequest, type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'
import { startUpgradeUpstream } from '../harness/upstreams/upgrade-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const clientCA = createCA({ commonName: 'clients of prod' })
const alice = clientPair(clientCA, 'alice')
const bob = clientPair(clientCA, 'bob')
const EVENT = '{"type":"ADDED"}\n'
const WATCH = [':path', '/api/v1/pods?watch=1']
const EVENTS = [':method', 'POST', ':path', '/api/v1/namespaces/default/events']

const cleanups: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

interface Scene {
  readonly stub: StubUpstream
  readonly gateway: InProcessGateway
  /** Several connections: none of them may run out of streams. */
  readonly sessions: readonly ClientHttp2Session[]
  apply(spec: Partial<UpstreamClusterSpec>): void
}

/** One cluster, all of whose requests are under `schema`. */
async function setUp(schema: Omit<FlowControlSchema, 'name'>): Promise<Scene> {
  const stub = await startStub()
  const object = (spec: Partial<UpstreamClusterSpec>): UpstreamCluster =>
    clusterObject([stub], { clientCA, spec: { ...limited(schema), ...spec } })
  const gateway = await startInProcess([object({})])
  const options = { port: gateway.port, serverName: 'prod.example.com', certificate: alice }
  const sessions = [h2Connect(options), h2Connect(options), h2Connect(options)]
  cleanups.push(stub.stop, gateway.stop, () => {
    for (const session of sessions) session.destroy()
  })
  return { stub, gateway, sessions, apply: (spec) => gateway.apply([object(spec)]) }
}

function limited(schema: Omit<FlowControlSchema, 'name'>): Partial<UpstreamClusterSpec> {
  return {
    flowControl: { flowControlSchemas: [{ name: 'the-limit', ...schema }] },
    dispatchPolicies: [{ ...ALLOW_ALL, flowControlSchemaName: 'the-limit' }],
  }
}

function sessionOf(scene: Scene, i = 0): ClientHttp2Session {
  const session = scene.sessions[i % scene.sessions.length]
  assert.ok(session)
  return session
}

/** Requests that upstream does not answer until it is told to. */
function hold(stub: StubUpstream): SeenRequest[] {
  const held: SeenRequest[] = []
  stub.answer = (request) => held.push(request)
  return held
}

interface Flood {
  readonly streams: readonly ClientHttp2Stream[]
  readonly responses: readonly Promise<Response>[]
  readonly refused: () => number
}

/** Many lists at once. */
function flood(scene: Scene, count: number): Flood {
  let refused = 0
  const streams = Array.from({ length: count }, (_, i) => h2Open(sessionOf(scene, i), []))
  const responses = streams.map(async (stream) => {
    const response = await h2Response(stream)
    if (response.status === 429) refused++
    return response
  })
  return { streams, responses, refused: () => refused }
}

/** Floods, and fails unless exactly `max` come through to upstream and all others are refused. */
async function assertAdmits(scene: Scene, max: number, count = 300): Promise<{ flood: Flood; held: SeenRequest[] }> {
  const held = hold(scene.stub)
  const sent = flood(scene, count)
  await waitFor('every request to be decided', () => held.length + sent.refused() >= count)
  assert.equal(held.length, max)
  assert.equal(sent.refused(), count - max)
  return { flood: sent, held }
}

interface Status {
  readonly message: string
  readonly reason: string
  readonly code: number
  readonly details?: {
    readonly retryAfterSeconds?: number
    readonly causes?: readonly { readonly reason: string; readonly message: string; readonly field?: string }[]
  }
}

function statusIn(response: Response): Status {
  return JSON.parse(response.body.toString()) as Status
}

describe('token bucket', () => {
  test('500 at once: the burst, and what time has given since', async () => {
    const scene = await setUp({ tokenBucket: { qps: 1, burst: 100 } })
    const beforeMs = performance.now()
    const responses = await Promise.all(flood(scene, 500).responses)
    const refilled = Math.ceil((performance.now() - beforeMs) / 1000)
    const admitted = responses.filter(({ status }) => status === 200).length
    assert.ok(admitted >= 100 && admitted <= 100 + refilled, `${admitted} admitted`)
    assert.equal(scene.stub.seen.length, admitted, 'upstream saw these and no others')
    assert.ok(responses.every(({ status }) => status === 200 || status === 429))
  })

  test('a refusal says which limit it was and when to come back; for events it does not', async () => {
    const scene = await setUp({ tokenBucket: { qps: 1, burst: 1 } })
    const responses = await Promise.all(flood(scene, 20).responses)
    const refused = responses.find(({ status }) => status === 429)
    assert.ok(refused)
    const [seconds = ''] = valuesOf(refused.head, 'retry-after')
    assert.match(seconds, /^[1-9][0-9]*$/)
    const { message, reason, code, details } = statusIn(refused)
    assert.deepEqual([reason, code], ['TooManyRequests', 429])
    assert.match(message, /"the-limit" allows 1 a second for all its users together, burst 1; retry in \d+ s$/)
    assert.ok(message.endsWith(` ${seconds} s`), `${message}: ${seconds}`)
    assert.equal(details?.retryAfterSeconds, Number(seconds))
    assert.deepEqual(details?.causes, [
      { reason: 'FlowControlSchema', message: 'the-limit', field: 'spec.flowControl.flowControlSchemas[0]' },
    ])

    const events = await Promise.all([h2Request(sessionOf(scene), EVENTS), h2Request(sessionOf(scene), EVENTS)])
    const event = events.find(({ status }) => status === 429)
    assert.ok(event)
    assert.deepEqual(valuesOf(event.head, 'retry-after'), [])
    assert.equal(statusIn(event).details?.retryAfterSeconds, undefined)
    assert.doesNotMatch(statusIn(event).message, /come back/)
  })

  test('a request that no endpoint could take costs no token', async () => {
    const scene = await setUp({ tokenBucket: { qps: 1, burst: 5 } })
    scene.apply({ servers: [{ endpoint: scene.stub.url, disabled: true }] })
    for (let i = 0; i < 50; i++) assert.equal((await h2Request(sessionOf(scene), [])).status, 503)
    scene.apply({})
    const beforeMs = performance.now()
    const responses = await Promise.all(flood(scene, 5).responses)
    assert.ok(responses.every(({ status }) => status === 200))
    // And none was made by giving back: there are no more than the burst.
    const more = await Promise.all(flood(scene, 50).responses)
    const refilled = Math.ceil((performance.now() - beforeMs) / 1000) + 1
    assert.ok(more.filter(({ status }) => status === 200).length <= refilled)
  })

  test('a request that another filter refuses costs no token', async () => {
    const scene = await setUp({ tokenBucket: { qps: 1, burst: 5 } })
    scene.apply({ degrade: { mode: 'Freeze' } })
    for (let i = 0; i < 50; i++) assert.equal((await h2Request(sessionOf(scene), [])).status, 503)
    scene.apply({})
    const responses = await Promise.all(flood(scene, 5).responses)
    assert.ok(responses.every(({ status }) => status === 200))
  })
})

describe('requests in flight', () => {
  test('300 slow lists: exactly the maximum runs, and every slot comes back', async () => {
    const max = 40
    const scene = await setUp({ maxRequestsInflight: { max } })
    const complete = await assertAdmits(scene, max)
    const refused = statusIn(await Promise.any(complete.flood.responses))
    assert.match(refused.message, /"the-limit" allows 40 at once/)
    for (const request of complete.held) reply(request, 200, '{}')
    const responses = await Promise.all(complete.flood.responses)
    assert.equal(responses.filter(({ status }) => status === 200).length, max)

    const aborted = await assertAdmits(scene, max) // the slots of the completed ones
    for (const stream of aborted.flood.streams) stream.close(8)
    await waitFor('the aborts upstream', () => aborted.held.every(({ stream }) => stream.destroyed))

    const broken = await assertAdmits(scene, max) // those of the aborted ones
    scene.stub.breakConnections()
    const failures = await Promise.all(broken.flood.responses)
    assert.equal(failures.filter(({ status }) => status === 502).length, max)

    scene.apply({ servers: [{ endpoint: scene.stub.url, disabled: true }] })
    const homeless = await Promise.all(flood(scene, 100).responses)
    assert.ok(homeless.every(({ status }) => status === 503))
    scene.apply({})
    const last = await assertAdmits(scene, max) // those of the broken and the homeless ones
    for (const request of last.held) reply(request, 200, '{}')
    await Promise.all(last.flood.responses)
    assert.match(await scene.gateway.metrics(), /inflight_requests\{cluster="prod.example.com",[^}]*\} 0\n/)
  })

  test('a slot is held until the answer is complete', async () => {
    const scene = await setUp({ maxRequestsInflight: { max: 1 } })
    const held = hold(scene.stub)
    const stream = h2Open(sessionOf(scene), [])
    const response = h2Response(stream)
    await waitFor('the request upstream', () => held.length === 1)
    held[0]?.stream.respond([':status', '200'])
    held[0]?.stream.write('begin')
    await once(stream, 'data')
    assert.equal((await h2Request(sessionOf(scene), [])).status, 429)
    held[0]?.stream.end('end')
    await response
    const next = h2Request(sessionOf(scene), [])
    await waitFor('the next one upstream', () => held.length === 2)
    for (const request of held.slice(1)) reply(request, 200, '{}')
    assert.equal((await next).status, 200)
  })

  test('a watch holds one only until its headers have come', async () => {
    const scene = await setUp({ maxRequestsInflight: { max: 1 } })
    const held = hold(scene.stub)
    const watch = h2Open(sessionOf(scene), WATCH)
    await waitFor('the watch upstream', () => held.length === 1)
    assert.equal((await h2Request(sessionOf(scene), [])).status, 429)
    held[0]?.stream.respond([':status', '200', 'content-type', 'application/json'])
    await once(watch, 'response')
    scene.stub.answer = ({ stream }) => {
      stream.respond([':status', '200', 'content-type', 'application/json'])
      stream.write(EVENT)
    }
    for (let i = 0; i < 20; i++) await once(h2Open(sessionOf(scene), WATCH), 'data')
    // And gives none back twice.
    watch.close(8)
    await assertAdmits(scene, 1, 50)
  })

  test('an upgraded connection holds one only until it is upgraded, and gives it back when the client leaves before', async () => {
    const scene = await setUp({ maxRequestsInflight: { max: 1 } })
    const upstream = await startUpgradeUpstream()
    cleanups.push(upstream.stop)
    scene.apply({ servers: [{ endpoint: upstream.url }] })
    const exec = async () => {
      const options = { port: scene.gateway.port, serverName: 'prod.example.com', cert: alice, alpn: ['http/1.1'] }
      const connection = await openRaw(options)
      cleanups.push(() => connection.destroy())
      connection.send(
        'GET /api/v1/namespaces/default/pods/web/exec?command=sh HTTP/1.1\r\nHost: prod.example.com\r\n' +
          'Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n',
      )
      return connection
    }
    await (await exec()).until(/ 101 /)
    await (await exec()).until(/ 101 /)
    assert.equal((await h2Request(sessionOf(scene), [])).status, 200)

    upstream.answering = false
    const waiting = await exec()
    await waitFor('the third upstream', () => upstream.open.size === 3)
    assert.equal((await h2Request(sessionOf(scene), [])).status, 429)
    waiting.destroy()
    await waitFor('the slot', async () => (await h2Request(sessionOf(scene), [])).status === 200)
    await waitFor('the upstream side to be closed', () => upstream.open.size === 2)
  })

  test('a maximum of 0 refuses everything', async () => {
    const scene = await setUp({ maxRequestsInflight: { max: 0 } })
    for (const head of [[], WATCH, [':path', '/version']])
      assert.equal((await h2Request(sessionOf(scene), head)).status, 429)
    assert.equal(scene.stub.seen.length, 0)
  })
})

describe('open watches', () => {
  test('a cap in addition to another limit: exact, for watches only, and given back', async () => {
    const scene = await setUp({ maxRequestsInflight: { max: 100 }, maxWatches: 7 })
    scene.stub.answer = (request) => {
      if (!request.path.includes('watch')) return reply(request, 200, '{}')
      request.stream.respond([':status', '200', 'content-type', 'application/json'])
      request.stream.write(EVENT)
    }
    const open = async (): Promise<ClientHttp2Stream[]> => {
      const streams = Array.from({ length: 50 }, (_, i) => h2Open(sessionOf(scene, i), WATCH))
      const statuses = await Promise.all(
        streams.map(async (stream) =>
          Number(((await once(stream, 'response')) as [{ ':status': number }])[0][':status']),
        ),
      )
      assert.equal(statuses.filter((status) => status === 200).length, 7)
      assert.equal(statuses.filter((status) => status === 429).length, 43)
      return streams.filter((_, i) => statuses[i] === 200)
    }
    const watches = await open()
    const refused = await h2Request(sessionOf(scene), WATCH)
    assert.match(statusIn(refused).message, /"the-limit" allows 7 open at once/)
    assert.match(valuesOf(refused.head, 'retry-after')[0] ?? '', /^[1-9][0-9]*$/)
    assert.equal((await h2Request(sessionOf(scene), [])).status, 200, 'a list is no watch')
    for (const watch of watches) watch.close(8)
    await waitFor('the watches to be gone upstream', () => scene.stub.seen.every(({ stream }) => stream.destroyed))
    for (const watch of await open()) watch.close(8)
    // Watches that were refused gave back what else they had taken.
    scene.stub.seen.length = 0
    await assertAdmits(scene, 100)
  })

  test('a refused watch costs no token', async () => {
    const scene = await setUp({ tokenBucket: { qps: 1, burst: 5 }, maxWatches: 1 })
    scene.stub.answer = (request) => {
      if (!request.path.includes('watch')) return reply(request, 200, '{}')
      request.stream.respond([':status', '200', 'content-type', 'application/json'])
      request.stream.write(EVENT)
    }
    await once(h2Open(sessionOf(scene), WATCH), 'data')
    for (let i = 0; i < 20; i++) assert.equal((await h2Request(sessionOf(scene), WATCH)).status, 429)
    const responses = await Promise.all(flood(scene, 4).responses)
    assert.ok(responses.every(({ status }) => status === 200))
  })
})

describe('whose limit it is', () => {
  test('perUser: each user has its own', async () => {
    const scene = await setUp({ maxRequestsInflight: { max: 5 }, perUser: true })
    const bobs = h2Connect({ port: scene.gateway.port, serverName: 'prod.example.com', certificate: bob })
    cleanups.push(() => bobs.destroy())
    const held = hold(scene.stub)
    const statuses: number[] = []
    for (const session of [sessionOf(scene), bobs])
      for (let i = 0; i < 20; i++) void h2Request(session, []).then(({ status }) => statuses.push(status))
    await waitFor('every request to be decided', () => held.length + statuses.length === 40)
    const users = held.map((request) => request.values('impersonate-user')[0])
    assert.equal(users.filter((user) => user === 'alice').length, 5)
    assert.equal(users.filter((user) => user === 'bob').length, 5)
    for (const request of held) reply(request, 200, '{}')
  })

  test('the two-user example: pods list limited for ordinary users, the controller manager exempt', async () => {
    const name = 'the two-user example: pods list limited for ordinary users, the controller manager exempt'
    const data = readFileSync(new URL('../data/upstreamcluster-objects.json', import.meta.url), 'utf8')
    const { cases } = JSON.parse(data) as { cases: { name: string; object: UpstreamCluster }[] }
    const example = cases.find((entry) => entry.name === name)?.object.spec
    assert.ok(example)
    const stub = await startStub()
    const { servers: _, clientConfig: __, secureServing: ___, ...policies } = example
    const gateway = await startInProcess([clusterObject([stub], { clientCA, spec: policies })])
    cleanups.push(stub.stop, gateway.stop)
    const statusesFor = async (user: string, head: string[]): Promise<number[]> => {
      const certificate = clientPair(clientCA, user)
      const session = h2Connect({ port: gateway.port, serverName: 'prod.example.com', certificate })
      const responses = await Promise.all(Array.from({ length: 200 }, () => h2Request(session, head)))
      session.destroy()
      return responses.map(({ status }) => status)
    }
    const list = [':path', '/api/v1/pods']
    const beforeMs = performance.now()
    const ordinary = await statusesFor('alice', list)
    const refilled = Math.ceil(((performance.now() - beforeMs) / 1000) * 10)
    const admitted = ordinary.filter((status) => status === 200).length
    assert.ok(admitted >= 20 && admitted <= 20 + refilled, `${admitted} admitted`)
    assert.ok(ordinary.includes(429))
    const controller = await statusesFor('system:kube-controller-manager', list)
    assert.ok(controller.every((status) => status === 200))
    const get = await statusesFor('alice', [':path', '/api/v1/namespaces/default/pods/web'])
    assert.ok(!get.includes(429), 'the limit is for lists of pods')
  })

  test('two policies with one schema share it; a request without a schema is free', async () => {
    const scene = await setUp({ maxRequestsInflight: { max: 10 } })
    const of = (resource: string): DispatchPolicy => ({
      rules: [{ verbs: ['*'], apiGroups: [''], resources: [resource] }],
      flowControlSchemaName: 'the-limit',
    })
    scene.apply({ dispatchPolicies: [of('pods'), of('nodes'), ALLOW_ALL] })
    const held = hold(scene.stub)
    let refused = 0
    for (const path of ['/api/v1/pods', '/api/v1/nodes']) {
      for (let i = 0; i < 20; i++) {
        void h2Request(sessionOf(scene), [':path', path]).then(({ status }) => {
          if (status === 429) refused++
        })
      }
    }
    await waitFor('every request to be decided', () => held.length + refused === 40)
    assert.equal(held.length, 10)
    scene.stub.answer = (request) => reply(request, 200, '{}')
    assert.equal((await h2Request(sessionOf(scene), [':path', '/api/v1/services'])).status, 200)
    for (const request of held) reply(request, 200, '{}')
  })
})

test('what a filter in shadow mode would have refused is counted, whatever the next filter says', async () => {
  const scene = await setUp({ maxRequestsInflight: { max: 0 } })
  scene.apply({ degrade: { mode: 'Freeze', shadow: true } })
  const [session] = scene.sessions
  assert.ok(session)
  const { status } = await h2Request(session, [])
  assert.equal(status, 429)
  assert.match(
    await scene.gateway.metrics(),
    /portcullis_shadow_refusals_total\{[^}]*rule="degrade\/Freeze"[^}]*\} 1\n/,
  )
})

test('shadow mode: everything passes; what would be refused has a warning and is counted', async () => {
  const scene = await setUp({ tokenBucket: { qps: 1, burst: 10 }, shadow: true })
  const beforeMs = performance.now()
  const responses = await Promise.all(flood(scene, 100).responses)
  const refilled = Math.ceil((performance.now() - beforeMs) / 1000)
  assert.ok(responses.every(({ status }) => status === 200))
  const warnings = responses.map(({ head }) => valuesOf(head, 'warning'))
  const warned = warnings.filter((lines) => lines.length > 0)
  assert.ok(warned.length <= 90 && warned.length >= 90 - refilled, `${warned.length} warned`)
  for (const lines of warned) {
    assert.equal(lines.length, 1)
    assert.match(
      lines[0] ?? '',
      /^299 - "flow-control in shadow mode would refuse: .*\\"the-limit\\" allows 1 a second.*"$/,
    )
  }
  const metrics = await scene.gateway.metrics()
  const counted = /portcullis_\w*shadow\w*\{[^}]*flow-control\/the-limit[^}]*\} (\d+)/.exec(metrics)?.[1]
  assert.equal(Number(counted), warned.length)
})
