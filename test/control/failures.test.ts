// Credentials that fail at the embedded API server and at the admin listener: free at first, then a wrong one is 429 at both, with Retry-After;
// valid ones of the same address are served.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { Agent, request } from 'undici'
import { type Logger, SILENT } from '../../src/kit/api/ports.ts'
import { ADMIN_GROUP } from '../../src/kube/api/own-names.ts'
import { issueControlToken } from '../../src/pki/io/control-tokens.ts'
import { createCA, issueCertificate, type KeyPair } from '../../src/pki/io/pki.ts'
import { loadConfig } from '../../src/process/config/config.ts'
import type { RunningGateway } from '../../src/program/lifecycle/running-gateway.ts'
import { startGateway } from '../../src/program/lifecycle/start-gateway.ts'
import { h2Connect, h2Request, type Response, valuesOf } from '../harness/clients/h2-client.ts'
import { floodWithKeyUpdates, openTls13 } from '../harness/clients/tls13-client.ts'
import { allPorts } from '../harness/gateways/all-ports.ts'
import { serverCertificate } from '../harness/pki.ts'
import { waitFor } from '../harness/wait.ts'

const FREE = 5
const [GUESSER, OTHER] = ['127.0.0.7', '127.0.0.8']
const TOKEN = 'S3cret-of-the-file'
let dir: string
let gateway: RunningGateway
const warnings: { readonly message: string; readonly fields: Readonly<Record<string, unknown>> | undefined }[] = []
const closers: (() => unknown)[] = []

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'portcullis-failures-'))
  const write = (name: string, text: string): string => {
    writeFileSync(join(dir, name), text)
    return join(dir, name)
  }
  const { certPem, keyPem } = serverCertificate(createCA({ commonName: 'admin' }), ['localhost'], ['127.0.0.1'])
  const flags = {
    ...allPorts(join(dir, 'data')),
    healthListen: '127.0.0.1:0',
    adminTokenFile: write('token', TOKEN),
    adminTlsCertFile: write('tls.crt', certPem),
    adminTlsPrivateKeyFile: write('tls.key', keyPem),
    healthTlsCertFile: join(dir, 'tls.crt'),
    healthTlsPrivateKeyFile: join(dir, 'tls.key'),
    maxAuthenticationFailures: String(FREE),
    authenticationFailureBlock: '60s',
  }
  const log: Logger = { ...SILENT, warn: (message, fields) => void warnings.push({ message, fields }) }
  gateway = await startGateway(loadConfig({ flags, env: {}, readFile: () => '' }), { inline: true, log })
  closers.push(
    () => gateway.stop(),
    () => rmSync(dir, { recursive: true, force: true }),
  )
})
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
  warnings.length = 0
})

function pki(name: string): string {
  return readFileSync(join(dir, 'data/control/pki', name), 'utf8')
}

let guesses = 0

/** At the embedded API server, on a connection of its own. */
async function control(localAddress: string, token?: string, certificate?: KeyPair): Promise<Response> {
  const session = h2Connect({ port: gateway.controlPort, localAddress, ...(certificate && { certificate }) })
  try {
    const authorization = token === undefined ? [] : ['authorization', `Bearer ${token}`]
    return await h2Request(session, [':path', '/api/v1/namespaces', ...authorization])
  } finally {
    session.destroy()
  }
}

/** At the admin listener. */
async function admin(
  localAddress: string,
  path: string,
  token?: string,
  form?: string,
): Promise<{ code: number; retryAfter: string; text: string }> {
  const dispatcher = new Agent({ connect: { rejectUnauthorized: false }, localAddress })
  try {
    const { statusCode, headers, body } = await request(`https://127.0.0.1:${gateway.adminPort}${path}`, {
      method: form === undefined ? 'GET' : 'POST',
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
      ...(form !== undefined && { body: form }),
      dispatcher,
    })
    return { code: statusCode, retryAfter: String(headers['retry-after'] ?? ''), text: await body.text() }
  } finally {
    await dispatcher.close()
  }
}

function guess(localAddress: string): Promise<Response> {
  return control(localAddress, `guess-${guesses++}`)
}

/** What a client is answered while GUESSER is blocked, before and after: its blocks get longer until it fits in. */
function whileBlocked<T>(ask: () => Promise<T>): Promise<T> {
  return waitFor('answers while it is blocked', async () => {
    if ((await guess(GUESSER)).status !== 429) return false
    const answer = await ask()
    return (await guess(GUESSER)).status === 429 && { answer }
  }).then(({ answer }) => answer)
}

