// `portcullis top` and /api/v1/top: what clients do at a gateway of two threads, and what an operator then sees.

import assert from 'node:assert/strict'
import type { ClientHttp2Session } from 'node:http2'

import { afterEach, test } from 'node:test'
import type { TopReport } from '../../src/insight/core/top/report.ts'
import { createCA } from '../../src/pki/io/pki.ts'
import type { Config } from '../../src/process/config/config.ts'
import { runProgram } from '../../src/program/cli/program.ts'
import { h2Connect, h2Open, h2Request } from '../harness/clients/h2-client.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { clientPair, clusterObject } from '../harness/objects/objects.ts'
import { freePorts } from '../harness/ports.ts'
import { reply, type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const DEV = 'dev.example.com'
const clientCA = createCA({ commonName: 'clients' })
const cleanups: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

interface Scene {
  readonly stub: StubUpstream
  readonly gateway: InProcessGateway
  as(user: string): ClientHttp2Session
}

async function setUp(overrides: Partial<Config> = {}): Promise<Scene> {
  const stub = await startStub()
  const dev = { ...clusterObject([stub], { clientCA }), metadata: { name: DEV, labels: { region: 'eu' } } }
  const clusters = [clusterObject([stub], { clientCA }), dev]
  const gateway = await startInProcess(clusters, overrides)
  cleanups.push(stub.stop, gateway.stop)
  const as = (user: string): ClientHttp2Session => {
    const session = h2Connect({ port: gateway.port, certificate: clientPair(clientCA, user) })
    cleanups.push(() => session.destroy())
    return session
  }
  return { stub, gateway, as }
}

async function get(gateway: InProcessGateway, query: string): Promise<TopReport> {
  const answer = await fetch(`http://127.0.0.1:${gateway.adminPort}/api/v1/top?${query}`)
  assert.equal(answer.status, 200, await answer.clone().text())
  return (await answer.json()) as TopReport
}

/** Once the report says so: numbers may be a second old. */
async function until(
  gateway: InProcessGateway,
  query: string,
  holds: (report: TopReport) => boolean,
): Promise<TopReport> {
  let last: TopReport | undefined
  await waitFor(`top ${query}`, async () => {
    last = await get(gateway, query)
    return holds(last)
  })
  assert.ok(last)
  return last
}

async function run(
  gateway: InProcessGateway | number,
  args: readonly string[],
): Promise<{ code: number; out: string; err: string }> {
  const port = typeof gateway === 'number' ? gateway : gateway.adminPort
  const out: string[] = []
  const err: string[] = []
  const code = await runProgram(['top', '--admin', `http://127.0.0.1:${port}`, ...args], {
    version: '',
    settings: () => Promise.resolve([]),
    out: (text) => void out.push(text),
    err: (text) => void err.push(text),
    input: (async function* () {})(),
    now: Date.now,
    serve: () => Promise.resolve(0),
    demo: () => Promise.resolve(0),
  }).catch((error: unknown) => {
    err.push(error instanceof Error ? error.message : String(error))
    return 1
  })
  return { code, out: out.join(''), err: err.join('') }
}

const path = (target: string, ...rest: string[]): string[] => [':path', target, ...rest]

test('requests of all threads and clusters are counted by who sent them and what they asked for', async () => {
  const { stub, gateway, as } = await setUp({
    threads: 2,
    listen: [{ host: '127.0.0.1', port: (await freePorts(1))[0] ?? 0 }],
  })
  stub.answer = (request) => reply(request, 200, 'x'.repeat(100))
  // Several connections, so that both threads have some.
  const alices = Array.from({ length: 6 }, () => as('alice'))
  for (const session of alices) {
    await h2Request(session, path('/api/v1/namespaces/shop/pods', 'user-agent', 'kubectl/v1.34.1'))
    await h2Request(session, path('/apis/apps/v1/namespaces/shop/deployments/cart/scale'))
  }
  await h2Request(as('bob'), path('/api/v1/nodes/n1', ':authority', DEV))
  const users = await until(gateway, 'by=user', ({ total }) => total.requests === 13)
  assert.deepEqual(
    users.rows.map(({ name, requests, bytes, listedBytes, error }) => [
      name,
      requests,
      bytes,
      listedBytes,
      error.requests,
    ]),
    [
      ['alice', 12, 1200, 600, 0],
      ['bob', 1, 100, 0, 0],
    ],
  )
  const resources = await get(gateway, 'by=resource&sort=listed-bytes')
  assert.deepEqual(
    resources.rows.map(({ name, listedBytes }) => [name, listedBytes]),
    [
      ['pods', 600],
      ['deployments.apps/scale', 0],
      ['nodes', 0],
    ],
  )
  const dev = await get(gateway, `by=user&cluster=${DEV}`)
  assert.deepEqual(
    dev.rows.map(({ name }) => name),
    ['bob'],
  )
  assert.equal(dev.total.requests, 1)
  for (const chosen of ['selector=region%3Deu', `cluster=${DEV.slice(0, 2)}*`, `cluster=?${DEV.slice(1)}`]) {
    const { total, clusters } = await get(gateway, `by=user&${chosen}`)
    assert.deepEqual([total.requests, clusters], [1, [DEV]], chosen)
  }
  const both = await get(gateway, `by=cluster&cluster=*&replicas=all`)
  assert.deepEqual([both.total.requests, both.clusters?.length], [13, 2])
  for (const by of ['userAgent', 'verb', 'namespace', 'address', 'cluster']) {
    const { rows } = await get(gateway, `by=${by}&minutes=60`)
    assert.equal(
      rows.reduce((sum, { requests }) => sum + requests, 0),
      13,
      by,
    )
  }
})

test('a watch shows when it is answered, a refused request with who was refused', async () => {
  const { stub, gateway, as } = await setUp()
  stub.answer = ({ stream }) => stream.respond({ ':status': 200 })
  h2Open(as('watcher'), path('/api/v1/pods?watch=1'))
  await until(gateway, 'by=user', ({ rows }) => rows.some(({ name, requests }) => name === 'watcher' && requests === 1))
  const unauthenticated = h2Connect({ port: gateway.port })
  cleanups.push(() => unauthenticated.destroy())
  await h2Request(unauthenticated, path('/api/v1/pods', 'authorization', 'Bearer wrong'))
  const { rows } = await until(gateway, 'by=address&sort=refused', ({ total }) => total.refused === 1)
  assert.deepEqual(
    rows.map(({ name, refused }) => [name, refused]),
    [['127.0.0.1', 1]],
  )
})

test('what is not known is refused with what may be asked for, and nothing is counted where it is switched off', async () => {
  const { gateway } = await setUp()
  const wrong = await fetch(`http://127.0.0.1:${gateway.adminPort}/api/v1/top?by=pod`)
  assert.equal(wrong.status, 400)
  assert.match(await wrong.text(), /^by=pod: it is one of user, userAgent, /)
  const { gateway: off } = await setUp({ top: false })
  const answer = await fetch(`http://127.0.0.1:${off.adminPort}/api/v1/top`)
  assert.equal(answer.status, 404)
  const { code, err } = await run(off, [])
  assert.equal(code, 1)
  assert.match(err, /--top=false/)
})

test('the command prints a table, or JSON, once where there is no terminal; names cannot command a terminal', async () => {
  const { gateway, as } = await setUp()
  await h2Request(as('eve'), path('/api/v1/namespaces/eve%1b[2J/pods', 'user-agent', 'x'.repeat(5000)))
  await until(gateway, '', ({ total }) => total.requests === 1)
  const { code, out, err } = await run(gateway, ['--by', 'namespace'])
  assert.deepEqual([code, err], [0, ''])
  assert.match(out, /^top namespace by requests, last \d+ s, all clusters: 1 requests /)
  assert.match(out, /REQ\/S {2}REQUESTS\* .*NAMESPACE\n/)
  assert.match(out, / eve\\x1b\[2J\n/)
  const agents = await run(gateway, ['--by', 'userAgent'])
  assert.match(agents.out, / x{256}\n/)
  const json = await run(gateway, ['--by', 'namespace', '-o', 'json'])
  assert.equal((JSON.parse(json.out) as TopReport).rows[0]?.name, 'eve\u001b[2J')
  assert.ok(![out, json.out].join('').includes('\u001b'))
})

test('one replica answers for all, and names the one that is gone', async () => {
  const first = await setUp()
  const [gone = 0] = await freePorts(1)
  const adminPeers = [first.gateway.adminPort, gone].map((port) => ({ host: '127.0.0.1', port }))
  const second = await setUp({ adminPeers })
  for (const { as } of [first, second]) await h2Request(as('alice'), path('/api/v1/pods'))
  await h2Request(first.as('bob'), path('/api/v1/pods'))
  const { rows } = await until(second.gateway, 'replicas=all&limit=1', ({ total }) => total.requests === 3)
  assert.deepEqual(
    rows.map(({ name, requests }) => [name, requests]),
    [['alice', 2]],
  )
  const { code, out } = await run(second.gateway, [])
  assert.equal(code, 0)
  assert.match(out, new RegExp(`^no answer from 127.0.0.1:${gone}: `, 'm'))
  assert.match(out, / bob\n/)
})

test('where no gateway answers, the command says so in one line', async () => {
  const [port = 0] = await freePorts(1)
  const { code, out, err } = await run(port, [])
  assert.equal(code, 1)
  assert.equal(out, '')
  assert.match(err, new RegExp(`^http://127.0.0.1:${port} does not answer: `))
})

test('the first ten of what was asked for are metrics, never more, and none by default', async () => {
  const { gateway, as } = await setUp({ topMetrics: ['user'] })
  for (let i = 0; i < 12; i++) {
    const session = as(`user-${i}`)
    for (let n = 0; n <= i; n++) await h2Request(session, path('/api/v1/pods'))
  }
  await until(gateway, '', ({ total }) => total.requests === 78)
  const lines = (await gateway.metrics())
    .split('\n')
    .filter((line) => line.startsWith('portcullis_top_requests_per_second'))
  assert.equal(lines.length, 10)
  assert.ok(lines[0]?.startsWith('portcullis_top_requests_per_second{by="user",name="user-11"} '), lines[0])
  const { gateway: other, as: there } = await setUp()
  await h2Request(there('alice'), path('/api/v1/pods'))
  await until(other, '', ({ total }) => total.requests === 1)
  assert.ok(!(await other.metrics()).includes('portcullis_top_'))
})
