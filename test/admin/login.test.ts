// Who may use the admin listener: from this machine, by a token, by the users of the embedded API server, and by those of a cluster.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { Agent, type Dispatcher, request } from 'undici'
import type { AdminLogin } from '../../src/admin/app/access/admin-access.ts'
import { reviewedLogin } from '../../src/admin/app/access/objects-login.ts'
import { accessReviews } from '../../src/admin/app/access/review-access.ts'
import { AdminPort } from '../../src/admin/app/port/admin-port.ts'
import type { AdminRoute } from '../../src/admin/io/server/route.ts'
import type { Logger } from '../../src/kit/api/ports.ts'
import { ADMIN_GROUP, VIEWER_GROUP } from '../../src/kube/api/own-names.ts'
import { createCA, issueCertificate, type KeyPair } from '../../src/pki/io/pki.ts'
import { type Config, loadConfig } from '../../src/process/config/config.ts'
import { startGateway } from '../../src/program/lifecycle/start-gateway.ts'
import { serverCertificate } from '../harness/pki.ts'
import { waitFor } from '../harness/wait.ts'

const serverCA = createCA({ commonName: 'admin' })
const TOKEN = 'S3cret-of-the-file'
const closers: (() => unknown)[] = []
const logged: { message: string; fields: Record<string, unknown> }[] = []
const keep = (message: string, fields: Record<string, unknown> = {}): void => void logged.push({ message, fields })
const log: Logger = { debug: keep, info: keep, warn: keep, error: keep }
let dir: string

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'portcullis-login-'))
  logged.length = 0
})
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
  rmSync(dir, { recursive: true, force: true })
})

function write(name: string, text: string): string {
  const file = join(dir, name)
  writeFileSync(`${file}.new`, text)
  renameSync(`${file}.new`, file)
  return file
}

function tlsFlags(): { adminTlsCertFile: string; adminTlsPrivateKeyFile: string } {
  const { certPem, keyPem } = serverCertificate(serverCA, ['localhost'], ['127.0.0.1'])
  return { adminTlsCertFile: write('tls.crt', certPem), adminTlsPrivateKeyFile: write('tls.key', keyPem) }
}

interface Asked {
  readonly client?: KeyPair
  readonly token?: string
  readonly headers?: Record<string, string>
  readonly method?: Dispatcher.HttpMethod
  readonly plain?: boolean
}

async function ask(port: number, path: string, asked: Asked = {}): Promise<readonly [code: number, text: string]> {
  const { client, token, headers = {}, method = 'GET', plain = false } = asked
  const cert = client === undefined ? {} : { cert: client.certPem, key: client.keyPem }
  const dispatcher = new Agent({ connect: { ca: serverCA.certPem, ...cert } })
  closers.push(() => dispatcher.close())
  const response = await request(`http${plain ? '' : 's'}://127.0.0.1:${port}${path}`, {
    method,
    headers: { ...headers, ...(token !== undefined && { authorization: `Bearer ${token}` }) },
    dispatcher,
    reset: true,
  })
  return [response.statusCode, await response.body.text()]
}

const ROUTES: readonly AdminRoute[] = (
  [
    { path: '/api/v1/top', method: 'GET', access: 'view', replicas: true },
    { path: '/api/v1/tap', method: 'GET', access: 'view', audited: true },
    { path: '/', method: 'GET', access: 'view' },
    { path: '/debug/log-level', method: 'PUT', access: 'admin' },
  ] as const
).map((route) => ({
  ...route,
  answer: (_, { name, replica = false }) => ({
    code: 200,
    contentType: 'text/plain',
    body: `for ${replica ? 'replica ' : ''}${name}`,
  }),
}))

async function openPort(settings: Partial<Config>, login?: AdminLogin): Promise<{ port: number; audit: string[] }> {
  const audit: string[] = []
  const admin = await AdminPort.open({
    config: {
      ...loadConfig({ flags: { configDir: 'given' }, env: {}, readFile: () => '' }),
      adminListen: '127.0.0.1:0',
      ...settings,
    },
    state: { live: () => [], ready: () => [], describe: () => ({}) },
    metrics: { contentType: 'text/plain', text: () => Promise.resolve('metrics') },
    routes: ROUTES,
    login,
    log,
    audit: (line) => void audit.push(line),
  })
  closers.push(() => admin.stop())
  return { port: admin.port, audit }
}

