// RevokedCredentials of the embedded API server: who is revoked is out at once, on connections that are open as well.

import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, afterEach, before, describe, test } from 'node:test'
import { connect, type SecureVersion } from 'node:tls'
import { openKeyedStore } from '../../src/apiserver/io/store/keyed-store.ts'
import { controlPaths } from '../../src/gateway/io/listener/control-paths.ts'
import { certificateHashes, revocableTokenHash } from '../../src/gateway/io/reviews/credential-hashes.ts'
import { createProcessMetrics } from '../../src/gateway/metrics/process-metrics.ts'
import { UserError } from '../../src/kit/api/validation/field-errors.ts'
import { systemClock } from '../../src/kit/io/world/clock.ts'
import { issueControlCertificate } from '../../src/pki/io/control-pki.ts'
import { issueControlToken } from '../../src/pki/io/control-tokens.ts'
import type { KeyPair } from '../../src/pki/io/pki.ts'
import { loadConfig } from '../../src/process/config/config.ts'
import { LastGoodStates } from '../../src/program/last-good/states.ts'
import { createObjectPlane } from '../../src/program/object-plane/create-plane.ts'
import { ControlClient, cluster, type Json, secret, UC } from '../harness/clients/control-client.ts'
import { h2Connect, h2Request } from '../harness/clients/h2-client.ts'
import { startControl, type TestControl } from '../harness/gateways/control.ts'
import { waitFor } from '../harness/wait.ts'

const REVOKED = '/apis/portcullis.io/v1alpha1/revokedcredentials'
const SECRETS = '/api/v1/namespaces/default/secrets'
let control: TestControl
let admin: ControlClient
const clients: ControlClient[] = []

before(async () => {
  control = await startControl()
  admin = new ControlClient(control, { cert: control.admin })
})
after(async () => {
  admin.close()
  await control.stop()
  assert.deepEqual(control.errors, [])
})
afterEach(async () => {
  for (const client of clients.splice(0)) client.close()
  await admin.delete(REVOKED)
})

function certificateOf(user: string, groups: readonly string[] = ['portcullis:admins']): KeyPair {
  return issueControlCertificate(`${control.dir}/pki`, { user, groups })
}

function tokenOf(user: string): string {
  const groups = ['portcullis:admins']
  return issueControlToken(control.tokenKey, { user, groups, ttlSeconds: 600, nowMs: Date.now() })
}

function clientOf(user: { cert?: KeyPair; token?: string }): ControlClient {
  const client = new ControlClient(control, user)
  clients.push(client)
  return client
}

function revocation(name: string, spec: object): Json {
  return { apiVersion: 'portcullis.io/v1alpha1', kind: 'RevokedCredential', metadata: { name }, spec }
}

async function revoke(name: string, spec: object): Promise<void> {
  const { code, text } = await admin.post(REVOKED, revocation(name, spec))
  assert.equal(code, 201, text)
}

const leafOf = ({ certPem }: KeyPair): Buffer => new X509Certificate(certPem).raw
const fingerprintsOf = (cert: KeyPair): readonly string[] => certificateHashes(leafOf(cert))

async function assertRefused(client: ControlClient, why: RegExp): Promise<void> {
  for (const path of [UC, SECRETS, '/apis', '/livez', '/openapi/v3']) {
    const { code, json } = await client.get(path)
    assert.deepEqual([code, json?.reason], [401, 'Unauthorized'], path)
    assert.match(json.message, why)
  }
}

