// `portcullis certs` and the gateway's own serving certificate: the files on disk afterwards.

import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { ensureServingCertificate } from '../gateway/io/listener/serving-certificate.ts'
import { UserError } from '../kit/api/validation/field-errors.ts'
import { certsClient, certsInit } from './certs.ts'

const root = mkdtempSync(join(tmpdir(), 'portcullis-certs-'))
after(() => rmSync(root, { recursive: true, force: true }))

function capture(): { text: string; out: (text: string) => void; err: (text: string) => void } {
  const take = (text: string): void => {
    captured.text += text
  }
  const captured = { text: '', out: take, err: take }
  return captured
}

function certificate(dir: string, name: string): X509Certificate {
  return new X509Certificate(readFileSync(join(dir, `${name}.crt`)))
}

test('init makes a CA and a serving certificate for all hosts; keys are private', () => {
  const dir = join(root, 'init')
  assert.equal(certsInit({ dir, hosts: ['gw.example.com', '10.0.0.1', 'fd00::1'], ...capture() }), 0)
  assert.deepEqual(readdirSync(dir).sort(), ['ca.crt', 'ca.key', 'tls.crt', 'tls.key'])
  for (const name of ['ca.key', 'tls.key']) assert.equal(statSync(join(dir, name)).mode & 0o777, 0o600)
  const serving = certificate(dir, 'tls')
  assert.ok(serving.checkIssued(certificate(dir, 'ca')))
  assert.equal(serving.checkHost('gw.example.com'), 'gw.example.com')
  assert.equal(serving.checkIP('10.0.0.1'), '10.0.0.1')
  assert.equal(serving.checkIP('fd00::1'), 'fd00::1')
})

test('client makes a certificate with name, groups and uid', () => {
  const dir = join(root, 'client')
  certsInit({ dir, hosts: ['localhost'], ...capture() })
  const user = { dir, user: 'jane/döe', groups: ['a, b', 'c'], uid: '42', ...capture() }
  assert.equal(certsClient(user), 0)
  const client = certificate(dir, 'jane_d_e')
  assert.ok(client.checkIssued(certificate(dir, 'ca')))
  assert.deepEqual(
    { ...client.toLegacyObject().subject },
    { CN: 'jane/döe', O: ['a, b', 'c'], '1.3.6.1.4.1.57683.2': '42' },
  )
  assert.equal(statSync(join(dir, 'jane_d_e.key')).mode & 0o777, 0o600)
})

test('nothing is overwritten without force', () => {
  const dir = join(root, 'force')
  certsInit({ dir, hosts: ['localhost'], ...capture() })
  const ca = certificate(dir, 'ca').fingerprint256
  const refused = capture()
  assert.equal(certsInit({ dir, hosts: ['localhost'], ...refused }), 1)
  assert.match(refused.text, /^error: .*ca\.crt.* exist; use --force to overwrite\n$/)
  assert.equal(certificate(dir, 'ca').fingerprint256, ca)
  assert.equal(certsInit({ dir, hosts: ['localhost'], force: true, ...capture() }), 0)
  assert.notEqual(certificate(dir, 'ca').fingerprint256, ca)
  assert.equal(certsClient({ dir, user: 'a', groups: [], ...capture() }), 0)
  assert.equal(certsClient({ dir, user: 'a', groups: [], ...capture() }), 1)
  assert.equal(certsClient({ dir, user: 'ca', groups: [], force: true, ...capture() }), 1)
})

test('errors are one line and exit code 1', () => {
  const dir = join(root, 'errors')
  const cases: ((captured: ReturnType<typeof capture>) => number)[] = [
    (captured) => certsInit({ dir, hosts: [], ...captured }),
    (captured) => certsInit({ dir, hosts: ['no host'], ...captured }),
    (captured) => certsClient({ dir, user: 'a', groups: [], ...captured }),
    (captured) => certsClient({ dir, user: '', groups: [], ...captured }),
    (captured) => certsClient({ dir, user: 'a', groups: [], days: Number.NaN, ...captured }),
  ]
  for (const run of cases) {
    const captured = capture()
    assert.equal(run(captured), 1)
    assert.match(captured.text, /^error: [^\n]+\n$/)
  }
})