describe('on a loopback address', () => {
  test('everybody on this machine, but no page of another site', async () => {
    const { port } = await openPort({})
    const get = (path: string, headers: Record<string, string>) => ask(port, path, { headers, plain: true })
    for (const host of ['localhost', 'LOCALHOST:9090', '127.0.0.1:1', '[::1]:9090', '[::1]', '10.1.2.3']) {
      assert.deepEqual(await get('/metrics', { host }), [200, 'metrics'], host)
    }
    for (const host of [
      'evil.example',
      'evil.example:9090',
      'localhost.evil.example',
      '127.0.0.1.evil.example',
      'a:b:1',
    ]) {
      assert.equal((await get('/metrics', { host }))[0], 403, host)
      assert.deepEqual(await get('/livez', { host }), [200, 'ok'], host)
    }
    const foreign = { 'sec-fetch-site': 'cross-site' }
    assert.equal((await get('/api/v1/top', foreign))[0], 403)
    assert.equal((await get('/', { ...foreign, 'sec-fetch-mode': 'navigate' }))[0], 200)
    assert.equal((await get('/debug/config', { ...foreign, 'sec-fetch-mode': 'navigate' }))[0], 403)
    assert.equal((await get('/api/v1/top', { origin: 'http://evil.example' }))[0], 403)
    assert.equal((await get('/api/v1/top', { origin: `http://127.0.0.1:${port}` }))[0], 200)
    assert.equal((await get('/api/v1/top', { 'sec-fetch-site': 'same-origin' }))[0], 200)
  })

  test('with a token, any client that has it; a new one counts', async () => {
    const { port } = await openPort({ adminTokenFile: write('token', `${TOKEN}\n`) })
    const code = async (token?: string) =>
      (await ask(port, '/debug/config', { plain: true, ...(token !== undefined && { token }) }))[0]
    assert.deepEqual([await code(), await code('other'), await code(TOKEN)], [401, 401, 200])
    write('token', 'another')
    await waitFor('the new token', async () => (await code('another')) === 200)
    assert.equal(await code(TOKEN), 401)
  })

  test('who used what shows the inside is logged and audited, with refusals in the audit log alone; nothing else is', async () => {
    const { port, audit } = await openPort({ adminTokenFile: write('token', TOKEN) })
    for (const path of ['/livez', '/api/v1/top', '/metrics']) await ask(port, path, { token: TOKEN, plain: true })
    assert.deepEqual([logged, audit], [[], []])
    await ask(port, '/debug/config', { plain: true })
    await ask(port, '/debug/log-level', { token: TOKEN, method: 'PUT', plain: true })
    await ask(port, '/api/v1/tap?user=a', { token: TOKEN, plain: true })
    assert.deepEqual(
      logged.map(({ message, fields }) => [message, fields['user'], fields['method'], fields['path']]),
      [
        ['admin listener used', 'portcullis:admin-token', 'PUT', '/debug/log-level'],
        ['admin listener used', 'portcullis:admin-token', 'GET', '/api/v1/tap'],
      ],
    )
    const events = audit.map((line) => JSON.parse(line))
    assert.deepEqual(
      events.map(({ requestURI, verb, user, responseStatus }) => [
        requestURI,
        verb,
        user.username,
        responseStatus.code,
      ]),
      [
        ['/debug/config', 'get', undefined, 401],
        ['/debug/log-level', 'put', 'portcullis:admin-token', 200],
        ['/api/v1/tap?user=a', 'get', 'portcullis:admin-token', 200],
      ],
    )
    assert.doesNotMatch(audit.join(), new RegExp(TOKEN))
  })
})