describe('by certificate', () => {
  for (const [what, at] of [
    ['as people print its fingerprint', 0],
    ['by the part that is signed, which no rewriting of the signature changes', 1],
  ] as const) {
    test(`${what}: the next request on the same connection is refused`, async () => {
      const cert = certificateOf('vera')
      const [same, other] = [clientOf({ cert }), clientOf({ cert: certificateOf('vera') })]
      assert.equal((await same.get(UC)).code, 200)
      await revoke('vera', { certificateFingerprint: fingerprintsOf(cert)[at], reason: 'INC-1' })
      await assertRefused(same, /^Unauthorized: the client certificate is revoked$/)
      await assertRefused(clientOf({ cert }), /certificate is revoked/)
      // Another certificate of the same user is another credential.
      assert.equal((await other.get(UC)).code, 200)
      await admin.delete(`${REVOKED}/vera`)
      assert.equal((await clientOf({ cert }).get(UC)).code, 200)
    })
  }

  test('a token beside it does not let it in', async () => {
    const cert = certificateOf('vera')
    await revoke('vera', { certificateFingerprint: fingerprintsOf(cert)[1] })
    await assertRefused(clientOf({ cert, token: tokenOf('bot') }), /certificate is revoked/)
  })

  test('by the credential-id of an audit event', async () => {
    const cert = certificateOf('vera')
    const client = clientOf({ cert })
    const { headers } = await client.get(UC)
    const event = control.audited.find(({ auditID }) => auditID === headers['audit-id'])
    await revoke('vera', { credentialID: event.user.extra['authentication.kubernetes.io/credential-id'][0] })
    await assertRefused(client, /certificate is revoked/)
    const refused = control.audited.at(-1)
    assert.equal(refused.user.username, 'vera')
    assert.deepEqual([refused.responseStatus.code, refused.objectRef], [401, undefined])
  })

  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    test(`${version}: no resumed session lets it in`, async () => {
      const cert = certificateOf('vera')
      const sessions: Buffer[] = []
      assert.match(await askOver(version, cert, sessions), /^HTTP\/1.1 200 /)
      await revoke('vera', { certificateFingerprint: fingerprintsOf(cert)[1] })
      for (const session of [undefined, ...sessions]) {
        assert.match(await askOver(version, cert, [], session), /^HTTP\/1.1 401 /)
      }
    })
  }

  test('HTTP/2: running connections are told to end', async () => {
    const cert = certificateOf('vera')
    const session = h2Connect({ port: control.port, serverName: 'localhost', certificate: cert })
    assert.equal((await h2Request(session, [':path', UC])).status, 200)
    await revoke('vera', { certificateFingerprint: fingerprintsOf(cert)[1] })
    assert.equal((await h2Request(session, [':path', UC])).status, 401)
    await waitFor('the end of the connection', () => session.closed || session.destroyed)
  })
})

/** The first line of an answer, over a connection of its own. @param sessions what the server gave to resume by is added here */
function askOver(version: SecureVersion, cert: KeyPair, sessions: Buffer[], session?: Buffer): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({
      port: control.port,
      host: '127.0.0.1',
      ca: control.caPem,
      cert: cert.certPem,
      key: cert.keyPem,
      minVersion: version,
      maxVersion: version,
      ...(session !== undefined && { session }),
    })
    let said = ''
    socket.on('session', (given: Buffer) => sessions.push(given))
    socket.on('data', (chunk: Buffer) => (said += chunk.toString()))
    socket.on('error', reject)
    socket.on('close', () => resolve(said.split('\r\n', 1)[0] ?? ''))
    socket.write(`GET ${UC} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`)
  })
}

describe('by token', () => {
  test('by the hash that no rewriting escapes, and by its id', async () => {
    for (const by of ['hash', 'id']) {
      const [token, other] = [tokenOf('bot'), tokenOf('bot')]
      const client = clientOf({ token })
      const { headers } = await client.get(UC)
      const event = control.audited.find(({ auditID }) => auditID === headers['audit-id'])
      const [credentialID] = event.user.extra['authentication.kubernetes.io/credential-id']
      await revoke(`bot-${by}`, by === 'hash' ? { tokenHash: revocableTokenHash(token) } : { credentialID })
      await assertRefused(client, /the token is revoked/)
      assert.equal((await clientOf({ token: other }).get(UC)).code, 200)
      // ECDSA: (r, n-s) is as good a signature as (r, s).
      const rewritten = otherSignature(token)
      assert.notEqual(rewritten, token)
      assert.equal((await clientOf({ token: rewritten }).get(UC)).code, 401)
      await admin.delete(`${REVOKED}/bot-${by}`)
      // It was good: only the list kept it out.
      assert.equal((await clientOf({ token: rewritten }).get(UC)).code, 200)
    }
  })
})

