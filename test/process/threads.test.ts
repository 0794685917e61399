// Several gateway threads are one gateway: one port, one set of limits, one configuration; and a thread that dies takes
// nothing with it but its own connections.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { ClientHttp2Session } from 'node:http2'
import { afterEach, describe, test } from 'node:test'
import type {
  FlowControlSchema,
  UpstreamCluster,
  UpstreamClusterSpec,
} from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { createCA } from '../../src/pki/io/pki.ts'
import type { Config } from '../../src/process/config/config.ts'
import { h2Connect, h2Open, h2Request, h2Response, type Response } from '../harness/clients/h2-client.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { ALLOW_ALL, clientPair, clusterObject } from '../harness/objects/objects.ts'
import { PATIENT } from '../harness/patience.ts'
import { freePorts } from '../harness/ports.ts'
import { reply, type SeenRequest, type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const THREADS = 2
const clientCA = createCA({ commonName: 'clients of prod' })
const alice = clientPair(clientCA, 'alice')
const bob = clientPair(clientCA, 'bob')
const POST = [':method', 'POST', ':path', '/api/v1/namespaces/default/pods']
const EVENT = '{"type":"ADDED"}\n'
const WATCH = [':path', '/api/v1/pods?watch=1']

const cleanups: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

interface ThreadStatus {
  readonly thread: number
  readonly state: string
  readonly generation: number
  readonly restarts: number
  readonly clientConnections: number | null
}

interface Scene {
  readonly stub: StubUpstream
  readonly gateway: InProcessGateway
  change(spec: Partial<UpstreamClusterSpec>): Promise<void>
}

async function setUp(spec: Partial<UpstreamClusterSpec> = {}, overrides: Partial<Config> = {}): Promise<Scene> {
  const stub = await startStub()
  const object = (more: Partial<UpstreamClusterSpec>): UpstreamCluster =>
    clusterObject([stub], { clientCA, spec: { ...spec, ...more } })
  const gateway = await startInProcess([object({})], { threads: THREADS, ...overrides })
  cleanups.push(stub.stop, gateway.stop)
  const change = async (next: Partial<UpstreamClusterSpec>): Promise<void> => {
    gateway.apply([object(next)])
    await gateway.applied()
  }
  return { stub, gateway, change }
}

function limited(schema: Omit<FlowControlSchema, 'name'>): Partial<UpstreamClusterSpec> {
  return {
    flowControl: { flowControlSchemas: [{ name: 'the-limit', ...schema }] },
    dispatchPolicies: [{ ...ALLOW_ALL, flowControlSchemaName: 'the-limit' }],
  }
}

interface ConfigDump {
  readonly generation: number
  readonly running: number
  readonly threads: readonly ThreadStatus[]
  readonly clusters: readonly {
    readonly endpointStatus: readonly { readonly inFlight: number }[]
    readonly flowControl: readonly { readonly inFlight: number; readonly watches: number; readonly tokens: number }[]
  }[]
}

async function dump(gateway: InProcessGateway): Promise<ConfigDump> {
  return (await (await fetch(`http://127.0.0.1:${gateway.adminPort}/debug/config`)).json()) as ConfigDump
}

/** A connection to each thread: the kernel chooses, so it takes some attempts. */
async function connectToEach(gateway: InProcessGateway, certificate = alice): Promise<ClientHttp2Session[]> {
  const found: (ClientHttp2Session | undefined)[] = Array.from({ length: THREADS }, () => undefined)
  let before = (await dump(gateway)).threads
  for (let attempt = 0; attempt < 100 && found.includes(undefined); attempt++) {
    const session = h2Connect({ port: gateway.port, serverName: 'prod.example.com', certificate })
    session.on('error', () => undefined)
    cleanups.push(() => session.destroy())
    await h2Request(session, [':path', '/version'])
    const after = (await dump(gateway)).threads
    const thread = after.findIndex(
      ({ clientConnections }, i) => (clientConnections ?? 0) > (before[i]?.clientConnections ?? 0),
    )
    before = after
    if (thread >= 0) found[thread] ??= session
  }
  return found.map((session, thread) => {
    assert.ok(session, `no connection came to thread ${thread}`)
    return session
  })
}

/** Lists, taking turns among the sessions. */
function flood(sessions: readonly ClientHttp2Session[], count: number): Promise<Response>[] {
  return Array.from({ length: count }, (_, i) => h2Request(sessions[i % sessions.length] as ClientHttp2Session, []))
}

function hold(stub: StubUpstream): SeenRequest[] {
  const held: SeenRequest[] = []
  stub.answer = (request) => held.push(request)
  return held
}

function counted(responses: readonly Response[], status: number): number {
  return responses.filter((response) => response.status === status).length
}

/** Sum of a metric over its labels. */
function metric(text: string, name: string): number {
  const lines = text.split('\n').filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
}

describe('one set of limits', () => {
  test('a token bucket: the burst, and what time has given since', async () => {
    const { stub, gateway, change } = await setUp()
    const sessions = await connectToEach(gateway)
    await change(limited({ tokenBucket: { qps: 1, burst: 100 } }))
    stub.seen.length = 0
    const beforeMs = performance.now()
    const responses = await Promise.all(flood(sessions, 300))
    const refilled = Math.ceil((performance.now() - beforeMs) / 1000)
    const admitted = counted(responses, 200)
    assert.ok(admitted >= 100 && admitted <= 100 + refilled, `${admitted} admitted`)
    assert.equal(admitted + counted(responses, 429), 300)
    assert.equal(stub.seen.length, admitted, 'upstream saw these and no others')
  })

  test('a token bucket for each user', async () => {
    const { gateway, change } = await setUp()
    const alices = await connectToEach(gateway)
    const bobs = await connectToEach(gateway, bob)
    await change(limited({ tokenBucket: { qps: 1, burst: 50 }, perUser: true }))
    const beforeMs = performance.now()
    const answers = await Promise.all([alices, bobs].map((sessions) => Promise.all(flood(sessions, 150))))
    const refilled = Math.ceil((performance.now() - beforeMs) / 1000)
    for (const responses of answers) {
      const admitted = counted(responses, 200)
      assert.ok(admitted >= 50 && admitted <= 50 + refilled, `${admitted} admitted`)
    }
  })

  for (const perUser of [false, true]) {
    test(`requests in flight${perUser ? ' of each user' : ''}: exactly as many, and all come back`, async () => {
      const { stub, gateway, change } = await setUp()
      const sessions = await connectToEach(gateway)
      await change(limited({ maxRequestsInflight: { max: 11 }, perUser }))
      for (let round = 0; round < 5; round++) {
        const held = hold(stub)
        let refused = 0
        const responses = flood(sessions, 100).map(async (response) => {
          if ((await response).status === 429) refused++
          return response
        })
        await waitFor('every request to be decided', () => held.length + refused === 100)
        assert.equal(held.length, 11)
        for (const request of held) reply(request, 200, '{}')
        assert.equal(counted(await Promise.all(responses), 200), 11)
      }
      assert.equal((await dump(gateway)).clusters[0]?.flowControl[0]?.inFlight, 0)
    })
  }

  test('a limit that changes keeps its fill level, in all threads', async () => {
    const { gateway, change } = await setUp()
    const sessions = await connectToEach(gateway)
    await change(limited({ tokenBucket: { qps: 1, burst: 40 } }))
    const beforeMs = performance.now()
    await Promise.all(flood(sessions, 40))
    for (const burst of [60, 30, 500]) await change(limited({ tokenBucket: { qps: 1, burst } }))
    const responses = await Promise.all(flood(sessions, 50))
    const refilled = Math.ceil((performance.now() - beforeMs) / 1000) + 1
    assert.ok(counted(responses, 200) <= refilled, `${counted(responses, 200)} admitted`)
  })
})

describe('one configuration', () => {
  test('a change is in force everywhere once it is acknowledged, and shown', async () => {
    const { gateway, change } = await setUp()
    const sessions = await connectToEach(gateway)
    for (let i = 0; i < 10; i++) {
      const readOnly = { rules: [{ verbs: ['get', 'list'], apiGroups: ['*'], resources: ['*'] }] }
      await change({ dispatchPolicies: i % 2 === 0 ? [readOnly] : [ALLOW_ALL] })
      for (const session of sessions) assert.equal((await h2Request(session, POST)).status, i % 2 === 0 ? 403 : 200)
    }
    const { generation, threads } = await dump(gateway)
    assert.deepEqual(
      threads.map((one) => [one.state, one.generation]),
      [
        ['listening', generation],
        ['listening', generation],
      ],
    )
    const metrics = await gateway.metrics()
    assert.equal(metric(metrics, 'portcullis_config_generation'), generation)
    for (const thread of [0, 1])
      assert.match(
        metrics,
        new RegExp(`^portcullis_thread_config_generation\\{thread="${thread}"\\} ${generation}$`, 'm'),
      )
  })

  test('a removed cluster is gone in every thread, and its watches end', async () => {
    const { stub, gateway } = await setUp({}, { drainTimeoutMs: 100 })
    const sessions = await connectToEach(gateway)
    stub.answer = (request) => {
      request.stream.respond([':status', '200', 'content-type', 'application/json'])
      request.stream.write(EVENT)
    }
    const watches = sessions.map((session) => h2Open(session, WATCH))
    const ended = watches.map(h2Response)
    await Promise.all(watches.map((watch) => once(watch, 'data')))
    gateway.apply([])
    await gateway.applied()
    for (const session of sessions) assert.equal((await h2Request(session, [])).status, 404)
    for (const watch of ended) assert.equal((await watch).resetCode, 0)
  })
})

describe('one gateway from outside', () => {
  test('metrics are those of all threads together', async () => {
    const { stub, gateway } = await setUp()
    const sessions = await connectToEach(gateway)
    const before = await gateway.metrics()
    await Promise.all(flood(sessions, 50))
    const held = hold(stub)
    const running = flood(sessions, 6)
    await waitFor('the requests upstream', () => held.length === 6)
    const after = await gateway.metrics()
    const difference = (name: string): number => metric(after, name) - metric(before, name)
    assert.equal(difference('portcullis_upstream_requests_total'), 50)
    assert.equal(difference('portcullis_apiserver_current_inflight_requests'), 6)
    assert.equal(metric(after, 'portcullis_thread_answers'), THREADS)
    assert.ok(metric(after, 'portcullis_client_connections') >= THREADS)
    assert.equal((await dump(gateway)).running, 6)
    for (const request of held) reply(request, 200, '{}')
    await Promise.all(running)
  })

  test('every address is one port for all threads', async () => {
    const [fixed = 0] = await freePorts(1)
    const host = '127.0.0.1'
    const { gateway } = await setUp(
      {},
      {
        listen: [
          { host, port: 0 },
          { host, port: fixed },
        ],
      },
    )
    assert.equal(gateway.ports[1], fixed)
    assert.notEqual(gateway.ports[0], fixed)
    for (const port of gateway.ports) await connectToEach({ ...gateway, port })
  })

  test('a drain waits for the requests of all threads', async () => {
    const { stub, gateway } = await setUp({}, { drainTimeoutMs: 3_600_000 })
    const sessions = await connectToEach(gateway)
    const held = hold(stub)
    const responses = flood(sessions, 4)
    await waitFor('the requests upstream', () => held.length === 4)
    const goaways = sessions.map((session) => new Promise((resolve) => session.once('goaway', resolve)))
    const stopped = gateway.stop()
    await Promise.all(goaways)
    for (const request of held) reply(request, 200, '{}')
    assert.equal(counted(await Promise.all(responses), 200), 4)
    await stopped
  })
})

describe('a thread that dies', () => {
  test('takes its own requests along, gives back what it held, and is replaced', async () => {
    const { stub, gateway, change } = await setUp()
    const [lost, kept] = await connectToEach(gateway)
    assert.ok(lost && kept)
    await change(limited({ maxRequestsInflight: { max: 10 }, maxWatches: 4 }))
    await Promise.all(flood([lost, kept], 4))
    const forwarded = metric(await gateway.metrics(), 'portcullis_upstream_requests_total')
    const held = hold(stub)
    const [dying, living] = [flood([lost], 6), flood([kept], 4)]
    await waitFor('the requests upstream', () => held.length === 10)
    assert.equal((await h2Request(kept, [])).status, 429)

    await gateway.crashThread(0)
    for (const response of dying) assert.notEqual((await response).resetCode, 0)
    await waitFor('the slots', async () => (await dump(gateway)).clusters[0]?.flowControl[0]?.inFlight === 4)
    assert.equal((await dump(gateway)).clusters[0]?.endpointStatus[0]?.inFlight, 4)
    const more = flood([kept], 10)
    await waitFor('six more upstream', () => held.length === 16)
    for (const request of held) reply(request, 200, '{}')
    assert.equal(counted(await Promise.all(living), 200), 4)
    assert.equal(counted(await Promise.all(more), 200), 6)

    stub.answer = (request) => reply(request, 200, '{}')
    await waitFor('the replacement', async () => {
      const { threads } = await dump(gateway)
      return threads[0]?.state === 'listening' && threads[0].restarts === 1
    })
    const again = await connectToEach(gateway)
    assert.equal(counted(await Promise.all(flood(again, 10)), 200), 10)
    const metrics = await gateway.metrics()
    assert.match(metrics, /^portcullis_thread_restarts_total\{thread="0"\} 1$/m)
    assert.match(metrics, /^portcullis_thread_restarts_total\{thread="1"\} 0$/m)
    assert.ok(metric(metrics, 'portcullis_upstream_requests_total') >= forwarded + 10, 'counters do not fall')
    const told = gateway.logged.filter(({ message }) => message.startsWith('gateway thread died'))
    assert.deepEqual(
      told.map(({ level, fields }) => [level, fields['thread']]),
      [['error', 0]],
    )
  })

  test('has a successor that knows every change made meanwhile', async () => {
    const { gateway, change } = await setUp()
    const readOnly = { rules: [{ verbs: ['get', 'list'], apiGroups: ['*'], resources: ['*'] }] }
    const crashed = gateway.crashThread(0)
    await change({ dispatchPolicies: [readOnly] })
    await crashed
    await waitFor('the replacement', async () => (await dump(gateway)).threads[0]?.state === 'listening')
    for (const session of await connectToEach(gateway)) assert.equal((await h2Request(session, POST)).status, 403)
  })

  test('with all others, until one takes requests again: not ready, and ready then', PATIENT, async () => {
    const { gateway } = await setUp()
    const readyz = async (): Promise<string> => {
      return await (await fetch(`http://127.0.0.1:${gateway.adminPort}/readyz?verbose`)).text()
    }
    assert.match(await readyz(), /^\[\+\]threads ok$/m)
    // Each time in a row they come back later.
    await waitFor('the failure', async () => {
      await Promise.all([0, 1].map((thread) => gateway.crashThread(thread)))
      return (await readyz()).includes('[-]threads failed: no gateway thread is running')
    })
    await waitFor('the way back', async () => (await readyz()).includes('readyz check passed'), { timeoutMs: 90_000 })
  })
})
