// `portcullis login` behind a proxy of the company: the provider is reached through it, except where NO_PROXY says otherwise.

import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { type AddressInfo, connect } from 'node:net'
import { join } from 'node:path'
import process from 'node:process'
import type { Duplex } from 'node:stream'
import { after, afterEach, before, beforeEach, test } from 'node:test'
import { createCA } from '../../src/pki/io/pki.ts'
import { serverCertificate } from '../harness/pki.ts'
import { LoginRuns } from '../harness/servers/login-runs.ts'
import { type OidcIssuer, startOidcIssuer } from '../harness/servers/oidc-issuer.ts'

const VARIABLES = ['HTTPS_PROXY', 'https_proxy', 'NO_PROXY', 'no_proxy'] as const

let issuer: OidcIssuer
let runs: LoginRuns
let proxy: Server
const asked: string[] = []
const SAVED = new Map(VARIABLES.map((name) => [name, process.env[name]]))

function tunnel(request: IncomingMessage, client: Duplex): void {
  const [, port = ''] = (request.url ?? '').split(':')
  asked.push(request.url ?? '')
  const server = connect(Number(port), '127.0.0.1', () => {
    client.write('HTTP/1.1 200 Connection established\r\n\r\n')
    client.pipe(server).pipe(client)
  })
  server.on('error', () => client.destroy())
  client.on('error', () => server.destroy())
}

before(async () => {
  issuer = await startOidcIssuer({ people: { alice: { email: 'alice@example.com' } } })
  proxy = createServer().on('connect', tunnel)
  await new Promise<void>((resolve) => void proxy.listen(0, '127.0.0.1', resolve))
})
after(async () => {
  proxy.closeAllConnections()
  proxy.close()
  await issuer?.stop()
})
beforeEach(() => {
  runs = new LoginRuns(issuer)
  asked.length = 0
  for (const name of VARIABLES) delete process.env[name]
  process.env['HTTPS_PROXY'] = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
})
afterEach(() => {
  runs.remove()
  for (const [name, value] of SAVED) {
    if (value === undefined) delete process.env[name]
    else process.env[name] = value
  }
})

test('by HTTPS_PROXY, with the CA of --issuer-ca-file', async () => {
  const { code, err } = await runs.login()
  assert.equal(code, 0, err)
  assert.deepEqual([...new Set(asked)], [new URL(issuer.url).host])
})

test('not for what is in NO_PROXY', async () => {
  process.env['NO_PROXY'] = 'localhost'
  const { code, err } = await runs.login()
  assert.equal(code, 0, err)
  assert.deepEqual(asked, [])
})

test('a proxy that is away is named in one line', async () => {
  process.env['HTTPS_PROXY'] = 'http://127.0.0.1:1'
  const { code, err } = await runs.login()
  assert.equal(code, 1)
  assert.match(err, /^error: discovery at \S+ failed: connect ECONNREFUSED 127\.0\.0\.1:1; [^\n]+\n$/)
})

test('a proxy without a scheme, as curl takes it, is one of http://', async () => {
  process.env['HTTPS_PROXY'] = `127.0.0.1:${(proxy.address() as AddressInfo).port}`
  const { code, err } = await runs.login()
  assert.equal(code, 0, err)
  assert.deepEqual([...new Set(asked)], [new URL(issuer.url).host])
})

test('a proxy that is none is named in one line, without its password', async () => {
  for (const url of [
    'ftp://eve:s3cret@127.0.0.1:1',
    'http://eve:s3cret@[',
    'eve:s3cret@127.0.0.1:99999',
    'http://eve:s3cret%@127.0.0.1:1',
  ]) {
    process.env['HTTPS_PROXY'] = url
    const { code, err } = await runs.login()
    assert.equal(code, 1)
    assert.match(err, /^error: HTTPS_PROXY names no proxy[^\n]+\n$/)
    assert.doesNotMatch(err, /s3cret/)
  }
})

test('a proxy of https:// with the CA of --issuer-ca-file', async () => {
  const proxyCA = createCA({ commonName: 'test proxy CA' })
  const { certPem: cert, keyPem: key } = serverCertificate(proxyCA, ['localhost'], ['127.0.0.1'])
  const issuerCaFile = join(runs.dir, 'both.crt')
  writeFileSync(issuerCaFile, proxyCA.certPem + readFileSync(issuer.caFile, 'utf8'))
  const secure = createSecureServer({ cert, key }).on('connect', tunnel)
  await new Promise<void>((resolve) => void secure.listen(0, '127.0.0.1', resolve))
  try {
    process.env['HTTPS_PROXY'] = `https://localhost:${(secure.address() as AddressInfo).port}`
    const { code, err } = await runs.login({ issuerCaFile })
    assert.equal(code, 0, err)
    assert.deepEqual([...new Set(asked)], [new URL(issuer.url).host])
  } finally {
    secure.closeAllConnections()
    secure.close()
  }
})