function otherSignature(token: string): string {
  const order = BigInt('0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551')
  const [header, payload, signature = ''] = token.split('.')
  const bytes = Buffer.from(signature, 'base64url')
  const s = BigInt(`0x${bytes.subarray(32).toString('hex')}`)
  const other = Buffer.from((order - s).toString(16).padStart(64, '0'), 'hex')
  return `${header}.${payload}.${Buffer.concat([bytes.subarray(0, 32), other]).toString('base64url')}`
}

describe('by user', () => {
  test('however the user authenticates; but not the impersonated user', async () => {
    const [byCertificate, byToken] = [clientOf({ cert: certificateOf('vera') }), clientOf({ token: tokenOf('vera') })]
    await revoke('vera', { user: 'vera' })
    await assertRefused(byCertificate, /^Unauthorized: user "vera" is revoked$/)
    await assertRefused(byToken, /user "vera" is revoked/)
    assert.equal(
      (await admin.get(UC, { 'impersonate-user': 'vera', 'impersonate-group': 'portcullis:viewers' })).code,
      200,
    )
    // Impersonation does not help the user.
    assert.equal((await byToken.get(UC, { 'impersonate-user': 'alice' })).code, 401)
  })
})

describe('what runs', () => {
  test('watches of revoked users end, others go on', async () => {
    const cert = certificateOf('vera')
    const token = tokenOf('vera')
    const own = [
      await clientOf({ cert }).watch(`${UC}?watch=1`),
      await clientOf({ token }).watch(`${SECRETS}?watch=1&allowWatchBookmarks=true`),
    ]
    const others = [
      await admin.watch(`${UC}?watch=1`),
      await clientOf({ token: tokenOf('bot') }).watch(`${UC}?watch=1`),
    ]
    await revoke('vera', { user: 'vera' })
    for (const watch of own) await watch.end()
    await admin.post(UC, cluster('seen'))
    for (const watch of others)
      await waitFor('the event', () => watch.events.some(({ object }) => object.metadata.name === 'seen'))
    assert.ok(others.every(({ ended }) => !ended))
    const ended = control.audited.filter(({ annotations }) => annotations['portcullis.io/ended-by'] === 'revocation')
    assert.deepEqual(
      ended.map(({ user, verb }) => [user.username, verb]),
      [
        ['vera', 'watch'],
        ['vera', 'watch'],
      ],
    )
    for (const watch of others) watch.close()
  })

  test('a large answer that the user does not read to its end breaks off', async () => {
    const text = 'x'.repeat(900_000)
    for (let i = 0; i < 12; i++) {
      assert.equal((await admin.post(SECRETS, secret(`large-${i}`, { stringData: { text } }))).code, 201)
    }
    const { port, caPem: ca } = control
    const { certPem: cert, keyPem: key } = certificateOf('vera')
    const sent = request({ host: '127.0.0.1', port, ca, cert, key, path: SECRETS })
    const [answer] = (await once(sent.end(), 'response')) as [IncomingMessage]
    answer.pause()
    assert.equal(answer.statusCode, 200)
    await revoke('vera', { user: 'vera' })
    let bytes = 0
    answer.on('data', (chunk: Buffer) => (bytes += chunk.length))
    const ended = once(answer, 'end').then(() => 'whole')
    const broken = once(answer, 'error').then(() => 'broken off')
    answer.resume()
    const how = await Promise.race([ended, broken]).catch(() => 'broken off')
    assert.equal(how, 'broken off', `${bytes} bytes`)
    assert.ok(bytes < Number(answer.headers['content-length']))
    assert.equal((await admin.delete(SECRETS)).code, 200)
  })

  test('a write whose body is still coming is not done', async () => {
    const { certPem: cert, keyPem: key } = certificateOf('vera')
    const body = JSON.stringify(secret('smuggled', { stringData: { a: 'b' } }))
    const headers = { 'content-type': 'application/json', 'content-length': String(body.length), 'audit-id': 'late' }
    const { port, caPem: ca } = control
    const sent = request({ host: '127.0.0.1', port, ca, cert, key, method: 'POST', path: SECRETS, headers })
    const answered = new Promise<number>((resolve, reject) => {
      sent.on('response', (answer) => resolve(answer.resume().statusCode ?? 0))
      sent.on('error', reject)
    })
    sent.write(body.slice(0, 10))
    // The head has been read and let in when another request that came later is answered on the same thread.
    await waitFor('the connection', () => sent.socket?.readyState === 'open')
    for (let i = 0; i < 5; i++) await admin.get('/version')
    await revoke('vera', { user: 'vera' })
    sent.end(body.slice(10))
    assert.equal(await answered, 401)
    assert.equal((await admin.get(`${SECRETS}/smuggled`)).code, 404)
    sent.destroy()
  })
})

