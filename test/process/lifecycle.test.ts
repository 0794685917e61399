// The life of the gateway: ready when it can serve, and an end that loses nothing that could be finished.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import type { ClientHttp2Session } from 'node:http2'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import type { UpstreamCluster } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { createCA } from '../../src/pki/io/pki.ts'
import type { Config } from '../../src/process/config/config.ts'
import { connectError } from '../harness/clients/connect-error.ts'
import { h2Connect, h2Open, h2Request, h2Response, type Response } from '../harness/clients/h2-client.ts'
import { type Http1Client, http1Connect, requestHead } from '../harness/clients/http1-client.ts'
import { openRaw } from '../harness/clients/raw-clients.ts'
import { startGateway } from '../harness/gateways/gateway.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { base64, clientPair, clusterObject } from '../harness/objects/objects.ts'
import { freePorts } from '../harness/ports.ts'
import { endWithThisProcess } from '../harness/process.ts'
import { MAIN } from '../harness/program.ts'
import {
  reply,
  replyReview,
  type SeenRequest,
  type SeenReview,
  type StubUpstream,
  startStub,
} from '../harness/upstreams/stub-upstream.ts'
import { startUpgradeUpstream } from '../harness/upstreams/upgrade-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const clientCA = createCA({ commonName: 'clients of prod' })
const alice = clientPair(clientCA, 'alice')
const WATCH = [':path', '/api/v1/pods?watch=1']
const EXEC =
  'POST /api/v1/namespaces/default/pods/web/exec?command=sh HTTP/1.1\r\nHost: prod.example.com\r\n' +
  'Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\nContent-Length: 0\r\n\r\n'
const EVENT = '{"type":"ADDED"}\n'
/** Longer than any test waits: what ends before it ended by itself. */
const FOR_EVER_MS = 3_600_000

const cleanups: (() => Promise<void> | void)[] = []
after(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup()
})

interface Scene {
  readonly stub: StubUpstream
  readonly gateway: InProcessGateway
  readonly session: ClientHttp2Session
}

async function setUp(
  overrides: Partial<Config> = {},
  objects?: (stub: StubUpstream) => UpstreamCluster[],
): Promise<Scene> {
  const stub = await startStub()
  const gateway = await startInProcess(objects?.(stub) ?? [clusterObject([stub], { clientCA })], overrides)
  const session = h2Connect({ port: gateway.port, serverName: 'prod.example.com', certificate: alice })
  // The connection first: what a test that failed has left open on it would hold the drain up for as long as it may last.
  cleanups.push(stub.stop, gateway.stop, () => session.destroy())
  return { stub, gateway, session }
}

async function readyz(adminPort: number): Promise<{ code: number; text: string }> {
  const response = await fetch(`http://127.0.0.1:${adminPort}/readyz?verbose`)
  return { code: response.status, text: await response.text() }
}

/** Fails when the drain ends although nothing has changed: looks many times. */
async function assertDraining(gateway: InProcessGateway): Promise<void> {
  for (let i = 0; i < 30; i++) assert.equal((await readyz(gateway.adminPort)).code, 500)
}

function answerWatches(stub: StubUpstream, text = EVENT): SeenRequest[] {
  const watches: SeenRequest[] = []
  stub.answer = (request) => {
    watches.push(request)
    request.stream.respond([':status', '200', 'content-type', 'application/json'])
    request.stream.write(text)
  }
  return watches
}

interface Watching {
  /** The whole of it, once it has ended. */
  readonly ended: Promise<Response>
}

/** A watch of which something has arrived. */
async function startWatch(session: ClientHttp2Session): Promise<Watching> {
  const stream = h2Open(session, WATCH)
  const ended = h2Response(stream)
  await once(stream, 'data')
  return { ended }
}