describe('users of a cluster', () => {
  const clusterCA = createCA({ commonName: 'cluster' })

  function setUp() {
    const asked: string[] = []
    let ca = clusterCA.certPem
    let answers = true
    const post = async (path: string, text: string) => {
      await Promise.resolve()
      if (!answers) throw new Error('away')
      const { spec } = JSON.parse(text)
      if (path.includes('tokenreviews')) {
        asked.push('token')
        const known = ['viewer', 'admin', 'replica', 'anybody'].includes(spec.token)
        const status = { authenticated: known, user: { username: spec.token, groups: [] } }
        return { status: 201, body: JSON.stringify({ status }) }
      }
      const { path: at, verb } = spec.nonResourceAttributes
      asked.push(`${spec.user} ${verb} ${at}`)
      // ClusterRole system:discovery, which every cluster gives to every authenticated user.
      const discovery = verb === 'get' && /^\/(apis?|healthz|livez|readyz|version|openapi)(\/|$)/.test(at)
      const allowed =
        spec.user === 'admin' ||
        (spec.user === 'viewer' && verb === 'get' && /^\/(portcullis\/api|metrics)/.test(at)) ||
        discovery
      return { status: 201, body: JSON.stringify({ status: { allowed } }) }
    }
    const login = reviewedLogin({
      reviews: accessReviews(post, () => 0, log, 'the admin listener'),
      clientCA: () => ca,
      ownUser: () => 'replica',
      now: Date.now,
    })
    return {
      login,
      asked,
      rotate: (to: string) => {
        ca = to
      },
      away: () => {
        answers = false
      },
    }
  }

  test('a token is reviewed, and so is the path with its verb; without one nothing is asked', async () => {
    const { login, asked, away } = setUp()
    const { port } = await openPort(tlsFlags(), login)
    assert.equal((await ask(port, '/api/v1/top'))[0], 401)
    assert.deepEqual(asked, [])
    assert.deepEqual(await ask(port, '/api/v1/top', { token: 'viewer' }), [200, 'for viewer'])
    assert.deepEqual(await ask(port, '/api/v1/top', { token: 'anybody' }), [
      403,
      'user "anybody" cannot get path "/portcullis/api/v1/top"\n',
    ])
    assert.equal((await ask(port, '/debug/log-level', { token: 'viewer', method: 'PUT' }))[0], 403)
    assert.equal((await ask(port, '/debug/log-level', { token: 'admin', method: 'PUT' }))[0], 200)
    assert.equal((await ask(port, '/api/v1/top', { token: 'invented' }))[0], 401)
    assert.deepEqual(await ask(port, '/livez'), [200, 'ok'])
    assert.deepEqual(asked, [
      'token',
      'viewer get /portcullis/api/v1/top',
      'token',
      'anybody get /portcullis/api/v1/top',
      'viewer put /debug/log-level',
      'token',
      'admin put /debug/log-level',
      'token',
    ])
    // A browser's cookies hold no token: only the number of a session with the dashboard counts.
    const headers = { cookie: 'a=b; __Host-portcullis-token=viewer; __Host-portcullis-session=viewer' }
    assert.equal((await ask(port, '/api/v1/top', { headers }))[0], 401)
    // Fails closed.
    away()
    assert.equal((await ask(port, '/api/v1/top', { token: 'new' }))[0], 503)
    assert.equal((await ask(port, '/api/v1/tap', { token: 'viewer' }))[0], 503)
  })

  test('another replica is known by its own user, for what replicas ask each other alone', async () => {
    const { login } = setUp()
    const { port } = await openPort(tlsFlags(), login)
    assert.deepEqual(await ask(port, '/api/v1/top', { token: 'replica' }), [200, 'for replica replica'])
    // A client is not one by saying so.
    const said = await ask(port, '/api/v1/top?onBehalfOf=replica', { token: 'viewer' })
    assert.deepEqual(said, [200, 'for viewer'])
    assert.equal((await ask(port, '/debug/log-level', { token: 'replica', method: 'PUT' }))[0], 403)
    assert.equal((await ask(port, '/metrics', { token: 'replica' }))[0], 403)
  })

  test("a client certificate of the cluster's CA; one of another CA is refused, and a CA that is replaced is followed", async () => {
    const { login, rotate } = setUp()
    const { port } = await openPort(tlsFlags(), login)
    const certificate = (ca: KeyPair, commonName: string) => issueCertificate(ca, { commonName, usage: 'client' })
    assert.deepEqual(await ask(port, '/api/v1/top', { client: certificate(clusterCA, 'viewer') }), [200, 'for viewer'])
    assert.equal((await ask(port, '/debug/config', { client: certificate(clusterCA, 'viewer') }))[0], 403)
    const other = createCA({ commonName: 'cluster' })
    assert.equal((await ask(port, '/api/v1/top', { client: certificate(other, 'admin') }))[0], 401)
    rotate(other.certPem)
    await waitFor(
      'the new CA',
      async () => (await ask(port, '/api/v1/top', { client: certificate(other, 'admin') }))[0] === 200,
    )
    assert.equal((await ask(port, '/api/v1/top', { client: certificate(clusterCA, 'admin') }))[0], 401)
  })

  test('the reviews that invented tokens cause are bounded', async () => {
    const { login } = setUp()
    const { port } = await openPort(tlsFlags(), login)
    const codes = await Promise.all(
      Array.from({ length: 48 }, (_, i) => ask(port, '/metrics', { token: `invented-${i}` })),
    )
    assert.ok(codes.every(([code]) => code === 401 || code === 429))
    assert.ok(codes.some(([code]) => code === 429))
  })

  test('the certificate of the listener is followed', async () => {
    const { login } = setUp()
    const { port } = await openPort(tlsFlags(), login)
    const other = createCA({ commonName: 'other' })
    const { certPem, keyPem } = serverCertificate(other, ['localhost'], ['127.0.0.1'])
    write('tls.crt', certPem)
    write('tls.key', keyPem)
    const trusting = new Agent({ connect: { ca: other.certPem } })
    closers.push(() => trusting.close())
    await waitFor('the new certificate', () =>
      request(`https://127.0.0.1:${port}/livez`, { dispatcher: trusting, reset: true }).then(
        async ({ body }) => (await body.text()) === 'ok',
        () => false,
      ),
    )
  })
})