describe('the list', () => {
  test('is seen and changed by administrators, and only seen by viewers', async () => {
    await revoke('vera', { user: 'vera', reason: 'INC-1', revokedAt: '2030-01-01T00:00:00Z' })
    const viewer = clientOf({ cert: control.viewer })
    const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io'
    const { json } = await viewer.get(REVOKED, { accept })
    assert.deepEqual(json.rows[0].cells.slice(0, 4), ['vera', 'vera', null, 'INC-1'])
    assert.equal((await viewer.delete(`${REVOKED}/vera`)).code, 403)
    assert.equal((await viewer.post(REVOKED, revocation('alice', { user: 'alice' }))).code, 403)
    const moved = await admin.mergePatch(`${REVOKED}/vera`, { spec: { user: 'walter' } })
    assert.equal(moved.code, 200)
    assert.equal((await clientOf({ token: tokenOf('vera') }).get(UC)).code, 200)
    assert.equal((await clientOf({ token: tokenOf('walter') }).get(UC)).code, 401)
    assert.equal((await admin.post(`${REVOKED}?dryRun=All`, revocation('bot', { user: 'bot' }))).code, 201)
    assert.equal((await clientOf({ token: tokenOf('bot') }).get(UC)).code, 200)
  })

  test('an entry names exactly one thing, and one that can be', async () => {
    for (const spec of [
      {},
      { user: '' },
      { user: 'system:anonymous' },
      { user: 'a', tokenHash: 'a'.repeat(64) },
      { tokenHash: tokenOf('a') },
      { certificateFingerprint: 'AB:CD' },
      { credentialID: 'JTI=' },
      { credentialID: 'JTI=a b' },
      { credentialID: 'X509SHA256=abc' },
      { credentialID: 'JTI=a', user: 'a' },
      { credentialID: 5 },
      { reason: 'no way' },
    ]) {
      const { code, text } = await admin.post(REVOKED, revocation('x', spec))
      assert.equal(code, 422, JSON.stringify(spec))
      assert.ok(!text.includes('eyJ'), text)
    }
  })

  test('without a readable list no client is admitted: the start fails with one line', () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'portcullis-revoked-'))
    try {
      const { store: file, storeKey: keyFile } = controlPaths(dataDir)
      const store = openKeyedStore({ file, keyFile })
      const key = { resource: 'revokedcredentials.portcullis.io', namespace: '', name: 'user-vera' }
      store.write([{ ...key, object: { spec: { user: 'vera' } }, expected: 0 }])
      store.close()
      const db = new DatabaseSync(file)
      db.exec("UPDATE bodies SET body = '{'")
      db.close()
      const config = loadConfig({ flags: { dataDir }, env: {}, readFile: () => '' })
      const quiet = (): void => undefined
      const log = { debug: quiet, info: quiet, warn: quiet, error: quiet }
      const calls = createProcessMetrics(() => 0).calls
      const isOneLine = (error: unknown): boolean =>
        error instanceof UserError && /the list of revoked credentials cannot be read: .*damaged/.test(error.message)
      assert.throws(
        () => createObjectPlane(config, log, calls, undefined, new LastGoodStates(config, systemClock, log)),
        isOneLine,
      )
      // And the store is given back.
      openKeyedStore({ file, keyFile }).close()
    } finally {
      rmSync(dataDir, { recursive: true })
    }
  })

  test('users who revoke themselves are warned', async () => {
    const client = clientOf({ token: tokenOf('vera') })
    const { code, headers } = await client.post(REVOKED, revocation('vera', { user: 'vera' }))
    assert.equal(code, 201)
    assert.match(String(headers['warning']), /the credential that you are using is now revoked/)
    await assertRefused(client, /revoked/)
    assert.equal((await admin.post(REVOKED, revocation('bot', { user: 'bot' }))).headers['warning'], undefined)
  })
})