describe('start', () => {
  test('no port is open before configuration and first health checks are in', async () => {
    const stub = await startStub()
    cleanups.push(stub.stop)
    const held: SeenRequest[] = []
    stub.probe = (request) => held.push(request)
    const [port = 0, adminPort = 0] = await freePorts(2)
    let deliver: () => void = () => undefined
    const delivered = new Promise<void>((resolve) => {
      deliver = resolve
    })
    const starting = startInProcess(
      [clusterObject([stub], { clientCA, spec: { healthCheck: { timeoutSeconds: 60 } } })],
      { listen: [{ host: '127.0.0.1', port }], adminListen: `127.0.0.1:${adminPort}` },
      delivered,
    )
    await waitFor('readyz to say what is missing', async () => {
      const { code, text } = await readyz(adminPort)
      return code === 500 && text.includes('[-]configuration failed')
    })
    assert.equal(await connectError(port), 'ECONNREFUSED')

    deliver()
    await waitFor('the first health check', () => held.length > 0)
    const probing = await readyz(adminPort)
    assert.equal(probing.code, 500)
    assert.match(probing.text, /\[\+\]configuration ok/)
    assert.match(probing.text, /\[-\]health-checks failed/)
    assert.equal(await connectError(port), 'ECONNREFUSED')

    for (const request of held) reply(request, 200, 'ok')
    const gateway = await starting
    cleanups.push(gateway.stop)
    assert.equal((await readyz(adminPort)).code, 200)
    const session = h2Connect({ port, serverName: 'prod.example.com', certificate: alice })
    assert.equal((await h2Request(session, [])).status, 200, 'the very first request is served')
    session.destroy()
  })
})

