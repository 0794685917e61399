// Answers that their clients do not read keep nothing of the requests that they belong to: heads of up to 1 MiB, for which no user is charged any more.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createCA, type KeyPair } from '../../src/pki/io/pki.ts'
import { type Http1Client, http1Connect, requestHead } from '../harness/clients/http1-client.ts'
import { connectFrames, type FrameConnection } from '../harness/frames/frame-connection.ts'
import * as h2 from '../harness/frames/h2-frames.ts'
import { startControl } from '../harness/gateways/control.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { clientPair, clusterObject } from '../harness/objects/objects.ts'
import { reply, type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const HOST = 'prod.example.com'
const PODS = '/api/v1/pods'
/** exec is an upgrade: the gateway answers itself. */
const REFUSED = '/api/v1/namespaces/a/pods/b/exec'
const clientCA = createCA({ commonName: 'clients of prod' })
setFlagsFromString('--expose-gc')
const collect: unknown = runInNewContext('gc')

let upstream: StubUpstream
let gateway: InProcessGateway
before(async () => {
  upstream = await startStub()
  upstream.answer = (request) => {
    reply(request, 200, '{"kind":"Stub"}')
    upstream.seen.length = 0
  }
  gateway = await startInProcess([clusterObject([upstream], { clientCA })])
})
after(async () => {
  await gateway.stop()
  await upstream.stop()
})

interface Port {
  readonly port: number
  readonly serverName: string
  readonly cert?: KeyPair
}

interface Case {
  readonly name: string
  readonly field: string
  readonly bytes: number
  readonly count: number
  readonly path: string
  readonly status: number
}

const cases: readonly Case[] = [
  { name: 'answered by upstream', field: 'x-large', bytes: 50_000, count: 200, path: PODS, status: 200 },
  { name: 'refused', field: 'x-large', bytes: 500_000, count: 60, path: REFUSED, status: 400 },
  { name: 'with a long user agent', field: 'user-agent', bytes: 500_000, count: 60, path: REFUSED, status: 400 },
]
for (const one of cases) {
  test(`requests with large heads, ${one.name}`, async () => {
    await keepsNothing({ port: gateway.port, serverName: HOST, cert: clientPair(clientCA, 'alice') }, one)
  })
}

test('unauthenticated requests with large heads to the embedded API server', async (t) => {
  const control = await startControl()
  t.after(() => control.stop())
  const one = { name: '', field: 'x-large', bytes: 50_000, count: 200, path: '/apis', status: 403 }
  await keepsNothing({ port: control.port, serverName: 'localhost' }, one)
})

describe('over HTTP/1.1', () => {
  const head = (method: string, path: string, letter: number, bytes: number): string => {
    const value = String.fromCharCode(97 + (letter % 26)).repeat(bytes)
    const fields = [`X-First: ${value}`, `Connection: ${value.slice(0, 1000)}`, `X-Last: ${value}`]
    return requestHead(`${method} ${path}`, fields)
  }
  const withoutCertificate = (): Port => ({ port: gateway.port, serverName: HOST })

  test('a connection that waits for its next request keeps nothing of the last one', async () => {
    const clients: Http1Client[] = []
    const idle = async (i: number): Promise<void> => {
      const client = await http1Connect(withoutCertificate())
      clients.push(client)
      client.send(head('GET', i % 2 === 0 ? REFUSED : `${REFUSED}?command=${'q'.repeat(200_000)}`, i, 200_000))
      assert.equal((await client.response()).status, 400)
    }
    await idle(0)
    const before = heapBytes()
    const count = 60
    for (let i = 1; i <= count; i++) await idle(i)
    await waitFor('the requests to be forgotten', () => heapBytes() - before < (count * 200_000) / 4)
    for (const client of clients) {
      assert.ok(!client.closed())
      client.destroy()
    }
  })

  test('answers without a body that wait for an earlier one keep nothing of their requests', async () => {
    const client = await http1Connect({ ...withoutCertificate(), cert: clientPair(clientCA, 'alice') })
    const answers: (() => void)[] = []
    const { answer } = upstream
    upstream.answer = (request) => {
      answers.push(() => answer(request))
    }
    client.send(head('GET', PODS, 0, 1))
    await waitFor('the first request', () => answers.length === 1)
    const before = heapBytes()
    const count = 60
    for (let i = 1; i <= count; i++) client.send(head('HEAD', REFUSED, i, 200_000))
    client.send(head('GET', PODS, 0, 1))
    await waitFor('the last request', () => answers.length === 2)
    await waitFor('the requests to be forgotten', () => heapBytes() - before < (count * 200_000) / 4)
    for (const now of answers) now()
    upstream.answer = answer
    assert.equal((await client.response()).status, 200)
    for (let i = 1; i <= count; i++) assert.equal((await client.response({ noBody: true })).status, 400)
    client.destroy()
  })
})

async function keepsNothing(port: Port, one: Case): Promise<void> {
  const settings = [
    [h2.INITIAL_WINDOW_SIZE, 0],
    [h2.HEADER_TABLE_SIZE, 0],
  ] as const
  const client = await connectFrames({ ...port, settings })
  await ask(client, 1, one)
  const before = heapBytes()
  for (let i = 1; i <= one.count; i++) await ask(client, 1 + 2 * i, one)
  client.frames.length = 0
  await waitFor('the requests to be forgotten', () => heapBytes() - before < (one.count * one.bytes) / 4)
  assert.equal(client.isClosed, false)
  client.destroy()
}

async function ask(client: FrameConnection, stream: number, { field, bytes, path, status }: Case): Promise<void> {
  const value = String.fromCharCode(97 + (stream % 26)).repeat(bytes)
  const head = [':method', 'GET', ':path', path, ':scheme', 'https', ':authority', HOST, field, value]
  client.send(h2.headersFrames(stream, h2.headerBlock(head)))
  assert.equal(await client.status(stream), status)
}

function heapBytes(): number {
  if (typeof collect === 'function') collect()
  return process.memoryUsage().heapUsed
}
