// GET /api/v1/tap of a real gateway process with two threads, in front of a stub.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { ClientHttp2Session } from 'node:http2'
import { after, afterEach, before, test } from 'node:test'
import { createCA, type KeyPair } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Open, h2Request } from '../harness/clients/h2-client.ts'
import { openRaw } from '../harness/clients/raw-clients.ts'
import { startGateway, type TestGateway } from '../harness/gateways/gateway.ts'
import { ALLOW_ALL, clientPair, clusterObject } from '../harness/objects/objects.ts'
import { MAIN } from '../harness/program.ts'
import { reply, type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'
import { openTap, type TapReader } from './tap-reader.ts'

const HOST = 'prod.example.com'
const SECRET = 'S3cret-value-nobody-may-see'
const clientCA: KeyPair = createCA({ commonName: 'clients of prod' })
const alice = clientPair(clientCA, 'alice', ['dev'])
const bob = clientPair(clientCA, 'bob', ['ops'])
let stub: StubUpstream
let gateway: TestGateway
/** Several of each, so that both threads serve. */
const sessions: ClientHttp2Session[] = []
const taps: TapReader[] = []

before(async () => {
  stub = await startStub()
  const limits = [
    { name: 'none', tokenBucket: { qps: 1, burst: 1 } },
    { name: 'all', exempt: {} },
  ]
  const dispatchPolicies = [
    { rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['secrets'] }], flowControlSchemaName: 'none' },
    { ...ALLOW_ALL, flowControlSchemaName: 'all' },
  ]
  const spec = { dispatchPolicies, flowControl: { flowControlSchemas: limits } }
  gateway = await startGateway({
    clusters: [clusterObject([stub], { clientCA, spec })],
    args: ['--replica-name=gw-0', '--audit-log-path=-'],
  })
  for (let i = 0; i < 4; i++) sessions.push(connect(alice), connect(bob))
})
after(async () => {
  for (const session of sessions) session.destroy()
  await gateway?.stop()
  await stub?.stop()
})
afterEach(async () => {
  if (gateway === undefined) return
  for (const tap of taps.splice(0)) tap.close()
  await waitFor('no tap', async () => /^portcullis_taps 0$/m.test(await gateway.metrics()))
  stub.answer = (request) => reply(request, 200, '{"kind":"Stub"}')
})

function connect(certificate: KeyPair): ClientHttp2Session {
  return h2Connect({ port: gateway.port, serverName: HOST, certificate })
}

async function tap(query = ''): Promise<TapReader> {
  const reader = await openTap(gateway.adminPort, query)
  taps.push(reader)
  return reader
}

async function list(session: ClientHttp2Session | undefined, path: string, ...fields: string[]): Promise<number> {
  assert.ok(session)
  return (await h2Request(session, [':path', path, ...fields])).status
}

/** Asks again until the tap shows it: a thread takes a moment to begin. @returns how often it has asked */
async function shownOf(reader: TapReader, session: ClientHttp2Session | undefined, path: string): Promise<number> {
  const before = reader.requests().length
  let asked = 0
  await waitFor(`${path} in the tap`, async () => {
    await list(session, path)
    asked++
    return reader.requests().length > before
  })
  return asked
}

test('requests of all threads are shown, with decision and timing, and only those that match', async () => {
  const reader = await tap('user=alice&cluster=prod*')
  await waitFor('both threads', async () => {
    for (const session of sessions) await list(session, '/api/v1/namespaces/shop/pods?limit=5', 'user-agent', 'test/1')
    if (new Set(reader.requests().map(({ thread }) => thread)).size === 2) return true
    // All that alice has may be on one thread, and bob's on the other.
    sessions.push(connect(alice))
    return false
  })
  await list(sessions[0], '/healthz')
  await waitFor('a refusal', async () => (await list(sessions[0], '/api/v1/secrets')) === 429)
  const refused = await reader.shown('the refusal', ({ code }) => code === 429)
  assert.deepEqual(
    [refused.refusal, refused.refusedBy, refused.limit, refused.attempts, refused.endpoint, refused.upstreamMs],
    ['rate-limited', 'none', 'none', 0, '', -1],
  )
  const [pods] = reader.requests()
  assert.ok(pods)
  const { verb, resource, namespace, query, userAgent, policy, rule, endpoint, attempts, replica, code } = pods
  assert.deepEqual(
    { verb, resource, namespace, query, userAgent, policy, rule, endpoint, attempts, replica, code },
    {
      ...{ verb: 'list', resource: 'pods', namespace: 'shop', query: 'limit=5', userAgent: 'test/1', policy: 1 },
      ...{ rule: 0, endpoint: stub.url, attempts: 1, replica: 'gw-0', code: 200 },
    },
  )
  assert.ok(pods.totalMs >= pods.upstreamMs && pods.upstreamMs >= 0 && pods.responseBytes > 0)
  assert.equal((await reader.shown('the path', ({ path }) => path === '/healthz')).resource, '')
  assert.deepEqual([...new Set(reader.requests().map(({ user }) => user))], ['alice'])
})

