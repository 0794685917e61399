// `portcullis sessions` and /api/v1/sessions: users of a gateway with two threads, and what an operator then sees.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { ClientHttp2Session } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { IdentitySeen } from '../../src/gateway/api/identity-seen.ts'
import type { SessionAnswer } from '../../src/insight/core/sessions/session-report.ts'
import { createCA } from '../../src/pki/io/pki.ts'
import { runProgram } from '../../src/program/cli/program.ts'
import { h2Connect, h2Open, h2Request } from '../harness/clients/h2-client.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { clientPair, clusterObject } from '../harness/objects/objects.ts'
import { freePorts } from '../harness/ports.ts'
import { startTokenIssuers, TEST_AUDIENCE, type TokenIssuers } from '../harness/servers/token-issuers.ts'
import { type Answer, reply, type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const PROD = 'prod.example.com'
const DEV = 'dev.example.com'
const clientCA = createCA({ commonName: 'clients' })
const sessions: ClientHttp2Session[] = []

let stub: StubUpstream
let issuers: TokenIssuers
let gateway: InProcessGateway

/** Watches stay open. */
const answer: Answer = (request) => {
  if (request.path.includes('watch=')) request.stream.respond({ ':status': 200, 'content-type': 'application/json' })
  else reply(request, 200, '{}')
}

before(async () => {
  stub = await startStub()
  stub.answer = answer
  stub.tokens.set('reviewed', { username: 'system:serviceaccount:default:robot' })
  issuers = await startTokenIssuers()
  const issuer = { url: issuers.url('good'), certificateAuthority: issuers.ca, audiences: [TEST_AUDIENCE] }
  const jwt = [{ issuer, claimMappings: { username: { claim: 'sub', prefix: 'oidc:' } } }]
  const spec = { authentication: { jwt } }
  gateway = await startInProcess(
    [clusterObject([stub], { name: PROD, clientCA, spec }), clusterObject([stub], { name: DEV, clientCA })],
    { threads: 2 },
  )
})
after(async () => {
  for (const session of sessions) session.destroy()
  await gateway?.stop()
  await issuers?.stop()
  await stub?.stop()
})

function connect(user?: string): ClientHttp2Session {
  const certificate = user === undefined ? undefined : clientPair(clientCA, user)
  const session = h2Connect({ port: gateway.port, ...(certificate !== undefined && { certificate }) })
  sessions.push(session)
  return session
}

async function ask(session: ClientHttp2Session, host: string, token?: string): Promise<number> {
  const fields = token === undefined ? [] : ['authorization', `Bearer ${token}`]
  return (await h2Request(session, [':authority', host, ...fields])).status
}

async function seen(query = ''): Promise<IdentitySeen[]> {
  const response = await fetch(`http://127.0.0.1:${gateway.adminPort}/api/v1/sessions?${query}`)
  assert.equal(response.status, 200)
  return ((await response.json()) as { sessions: IdentitySeen[] }).sessions
}

test('users by certificate, by issuer and by review, in each cluster, with their open watches', async () => {
  const startMs = Date.now()
  // Several connections: some in each thread.
  for (let n = 0; n < 4; n++) assert.equal(await ask(connect('alice'), PROD), 200)
  const alice = connect('alice')
  assert.equal(await ask(alice, DEV), 200)
  // Each try with another token: a review remembers those that it has rejected.
  let tries = 0
  const token = (): string => issuers.token('good', { sub: 'bob', exp: 4_000_000_000, jti: `try-${tries++}` })
  await waitFor('the keys of the issuer', async () => (await ask(connect(), PROD, token())) === 200)
  assert.equal(await ask(connect(), DEV, 'reviewed'), 200)
  assert.equal(await ask(connect(), PROD, 'wrong'), 401)
  await ask(connect(), PROD)
  const watch = h2Open(alice, [':authority', DEV, ':path', '/api/v1/pods?watch=true'])
  await waitFor('the open watch', async () => (await seen('user=alice&cluster=dev*'))[0]?.open === 1)

  const all = await seen()
  const names = new Set(all.map(({ cluster, user, by }) => `${cluster} ${user} ${by}`))
  const url = issuers.url('good')
  const robot = 'system:serviceaccount:default:robot'
  const users = [
    `${PROD} alice certificate`,
    `${DEV} alice certificate`,
    `${PROD} oidc:bob ${url}`,
    `${DEV} ${robot} cluster`,
  ]
  assert.deepEqual(names, new Set(users))
  const of = (user: string): IdentitySeen =>
    all.find((one) => one.user === user && one.cluster === PROD) ?? assert.fail()
  assert.equal(of('oidc:bob').expiresMs, 4_000_000_000_000)
  assert.ok(of('alice').expiresMs > Date.now())
  assert.ok(of('alice').sinceMs >= startMs && of('alice').lastMs >= of('alice').sinceMs)
  assert.equal((await seen(`cluster=${PROD}&user=alice`)).length, 1)
  assert.equal((await seen('limit=2')).length, 2)

  watch.close()
  await waitFor('the end of the watch', async () => (await seen('user=alice')).every(({ open }) => open === 0))
  const wrong = await fetch(`http://127.0.0.1:${gateway.adminPort}/api/v1/sessions?limit=0`)
  assert.equal(wrong.status, 400)
})

test('nothing of a token is in the list', async () => {
  const text = JSON.stringify(await seen())
  assert.doesNotMatch(text, /eyJ|reviewed|JTI|X509SHA256/)
})

test('portcullis sessions asks all replicas, for one cluster or one user', async () => {
  const out: string[] = []
  const run = (args: readonly string[]): Promise<number> =>
    runProgram(['sessions', ...args, '--admin', `http://127.0.0.1:${gateway.adminPort}`], {
      version: '',
      settings: () => Promise.resolve([]),
      input: (async function* () {})(),
      now: Date.now,
      out: (text) => void out.push(text),
      err: (text) => void out.push(text),
      serve: () => Promise.resolve(0),
    })
  assert.equal(await run([PROD, '--user', 'oidc:bob']), 0)
  assert.match(out.join(''), new RegExp(`^LAST SEEN .*\\n.* ${PROD} +https://\\S+ +oidc:bob\\n$`))
  out.length = 0
  assert.equal(await run(['-o', 'json', '--user', 'alice']), 0)
  assert.equal(JSON.parse(out.join('')).sessions.length, 2)
  out.length = 0
  await assert.rejects(run(['--limit', '0']), /--limit=0: it is a number from 1 to 1000/)
  await assert.rejects(run(['missing*']), /missing\*/)
})

test('one replica answers for all: a user of both is one row, and one that is gone is named', async () => {
  const [gone = 0] = await freePorts(1)
  const adminPeers = [gateway.adminPort, gone].map((port) => ({ host: '127.0.0.1', port }))
  const second = await startInProcess([clusterObject([stub], { name: PROD, clientCA })], { adminPeers })
  try {
    const before = (await seen(`cluster=${PROD}&user=alice`))[0] ?? assert.fail()
    const session = h2Connect({ port: second.port, certificate: clientPair(clientCA, 'alice') })
    sessions.push(session)
    assert.equal(await ask(session, PROD), 200)
    const url = `http://127.0.0.1:${second.adminPort}/api/v1/sessions?replicas=all&cluster=${PROD}`
    const answer = (await (await fetch(url)).json()) as SessionAnswer
    const [alice, ...others] = answer.sessions.filter(({ user }) => user === 'alice')
    assert.equal(others.length, 0)
    assert.equal(alice?.sinceMs, before.sinceMs)
    assert.ok(alice.lastMs > before.lastMs)
    assert.ok(answer.sessions.some(({ user }) => user === 'oidc:bob'))
    assert.deepEqual(answer.missing, [`127.0.0.1:${gone}`])
  } finally {
    await second.stop()
  }
})

test('it takes the rights of top', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'portcullis-sessions-'))
  const adminTokenFile = join(dir, 'token')
  const token = 'a-token-of-the-admin-listener-0123456789'
  writeFileSync(adminTokenFile, `${token}\n`, { mode: 0o600 })
  const guarded = await startInProcess([], { adminTokenFile })
  try {
    for (const [headers, code] of [
      [{}, 401],
      [{ authorization: 'Bearer wrong' }, 401],
      [{ authorization: `Bearer ${token}` }, 200],
    ] as const) {
      for (const path of ['top', 'sessions']) {
        const response = await fetch(`http://127.0.0.1:${guarded.adminPort}/api/v1/${path}`, { headers })
        assert.equal(response.status, code, path)
      }
    }
  } finally {
    await guarded.stop()
    rmSync(dir, { recursive: true, force: true })
  }
})
