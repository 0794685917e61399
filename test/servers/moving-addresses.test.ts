// A server with `resolve`: its addresses are endpoints, followed while requests and watches run. The name is `localhost`, because
// that is what the certificate of the stubs has: their addresses other than 127.0.0.1 are not in it.

import assert from 'node:assert/strict'
import type { ClientHttp2Session } from 'node:http2'
import { afterEach, beforeEach, test } from 'node:test'
import type { UpstreamClusterSpec } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { lookUp } from '../../src/gateway/io/dns/look-up.ts'
import { createCA } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Open, h2Request, type Response } from '../harness/clients/h2-client.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { ALLOW_ALL, clientPair, clusterObject } from '../harness/objects/objects.ts'
import { type DnsServer, startDnsServer } from '../harness/servers/dns-server.ts'
import { type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const clientCA = createCA({ commonName: 'clients of prod' })
const alice = clientPair(clientCA, 'alice')
const A = '127.0.0.2'
const B = '127.0.0.3'
const C = '127.0.0.4'
/** A name is looked up every five seconds at most, and each look here reads all metrics. */
const SELDOM = { intervalMs: 200 }

let dns: DnsServer
let stubs: Map<string, StubUpstream>
let gateway: InProcessGateway
let session: ClientHttp2Session
let cleanups: (() => Promise<void> | void)[] = []

beforeEach(async () => {
  dns = await startDnsServer()
  const first = await startStub(0, {}, A)
  stubs = new Map([[A, first]])
  for (const host of [B, C]) stubs.set(host, await startStub(first.port, {}, host))
  cleanups = [() => dns.stop(), ...[...stubs.values()].map((stub) => () => stub.stop())]
})
afterEach(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup()
})

function stubAt(host: string): StubUpstream {
  return stubs.get(host) ?? assert.fail(host)
}

function urlOf(host: string): string {
  return `https://${host}:${stubAt(A).port}`
}

async function start(spec: Partial<UpstreamClusterSpec> = {}, threads?: number): Promise<void> {
  const servers = [{ endpoint: urlOf(A).replace(A, 'localhost'), resolve: true }]
  const object = clusterObject([stubAt(A)], { clientCA, spec: { servers, ...spec } })
  gateway = await startInProcess([object], threads === undefined ? {} : { threads }, Promise.resolve(), {
    lookUp: (name) =>
      lookUp(name, {
        servers: [dns.address],
        hostsFile: '/dev/null',
        hasIPv6: false,
        system: () => Promise.resolve([]),
      }),
  })
  session = h2Connect({ port: gateway.port, serverName: 'prod.example.com', certificate: alice })
  cleanups.push(gateway.stop, () => session.destroy())
}

function get(path = '/api/v1/pods'): Promise<Response> {
  return h2Request(session, [':path', path])
}

/** The health of the addresses in force. */
async function health(): Promise<Record<string, number>> {
  const found = [
    ...(await gateway.metrics()).matchAll(/^portcullis_endpoint_healthy\{.*endpoint="https:\/\/(.*):\d+"\} (\d)$/gm),
  ]
  return Object.fromEntries(found.map(([, host, value]) => [host, Number(value)]))
}

function inForce(...hosts: readonly string[]): Promise<true> {
  const wanted = Object.fromEntries(hosts.map((host) => [host, 1]))
  return waitFor(
    `endpoints ${hosts}`,
    async () => {
      const now = await health()
      return JSON.stringify(Object.entries(now).sort()) === JSON.stringify(Object.entries(wanted).sort())
    },
    SELDOM,
  )
}

test('each address is an endpoint under the name of the server; 0 requests are lost while addresses leave and come', async () => {
  dns.answer = { addresses: [A, B], ttl: 1 }
  await start({}, 2)
  await inForce(A, B)
  for (const stub of stubs.values()) stub.seen.length = 0
  await Promise.all(Array.from({ length: 40 }, () => get()))
  assert.deepEqual(
    [A, B, C].map((host) => stubAt(host).seen.length),
    [20, 20, 0],
  )
  // The server stays who it is.
  const authority = stubAt(B).seen[0]?.values(':authority')
  assert.deepEqual(authority, [`localhost:${stubAt(A).port}`])

  const failed: string[] = []
  let running = true
  let sent = 0
  const load = (async () => {
    while (running) {
      const answers = await Promise.all(Array.from({ length: 10 }, () => get()))
      for (const { status, body } of answers) if (status !== 200) failed.push(`${status} ${body}`)
      sent += answers.length
    }
  })()
  dns.answer = { addresses: [B, C], ttl: 1 }
  await inForce(B, C)
  stubAt(A).seen.length = 0
  dns.answer = { addresses: [A], ttl: 1 }
  await inForce(A)
  // It serves again.
  await waitFor('a request at the address that came back', () => stubAt(A).seen.length > 0)
  const before = sent
  await waitFor('more requests', () => sent > before + 50)
  running = false
  await load
  assert.deepEqual(failed, [])
})

