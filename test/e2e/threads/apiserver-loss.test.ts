// One of two real kube-apiservers is killed with `kill -9` under 500 reads a second, writes and watches, and comes back.

import assert from 'node:assert/strict'
import type { ClientHttp2Session } from 'node:http2'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { h2Connect, h2Open, h2Request } from '../../harness/clients/h2-client.ts'
import { answeredBy, killInTurns, READS_PER_SECOND, SteadyReads } from '../../harness/clients/steady-reads.ts'
import { startCluster, type TestCluster } from '../../harness/clusters/cluster.ts'
import { hostOf, upstreamClusterFor } from '../../harness/clusters/upstream-cluster.ts'
import { startGateway, type TestGateway } from '../../harness/gateways/gateway.ts'
import { waitFor } from '../../harness/wait.ts'

const WATCHES = 20
const KILLS = 3
const CONFIGMAPS = '/api/v1/namespaces/default/configmaps'

let cluster: TestCluster
let gateway: TestGateway
let authority: string

before(async () => {
  cluster = await startCluster({ apiservers: 2 })
  gateway = await startGateway({
    clusters: [upstreamClusterFor(cluster, { spec: { healthCheck: { intervalSeconds: 1 } } })],
  })
  authority = `${hostOf(cluster.name)}:${gateway.port}`
})
after(async () => {
  await gateway?.stop()
  await cluster?.stop()
})

function connect(): ClientHttp2Session {
  return h2Connect({ port: gateway.port, serverName: hostOf(cluster.name), certificate: cluster.admin.cert })
}

function create(session: ClientHttp2Session, name: string, text = name): ReturnType<typeof h2Request> {
  const head = [':method', 'POST', ':path', CONFIGMAPS, ':authority', authority, 'content-type', 'application/json']
  const object = { kind: 'ConfigMap', apiVersion: 'v1', metadata: { name }, data: { text } }
  return h2Request(session, head, Buffer.from(JSON.stringify(object)))
}

/** A watch that is opened again whenever it ends, as an informer does; remembers the names it has seen. */
class Watcher {
  readonly seen = new Set<string>()
  ends = 0
  torn = 0
  readonly #session = connect()
  #stopped = false
  #resourceVersion: string

  constructor(resourceVersion: string) {
    this.#resourceVersion = resourceVersion
    this.#open()
  }

  #open(): void {
    const path = `${CONFIGMAPS}?watch=1&resourceVersion=${this.#resourceVersion}`
    const stream = h2Open(this.#session, [':path', path, ':authority', authority])
    let rest = ''
    stream.setEncoding('utf8')
    stream.on('data', (text: string) => {
      const lines = (rest + text).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) this.#onEvent(JSON.parse(line))
    })
    stream.on('close', () => {
      if (this.#stopped) return
      this.ends++
      if (stream.rstCode === 0 && rest !== '') this.torn++
      setTimeout(() => this.#stopped || this.#open(), 50)
    })
  }

  #onEvent(event: { object: { metadata: { name: string; resourceVersion: string } } }): void {
    this.seen.add(event.object.metadata.name)
    this.#resourceVersion = event.object.metadata.resourceVersion
  }

  stop(): void {
    this.#stopped = true
    this.#session.destroy()
  }
}

describe('two apiservers', () => {
  test('requests of one connection spread evenly', async () => {
    const session = connect()
    assert.equal((await create(session, 'seed')).status, 201)
    const before = await Promise.all(cluster.apiservers.map(({ url }) => answeredBy(gateway, url)))
    const requests = 1000
    for (let i = 0; i < requests / 50; i++) {
      const head = [':path', `${CONFIGMAPS}/seed`, ':authority', authority]
      const answers = await Promise.all(Array.from({ length: 50 }, () => h2Request(session, head)))
      assert.ok(answers.every(({ status }) => status === 200))
    }
    session.destroy()
    const counts = await waitFor('all requests to be counted', async () => {
      const now = await Promise.all(cluster.apiservers.map(({ url }) => answeredBy(gateway, url)))
      const own = now.map((count, i) => count - (before[i] ?? 0))
      return own.reduce((a, b) => a + b, 0) === requests && own
    })
    for (const count of counts) assert.ok(Math.abs(count - requests / 2) <= requests / 100, `${counts}`)
  })

  test('kill -9 of one: no read fails, no write is sent twice, watches go on, and it gets traffic again', async (t) => {
    const [victim] = cluster.apiservers
    assert.ok(victim)
    const list = await cluster.request(CONFIGMAPS)
    const watchers = Array.from({ length: WATCHES }, () => new Watcher(list.json().metadata.resourceVersion))
    const readers = new SteadyReads(connect, authority, [{ path: `${CONFIGMAPS}/seed` }])
    readers.start()
    const writer = connect()
    const written = new Map<string, number>()
    let writing = true
    t.after(() => {
      writing = false
      for (const watcher of watchers) watcher.stop()
      writer.destroy()
      return readers.stop()
    })
    const writes = (async () => {
      for (let i = 0; writing; i++) {
        written.set(`write-${i}`, (await create(writer, `write-${i}`)).status)
        await sleep(10)
      }
    })()

    await waitFor('traffic', () => readers.whole > 2 * READS_PER_SECOND)
    await victim.kill('SIGKILL')
    const atKill = readers.whole
    await waitFor('traffic after the kill', () => readers.whole > atKill + 4 * READS_PER_SECOND)
    await victim.restart()
    const back = await answeredBy(gateway, victim.url)
    await waitFor(
      'traffic on the apiserver that came back',
      async () => (await answeredBy(gateway, victim.url)) > back + 100,
    )
    await readers.stop()
    writing = false
    await writes
    assert.equal((await create(writer, 'last')).status, 201)
    await waitFor('every watch to see the last event', () => watchers.every(({ seen }) => seen.has('last')))

    assert.deepEqual(readers.failures(), [], 'no read fails, and none is cut off')
    const statuses = new Set(written.values())
    assert.ok(!statuses.has(409), 'a second create of one name would be a write sent twice')
    for (const watcher of watchers) {
      assert.equal(watcher.torn, 0, 'a watch that ends cleanly ends between two events')
      for (const [name, status] of written) if (status === 201) assert.ok(watcher.seen.has(name), `event of ${name}`)
    }
    assert.ok(
      watchers.some(({ ends }) => ends > 0),
      'watches on the killed apiserver ended',
    )
    assert.ok(
      watchers.some(({ ends }) => ends === 0),
      'watches on the other one did not notice',
    )
  })

  test('kill -9 of one after the other: every read of a small object is answered whole', async (t) => {
    const session = connect()
    const small = `${CONFIGMAPS}/seed`
    // One that comes without a length, and in several frames.
    const several = `${CONFIGMAPS}/several-frames`
    assert.equal((await create(session, 'several-frames', 'x'.repeat(30_000))).status, 201)
    const sizes = await Promise.all(
      [small, several].map(async (path) => {
        const { body } = await h2Request(session, [':path', path, ':authority', authority])
        return { path, size: body.length }
      }),
    )
    session.destroy()
    const reads = new SteadyReads(connect, authority, sizes)
    t.after(() => reads.stop())
    reads.start()
    await killInTurns(cluster, gateway, reads, KILLS)
    await reads.stop()
    assert.deepEqual(reads.failures(), [])
  })
})