test('a wrong credential of a blocked address is 429 at both ports; valid ones, and other addresses, are served', async () => {
  for (let i = 0; i < FREE; i++) assert.equal((await guess(GUESSER)).status, 401)
  const refused = await whileBlocked(() => guess(GUESSER))
  const status = JSON.parse(refused.body.toString())
  assert.equal(status.reason, 'TooManyRequests')
  assert.match(status.message, /from address 127\.0\.0\.7 .*retry in \d+ s; valid credentials are served/)
  assert.equal(status.details.retryAfterSeconds, Number(valuesOf(refused.head, 'retry-after')[0]))

  const ann = { commonName: 'ann', organizations: [ADMIN_GROUP], usage: 'client' } as const
  const certificate = issueCertificate({ certPem: pki('ca.crt'), keyPem: pki('ca.key') }, ann)
  const validity = { ttlSeconds: 3600, nowMs: Date.now() }
  const token = issueControlToken(pki('token.key'), { user: 'ann', groups: [ADMIN_GROUP], ...validity })
  const served = await whileBlocked(async () => [
    (await control(GUESSER, undefined, certificate)).status,
    (await control(GUESSER, token)).status,
    (await admin(GUESSER, '/metrics', token)).code,
    (await admin(GUESSER, '/metrics', TOKEN)).code,
    (await admin(GUESSER, '/metrics')).code,
    (await guess(OTHER)).status,
    (await admin(OTHER, '/metrics', 'wrong')).code,
    (await admin(OTHER, '/login', undefined, `token=${TOKEN}`)).code,
  ])
  // A client without a credential has not guessed one.
  assert.deepEqual(served, [200, 200, 200, 200, 401, 401, 401, 303])

  const [wrong, login] = await whileBlocked(async () => [
    await admin(GUESSER, '/metrics', 'wrong'),
    await admin(GUESSER, '/login', undefined, `token=${TOKEN}`),
  ])
  for (const answer of [wrong, login]) {
    assert.equal(answer?.code, 429)
    assert.ok(Number(answer?.retryAfter) > 0)
  }
  const { text } = await admin(GUESSER, '/metrics', TOKEN)
  assert.match(text, /portcullis_limited_total\{limit="authentication-failures",known="false"\} [1-9]/)
})

test('guesses at the admin listener count at the API server as well', async () => {
  for (let i = 0; i < FREE; i++) assert.equal((await admin(GUESSER, '/metrics', `guess-${guesses++}`)).code, 401)
  await waitFor('429 for a guess that the API server has counted before', async () => {
    await admin(GUESSER, '/metrics', `guess-${guesses++}`)
    return (await control(GUESSER, 'the same')).status === 429
  })
  assert.equal((await control(OTHER, 'wrong')).status, 401)
})

test('a client that goes on with a token that has expired does not block its address', async () => {
  for (let i = 0; i < 6 * FREE; i++) {
    assert.equal((await control(GUESSER, 'expired')).status, 401)
    assert.equal((await admin(GUESSER, '/metrics', 'expired')).code, 401)
  }
})

/** A connection that says only this; resolves when it has ended. '' = it leaves at once. */
async function say(port: number, bytes: string, localAddress: string): Promise<void> {
  const socket = connect({ port, host: '127.0.0.1', localAddress })
  socket.on('error', () => undefined)
  socket.resume()
  await once(socket, 'connect')
  if (bytes === '') socket.end()
  else socket.write(bytes)
  await once(socket, 'close')
}

const PORTS = {
  'API server': () => gateway.controlPort,
  'webhook of pod protection': () => gateway.webhookPort,
  'admin listener': () => gateway.adminPort,
}

for (const [name, port] of Object.entries(PORTS)) {
  test(`handshakes that fail at the ${name} count; a look whether the port is open does not`, async () => {
    for (let i = 0; i < 5 * FREE; i++) await say(port(), '', GUESSER)
    assert.equal((await guess(GUESSER)).status, 401)
    assert.equal((await admin(GUESSER, '/metrics', 'wrong')).code, 401)
    await waitFor('429 for a credential that was counted before', async () => {
      await say(port(), 'no TLS', GUESSER)
      return (await control(GUESSER, 'guess-known')).status === 429
    })
    await say(port(), 'no TLS', OTHER)
    assert.equal((await control(OTHER, 'wrong')).status, 401)
  })
  test(`KeyUpdate messages without end close their connection to the ${name}, and count`, async () => {
    const flood = async (): Promise<void> => {
      const client = await openTls13(port(), 'localhost', GUESSER, 'http/1.1')
      closers.push(() => client.socket.destroy())
      await floodWithKeyUpdates(client)
    }
    await waitFor('429 for a credential that was counted before', async () => {
      await Promise.all(Array.from({ length: FREE }, flood))
      return (await control(GUESSER, 'guess-known')).status === 429
    })
    if (name !== 'API server') return
    const { text } = await admin(OTHER, '/metrics', TOKEN)
    assert.match(text, /portcullis_http2_abuse_total\{side="client",kind="empty-records"\} [1-9]/)
    assert.ok(warnings.some(({ fields }) => fields?.['address'] === GUESSER && fields['kind'] === 'emptyRecords'))
  })
}

test('handshakes that fail at the health listener do not count', async () => {
  for (let i = 0; i < 5 * FREE; i++) await say(gateway.healthPort, 'no TLS', GUESSER)
  assert.equal((await guess(GUESSER)).status, 401)
})
