// One client against the connections to a real kube-apiserver that all users share: what it sends may end its own requests, and no
// watch or list of another user.

import assert from 'node:assert/strict'
import type { ClientHttp2Session, ClientHttp2Stream } from 'node:http2'
import { after, before, beforeEach, describe, test } from 'node:test'
import { issueCertificate, type KeyPair } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Open, h2Request } from '../harness/clients/h2-client.ts'
import { http1Connect, requestHead } from '../harness/clients/http1-client.ts'
import { startCluster, type TestCluster } from '../harness/clusters/cluster.ts'
import { hostOf, upstreamClusterFor } from '../harness/clusters/upstream-cluster.ts'
import { connectFrames } from '../harness/frames/frame-connection.ts'
import * as h2 from '../harness/frames/h2-frames.ts'
import { startGateway, type TestGateway } from '../harness/gateways/gateway.ts'
import { waitFor } from '../harness/wait.ts'

const CONFIGMAPS = '/api/v1/namespaces/default/configmaps'
const WATCHES = 40
const LISTS = 20
/** Larger, all together, than what waits on the way to a client that does not read. */
const LARGE = 12
const LARGE_BYTES = 300_000

let cluster: TestCluster
let gateway: TestGateway
let host: string
let authority: string

before(async () => {
  cluster = await startCluster({ apiservers: 1 })
  // One thread: the kernel would spread the connections of attacker and victim otherwise.
  gateway = await startGateway({ clusters: [upstreamClusterFor(cluster)], args: ['--threads', '1'] })
  host = hostOf(cluster.name)
  authority = `${host}:${gateway.port}`
  const session = connect(cluster.admin.cert)
  for (let i = 0; i < LARGE; i++) {
    const object = { kind: 'ConfigMap', apiVersion: 'v1', metadata: { name: `large-${i}` } }
    const body = Buffer.from(JSON.stringify({ ...object, data: { text: 'x'.repeat(LARGE_BYTES) } }))
    const head = [':method', 'POST', ':path', CONFIGMAPS, ':authority', authority, 'content-type', 'application/json']
    assert.equal((await h2Request(session, head, body)).status, 201)
  }
  session.destroy()
})
after(async () => {
  await gateway?.stop()
  await cluster?.stop()
})

function connect(certificate: KeyPair, streamWindow?: number): ClientHttp2Session {
  return h2Connect({
    port: gateway.port,
    serverName: host,
    certificate,
    ...(streamWindow !== undefined && { streamWindow }),
  })
}

/** A user with a certificate, and without any rights. */
function attacker(name: string): { port: number; serverName: string; cert: KeyPair } {
  const cert = issueCertificate(cluster.clientCA, { commonName: name, usage: 'client' })
  return { port: gateway.port, serverName: host, cert }
}

/** Watches that are open and lists that are not read yet, of an administrator. */
class Victim {
  readonly #session = connect(cluster.admin.cert, 32 * 1024)
  readonly #watches: ClientHttp2Stream[] = []
  readonly #lists: { readonly stream: ClientHttp2Stream; readonly chunks: Buffer[] }[] = []
  readonly #seen: Set<string>[] = []

