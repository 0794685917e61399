// Credentials and handshakes of an address that fail: free at first, then nothing is done for the address without a valid credential, and
// a client that has one is served.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { ClientHttp2Session } from 'node:http2'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after as afterAll, afterEach, before as beforeAll, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { UNKNOWN_TOKENS } from '../../src/gateway/state/user-budgets.ts'
import { createCA } from '../../src/pki/io/pki.ts'
import type { Config } from '../../src/process/config/config.ts'
import { h2Connect, h2Request, type Response, valuesOf } from '../harness/clients/h2-client.ts'
import { endHandshake } from '../harness/clients/tls13-client.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { clientPair, clusterObject } from '../harness/objects/objects.ts'
import { reply, type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const HOST = 'prod.example.com'
const FREE = 5
const [GUESSER, OTHER] = ['127.0.0.7', '127.0.0.8']
const clientCA = createCA({ commonName: 'clients' })
const alice = clientPair(clientCA, 'alice')
const stranger = clientPair(createCA({ commonName: 'clients' }), 'alice')

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

interface World {
  readonly gateway: InProcessGateway
  readonly stub: StubUpstream
  connect(localAddress: string, certificate?: typeof alice): ClientHttp2Session
}

async function start(overrides: Partial<Config> = {}): Promise<World> {
  const stub = await startStub()
  cleanups.push(() => stub.stop())
  stub.answer = (request) => reply(request, 200, '{}')
  stub.tokens.set('good', { username: 'bob' })
  stub.tokens.set('fresh', { username: 'carol' })
  const gateway = await startInProcess([clusterObject([stub], { clientCA })], {
    maxAuthenticationFailures: FREE,
    // Long enough for a busy machine: each block is twice as long as the one before.
    authenticationFailureBlockMs: 60_000,
    ...overrides,
  })
  cleanups.push(() => gateway.stop())
  return {
    gateway,
    stub,
    connect(localAddress, certificate) {
      const session = h2Connect({
        port: gateway.port,
        serverName: HOST,
        localAddress,
        ...(certificate && { certificate }),
      })
      cleanups.push(() => session.destroy())
      return session
    },
  }
}

let guesses = 0
function guess(session: ClientHttp2Session, token = `guess-${guesses++}`): Promise<Response> {
  return h2Request(session, [':path', '/api/v1/pods', 'authorization', `Bearer ${token}`])
}

/** Until it is blocked for a long time. */
async function guessUntilBlocked(session: ClientHttp2Session): Promise<Response> {
  return await waitFor('a long block', async () => {
    const response = await guess(session)
    const [, seconds = 0] = /blocked for another (\d+) s/.exec(response.body.toString()) ?? []
    return response.status === 429 && Number(seconds) > 12 && response
  })
}

function retryAfter({ head }: Response): number {
  return Number(valuesOf(head, 'retry-after')[0])
}

function anonymous(session: ClientHttp2Session): Promise<Response> {
  return h2Request(session, [':path', '/api/v1/pods'])
}

describe('bad tokens', () => {
  const BLOCKED = ['127.0.0.7', '127.0.0.9', '127.0.0.10'] as const
  let world: World
  let before: ClientHttp2Session
  let refused: readonly Response[]
  let shared: (() => unknown)[] = []

  // Blocks that are long take as long as those before together: all at once, and with users who were there before.
  beforeAll(async () => {
    world = await start()
    assert.equal((await guess(world.connect(OTHER), 'good')).status, 200)
    before = world.connect(BLOCKED[1])
    assert.equal((await guess(before, 'good')).status, 200)
    refused = await Promise.all(
      BLOCKED.map(async (address) => {
        const session = world.connect(address)
        for (let i = 0; i < FREE; i++) assert.equal((await guess(session)).status, 401)
        return await guessUntilBlocked(session)
      }),
    )
    shared = cleanups.splice(0)
  })
  afterAll(async () => {
    for (const cleanup of shared.reverse()) await cleanup()
  })

  test('are 401 while they are free; then 429, which says whose they are and when to come back', async () => {
    const status = JSON.parse(refused[0]?.body.toString() ?? '')
    assert.equal(status.reason, 'TooManyRequests')
    assert.match(status.message, /too many failed logins or TLS handshakes from address 127\.0\.0\.7 /)
    assert.match(status.message, /--max-authentication-failures/)
    // However long the block is: client-go sleeps that long.
    for (const answer of refused) assert.ok(retryAfter(answer) >= 1 && retryAfter(answer) <= 10)
    const metrics = await world.gateway.metrics()
    assert.match(metrics, /portcullis_limited_total\{limit="authentication-failures",known="false"\} [1-9]/)
    assert.match(metrics, /portcullis_refusals_total\{[^}]*reason="too-many-failures"[^}]*\} [1-9]/)
    assert.ok(world.gateway.logged.some(({ message }) => message.startsWith('an address is blocked')))
  })

  test('hardly anything is asked about for a blocked address, and anonymous requests of it are refused; others are served', async () => {
    const session = world.connect(BLOCKED[0])
    const asked = world.stub.reviews.length
    const forwarded = world.stub.seen.length
    const answers = await Promise.all(Array.from({ length: 50 }, () => guess(session)))
    const looked = answers.filter(({ status }) => status === 401).length
    assert.ok(looked <= UNKNOWN_TOKENS.burst, `${looked} of 50 at once`)
    assert.equal(answers.filter(({ status }) => status === 429).length, answers.length - looked)
    assert.equal((await anonymous(session)).status, 429)
    assert.deepEqual([world.stub.reviews.length, world.stub.seen.length], [asked + looked, forwarded])
    const other = world.connect(OTHER)
    assert.equal((await anonymous(other)).status, 200)
    assert.equal((await guess(other)).status, 401)
    assert.equal((await guess(other, 'good')).status, 200)
  })

  test('users behind the same address are served: a certificate, and a token that was accepted before, on any connection', async () => {
    assert.equal((await guess(before, 'good')).status, 200)
    assert.equal((await guess(world.connect(BLOCKED[1]), 'good')).status, 200)
    assert.equal((await anonymous(world.connect(BLOCKED[1], alice))).status, 200)
  })

  test('so are clients that start behind it, with new tokens, while another client goes on with an expired one', async () => {
    const session = world.connect(BLOCKED[2])
    await guessUntilBlocked(session)
    const fresh = Array.from({ length: 30 }, (_, i) => `controller-${i}`)
    for (const token of fresh) world.stub.tokens.set(token, { username: token })
    const controllers = world.connect(BLOCKED[2])
    const isBlocked = async (): Promise<boolean> => (await anonymous(session)).status === 429
    let whileBlocked = 0
    for (const token of fresh) {
      await waitFor('it to be served', async () => {
        await guess(session, 'expired')
        const before = await isBlocked()
        const answer = await guess(controllers, token)
        if (answer.status === 429) assert.ok(retryAfter(answer) <= 10)
        if (answer.status === 200 && before && (await isBlocked())) whileBlocked++
        return answer.status === 200
      })
    }
    assert.ok(whileBlocked > 0)
  })

  test('a client that goes on with one that has expired does not block its address', async () => {
    const world = await start()
    const session = world.connect(GUESSER)
    for (let i = 0; i < 10 * FREE; i++) assert.equal((await guess(session, 'expired')).status, 401)
    assert.equal((await anonymous(session)).status, 200)
  })

  test('many at once do not pass the count', async () => {
    const world = await start()
    const sessions = Array.from({ length: 10 }, () => world.connect(GUESSER))
    await Promise.all(sessions.flatMap((session) => Array.from({ length: 10 }, () => guess(session))))
    const { status } = await anonymous(world.connect(GUESSER))
    // The first block is a second long; then each guess is a reason for the next one.
    if (status !== 429) assert.equal((await guess(world.connect(GUESSER))).status, 401)
    await waitFor('a block', async () => (await guess(world.connect(GUESSER))).status === 429)
  })

  test('with several threads, each knows', async () => {
    const world = await start({ threads: 2 })
    await waitFor('all threads refuse', async () => {
      await guess(world.connect(GUESSER))
      const answers = await Promise.all(Array.from({ length: 8 }, () => anonymous(world.connect(GUESSER))))
      return answers.every(({ status }) => status === 429)
    })
  })
})