describe('drain', () => {
  test('readyz fails, clients get GOAWAY, new connections are refused, a running request finishes', async () => {
    const { stub, gateway, session } = await setUp({ drainTimeoutMs: FOR_EVER_MS })
    const held: SeenRequest[] = []
    stub.answer = (request) => held.push(request)
    const response = h2Request(session, [':method', 'POST'], Buffer.from('{}'))
    await waitFor('the request upstream', () => held.length === 1)
    const goaway = once(session, 'goaway')
    const stopped = gateway.stop()
    const [code] = (await goaway) as [number]
    assert.equal(code, 0)
    const { code: ready, text } = await readyz(gateway.adminPort)
    assert.equal(ready, 500)
    assert.match(text, /\[-\]shutdown failed/)
    await waitFor('the port to close', async () => (await connectError(gateway.port)) === 'ECONNREFUSED')

    for (const request of held) reply(request, 201, '{"kind":"Pod"}')
    const { status, body, resetCode } = await response
    assert.deepEqual([status, body.toString(), resetCode], [201, '{"kind":"Pod"}', 0])
    await stopped
  })

  test('a request whose token is being verified is served', async () => {
    const { stub, gateway } = await setUp({ drainTimeoutMs: FOR_EVER_MS })
    const held: SeenReview[] = []
    stub.answerToken = (review) => held.push(review)
    const session = h2Connect({ port: gateway.port, serverName: 'prod.example.com' })
    const response = h2Request(session, ['authorization', 'Bearer good'])
    await waitFor('the review', () => held.length === 1)
    const goaway = once(session, 'goaway')
    const stopped = gateway.stop()
    await goaway
    await assertDraining(gateway)
    for (const review of held) replyReview(review, { authenticated: true, user: { username: 'bob' } })
    assert.equal((await response).status, 200)
    await stopped
  })

  test('an answer that a slow client has not taken yet arrives whole', async () => {
    const { stub, gateway } = await setUp({ drainTimeoutMs: FOR_EVER_MS })
    const size = 100_000 // more than the client's window, less than what the gateway holds for it
    let sent = false
    stub.answer = ({ stream }) => {
      stream.respond([':status', '200'])
      stream.end(Buffer.alloc(size, 'x'))
      stream.on('close', () => {
        sent = true
      })
    }
    const session = h2Connect({
      port: gateway.port,
      serverName: 'prod.example.com',
      certificate: alice,
      streamWindow: 10_000,
    })
    const stream = h2Open(session, [])
    stream.pause()
    await once(stream, 'response')
    await waitFor('upstream to be done', () => sent)
    const goaway = once(session, 'goaway')
    const stopped = gateway.stop()
    await goaway
    await assertDraining(gateway)
    const response = h2Response(stream)
    stream.resume()
    const { body, resetCode } = await response
    assert.deepEqual([body.length, resetCode], [size, 0])
    await stopped
  })

  test('an idle HTTP/1.1 connection does not hold it up, a busy one is served', async () => {
    const { stub, gateway } = await setUp({ drainTimeoutMs: FOR_EVER_MS })
    const head = 'GET /api/v1/pods HTTP/1.1\r\nHost: prod.example.com\r\n\r\n'
    const options = { port: gateway.port, serverName: 'prod.example.com', cert: alice, alpn: ['http/1.1'] }
    const idle = await openRaw(options)
    idle.send(head)
    await idle.until(/Stub/)
    const held: SeenRequest[] = []
    stub.answer = (request) => held.push(request)
    const busy = await openRaw(options)
    busy.send(head)
    await waitFor('the request upstream', () => held.length === 1)
    const stopped = gateway.stop()
    await idle.closed
    for (const request of held) reply(request, 200, '{"kind":"Late"}')
    await busy.until(/Late/)
    await stopped
    await busy.closed
  })

  test('watches end between two events, not all at once', async () => {
    const { stub, gateway, session } = await setUp({ drainTimeoutMs: FOR_EVER_MS })
    answerWatches(stub)
    const watches = await Promise.all(Array.from({ length: 30 }, () => startWatch(session)))
    let open = watches.length
    let openAtFirstEnd = -1
    for (const { ended } of watches) {
      void ended.then(() => {
        open--
        if (openAtFirstEnd < 0) setImmediate(() => (openAtFirstEnd = open))
      })
    }
    const stopped = gateway.stop()
    for (const { ended } of watches) {
      const { body, resetCode } = await ended
      assert.deepEqual([body.toString(), resetCode], [EVENT, 0])
    }
    await stopped
    assert.ok(openAtFirstEnd > 0, 'all watches ended in one moment')
  })

  test('a watch inside an event ends behind it', async () => {
    const { stub, gateway, session } = await setUp({ drainTimeoutMs: 5_000 })
    const requests = answerWatches(stub, '{"type":')
    const torn = await startWatch(session)
    answerWatches(stub)
    const others = await Promise.all(Array.from({ length: 20 }, () => startWatch(session)))
    const stopped = gateway.stop()
    // When all others have been asked to end, this one most likely has been, too; it must not end before its event does.
    for (const { ended } of others) await ended
    requests[0]?.stream.write('"ADDED"}\n')
    const { body, resetCode } = await torn.ended
    assert.deepEqual([body.toString(), resetCode], [EVENT, 0])
    await stopped
  })

  test('what never ends is aborted at the deadline: a request, a watch inside an event', async () => {
    const { stub, gateway, session } = await setUp({ drainTimeoutMs: 300 })
    answerWatches(stub, '{"type":')
    const watch = await startWatch(session)
    stub.answer = () => undefined
    const request = h2Request(session, [])
    await waitFor('the request upstream', () => stub.seen.length === 2)
    await gateway.stop()
    assert.notEqual((await watch.ended).resetCode, 0)
    const { status, resetCode } = await request
    assert.equal(status, 0)
    assert.notEqual(resetCode, 0)
  })

  test('upgraded connections go on beyond the watches, and are aborted on both sides', async () => {
    const upstream = await startUpgradeUpstream()
    cleanups.push(upstream.stop)
    const { gateway } = await setUp({ drainTimeoutMs: FOR_EVER_MS }, (stub) => [
      clusterObject([stub], {
        clientCA,
        spec: {
          servers: [{ endpoint: upstream.url }],
          clientConfig: { caData: base64(upstream.caPem), bearerToken: base64('gateway-token') },
        },
      }),
    ])
    const exec = await openRaw({ port: gateway.port, serverName: 'prod.example.com', cert: alice, alpn: ['http/1.1'] })
    exec.send(EXEC)
    await exec.until(/ 101 /)
    exec.send('ping')
    await exec.until(/ping/)
    const stopped = gateway.stop()
    await assertDraining(gateway)
    exec.send('pong')
    await exec.until(/pong/)
    await gateway.stop()
    await stopped
    await exec.closed
    await waitFor('the upstream side to be closed', () => upstream.open.size === 0)
  })

  test('the second stop ends everything at once', async () => {
    const { stub, gateway, session } = await setUp({ drainTimeoutMs: FOR_EVER_MS })
    answerWatches(stub, '{"type":')
    const watch = await startWatch(session)
    stub.answer = () => undefined
    const request = h2Request(session, [])
    await waitFor('the request upstream', () => stub.seen.length === 2)
    const stopped = gateway.stop()
    await gateway.stop()
    await stopped
    assert.notEqual((await request).resetCode, 0)
    assert.notEqual((await watch.ended).resetCode, 0)
  })
})

