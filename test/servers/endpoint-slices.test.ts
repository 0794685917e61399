// A cluster with followEndpointSlice: the stub at 127.0.0.1 is the server as written, and says where the others are. Those are at an
// address of this machine other than loopback addresses, which are refused.

import assert from 'node:assert/strict'
import type { ClientHttp2Session, Http2ServerRequest, Http2ServerResponse, IncomingHttpHeaders } from 'node:http2'
import { networkInterfaces } from 'node:os'
import { afterEach, beforeEach, test } from 'node:test'
import type { UpstreamClusterSpec } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { createCA } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Open, h2Request, type Response } from '../harness/clients/h2-client.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { base64, clientPair, clusterObject } from '../harness/objects/objects.ts'
import { type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const clientCA = createCA({ commonName: 'clients of prod' })
const alice = clientPair(clientCA, 'alice')
const HOST = Object.values(networkInterfaces())
  .flatMap((all) => all ?? [])
  .find(({ family, internal, address }) => family === 'IPv4' && !internal && !address.startsWith('169.254.'))?.address
const skip = HOST === undefined ? 'this machine has no IPv4 address but loopback' : false
const PATH = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices'

let seed: StubUpstream
let a: StubUpstream
let b: StubUpstream
let gateway: InProcessGateway
let session: ClientHttp2Session
let cleanups: (() => Promise<void> | void)[] = []
/** What each of them answers, as all read one etcd. */
let slices: Slices

class Slices {
  items: object[] = []
  version = 1
  /** What lists get; 200 = the slices. */
  status = 200
  readonly asked: { readonly path: string; readonly headers: IncomingHttpHeaders }[] = []
  readonly #watches = new Set<Http2ServerResponse>()

  answer({ url, headers }: Http2ServerRequest, response: Http2ServerResponse): void {
    const { pathname, searchParams } = new URL(url, 'https://stub')
    this.asked.push({ path: url, headers })
    const status = pathname === PATH ? this.status : 404
    response.writeHead(status, { 'content-type': 'application/json' })
    if (status !== 200) {
      response.end('{"kind":"Status","apiVersion":"v1","status":"Failure"}')
    } else if (searchParams.get('watch') === null) {
      const metadata = { resourceVersion: String(this.version) }
      response.end(JSON.stringify({ kind: 'EndpointSliceList', metadata, items: this.items }))
    } else {
      response.write('\n')
      this.#watches.add(response)
      response.on('close', () => this.#watches.delete(response))
      // It was written between the list and the watch.
      if (searchParams.get('resourceVersion') !== String(this.version)) sendExpired(response)
    }
  }

  /** A slice for each of these, or as given. */
  write(...at: readonly (StubUpstream | object)[]): void {
    this.version++
    this.items = at.map((one, i) => {
      const metadata = { name: `kubernetes-${i}`, resourceVersion: String(this.version) }
      if (!('port' in one)) return { metadata, ...one }
      const ports = [{ name: 'https', port: one.port, protocol: 'TCP' }]
      return { metadata, addressType: 'IPv4', ports, endpoints: [{ addresses: [HOST], conditions: { ready: true } }] }
    })
    for (const response of this.#watches) sendExpired(response)
  }
}

/** The client lists again. */
function sendExpired(response: Http2ServerResponse): void {
  const object = { kind: 'Status', apiVersion: 'v1', status: 'Failure', code: 410, reason: 'Expired' }
  response.end(`${JSON.stringify({ type: 'ERROR', object })}\n`)
}

beforeEach(async () => {
  if (HOST === undefined) return
  slices = new Slices()
  const started = (host: string): Promise<StubUpstream> => startStub(0, {}, host, (...of) => slices.answer(...of))
  seed = await started('127.0.0.1')
  a = await started(HOST)
  b = await started(HOST)
  cleanups = [seed, a, b].map((stub) => () => stub.stop())
})
afterEach(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup()
  cleanups = []
})

async function start(spec: Partial<UpstreamClusterSpec> = {}, threads?: number): Promise<void> {
  const clientConfig = { bearerToken: base64('gateway-token'), caData: base64(seed.caPem), serverName: 'localhost' }
  const object = clusterObject([seed], { clientCA, spec: { clientConfig, followEndpointSlice: true, ...spec } })
  gateway = await startInProcess([object], threads === undefined ? {} : { threads })
  session = h2Connect({ port: gateway.port, serverName: 'prod.example.com', certificate: alice })
  cleanups.push(gateway.stop, () => session.destroy())
}

function get(): Promise<Response> {
  return h2Request(session, [':path', '/api/v1/pods'])
}

/** Requests of clients, by stub. */
function served(): number[] {
  return [seed, a, b].map(({ seen }) => seen.length)
}

function forget(): void {
  for (const stub of [seed, a, b]) stub.seen.length = 0
}

/** Until only these serve. */
async function serves(...stubs: readonly StubUpstream[]): Promise<void> {
  const wanted = [seed, a, b].map((stub) => (stubs.includes(stub) ? 12 / stubs.length : 0))
  await waitFor('those that serve', async () => {
    forget()
    const answers = await Promise.all(Array.from({ length: 12 }, get))
    for (const { status, body } of answers) assert.equal(status, 200, String(body))
    return served().join() === wanted.join()
  })
}

test('addresses in slices serve in the place of the server, under its name; 0 requests are lost as they come and leave', {
  skip,
}, async () => {
  slices.write(a)
  await start({}, 2)
  await serves(a)
  assert.deepEqual(a.seen[0]?.values(':authority'), [`127.0.0.1:${seed.port}`])
  assert.match(slices.asked[0]?.path ?? '', /[?&]labelSelector=kubernetes\.io%2Fservice-name%3Dkubernetes(&|$)/)
  assert.equal(slices.asked[0]?.headers.authorization, 'Bearer gateway-token')
  // No other user is impersonated on the way.
  assert.deepEqual(slices.asked[0]?.headers['impersonate-user'], undefined)

  const failed: string[] = []
  let running = true
  const load = (async () => {
    while (running) {
      const answers = await Promise.all(Array.from({ length: 10 }, get))
      for (const { status, body } of answers) if (status !== 200) failed.push(`${status} ${body}`)
    }
  })()
  slices.write(a, b)
  await waitFor('the second', () => b.seen.some(({ path }) => path === '/api/v1/pods'))
  slices.write(b)
  await waitFor('only the second', async () => {
    forget()
    await waitFor('requests', () => b.seen.length > 20)
    return served()[1] === 0
  })
  await a.stop()
  const before = b.seen.length
  await waitFor('requests without the first', () => b.seen.length > before + 50)
  running = false
  await load
  assert.deepEqual(failed, [])
})

test('watches at an address that leaves end in order', { skip }, async () => {
  slices.write(a)
  await start()
  await serves(a)
  a.answer = (request) => {
    request.stream.respond([':status', '200', 'content-type', 'application/json'])
    request.stream.write('{"type":"ADDED"}\n')
  }
  forget()
  const watch = h2Open(session, [':path', '/api/v1/pods?watch=true'])
  let ended = false
  watch.resume().once('end', () => {
    ended = true
  })
  await waitFor('the watch', () => served()[1] === 1)
  slices.write(b)
  await waitFor('the end of the watch', () => ended)
  assert.equal(watch.rstCode, 0)
})

test('watches at the server as written move when addresses in slices take its place', { skip }, async () => {
  await start()
  await serves(seed)
  seed.answer = (request) => {
    request.stream.respond([':status', '200', 'content-type', 'application/json'])
    request.stream.write('{"type":"ADDED"}\n')
  }
  forget()
  const watch = h2Open(session, [':path', '/api/v1/pods?watch=true'])
  let ended = false
  watch.resume().once('end', () => {
    ended = true
  })
  await waitFor('the watch', () => served()[0] === 1)
  slices.write(a)
  await waitFor('the end of the watch', () => ended)
  assert.equal(watch.rstCode, 0)
  await serves(a)
})

test('no address, no right and no answer change nothing, and are counted', { skip }, async () => {
  slices.write(a)
  await start()
  await serves(a)
  const counted = (result: string): Promise<true> => {
    const pattern = new RegExp(
      `^portcullis_server_lookups_total\\{.*server="EndpointSlice default/kubernetes",result="${result}"\\} [1-9]`,
      'm',
    )
    return waitFor(result, async () => pattern.test(await gateway.metrics()))
  }
  slices.write({ addressType: 'IPv4', ports: [{ name: 'https', port: 1 }], endpoints: [] })
  await counted('empty')
  await serves(a)
  slices.status = 403
  slices.write()
  await counted('error')
  await serves(a)
  assert.match(await gateway.metrics(), /portcullis_server_addresses\{.*server="EndpointSlice default\/kubernetes"\} 1/)
  slices.status = 200
  slices.write(b)
  await serves(b)
})

test('the server as written serves while no address in the slices can', { skip }, async () => {
  a.healthy = false
  slices.write(a)
  await start()
  await serves(seed)
  a.healthy = true
  await serves(a)
  a.healthy = false
  a.breakConnections()
  await waitFor('the server as written', async () => {
    forget()
    await get()
    return served()[0] === 1
  })
  await serves(seed)
})

test('a server whose certificate is not that of the cluster gets nothing', { skip }, async () => {
  slices.write(a)
  // The certificate of the stubs has localhost, and 127.0.0.1: an address in a slice is no proof.
  const clientConfig = { bearerToken: base64('gateway-token'), caData: base64(seed.caPem), serverName: '' }
  await start({ clientConfig })
  await waitFor('the check', async () =>
    /endpoint_healthy\{.*endpoint="https:\/\/(?!127).*"\} 0/.test(await gateway.metrics()),
  )
  assert.equal((await get()).status, 200)
  assert.deepEqual(served(), [1, 0, 0])
  assert.equal(a.seen.length, 0)
})

test('loopback and metadata addresses are refused', { skip }, async () => {
  const other = { addressType: 'IPv4', ports: [{ name: 'https', port: a.port }] }
  slices.write({ ...other, endpoints: [{ addresses: ['127.0.0.2'] }, { addresses: ['169.254.169.254'] }] }, b)
  await start()
  await serves(b)
  const warned = gateway.logged.filter(({ level, message }) => level === 'warn' && message.includes('EndpointSlice'))
  assert.deepEqual(
    warned.map(({ fields }) => fields['reason']),
    ['refused: 127.0.0.2 (loopback), 169.254.169.254 (link-local)'],
  )
  const endpoints = [
    ...(await gateway.metrics()).matchAll(/^portcullis_endpoint_healthy\{.*endpoint="https:\/\/(.*)"\}/gm),
  ]
  assert.deepEqual(new Set(endpoints.map(([, host]) => host)), new Set([`127.0.0.1:${seed.port}`, `${HOST}:${b.port}`]))
})

test('without the field no slices are read', { skip }, async () => {
  slices.write(a)
  await start({ followEndpointSlice: false })
  await serves(seed)
  assert.equal(slices.asked.length, 0)
})
