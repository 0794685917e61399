// How many connections there may be: strangers and users have places of their own, and the source with most of them gives one up.

import assert from 'node:assert/strict'
import type { ClientHttp2Session } from 'node:http2'
import { afterEach, describe, test } from 'node:test'
import { createCA } from '../../src/pki/io/pki.ts'
import type { Config } from '../../src/process/config/config.ts'
import { h2Connect, h2Request } from '../harness/clients/h2-client.ts'
import { openSilent, type SilentConnections } from '../harness/clients/silent-connections.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { clientPair, clusterObject } from '../harness/objects/objects.ts'
import { reply, startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const HOST = 'prod.example.com'
const MAX = 20
const MAX_STRANGERS = 8
const clientCA = createCA({ commonName: 'clients' })
const [alice, bob] = [clientPair(clientCA, 'alice'), clientPair(clientCA, 'bob')]

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

async function start(overrides: Partial<Config> = {}): Promise<InProcessGateway> {
  const stub = await startStub()
  cleanups.push(() => stub.stop())
  stub.answer = (request) => reply(request, 200, '{}')
  const gateway = await startInProcess([clusterObject([stub], { clientCA })], {
    maxConnections: MAX,
    maxUnauthenticatedConnections: MAX_STRANGERS,
    ...overrides,
  })
  cleanups.push(() => gateway.stop())
  return gateway
}

function silentOnes(port: number, count: number, localAddress = '127.0.0.1'): SilentConnections {
  const connections = openSilent(port, count, localAddress)
  cleanups.push(() => connections.destroy())
  return connections
}

function session(port: number, certificate: typeof alice, localAddress = '127.0.0.1'): ClientHttp2Session {
  const client = h2Connect({ port, serverName: HOST, certificate, localAddress })
  cleanups.push(() => client.destroy())
  return client
}

/** As many connections of a user as there may be, one after the other: each is a stranger's at first. */
async function connectUsers(port: number): Promise<ClientHttp2Session[]> {
  const users: ClientHttp2Session[] = []
  while (users.length < MAX - MAX_STRANGERS) {
    const user = session(port, alice)
    assert.equal((await h2Request(user, [])).status, 200)
    users.push(user)
  }
  return users
}

async function limited(gateway: InProcessGateway, limit: string): Promise<number> {
  const line = new RegExp(`^portcullis_limited_total\\{limit="${limit}",known="(?:true|false)"\\} (\\d+)$`, 'm')
  return Number(line.exec(await gateway.metrics())?.[1] ?? 0)
}

describe('connections without an authenticated request', () => {
  test('too many: those of the address with most go, and users get in from any address, that one too', async () => {
    const gateway = await start()
    const other = silentOnes(gateway.port, 2, '127.0.0.3')
    await waitFor('two of another address', () => other.open() === 2)
    const silent = silentOnes(gateway.port, 40)
    await waitFor(
      'as many as may be',
      async () => (await limited(gateway, 'unauthenticated-connections')) >= 40 + 2 - MAX_STRANGERS,
    )
    await waitFor('the others to be closed', () => silent.open() === MAX_STRANGERS - 2)
    assert.equal(other.open(), 2)
    for (const localAddress of ['127.0.0.1', '127.0.0.2']) {
      assert.equal((await h2Request(session(gateway.port, alice, localAddress), [])).status, 200)
    }
    assert.equal(other.open(), 2)
    const told = gateway.logged.find(({ message }) => message.includes('--max-unauthenticated-connections'))
    assert.deepEqual(told?.fields, { source: 'address 127.0.0.1' })
  })

  test('take no place of users', async () => {
    const gateway = await start()
    const users = await connectUsers(gateway.port)
    const silent = silentOnes(gateway.port, 40)
    await waitFor('as many as may be', () => silent.open() === MAX_STRANGERS)
    for (const user of users) assert.equal((await h2Request(user, [])).status, 200)
    assert.equal(await limited(gateway, 'connections'), 0)
  })
})

describe('connections of users', () => {
  test('too many: the user with most of them is asked to leave the oldest, and what runs goes on', async () => {
    const gateway = await start()
    const [first, ...others] = await connectUsers(gateway.port)
    assert.ok(first !== undefined)
    const goaways: ClientHttp2Session[] = []
    for (const user of [first, ...others]) user.on('goaway', () => goaways.push(user))
    const newcomer = session(gateway.port, bob)
    assert.equal((await h2Request(newcomer, [])).status, 200)
    await waitFor('GOAWAY', () => goaways.length > 0)
    assert.ok(goaways.every((user) => user === first))
    assert.equal(await limited(gateway, 'connections'), 1)
    for (const user of [newcomer, ...others]) assert.equal((await h2Request(user, [])).status, 200)
  })

  test('more users than places: those who are here go on, and the newcomer is answered and asked to leave', async () => {
    const gateway = await start()
    const goaways = new Set<string>()
    const connect = async (name: string): Promise<ClientHttp2Session> => {
      const user = session(gateway.port, clientPair(clientCA, name))
      user.on('goaway', () => goaways.add(name))
      assert.equal((await h2Request(user, [])).status, 200)
      return user
    }
    const users: ClientHttp2Session[] = []
    for (let i = 0; i < MAX - MAX_STRANGERS; i++) users.push(await connect(`user-${i}`))
    for (const name of ['late', 'later']) {
      await connect(name)
      await waitFor('GOAWAY', () => goaways.has(name))
    }
    for (const user of users) assert.equal((await h2Request(user, [])).status, 200)
    assert.deepEqual([...goaways], ['late', 'later'])
  })
})

test('--first-request-timeout: a connection without a request is drained', async () => {
  const gateway = await start({ firstRequestTimeoutMs: 1_000 })
  const idle = session(gateway.port, alice)
  let ended = false
  idle.on('close', () => {
    ended = true
  })
  await waitFor('its end', () => ended)
})