test('certificates that are not trusted count, and one that is does not', async () => {
  const world = await start()
  for (let i = 0; i < FREE; i++) assert.equal((await anonymous(world.connect(GUESSER, stranger))).status, 401)
  await waitFor('429', async () => {
    const { status } = await anonymous(world.connect(GUESSER, stranger))
    return status === 429
  })
  assert.equal((await anonymous(world.connect(GUESSER, alice))).status, 200)
})

/** unknown_ca and others (RFC 8446 section 6.2). */
const ALERTS = [48, 42, 43, 44, 45, 46, 49, 40, 51]

test('a client that refuses the gateway does not lock out others behind its address', async () => {
  const world = await start()
  const { port } = world.gateway
  for (let i = 0; i < 3; i++) await Promise.all(ALERTS.map((alert) => endHandshake(port, HOST, GUESSER, alert)))
  const [curl] = await Promise.allSettled([
    promisify(execFile)('curl', [
      '-sS',
      '--interface',
      GUESSER,
      '--cacert',
      writeCA(),
      `https://localhost:${port}/version`,
    ]),
  ])
  assert.match(String(curl.status === 'rejected' && curl.reason), /certificate/)
  assert.equal((await guess(world.connect(GUESSER), 'fresh')).status, 200)
  assert.equal((await anonymous(world.connect(GUESSER))).status, 200)
  const errors = /apiserver_tls_handshake_errors_total (\d+)$/m.exec(await world.gateway.metrics())
  assert.ok(Number(errors?.[1]) >= 3 * ALERTS.length, 'they are counted all the same')
})

test('one that does both is blocked as fast: what it ends by itself hides nothing', async () => {
  const world = await start()
  const session = world.connect(GUESSER)
  for (let i = 0; i < FREE; i++) {
    for (const alert of ALERTS) await endHandshake(world.gateway.port, HOST, GUESSER, alert)
    assert.equal((await guess(session)).status, 401)
  }
  await waitFor('429', async () => {
    await endHandshake(world.gateway.port, HOST, GUESSER, ALERTS[0] ?? 0)
    await guess(session)
    return (await anonymous(session)).status === 429
  })
})

function writeCA(): string {
  const dir = mkdtempSync(join(tmpdir(), 'portcullis-ca-'))
  cleanups.push(() => rmSync(dir, { recursive: true, force: true }))
  writeFileSync(join(dir, 'ca.crt'), clientCA.certPem)
  return join(dir, 'ca.crt')
}

test('what is not TLS counts; a look whether the port is open does not', async () => {
  const world = await start()
  const open = async (bytes: string): Promise<void> => {
    const socket = connect({ port: world.gateway.port, host: '127.0.0.1', localAddress: GUESSER })
    socket.on('error', () => undefined)
    socket.resume()
    await once(socket, 'connect')
    if (bytes === '') socket.end()
    else socket.write(bytes)
    await once(socket, 'close')
  }
  for (let i = 0; i < 5 * FREE; i++) await open('')
  assert.equal((await anonymous(world.connect(GUESSER))).status, 200)
  await waitFor('429', async () => {
    await open('garbage')
    return (await anonymous(world.connect(GUESSER))).status === 429
  })
})