describe('shutdown delay', () => {
  test('in the delay each answer over HTTP/1.1 says that it is the last of its connection; new ones are served', async () => {
    const { stub, gateway } = await setUp({ shutdownDelayMs: FOR_EVER_MS, drainTimeoutMs: FOR_EVER_MS })
    const options = { port: gateway.port, serverName: 'prod.example.com' }
    const ask = async (client: Http1Client, fields: readonly string[] = []): Promise<readonly [number, string[]]> => {
      client.send(requestHead('GET /api/v1/pods', fields))
      const { status, values } = await client.response()
      return [status, values('connection')]
    }
    const [known, stranger, busy] = await Promise.all(
      [alice, undefined, alice].map((cert) => http1Connect({ ...options, ...(cert && { cert }) })),
    )
    assert.ok(known !== undefined && stranger !== undefined && busy !== undefined)
    cleanups.push(() => busy.destroy())
    for (const client of [known, busy]) assert.deepEqual(await ask(client), [200, ['keep-alive']])
    // A long answer that began before goes on.
    answerWatches(stub)
    busy.send(requestHead('GET /api/v1/pods?watch=1'))
    await busy.raw.until(/ADDED/)
    stub.answer = (request) => reply(request, 200, '{}')
    const stopped = gateway.stop()
    await waitFor('readyz to fail', async () => (await readyz(gateway.adminPort)).code === 500)
    assert.deepEqual(await ask(known), [200, ['close']])
    await known.raw.closed
    assert.deepEqual(await ask(stranger, ['Authorization: Bearer of-nobody']), [401, ['close']])
    const fresh = await http1Connect({ ...options, cert: alice })
    assert.deepEqual(await ask(fresh), [200, ['close']])
    assert.equal(busy.closed(), false)
    // To the drain, and to its end.
    void gateway.stop()
    await waitFor('the drain', async () => (await connectError(gateway.port)) === 'ECONNREFUSED')
    void gateway.stop()
    await busy.raw.closed
    await stopped
  })

  test('readyz fails, the rest goes on: new connections, requests, watches; no GOAWAY', async () => {
    const { stub, gateway, session } = await setUp({ shutdownDelayMs: FOR_EVER_MS, drainTimeoutMs: FOR_EVER_MS })
    let goaways = 0
    session.on('goaway', () => goaways++)
    const stopped = gateway.stop()
    const { code, text } = await readyz(gateway.adminPort)
    assert.equal(code, 500)
    assert.match(text, /\[-\]shutdown failed/)
    assert.equal((await fetch(`http://127.0.0.1:${gateway.adminPort}/livez`)).status, 200)
    // A health check or two, so that a drain that had begun would have shown.
    await assertDraining(gateway)
    const late = h2Connect({ port: gateway.port, serverName: 'prod.example.com', certificate: alice })
    cleanups.push(() => late.destroy())
    assert.equal((await h2Request(late, [])).status, 200)
    assert.equal((await h2Request(session, [])).status, 200)
    answerWatches(stub)
    const watch = await startWatch(late)
    assert.equal(goaways, 0)
    // The second call ends the delay, and what can finish does; the third aborts what cannot.
    const goaway = once(late, 'goaway')
    void gateway.stop()
    await goaway
    // When what the kernel had accepted by then is.
    await waitFor('the port to close', async () => (await connectError(gateway.port)) === 'ECONNREFUSED')
    await assertDraining(gateway)
    await gateway.stop()
    await stopped
    await watch.ended
  })

  test('the drain begins by itself when it is over, and loses nothing', async () => {
    const { stub, gateway, session } = await setUp({ shutdownDelayMs: 50, drainTimeoutMs: FOR_EVER_MS })
    const held: SeenRequest[] = []
    stub.answer = (request) => held.push(request)
    const response = h2Request(session, [])
    await waitFor('the request upstream', () => held.length === 1)
    const goaway = once(session, 'goaway')
    const stopped = gateway.stop()
    await goaway
    for (const request of held) reply(request, 200, '{"kind":"Late"}')
    const { body, resetCode } = await response
    assert.deepEqual([body.toString(), resetCode], ['{"kind":"Late"}', 0])
    await stopped
  })
})