test('a long-running request is shown when its response begins and at its end, and when it begins if asked for', async () => {
  const reader = await tap('verb=watch&started=true')
  const path = '/api/v1/pods?watch=true'
  await shownOf(reader, sessions[0], path)
  const shown = reader.requests().length
  stub.answer = ({ stream }) => stream.respond([':status', '200'])
  assert.ok(sessions[0])
  const watch = h2Open(sessions[0], [':path', path, 'audit-id', 'the-watch'])
  const phases = (): string[] =>
    reader
      .requests()
      .slice(shown)
      .filter(({ auditID }) => auditID === 'the-watch')
      .map(({ phase, code }) => `${phase} ${code}`)
  await waitFor('the response', () => phases().length === 2)
  watch.destroy()
  await waitFor('the end', () => phases().length === 3)
  assert.deepEqual(phases(), ['started 0', 'responding 200', 'ended 200'])
})

test('no secret of a request is shown, and nothing that a terminal would obey', async () => {
  const reader = await tap()
  await shownOf(reader, sessions[0], '/api/v1/pods')
  const exec = `/api/v1/namespaces/shop/pods/web/exec?command=mysql&command=-p${SECRET}&container=db`
  await list(sessions[0], exec, 'authorization', `Bearer ${SECRET}`, 'cookie', SECRET, 'x-custom', SECRET)
  await list(sessions[0], `/login?access_token=${SECRET}&${SECRET}&x=${SECRET}`)
  await list(sessions[0], `/api/v1/configmaps?continue=${SECRET}`)
  await list(sessions[0], `/api/v1/namespaces/shop/services/web/proxy/reset/${SECRET}?${SECRET}`)
  assert.ok(sessions[0])
  await h2Request(sessions[0], [':method', 'POST', ':path', '/api/v1/namespaces/shop/secrets'], Buffer.from(SECRET))
  // Encoded in the path, and as bytes that a terminal in an 8-bit mode obeys.
  await list(
    sessions[0],
    '/api/v1/namespaces/%1b%5b2J%e2%80%ae/pods',
    'user-agent',
    'evil\u009b2J\u009d0;x\u0007'.slice(0, -1),
  )
  const raw = await openRaw({ port: gateway.port, serverName: HOST, cert: alice })
  raw.send(Buffer.from(`GET /version HTTP/1.1\r\nHost: ${HOST}\r\nUser-Agent: raw\x1b[31m\x9b\r\n\r\n`, 'latin1'))
  raw.send(`GET /last HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`)
  await raw.until(/HTTP\/1.1 \d/)
  raw.destroy()
  const evil = await reader.shown('the user agent', ({ userAgent }) => userAgent.startsWith('evil'))
  assert.equal(evil.namespace, '\u001b[2J\u202e')
  await reader.shown('the body', ({ resource, method }) => resource === 'secrets' && method === 'POST')
  assert.ok(!reader.text().includes(SECRET))
  assert.match(reader.text(), /command=\[redacted\]&container=db/)
  assert.match(reader.text(), /^[\n\x20-\x7e\u00a1-\uffff]*$/)
})

test('a flood is shown at the rate of the tap, every event is shown or counted, and every request succeeds', async () => {
  const reader = await tap('maxRps=50&resource=pods')
  const asked = await shownOf(reader, sessions[0], '/api/v1/pods')
  const warmUp = 5000
  const flood = async (requests: number): Promise<number[]> => {
    const codes: number[] = []
    const workers = sessions.map(async (session, i) => {
      const own = Math.floor(requests / sessions.length) + (i < requests % sessions.length ? 1 : 0)
      for (let sent = 0; sent < own; sent += 25) {
        const batch = Array.from({ length: Math.min(25, own - sent) }, () => list(session, '/api/v1/pods'))
        codes.push(...(await Promise.all(batch)))
      }
    })
    await Promise.all(workers)
    return codes
  }
  const beganMs = performance.now()
  const codes = await flood(warmUp)
  const seconds = (performance.now() - beganMs) / 1000
  assert.equal(codes.length, 5000)
  assert.deepEqual(new Set(codes), new Set([200]))
  const shown = reader.requests().length
  // A second's worth at once, then the rate; the flood cannot be over before it has begun.
  assert.ok(shown <= 50 + 50 * (seconds + 2), `${shown} in ${seconds} s`)
  await waitFor('all to be told', () => reader.requests().length + reader.dropped() >= 5001)
  const extra = reader.requests().length + reader.dropped() - 5000
  assert.ok(extra >= 1 && extra <= asked, `${extra} of ${asked}`)
})

