// TLS that carries nothing: KeyUpdate messages without end close their connection, and count against the address; small records that carry
// something do not.

import assert from 'node:assert/strict'
import { afterEach, describe, test } from 'node:test'
import { tickAll } from '../../src/kit/io/world/coarse-ticker.ts'
import { createCA } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Request } from '../harness/clients/h2-client.ts'
import { floodWithKeyUpdates, openTls13, type Tls13Client } from '../harness/clients/tls13-client.ts'
import { headerBlock, headersFrames, PREFACE, settings } from '../harness/frames/h2-frames.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { clusterObject } from '../harness/objects/objects.ts'
import { reply, type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const HOST = 'prod.example.com'
const ADDRESS = '127.0.0.7'
/** With its records of one byte it is larger than what may be empty. */
const LONG = 'x'.repeat(6_000)
const HEAD = headerBlock([':method', 'GET', ':scheme', 'https', ':authority', HOST, ':path', '/api', 'x-long', LONG])
const REQUEST = Buffer.concat([Buffer.from(PREFACE), settings(), headersFrames(1, HEAD)])

let stub: StubUpstream
const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

async function start(): Promise<InProcessGateway> {
  stub = await startStub()
  cleanups.push(() => stub.stop())
  stub.answer = (request) => reply(request, 200, '{}')
  const gateway = await startInProcess([clusterObject([stub], { clientCA: createCA({ commonName: 'clients' }) })], {
    maxAuthenticationFailures: 1,
    authenticationFailureBlockMs: 60_000,
  })
  cleanups.push(() => gateway.stop())
  return gateway
}

async function open({ port }: InProcessGateway, protocol: 'h2' | 'http/1.1' = 'h2'): Promise<Tls13Client> {
  const client = await openTls13(port, HOST, ADDRESS, protocol)
  cleanups.push(() => client.socket.destroy())
  return client
}

function isServed(path = '/api'): Promise<unknown> {
  return waitFor('the request to be served', () => stub.seen.some((request) => request.path === path))
}

/** When every connection has been looked at. */
async function assertNoneClosed(gateway: InProcessGateway, client: Tls13Client): Promise<void> {
  tickAll(performance.now())
  assert.match(await gateway.metrics(), /portcullis_http2_abuse_total\{side="client",kind="empty-records"\} 0/)
  assert.equal(client.closed(), false)
}

describe('KeyUpdate messages', () => {
  test('without end close their connection, and count as failures of the address', async () => {
    const gateway = await start()
    await waitFor('429 for who has sent them', async () => {
      await floodWithKeyUpdates(await open(gateway))
      const session = h2Connect({ port: gateway.port, serverName: HOST, localAddress: ADDRESS })
      cleanups.push(() => session.destroy())
      return (await h2Request(session, [])).status === 429
    })
    assert.match(await gateway.metrics(), /portcullis_http2_abuse_total\{side="client",kind="empty-records"\} [1-9]/)
    const told = gateway.logged.find(({ fields }) => fields['kind'] === 'emptyRecords')
    assert.equal(told?.fields['address'], ADDRESS)
  })

  test('now and then are nothing special', async () => {
    const gateway = await start()
    const client = await open(gateway)
    for (let i = 0; i < 20; i++) client.updateKeys(1)
    client.send(REQUEST)
    await isServed()
    await assertNoneClosed(gateway, client)
  })
})

test('a request in records of one byte is served', async () => {
  const gateway = await start()
  const client = await open(gateway)
  client.send(REQUEST, 1)
  await isServed()
  await assertNoneClosed(gateway, client)
})

test('requests over HTTP/2 and HTTP/1.1 weigh as much as they are', async () => {
  const gateway = await start()
  // With the whole body read: an answer before its end would leave the rest unsent.
  stub.answer = (request) => request.stream.resume().on('end', () => reply(request, 200, '{}'))
  const session = h2Connect({ port: gateway.port, serverName: HOST })
  cleanups.push(() => session.destroy())
  assert.equal((await h2Request(session, [':method', 'POST', ':path', '/api'], Buffer.alloc(1024 * 1024))).status, 200)
  const client = await open(gateway, 'http/1.1')
  for (let i = 0; i < 20; i++) {
    client.send(Buffer.from(`GET /http1/${i} HTTP/1.1\r\nHost: ${HOST}\r\nX-Long: ${LONG}\r\n\r\n`))
    await isServed(`/http1/${i}`)
  }
  await assertNoneClosed(gateway, client)
  assert.equal((await h2Request(session, [':path', '/api'])).status, 200)
})