describe('the process', () => {
  const HOLD = 'x-hold'

  /** A gateway as a process, and an upstream that keeps requests with the field `x-hold` waiting. */
  async function startProcess(drainTimeout: string, args: readonly string[] = []) {
    const stub = await startStub()
    const held: SeenRequest[] = []
    stub.answer = (request) => {
      if (request.values(HOLD).length > 0) held.push(request)
      else reply(request, 200, '{}')
    }
    const gateway = await startGateway({ clusters: [clusterObject([stub], { clientCA })], drainTimeout, args })
    const session = h2Connect({ port: gateway.port, serverName: 'prod.example.com', certificate: alice })
    cleanups.push(
      stub.stop,
      () => gateway.stop().then(() => undefined),
      () => session.destroy(),
    )
    assert.equal((await h2Request(session, [])).status, 200)
    return { gateway, session, held }
  }

  /** Lines for people: all that is not a log line. */
  function plainLines(text: string): string[] {
    return text.split('\n').filter((line) => line !== '' && !line.startsWith('{'))
  }

  test('SIGTERM: a running request finishes, exit code 0; one ready line in all its life', async () => {
    const { gateway, session, held } = await startProcess('1h')
    const response = h2Request(session, [HOLD, '1'])
    await waitFor('the request upstream', () => held.length === 1)
    const goaway = once(session, 'goaway')
    gateway.signal('SIGTERM')
    await goaway
    await waitFor('readyz to fail', async () => (await gateway.admin('/readyz')).status === 500)
    for (const request of held) reply(request, 200, '{"kind":"Late"}')
    assert.equal((await response).body.toString(), '{"kind":"Late"}')
    assert.equal(await gateway.exited, 0)
    const [ready = '', ...more] = plainLines(gateway.logs())
    assert.match(ready, new RegExp(`ready.*127\\.0\\.0\\.1:${gateway.port}.*${gateway.adminPort}`))
    assert.deepEqual(more, [])
  })

  test('the drain timeout bounds it', async () => {
    const { gateway, session, held } = await startProcess('200ms')
    const response = h2Request(session, [HOLD, '1'])
    await waitFor('the request upstream', () => held.length === 1)
    gateway.signal('SIGTERM')
    assert.equal(await gateway.exited, 0)
    assert.notEqual((await response).resetCode, 0)
  })

  test('with a shutdown delay the second SIGTERM begins the drain, the third ends it at once', async () => {
    const { gateway, session, held } = await startProcess('1h', ['--shutdown-delay=1h'])
    void h2Request(session, [HOLD, '1'])
    await waitFor('the request upstream', () => held.length === 1)
    const goaway = once(session, 'goaway')
    gateway.signal('SIGTERM')
    await waitFor('readyz to fail', async () => (await gateway.admin('/readyz')).status === 500)
    assert.equal(await connectError(gateway.port), '')
    gateway.signal('SIGTERM')
    await goaway
    gateway.signal('SIGTERM')
    assert.equal(await gateway.exited, 0)
  })

  test('the second SIGTERM ends it at once', async () => {
    const { gateway, session, held } = await startProcess('1h')
    void h2Request(session, [HOLD, '1'])
    await waitFor('the request upstream', () => held.length === 1)
    const goaway = once(session, 'goaway')
    gateway.signal('SIGTERM')
    await goaway
    gateway.signal('SIGTERM')
    assert.equal(await gateway.exited, 0)
  })

  /** Runs `serve` until it ends by itself. stdin stays open, as under a supervisor. */
  async function serve(flags: Readonly<Record<string, string>>): Promise<{ code: number; stderr: string }> {
    const dir = mkdtempSync(join(tmpdir(), 'portcullis-serve-'))
    cleanups.push(() => rmSync(dir, { recursive: true, force: true }))
    const all = {
      '--source': 'files',
      '--config-dir': dir,
      '--listen': '127.0.0.1:0',
      '--admin-listen': '127.0.0.1:0',
      '--data-dir': join(dir, 'data'),
      ...flags,
    }
    const child = spawn(
      process.execPath,
      [MAIN, 'serve', ...Object.entries(all).map(([flag, value]) => `${flag}=${value}`)],
      {
        stdio: ['pipe', 'ignore', 'pipe'],
        env: { ...process.env, NODE_TEST_CONTEXT: undefined, NODE_OPTIONS: undefined },
      },
    )
    endWithThisProcess(child)
    cleanups.push(() => void child.kill('SIGKILL'))
    let stderr = ''
    child.stderr.on('data', (chunk: Buffer) => {
      stderr += chunk.toString()
    })
    const [code] = (await once(child, 'close')) as [number]
    return { code, stderr }
  }

  async function takenPort(): Promise<number> {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    cleanups.push(() => void server.close())
    const address = server.address()
    return typeof address === 'object' && address !== null ? address.port : 0
  }

  const MISTAKES: [string, () => Promise<Record<string, string>>, RegExp][] = [
    [
      'a port in use',
      async () => ({ '--listen': `127.0.0.1:${await takenPort()}` }),
      /cannot listen on 127\.0\.0\.1:\d+.*use/,
    ],
    [
      'an admin port in use',
      async () => ({ '--admin-listen': `127.0.0.1:${await takenPort()}` }),
      /127\.0\.0\.1:\d+.*use/,
    ],
    [
      'a missing certificate',
      async () => ({ '--tls-cert-file': '/nowhere/tls.crt', '--tls-private-key-file': '/nowhere/tls.key' }),
      /--tls-cert-file \/nowhere\/tls\.crt/,
    ],
    ['a certificate without key', async () => ({ '--tls-cert-file': '/nowhere/tls.crt' }), /--tls-private-key-file/],
    [
      'a certificate that is none',
      async () => ({ '--tls-cert-file': import.meta.filename, '--tls-private-key-file': import.meta.filename }),
      /lifecycle\.test\.ts/,
    ],
    ['a missing configuration directory', async () => ({ '--config-dir': '/nowhere/config' }), /\/nowhere\/config/],
    ['a data directory that cannot be made', async () => ({ '--data-dir': '/dev/null/data' }), /\/dev\/null\/data/],
    ['a value that is none', async () => ({ '--drain-timeout': 'soon' }), /drain-timeout.*soon/],
  ]
  for (const [what, flags, expected] of MISTAKES) {
    test(`${what}: one line that says so, exit code 1`, async () => {
      const { code, stderr } = await serve(await flags())
      const lines = plainLines(stderr)
      assert.equal(lines.length, 1, stderr)
      assert.match(lines[0] ?? '', /^error: /)
      assert.match(lines[0] ?? '', expected)
      assert.doesNotMatch(stderr, / at .*:\d+:\d+/, 'no stack trace')
      assert.equal(code, 1)
    })
  }
})
