// Requests pass through a gateway thread before its ports open (src/program/threads/thread/warm-up.ts). No one sees them, and a thread whose warm-up fails
// serves all the same.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, test } from 'node:test'
import { ConnectionPlaces } from '../../src/gateway/state/connection-places.ts'
import { KnownTokens } from '../../src/gateway/state/known-tokens.ts'
import { ALONE } from '../../src/gateway/state/thread-place.ts'
import { createCA, issueServingCertificate } from '../../src/pki/io/pki.ts'
import { loadConfig } from '../../src/process/config/config.ts'
import { loadThreadSubjects } from '../../src/program/subjects/load.ts'
import type { FromThread } from '../../src/program/threads/messages.ts'
import { GatewayThread } from '../../src/program/threads/thread/gateway-thread.ts'
import { WarmUp, type WarmUpDeps } from '../../src/program/threads/thread/warm-up.ts'
import { h2Connect, h2Request } from '../harness/clients/h2-client.ts'
import { startInProcess } from '../harness/gateways/in-process.ts'
import { clientPair, clusterObject } from '../harness/objects/objects.ts'
import { startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const THREADS = 2

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

test('metrics, state, shares, logs and audit of a gateway that has just started show no request and no connection', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'warm-up-'))
  const auditLogPath = join(folder, 'audit.log')
  const stub = await startStub()
  const clientCA = createCA({ commonName: 'clients' })
  const settings = { threads: THREADS, auditLogPath, accessLog: true, logLevel: 'debug' } as const
  const gateway = await startInProcess([clusterObject([stub], { clientCA })], settings)
  cleanups.push(() => rmSync(folder, { recursive: true, force: true }), stub.stop, gateway.stop)
  const look = async (path: string): Promise<string> =>
    (await fetch(`http://127.0.0.1:${gateway.adminPort}${path}`)).text()

  const metrics = await look('/metrics')
  // Those of requests and clients that have a value: all are 0.
  const values = metrics
    .split('\n')
    .filter((line) => /^(?:apiserver_|portcullis_client|portcullis_http2_.*side="client")/.test(line))
  assert.ok(values.length > 0)
  for (const line of values) assert.match(line, / 0$/)
  for (const text of [metrics, await look('/debug/config'), await look('/api/v1/shares')])
    assert.doesNotMatch(text, /warm-up/)
  // It may say that it was late.
  assert.doesNotMatch(JSON.stringify(gateway.logged), /warm-up/)
  assert.deepEqual(stub.seen, [])

  // The first request of a client is the first one in the audit log. Reads of the admin listener are there, too.
  const session = h2Connect({ port: gateway.port, serverName: 'prod', certificate: clientPair(clientCA, 'alice') })
  cleanups.push(() => session.destroy())
  assert.equal((await h2Request(session, [':path', '/api/v1/pods'])).status, 200)
  const users = await waitFor('its audit event', () => {
    const lines = readFileSync(auditLogPath, 'utf8').trim().split('\n')
    const events = lines.map((line) => JSON.parse(line)).filter(({ requestURI }) => requestURI !== '/debug/config')
    return events.length > 0 && events.map(({ user }) => user.username)
  })
  assert.deepEqual(new Set(users), new Set(['alice']))
})

test('a thread whose warm-up fails, or takes too long, opens its ports', async () => {
  const late = class extends WarmUp {
    override end(): Promise<number> {
      return super.end(0)
    }
  }
  const startFailing = (parts: WarmUpDeps): WarmUp =>
    new WarmUp({ ...parts, data: { ...parts.data, serving: { cert: 'none', key: 'none' } } })
  for (const startWarmUp of [startFailing, (parts: WarmUpDeps) => new late(parts)]) {
    const { thread, posted } = await startThread(startWarmUp)
    thread.receive({ type: 'listen', addresses: [ANY_PORT] })
    await waitFor('its ports', () => posted.some(({ type }) => type === 'listening'))
    const logged = await waitFor(
      'its log',
      () => posted.flatMap((message) => (message.type === 'lines' ? message.lines.log : []))[0],
    )
    assert.equal(logged.level, 'debug')
    assert.match(logged.message, /is not warm/)
  }
})

test('a thread that is drained before its ports are open has no open port when it is drained', async () => {
  const { thread, posted } = await startThread((parts) => new WarmUp(parts))
  thread.receive({ type: 'listen', addresses: [ANY_PORT] })
  thread.receive({ type: 'drain' })
  await waitFor('its end', () => posted.some(({ type }) => type === 'drained'))
  const types = posted.map(({ type }) => type).filter((type) => type === 'listening' || type === 'drained')
  assert.deepEqual(types, ['listening', 'drained'])
  const [port = 0] = posted.flatMap((message) => (message.type === 'listening' ? message.ports : []))
  const socket = connect({ host: ANY_PORT.host, port })
  cleanups.push(() => socket.destroy())
  await assert.rejects(once(socket, 'connect'), { code: 'ECONNREFUSED' })
})

const ANY_PORT = { host: '127.0.0.1', port: 0 }

/** A gateway thread in this one, and what it has told the main thread. */
async function startThread(startWarmUp: (parts: WarmUpDeps) => WarmUp): Promise<{
  readonly thread: GatewayThread
  readonly posted: readonly FromThread[]
}> {
  const { certPem: cert, keyPem: key } = issueServingCertificate(createCA({ commonName: 'serving' }), ['localhost'])
  const posted: FromThread[] = []
  const data = {
    ...{ place: ALONE, serving: { cert, key }, accessLog: false, auditLog: false, auditPolicy: undefined },
    config: loadConfig({ flags: { logLevel: 'debug' }, env: {}, readFile: () => '' }),
    linesTaken: new Int32Array(new SharedArrayBuffer(4)),
    knownTokens: KnownTokens.allocate(),
    connectionPlaces: ConnectionPlaces.allocate(1),
  }
  const post = (message: FromThread): void => void posted.push(message)
  const thread = new GatewayThread(data, post, await loadThreadSubjects(), startWarmUp)
  cleanups.push(() => thread.receive({ type: 'end' }))
  return { thread, posted }
}
