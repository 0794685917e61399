import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { test } from 'node:test'
import { nodePemChecks } from './pem-checks.ts'
import { createCA } from './pki.ts'

const { certificatesError, privateKeyError, keyMatches } = nodePemChecks
const a = createCA({ commonName: 'a' })
const b = createCA({ commonName: 'b' })

test('certificates', () => {
  assert.equal(certificatesError(a.certPem), '')
  assert.equal(certificatesError(`comment\r\n${a.certPem}\n${b.certPem}${a.keyPem}`), '')
  assert.equal(certificatesError(a.certPem.replaceAll('\n', '\r\n')), '')
  assert.match(certificatesError(''), /no PEM certificate/)
  assert.match(certificatesError(a.keyPem), /no PEM certificate/)
  assert.match(certificatesError(a.certPem + b.certPem.slice(0, -40)), /cut off/)
  assert.match(certificatesError(a.certPem + b.certPem.replace(/\n.{64}\r?\n/, '\n')), /certificate 2 of 2 is damaged/)
})

test('private keys', () => {
  assert.equal(privateKeyError(a.keyPem), '')
  assert.equal(privateKeyError(a.certPem + a.keyPem), '')
  assert.match(privateKeyError('x'), /no PEM private key/)
  assert.match(privateKeyError(a.certPem), /no PEM private key/)
  const format = { type: 'pkcs8', format: 'pem' } as const
  const ec = generateKeyPairSync('ec', {
    namedCurve: 'P-256',
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'sec1', format: 'pem' },
  })
  assert.equal(privateKeyError(ec.privateKey), '')
  // The output of `openssl ecparam -genkey`.
  const parameters = '-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n'
  assert.equal(privateKeyError(parameters + ec.privateKey), '')
  const rsa = (modulusLength: number, more = {}): string =>
    generateKeyPairSync('rsa', {
      modulusLength,
      publicKeyEncoding: { type: 'spki', format: 'pem' },
      privateKeyEncoding: { ...format, ...more },
    }).privateKey
  assert.match(privateKeyError(rsa(1024)), /1024 bits/)
  assert.match(privateKeyError(rsa(2048, { cipher: 'aes-256-cbc', passphrase: 'x' })), /encrypted/)
})

test('key and certificate of one pair', () => {
  assert.equal(keyMatches(a.certPem + b.certPem, a.keyPem), true)
  assert.equal(keyMatches(b.certPem + a.certPem, a.keyPem), false)
})
