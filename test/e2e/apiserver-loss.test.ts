// One of two real kube-apiservers is killed with `kill -9` under 500 reads a second, writes and watches, and comes back.

import assert from 'node:assert/strict'
import type { ClientHttp2Session } from 'node:http2'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startCluster, type TestCluster } from '../harness/cluster.ts'
import { startGateway, type TestGateway } from '../harness/gateway.ts'
import { h2Connect, h2Open, h2Request } from '../harness/h2-client.ts'
import { hostOf, upstreamClusterFor } from '../harness/upstream-cluster.ts'
import { waitFor } from '../harness/wait.ts'

const READS_PER_SECOND = 500
const READER_SESSIONS = 4
/** However far behind the machine is: all that are lost at once have to find room in the retry budget. */
const READS_AT_ONCE = 200
const WATCHES = 20
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

function configMap(name: string): Buffer {
  return Buffer.from(JSON.stringify({ kind: 'ConfigMap', apiVersion: 'v1', metadata: { name }, data: { name } }))
}

function create(session: ClientHttp2Session, name: string): ReturnType<typeof h2Request> {
  const head = [':method', 'POST', ':path', CONFIGMAPS, ':authority', authority, 'content-type', 'application/json']
  return h2Request(session, head, configMap(name))
}

/** How many requests each endpoint has answered, from the gateway's own metrics. */
async function answeredBy(url: string): Promise<number> {
  const text = await gateway.metrics()
  const lines = text.split('\n').filter((line) => line.startsWith('portcullis_upstream_requests_total{'))
  const own = lines.filter((line) => line.includes(`endpoint="${url}"`))
  return own.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
}

/** Reads at a fixed rate until told to stop; counts outcomes. */
class Readers {
  readonly outcomes = new Map<string, number>()
  readonly #sessions = Array.from({ length: READER_SESSIONS }, connect)
  readonly #pending = new Set<Promise<void>>()
  #running = true
  #done: Promise<void> | undefined

  start(): void {
    this.#done = this.#run()
  }

  async #run(): Promise<void> {
    const started = performance.now()
    for (let sent = 0; this.#running; ) {
      const due = Math.floor(((performance.now() - started) * READS_PER_SECOND) / 1000)
      for (; sent < due && this.#pending.size < READS_AT_ONCE; sent++) {
        const read: Promise<void> = this.#read(sent).finally(() => this.#pending.delete(read))
        this.#pending.add(read)
      }
      await sleep(5)
    }
    await Promise.all(this.#pending)
  }

  async #read(index: number): Promise<void> {
    const session = this.#sessions[index % READER_SESSIONS]
    if (session === undefined) return
    const answer = await h2Request(session, [':path', `${CONFIGMAPS}/seed`, ':authority', authority])
    // Begun and cut off is what a proxy cannot hide; everything else has to be a whole answer.
    const outcome = answer.resetCode !== 0 && answer.status === 200 ? 'cut off' : String(answer.status)
    this.outcomes.set(outcome, (this.outcomes.get(outcome) ?? 0) + 1)
  }

  async stop(): Promise<void> {
    this.#running = false
    await this.#done
    for (const session of this.#sessions) session.destroy()
  }
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
    const before = await Promise.all(cluster.apiservers.map(({ url }) => answeredBy(url)))
    const requests = 1000
    for (let i = 0; i < requests / 50; i++) {
      const head = [':path', `${CONFIGMAPS}/seed`, ':authority', authority]
      const answers = await Promise.all(Array.from({ length: 50 }, () => h2Request(session, head)))
      assert.ok(answers.every(({ status }) => status === 200))
    }
    session.destroy()
    const counts = await waitFor('all requests to be counted', async () => {
      const now = await Promise.all(cluster.apiservers.map(({ url }) => answeredBy(url)))
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
    const readers = new Readers()
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

    await waitFor('traffic', () => (readers.outcomes.get('200') ?? 0) > 2 * READS_PER_SECOND)
    await victim.kill('SIGKILL')
    const atKill = readers.outcomes.get('200') ?? 0
    await waitFor('traffic after the kill', () => (readers.outcomes.get('200') ?? 0) > atKill + 4 * READS_PER_SECOND)
    await victim.restart()
    const back = await answeredBy(victim.url)
    await waitFor('traffic on the apiserver that came back', async () => (await answeredBy(victim.url)) > back + 100)
    await readers.stop()
    writing = false
    await writes
    assert.equal((await create(writer, 'last')).status, 201)
    await waitFor('every watch to see the last event', () => watchers.every(({ seen }) => seen.has('last')))

    const failures = [...readers.outcomes].filter(([outcome]) => outcome !== '200' && outcome !== 'cut off')
    assert.deepEqual(failures, [], 'no read fails whose answer had not begun')
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
})