test('the serving certificate of a data directory is made once and used again', () => {
  const dataDir = join(root, 'data')
  const first = ensureServingCertificate(dataDir)
  assert.equal(first.generated, true)
  assert.deepEqual(ensureServingCertificate(dataDir), { ...first, generated: false })
  const serving = new X509Certificate(first.certPem)
  for (const ip of ['127.0.0.1', '::1']) assert.equal(serving.checkIP(ip), ip)
  assert.equal(serving.checkHost('localhost'), 'localhost')
  // Clients that trust the CA also trust the next certificate.
  const ca = certificate(join(dataDir, 'pki'), 'ca')
  rmSync(join(dataDir, 'pki', 'tls.crt'))
  rmSync(join(dataDir, 'pki', 'tls.key'))
  const second = ensureServingCertificate(dataDir)
  assert.equal(second.generated, true)
  assert.notEqual(second.certPem, first.certPem)
  assert.ok(new X509Certificate(second.certPem).checkIssued(ca))
})

test('a serving certificate that lacks a name is made again by the same CA, and keeps the names that it had', () => {
  const dataDir = join(root, 'names')
  const dir = join(dataDir, 'pki')
  assert.equal(certsInit({ dir, hosts: ['vip.example.com', '192.0.2.10'], force: false, ...capture() }), 0)
  const ca = certificate(dir, 'ca')
  const hosts = ['localhost', '192.0.2.2', '2001:db8::2', '*.example.org']
  const grown = ensureServingCertificate(dataDir, false, hosts)
  assert.equal(grown.generated, true)
  const serving = new X509Certificate(grown.certPem)
  assert.ok(serving.verify(ca.publicKey))
  for (const ip of ['127.0.0.1', '192.0.2.2', '192.0.2.10']) assert.equal(serving.checkIP(ip), ip)
  assert.ok(serving.checkIP('2001:db8::2'))
  for (const name of ['localhost', 'vip.example.com', 'prod.example.org']) assert.ok(serving.checkHost(name), name)
  for (const fewer of [hosts, ['192.0.2.2'], []]) {
    assert.deepEqual(ensureServingCertificate(dataDir, false, fewer), { ...grown, generated: false })
  }
})

test('a serving certificate that lacks a name and cannot be made again is used as it is', () => {
  const dataDir = join(root, 'unwritable')
  const dir = join(dataDir, 'pki')
  ensureServingCertificate(dataDir)
  const before = readFileSync(join(dir, 'tls.crt'), 'utf8')
  // Nothing can be written in its place.
  mkdirSync(join(dir, 'tls.unfinished'))
  const { certPem, generated } = ensureServingCertificate(dataDir, false, ['192.0.2.2'])
  assert.deepEqual([certPem, generated], [before, false])
  rmSync(join(dir, 'tls.unfinished'), { recursive: true })
  assert.ok(new X509Certificate(ensureServingCertificate(dataDir, false, ['192.0.2.2']).certPem).checkIP('192.0.2.2'))
})

test('a serving certificate has at most a hundred names, and is then not made again and again', () => {
  const hosts = (from: number): string[] => Array.from({ length: 150 }, (_, i) => `h${from + i}.example.com`)
  const dataDir = join(root, 'many-names')
  ensureServingCertificate(dataDir, false, hosts(0))
  const { certPem, generated } = ensureServingCertificate(dataDir, false, hosts(1000))
  assert.equal(generated, true)
  assert.equal(new X509Certificate(certPem).subjectAltName?.split(', ').length, 100)
  assert.equal(ensureServingCertificate(dataDir, false, hosts(1000)).generated, false)
})

test('a broken serving certificate is an error, not silently replaced', () => {
  const dataDir = join(root, 'broken')
  ensureServingCertificate(dataDir)
  const file = join(dataDir, 'pki', 'tls.crt')
  writeFileSync(file, 'no certificate')
  assert.throws(() => ensureServingCertificate(dataDir), UserError)
  assert.equal(readFileSync(file, 'utf8'), 'no certificate')
  rmSync(join(dataDir, 'pki', 'tls.crt'))
  assert.throws(() => ensureServingCertificate(dataDir), /cannot read .*tls\.crt/)
})
