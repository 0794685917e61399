import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { waitFor } from '../../../test/harness/wait.ts'
import { SILENT } from '../../kit/api/ports.ts'
import { createCA, issueCertificate } from '../../pki/io/pki.ts'
import { FollowedKubeconfig } from './config-follow.ts'

const dir = mkdtempSync(join(tmpdir(), 'portcullis-kubeconfig-follow-'))
const ca = createCA({ commonName: 'cluster' })
let server: Server
let url = ''
let good = 'old'

before(async () => {
  const pair = issueCertificate(ca, { commonName: 'k', usage: 'server', ipAddresses: ['127.0.0.1'] })
  server = createServer({ cert: pair.certPem, key: pair.keyPem }, ({ headers }, response) => {
    const known = headers.authorization === `Bearer ${good}`
    response.writeHead(known ? 200 : 401, { 'content-type': 'application/json' }).end('{"kind":"APIVersions"}')
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
})
after(() => {
  server.close()
  server.closeAllConnections()
  rmSync(dir, { recursive: true, force: true })
})

function text(user: string, at = url, caPem = ca.certPem): string {
  const data = Buffer.from(caPem).toString('base64')
  return `apiVersion: v1
kind: Config
current-context: one
clusters: [{name: k, cluster: {server: '${at}', certificate-authority-data: ${data}}}]
users: [{name: u, user: ${user}}]
contexts: [{name: one, context: {cluster: k, user: u}}]
`
}

interface Followed {
  readonly config: FollowedKubeconfig
  readonly said: string[]
  write(content: string): void
  /** Polls until the change has been decided; returns the token in force. */
  token(): Promise<string | undefined>
}

function follow(name: string): Followed {
  const file = join(dir, name)
  writeFileSync(file, text('{token: old}'))
  const said: string[] = []
  const say = (message: string, fields?: object): void => void said.push(`${message} ${JSON.stringify(fields)}`)
  const config = new FollowedKubeconfig({ kubeconfigFile: file }, { ...SILENT, info: say, error: say }, { lookMs: 0 })
  return {
    config,
    said,
    write: (content) => writeFileSync(file, content),
    token: async () => (await config.access()).headers['authorization']?.replace('Bearer ', ''),
  }
}

test('a changed token is used when the server knows it, and not before', async () => {
  const { config, said, write, token } = follow('token.yaml')
  good = 'old'
  assert.equal(await token(), 'old')
  write(text('{token: next}'))
  await waitFor('a refusal', async () => (await token()) === 'old' && said.length > 0)
  assert.match(said[0] ?? '', /^the changed kubeconfig cannot be used; the one before stays in use/)
  assert.doesNotMatch(said.join(), /next/)
  assert.notEqual(config.problem, '')
  good = 'next'
  await waitFor('the new one', async () => (await token()) === 'next')
  assert.equal(config.problem, '')
  assert.deepEqual(
    said.slice(1).map((line) => line.split(' {')[0]),
    ['the changed kubeconfig is in use'],
  )
})

test('what cannot be used is refused with one line, and the one before goes on', async () => {
  good = 'old'
  const client = issueCertificate(ca, { commonName: 'u', usage: 'client' })
  const other = issueCertificate(ca, { commonName: 'u', usage: 'client' })
  const b64 = (pem: string): string => Buffer.from(pem).toString('base64')
  const cases: readonly (readonly [string, RegExp])[] = [
    ['users: [{token: sesame', /is not YAML/],
    ['', /is empty/],
    [text('{token: old}', 'https://127.0.0.1:1'), /names another server, .* restart the gateway/],
    [text('{token: old}', url.replace('127.0.0.1', 'localhost')), /names another server/],
    [text('{token: old}', url, createCA({ commonName: 'another' }).certPem), /certificate|self-signed|verify/],
    [text('{token: old}', url, 'sesame'), /its CA is not a PEM certificate/],
    [
      text(`{client-certificate-data: ${b64(client.certPem)}, client-key-data: ${b64(other.keyPem)}}`),
      /does not belong to/,
    ],
    [text('{tokenFile: gone}'), /gone does not exist|cannot be used|no such file/],
  ]
  for (const [content, expected] of cases) {
    const { said, write, token } = follow('broken.yaml')
    assert.equal(await token(), 'old')
    write(content)
    await waitFor(`a refusal: ${expected}`, async () => (await token()) === 'old' && said.length > 0)
    // Checked repeatedly, reported once.
    for (let i = 0; i < 5; i++) await token()
    assert.equal(said.length, 1, said.join())
    assert.match(said[0] ?? '', expected)
    assert.doesNotMatch(said.join(), /sesame/)
    write(text('{token: old}'))
    await waitFor('no problem', async () => (await token()) === 'old')
  }
})

test('after a 401 a changed file is checked before it is used', async () => {
  good = 'old'
  const { config, write, token } = follow('refused.yaml')
  await token()
  write(text('{token: third}', 'https://127.0.0.1:1'))
  assert.equal(config.renew(), false)
  await waitFor('a refusal', () => /another server/.test(config.problem))
  assert.equal(await token(), 'old')
  write(text('{token: third}'))
  good = 'third'
  config.renew()
  await waitFor('the new one', async () => (await token()) === 'third')
})