describe('users of the embedded API server', () => {
  test('admins may do everything, viewers see what happens, others nothing; also by token', async () => {
    const flags = {
      source: 'embedded',
      dataDir: join(dir, 'data'),
      listen: ['127.0.0.1:0'],
      adminListen: '127.0.0.1:0',
      controlListen: '127.0.0.1:0',
      accessLog: false,
      ...tlsFlags(),
    }
    const config = loadConfig({ flags, env: {}, readFile: () => '' })
    const gateway = await startGateway(config, { inline: true, log })
    closers.push(() => gateway.stop())
    const pki = (name: string): string => readFileSync(join(dir, 'data/control/pki', name), 'utf8')
    const ca = { certPem: pki('ca.crt'), keyPem: pki('ca.key') }
    const user = (group: string, by = ca): KeyPair =>
      issueCertificate(by, { commonName: 'ann', organizations: [group], usage: 'client' })
    const port = gateway.adminPort
    const codes = async (client?: KeyPair) => {
      const asked = client === undefined ? {} : { client }
      return [(await ask(port, '/metrics', asked))[0], (await ask(port, '/debug/config', asked))[0]]
    }
    assert.deepEqual(await codes(user(ADMIN_GROUP)), [200, 200])
    assert.deepEqual(await codes(user(VIEWER_GROUP)), [200, 403])
    assert.deepEqual(await codes(user('system:masters')), [403, 403])
    assert.deepEqual(
      await codes(user(ADMIN_GROUP, createCA({ commonName: 'portcullis control plane CA' }))),
      [401, 401],
    )
    assert.deepEqual(await codes(), [401, 401])
    assert.equal((await ask(port, '/metrics', { token: 'invented' }))[0], 401)
    assert.deepEqual(await ask(port, '/livez'), [200, 'ok'])
  })
})