  async start(): Promise<void> {
    const list = await h2Request(this.#session, [':path', `${CONFIGMAPS}?limit=1`, ':authority', authority])
    const { metadata } = JSON.parse(list.body.toString()) as { metadata: { resourceVersion: string } }
    const watch = `${CONFIGMAPS}?watch=1&resourceVersion=${metadata.resourceVersion}`
    for (let i = 0; i < WATCHES; i++) this.#watches.push(this.#watch(watch))
    for (let i = 0; i < LISTS; i++) this.#lists.push(this.#list())
    const answered = await Promise.all([...this.#watches, ...this.#lists.map(({ stream }) => stream)].map(statusOf))
    assert.ok(answered.every((status) => status === 200))
  }

  #watch(path: string): ClientHttp2Stream {
    const stream = h2Open(this.#session, [':path', path, ':authority', authority])
    const seen = new Set<string>()
    let rest = ''
    stream.setEncoding('utf8')
    stream.on('data', (text: string) => {
      const lines = (rest + text).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines)
        seen.add((JSON.parse(line) as { object: { metadata: { name: string } } }).object.metadata.name)
    })
    this.#seen.push(seen)
    return stream
  }

  /** Nothing of it is read until `assertWhole`: it waits at the apiserver. */
  #list(): { stream: ClientHttp2Stream; chunks: Buffer[] } {
    const stream = h2Open(this.#session, [':path', CONFIGMAPS, ':authority', authority])
    const chunks: Buffer[] = []
    stream.pause()
    return { stream, chunks }
  }

  /** Every watch sees what is created now, and every list comes to its end. */
  async assertWhole(name: string): Promise<void> {
    const ended = this.#watches.filter(({ closed, destroyed }) => closed || destroyed).length
    assert.equal(ended, 0, `${ended} of ${WATCHES} watches have ended`)
    const head = [':method', 'POST', ':path', CONFIGMAPS, ':authority', authority, 'content-type', 'application/json']
    const object = { kind: 'ConfigMap', apiVersion: 'v1', metadata: { name } }
    const created = await h2Request(this.#session, head, Buffer.from(JSON.stringify(object)))
    assert.equal(created.status, 201, created.body.toString())
    await waitFor('the event on every watch', () => this.#seen.every((seen) => seen.has(name)), { timeoutMs: 30_000 })
    const lists = await Promise.all(this.#lists.map(readToEnd))
    assert.deepEqual(new Set(lists.map(({ reset }) => reset)), new Set([0]), 'lists that were cut off')
    for (const { text } of lists) assert.ok((JSON.parse(text) as { items: object[] }).items.length >= LARGE)
  }

  destroy(): void {
    this.#session.destroy()
  }
}

function statusOf(stream: ClientHttp2Stream): Promise<number> {
  return new Promise((resolve) => {
    stream.on('response', (fields) => resolve(Number(fields[':status'])))
    stream.on('close', () => resolve(0))
  })
}

function readToEnd({
  stream,
  chunks,
}: {
  stream: ClientHttp2Stream
  chunks: Buffer[]
}): Promise<{ reset: number; text: string }> {
  return new Promise((resolve) => {
    const done = (): void => resolve({ reset: stream.rstCode ?? 0, text: Buffer.concat(chunks).toString() })
    stream.on('data', (chunk: Buffer) => chunks.push(chunk))
    stream.on('close', done)
    if (stream.closed) done()
    stream.resume()
  })
}

/** GOAWAY frames that came from the apiserver. */
async function goaways(): Promise<number> {
  const [, count = '0'] =
    /portcullis_http2_goaway_total\{side="upstream",direction="received"\} (\d+)/.exec(await gateway.metrics()) ?? []
  return Number(count)
}

describe('watches and lists of another user go on', () => {
  let victim: Victim
  let told: number
  beforeEach(async (t) => {
    victim = new Victim()
    await victim.start()
    told = await goaways()
    assert.ok('after' in t)
    t.after(() => victim.destroy())
  })

  async function assertUnharmed(name: string): Promise<void> {
    await victim.assertWhole(name)
    assert.equal(await goaways(), told, 'the apiserver has ended a connection')
  }

  for (const path of [CONFIGMAPS, `${CONFIGMAPS}?watch=1`]) {
    const kind = path.includes('watch') ? 'watch' : 'list'
    test(`a head that is too large for the apiserver, of a ${kind}`, async () => {
      // Below the gateway's own limit by its octets, and above the apiserver's with 32 for each field and what is added. Go's
      // server takes frames of 1 MiB, and ends the connection on one that follows when the list is too large already.
      for (const bytes of [490, 497, 510, 519, 520, 522]) {
        const client = await http1Connect(attacker('mallory'))
        const fields = Array.from({ length: 1_980 }, (_, i) => `x-${i}: ${'y'.repeat(bytes)}`)
        client.send(requestHead(`GET ${path}`, fields, host))
        const { status } = await client.response()
        assert.ok(status === 431 || status === 403, `${status}`)
        client.destroy()
      }
      await assertUnharmed(`head-${kind}`)
    })

    test(`110,000 and 1,900 trailers behind chunks, of a ${kind}`, async () => {
      for (const [count, bytes] of [
        [110_000, 1],
        [1_900, 500],
      ] as const) {
        const client = await http1Connect(attacker('mallory'))
        client.send(`${requestHead(`GET ${path}`, ['Transfer-Encoding: chunked'], host)}1\r\nx\r\n0\r\n`)
        const trailer = (_: unknown, i: number): string => `X-${String(i).padStart(6, '0')}: ${'y'.repeat(bytes)}\r\n`
        client.send(`${Array.from({ length: count }, trailer).join('')}\r\n`)
        await client.response().then(
          ({ status }) => assert.equal(status, 403),
          () => assert.ok(client.closed()),
        )
        client.destroy()
      }
      await assertUnharmed(`trailers-${kind}`)
    })

    test(`requests that are given up as they are sent, of one user on many connections, of a ${kind}`, async () => {
      const mallory = attacker('mallory')
      for (let i = 0; i < 8; i++) await giveUp(mallory, path, 950)
      await assertUnharmed(`one-user-${kind}`)
    })

    test(`requests that are given up as they are sent, of many users, of a ${kind}`, async () => {
      await Promise.all(Array.from({ length: 8 }, (_, i) => giveUp(attacker(`mallory-${i}`), path, 450)))
      await assertUnharmed(`many-users-${kind}`)
    })
  }

  /** Sends so many requests, and gives up each at once. */
  async function giveUp(who: ReturnType<typeof attacker>, path: string, count: number): Promise<void> {
    const client = await connectFrames(who)
    const block = h2.headerBlock([':method', 'GET', ':path', path, ':scheme', 'https', ':authority', authority])
    for (let n = 0; n < count; n++) client.send(h2.headersFrames(2 * n + 1, block), h2.rstStream(2 * n + 1, h2.CANCEL))
    client.send(h2.ping(1))
    const isAnswer = (): boolean => client.frames.some(({ type, flags }) => type === h2.PING && (flags & h2.ACK) !== 0)
    await waitFor('the answer to PING, or the end', () => client.isClosed || isAnswer())
    client.destroy()
  }
})