test('watches on an address that leaves end in order, a request that runs on it gets its answer', async () => {
  dns.answer = { addresses: [A], ttl: 1 }
  await start()
  await inForce(A)
  let finish = (): void => undefined
  stubAt(A).answer = (request) => {
    request.stream.respond([':status', '200', 'content-type', 'application/json'])
    if (request.path.includes('watch')) request.stream.write('{"type":"ADDED"}\n')
    else finish = () => void request.stream.end('{}')
  }
  const watch = h2Open(session, [':path', '/api/v1/pods?watch=true'])
  const slow = get('/api/v1/pods')
  let ended = false
  watch.resume().once('end', () => {
    ended = true
  })
  await waitFor('both at the first address', () => stubAt(A).seen.length === 2)
  dns.answer = { addresses: [B], ttl: 1 }
  await inForce(B)
  await waitFor('the end of the watch', () => ended)
  assert.equal(watch.rstCode, 0)
  finish()
  assert.equal((await slow).status, 200)
  assert.equal((await get()).status, 200)
  assert.equal(stubAt(B).seen.length, 1)
})

test('an empty answer and an error change nothing, and are counted', async () => {
  dns.answer = { addresses: [A, B], ttl: 1 }
  await start()
  await inForce(A, B)
  for (const [answer, result] of [
    [{}, 'empty'],
    [{ code: 'SERVFAIL' }, 'error'],
  ] as const) {
    dns.answer = answer
    const counted = new RegExp(`^portcullis_server_lookups_total\\{.*result="${result}"\\} [1-9]`, 'm')
    await waitFor(result, async () => counted.test(await gateway.metrics()), SELDOM)
    assert.equal((await get()).status, 200)
  }
  assert.deepEqual(await health(), { [A]: 1, [B]: 1 })
  assert.match(await gateway.metrics(), /portcullis_server_addresses\{cluster="prod.example.com",server=".*"\} 2/)
  const warned = gateway.logged.filter(({ message }) => message.startsWith('a server cannot be looked up'))
  assert.equal(warned.length, 1)
})

test('a new address gets nothing before it is healthy, and the old ones serve until one is', async () => {
  dns.answer = { addresses: [A], ttl: 1 }
  await start()
  await inForce(A)
  stubAt(B).healthy = false
  dns.answer = { addresses: [B], ttl: 1 }
  await waitFor('the new address', async () => (await health())[B] === 0, SELDOM)
  for (let i = 0; i < 20; i++) assert.equal((await get()).status, 200)
  assert.equal(stubAt(B).seen.length, 0)
  stubAt(B).healthy = true
  await inForce(B)
})

test('a policy that names the server means all its addresses; one that names another, none', async () => {
  dns.answer = { addresses: [A, B], ttl: 1 }
  const named = urlOf(A).replace(A, 'localhost')
  const other = { ...ALLOW_ALL, upstreamSubset: [urlOf(C)] }
  const pods = { rules: [{ verbs: ['*'], apiGroups: [''], resources: ['pods'] }], upstreamSubset: [named] }
  const servers = [{ endpoint: named, resolve: true }, { endpoint: urlOf(C) }]
  await start({ servers, clientConfig: { insecure: true, bearerToken: 'dA==' }, dispatchPolicies: [pods, other] })
  await inForce(A, B, C)
  for (const stub of stubs.values()) stub.seen.length = 0
  await Promise.all(Array.from({ length: 20 }, () => get('/api/v1/pods')))
  await Promise.all(Array.from({ length: 6 }, () => get('/version')))
  assert.deepEqual(
    [A, B, C].map((host) => stubAt(host).seen.length),
    [10, 10, 6],
  )
})

test('without `resolve` a name is one endpoint, as before', async () => {
  const endpoint = `https://localhost:${stubAt(A).port}`
  stubs.set('127.0.0.1', await startStub(stubAt(A).port))
  cleanups.push(() => stubAt('127.0.0.1').stop())
  await start({ servers: [{ endpoint }] })
  await inForce('localhost')
  assert.equal((await get()).status, 200)
  assert.equal(dns.questions, 0)
})
