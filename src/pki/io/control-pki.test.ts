import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { parse } from 'yaml'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { controlKubeconfig, ensureControlPki, issueControlCertificate, readControlTokenKey } from './control-pki.ts'
import { createTokenVerifier, issueControlToken } from './control-tokens.ts'
import { createCA, issueCertificate } from './pki.ts'
import { writeKeyPair } from './pki-files.ts'

const DAY_MS = 24 * 60 * 60 * 1000

function newDir(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), 'portcullis-control-pki-'))
  t.after(() => rmSync(dir, { recursive: true, force: true }))
  return join(dir, 'pki')
}

function read(dir: string): Record<string, string> {
  const names = ['ca.crt', 'ca.key', 'tls.crt', 'tls.key', 'token.key', 'admin.crt', 'admin.key', 'admin.kubeconfig']
  return Object.fromEntries(names.map((name) => [name, readFileSync(join(dir, name), 'utf8')]))
}

test('everything is made once, private, and fits together', (t) => {
  const dir = newDir(t)
  const pki = ensureControlPki(dir, ['gw.example.com', '127.0.0.1', '::1'])
  const before = read(dir)
  for (const name of ['ca.key', 'tls.key', 'token.key', 'admin.key', 'admin.kubeconfig']) {
    assert.equal(statSync(join(dir, name)).mode & 0o777, 0o600, name)
  }
  assert.equal(statSync(dir).mode & 0o777, 0o700)
  const ca = new X509Certificate(pki.caPem)
  const serving = new X509Certificate(pki.servingCert)
  assert.ok(serving.verify(ca.publicKey))
  assert.ok(serving.checkHost('gw.example.com') && serving.checkIP('127.0.0.1') && serving.checkIP('::1'))
  assert.equal(readControlTokenKey(dir), pki.tokenKey)
  const token = issueControlToken(pki.tokenKey, { user: 'a', groups: [], ttlSeconds: 60, nowMs: Date.now() })
  assert.equal(createTokenVerifier(pki.tokenKey).verify(token, Date.now())?.name, 'a')

  const config = parse(before['admin.kubeconfig'] ?? '')
  assert.equal(config.clusters[0].cluster.server, 'https://gw.example.com:9443')
  assert.equal(Buffer.from(config.clusters[0].cluster['certificate-authority-data'], 'base64').toString(), pki.caPem)
  const admin = new X509Certificate(Buffer.from(config.users[0].user['client-certificate-data'], 'base64'))
  assert.ok(admin.verify(ca.publicKey))
  assert.match(admin.subject, /O=portcullis:admins/)
  assert.match(admin.subject, /CN=portcullis-admin/)

  ensureControlPki(dir, ['gw.example.com', '127.0.0.1'])
  assert.deepEqual(read(dir), before)
})

test('a serving certificate that is about to end, or lacks a host, is made again; the CA is not', (t) => {
  const dir = newDir(t)
  const first = ensureControlPki(dir, ['one.example.com'])
  const second = ensureControlPki(dir, ['one.example.com', 'two.example.com'])
  assert.equal(second.caPem, first.caPem)
  assert.ok(new X509Certificate(second.servingCert).checkHost('two.example.com'))

  const ca = { certPem: first.caPem, keyPem: readFileSync(join(dir, 'ca.key'), 'utf8') }
  const ending = issueCertificate(ca, { commonName: 'x', usage: 'server', dnsNames: ['one.example.com'], days: 10 })
  writeKeyPair(dir, 'tls', ending)
  const third = ensureControlPki(dir, ['one.example.com'])
  assert.notEqual(third.servingCert, ending.certPem)
  assert.ok(new X509Certificate(third.servingCert).validToDate.getTime() > Date.now() + 300 * DAY_MS)
})

test('two processes with other hosts in one directory agree on one certificate', (t) => {
  const dir = newDir(t)
  const hosts = [
    ['gateway.example.com', 'pod-1', '192.0.2.1'],
    ['gateway.example.com', 'pod-2', '2001:db8::2'],
  ] as const
  const [one, two] = hosts
  ensureControlPki(dir, one)
  const { servingCert } = ensureControlPki(dir, two)
  for (const own of hosts) assert.equal(ensureControlPki(dir, own).servingCert, servingCert)
  const certificate = new X509Certificate(servingCert)
  for (const name of ['gateway.example.com', 'pod-1', 'pod-2']) assert.ok(certificate.checkHost(name), name)
  for (const address of ['192.0.2.1', '2001:db8::2']) assert.ok(certificate.checkIP(address), address)
})