test('a reader that does not read costs a bounded number of events, and hears how many it has missed', async () => {
  const reader = await tap('maxRps=1000')
  await shownOf(reader, sessions[0], '/api/v1/pods')
  reader.response.pause()
  // As large as events get, so that what the kernel holds of the stream is soon full.
  const long = '%1b'.repeat(250)
  const path = `/api/v1/namespaces/${long}/pods/${long}/${long}`
  const rss = (): number => Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${gateway.pid}/status`, 'utf8'))?.[1])
  const shownSoFar = async (): Promise<number> =>
    Number(/^portcullis_tap_events_total\{outcome="shown"\} (\d+)/m.exec(await gateway.metrics())?.[1] ?? 0)
  let sent = 0
  await waitFor('an end of what the stream takes without a reader', async () => {
    const shown = await shownSoFar()
    const all = sessions.flatMap((session) => Array.from({ length: 50 }, () => list(session, path)))
    sent += all.length
    assert.deepEqual(new Set(await Promise.all(all)), new Set([200]))
    return (await shownSoFar()) === shown
  })
  const before = rss()
  for (let round = 0; round < 4; round++) {
    const all = sessions.flatMap((session) => Array.from({ length: 50 }, () => list(session, path)))
    sent += all.length
    await Promise.all(all)
  }
  assert.ok(rss() < 1.5 * before, `${before} KiB, then ${rss()} KiB`)
  reader.response.resume()
  await waitFor('the drops', () => reader.lines.some((line) => line.type === 'dropped' && line.reason === 'reader'))
  await waitFor('all to be told', () => reader.requests().length + reader.dropped() > sent)
})

test('a tap ends after so many events, and its end says how many there were', async () => {
  const reader = await tap('limit=2&user=alice')
  await shownOf(reader, sessions[0], '/api/v1/pods')
  await list(sessions[0], '/api/v1/pods')
  await list(sessions[0], '/api/v1/pods')
  await reader.ended
  assert.equal(reader.requests().length, 2)
  assert.deepEqual(reader.lines.at(-1), { type: 'end', replica: 'gw-0', reason: 'limit', shown: 2, dropped: 0 })
})

test('and after its time, with nothing to show', async () => {
  const reader = await tap('for=50ms&user=nobody')
  await reader.ended
  assert.deepEqual(
    reader.lines.map(({ type }) => type),
    ['start', 'end'],
  )
})

test('what cannot be read is refused, every error at once; so is one tap too many', async () => {
  const answer = await gateway.admin('/api/v1/tap?usr=x&maxRps=1000000')
  assert.equal(answer.status, 400)
  assert.deepEqual(answer.text.split('\n'), [
    'unknown parameter "usr"',
    'maxRps "1000000" must be a whole number from 1 to 1000',
    '',
  ])
  for (let i = 0; i < 16; i++) await tap()
  await assert.rejects(tap(), /429: this replica has 16 taps already/)
  taps.pop()?.close()
  await waitFor('room', () => tap().catch(() => undefined))
})

test('a tap is audited: who, by which filter, how many were shown', async () => {
  const reader = await tap('user=alice&verb=list&limit=1')
  await shownOf(reader, sessions[0], '/api/v1/pods')
  const event = await waitFor('the audit event', () =>
    gateway
      .accessLog()
      .find(
        ({ stage, requestURI }) =>
          stage === 'ResponseComplete' && requestURI === '/api/v1/tap?user=alice&verb=list&limit=1',
      ),
  )
  const { annotations, verb, sourceIPs } = event as { annotations: object; verb: string; sourceIPs: string[] }
  assert.equal(Reflect.get(annotations, 'portcullis.io/tap-shown'), '1')
  assert.deepEqual([verb, sourceIPs], ['get', ['127.0.0.1']])
})

test('portcullis tap: a header, rows, and a last line at Ctrl-C; a pipe that closes is no error', async () => {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const admin = `--admin=http://127.0.0.1:${gateway.adminPort}`
  const command = spawn(process.execPath, [MAIN, 'tap', 'prod.example.com', '--user=alice', admin], { env })
  let [out, err] = ['', '']
  command.stdout.on('data', (chunk: Buffer) => {
    out += chunk
  })
  command.stderr.on('data', (chunk: Buffer) => {
    err += chunk
  })
  await waitFor('a row', async () => {
    await list(sessions[0], '/api/v1/pods')
    return out.includes('forwarded\n')
  })
  const exited = once(command, 'exit')
  command.kill('SIGINT')
  assert.deepEqual(await exited, [0, null], err)
  const [header, ...rows] = out.trimEnd().split('\n')
  assert.match(header ?? '', /^TIME .* DECISION$/)
  for (const row of rows) assert.match(row, /alice .* list .* pods .* 200 .* forwarded$/)
  assert.match(err, new RegExp(`^${rows.length} shown, in \\d+s\\n$`))

  const piped = spawn(process.execPath, [MAIN, 'tap', '-o', 'json', admin], { env })
  await once(piped.stdout, 'data')
  piped.stdout.destroy()
  const closed = once(piped, 'exit')
  const gone = new AbortController()
  void closed.then(() => gone.abort())
  await waitFor('the end', async () => {
    await list(sessions[0], '/api/v1/pods')
    return gone.signal.aborted
  })
  assert.deepEqual(await closed, [0, null])
})