test('names that are not asked for any more do not push out those that are', (t) => {
  const dir = newDir(t)
  const many = (from: number): string[] => Array.from({ length: 80 }, (_, i) => `host-${from + i}`)
  ensureControlPki(dir, many(0))
  const certificate = new X509Certificate(ensureControlPki(dir, many(80)).servingCert)
  for (const name of many(80)) assert.ok(certificate.checkHost(name), name)
  assert.equal(certificate.subjectAltName?.split(', ').length, 100)
})

test('certificates of others stay', (t) => {
  const dir = newDir(t)
  ensureControlPki(dir, ['gw.example.com'])
  const otherCA = createCA({ commonName: 'company CA' })
  const own = issueCertificate(otherCA, { commonName: 'x', usage: 'server', dnsNames: ['other.example.com'], days: 5 })
  writeKeyPair(dir, 'tls', own)
  writeFileSync(join(dir, 'admin.kubeconfig'), '# mine\n')
  const pki = ensureControlPki(dir, ['gw.example.com'], { server: 'https://lb.example.com' })
  assert.equal(pki.servingCert, own.certPem)
  assert.equal(readFileSync(join(dir, 'admin.kubeconfig'), 'utf8'), '# mine\n')
})

test('a kubeconfig of ours follows the address of the server', (t) => {
  const dir = newDir(t)
  ensureControlPki(dir, ['::1'])
  const server = (): string => parse(readFileSync(join(dir, 'admin.kubeconfig'), 'utf8')).clusters[0].cluster.server
  assert.equal(server(), 'https://[::1]:9443')
  ensureControlPki(dir, ['::1'], { server: 'https://lb.example.com:444' })
  assert.equal(server(), 'https://lb.example.com:444')
})

test('certificates and kubeconfigs for others', (t) => {
  const dir = newDir(t)
  assert.throws(() => issueControlCertificate(dir, { user: 'vera', groups: [] }), UserError)
  const { caPem } = ensureControlPki(dir, ['localhost'])
  const pair = issueControlCertificate(dir, { user: 'vera', groups: ['portcullis:viewers'], days: 7 })
  const certificate = new X509Certificate(pair.certPem)
  assert.match(certificate.subject, /CN=vera/)
  assert.ok(certificate.validToDate.getTime() < Date.now() + 8 * DAY_MS)
  assert.throws(() => issueControlCertificate(dir, { user: '', groups: [] }), UserError)
  const config = parse(controlKubeconfig({ server: 'https://x:1', caPem, user: 'vera', credential: 'a.b.c' }))
  assert.deepEqual(config.users, [{ name: 'vera', user: { token: 'a.b.c' } }])
})

test('damage is reported, and nothing is replaced', (t) => {
  const dir = newDir(t)
  ensureControlPki(dir, ['localhost'])
  const before = read(dir)
  for (const name of ['ca.crt', 'ca.key', 'tls.crt', 'admin.key']) {
    writeFileSync(join(dir, name), 'not PEM')
    assert.throws(() => ensureControlPki(dir, ['localhost']), UserError, name)
    assert.equal(readFileSync(join(dir, name), 'utf8'), 'not PEM')
    writeFileSync(join(dir, name), before[name] ?? '')
  }
  rmSync(join(dir, 'ca.key'))
  assert.throws(() => ensureControlPki(dir, ['localhost']), UserError)
  assert.ok(!existsSync(join(dir, 'ca.key')))
})

test('a CA that has ended, or is none', (t) => {
  const dir = newDir(t)
  writeKeyPair(dir, 'ca', createCA({ commonName: 'old', days: -1 }))
  assert.throws(() => ensureControlPki(dir, ['localhost']), /expired on/)
  const ca = createCA({ commonName: 'x' })
  writeKeyPair(dir, 'ca', issueCertificate(ca, { commonName: 'leaf', usage: 'both' }))
  assert.throws(() => ensureControlPki(dir, ['localhost']), /not a CA certificate/)
})

test('hosts that are none', (t) => {
  const dir = newDir(t)
  for (const hosts of [[], [''], ['a b'], ['https://x'], ['*.example.com']]) {
    assert.throws(() => ensureControlPki(dir, hosts), UserError, hosts.join())
  }
  assert.ok(!existsSync(dir))
})
