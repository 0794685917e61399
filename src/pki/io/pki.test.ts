// Certificates as OpenSSL reads them: names round-trip, and chains verify.

import assert from 'node:assert/strict'
import { createPrivateKey, generateKeyPairSync, X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import forge from 'node-forge'
import { createCA, generateKey, issueCertificate } from './pki.ts'

const ca = createCA({ commonName: 'Prüf-CA, a/b' })
const caCertificate = new X509Certificate(ca.certPem)
const keyPem = generateKey()

function subjectOf(certPem: string): Record<string, unknown> {
  return { ...new X509Certificate(certPem).toLegacyObject().subject }
}

test('a CA signs for itself and may sign others', () => {
  assert.equal(caCertificate.ca, true)
  assert.ok(caCertificate.checkIssued(caCertificate))
  assert.ok(caCertificate.verify(caCertificate.publicKey))
})

test('a certificate belongs to its key and to its issuer, also when the issuer is not ASCII', () => {
  const pair = issueCertificate(ca, { commonName: 'alice', usage: 'client' })
  const certificate = new X509Certificate(pair.certPem)
  assert.ok(certificate.checkIssued(caCertificate))
  assert.ok(certificate.verify(caCertificate.publicKey))
  assert.equal(certificate.ca, false)
  const other = issueCertificate(ca, { commonName: 'bob', usage: 'client' })
  assert.notEqual(certificate.serialNumber, new X509Certificate(other.certPem).serialNumber)
  assert.equal(certificate.publicKey.equals(new X509Certificate(other.certPem).publicKey), false)
})

const RSA_KEY = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
}).privateKey
const P384_KEY = generateKeyPairSync('ec', {
  namedCurve: 'P-384',
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
}).privateKey

test('new keys are on P-256; a CA with an RSA key or on another curve issues for either kind', () => {
  assert.equal(caCertificate.publicKey.asymmetricKeyDetails?.namedCurve, 'prime256v1')
  const keys = [keyPem, RSA_KEY, P384_KEY]
  for (const caKey of keys) {
    const issuer = createCA({ commonName: 'some CA', keyPem: caKey })
    const own = new X509Certificate(issuer.certPem)
    assert.ok(own.verify(own.publicKey))
    for (const leafKey of keys) {
      const leaf = new X509Certificate(
        issueCertificate(issuer, { commonName: 'x', usage: 'both', keyPem: leafKey }).certPem,
      )
      assert.ok(leaf.checkIssued(own) && leaf.verify(own.publicKey))
      assert.ok(leaf.checkPrivateKey(createPrivateKey(leafKey)))
    }
  }
})

test('an RSA certificate is, byte for byte, signed as forge signs it, and names keys as forge does', () => {
  const issuer = createCA({ commonName: 'some CA', keyPem: RSA_KEY })
  const { certPem } = issueCertificate(issuer, { commonName: 'x', usage: 'client', keyPem: RSA_KEY })
  const parsed = forge.pki.certificateFromPem(certPem)
  const signed = forge.asn1.toDer(parsed.tbsCertificate).getBytes()
  assert.equal(parsed.signature, forge.pki.privateKeyFromPem(RSA_KEY).sign(forge.md.sha256.create().update(signed)))
  assert.ok(parsed.verifySubjectKeyIdentifier())
  assert.ok(forge.pki.certificateFromPem(issuer.certPem).verify(parsed))
})

test('a CA whose key cannot sign certificates is refused', () => {
  const { privateKey } = generateKeyPairSync('x25519', {
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  })
  const expected = /a key of type x25519 cannot sign certificates/
  assert.throws(() => createCA({ commonName: 'x', keyPem: privateKey }), expected)
  assert.throws(() => issueCertificate({ ...ca, keyPem: privateKey }, { commonName: 'x', usage: 'client' }), expected)
})

test('names survive: spaces, commas, slashes, percent signs, UTF-8, several organizations in order', () => {
  const organizations = ['system:masters', 'Müller, Söhne & Co', 'a/b', '100%', '日本 語', 'x=y+z', 'a"b\\c', '#1']
  for (const commonName of ['jane doe', 'Doe, Jane', 'a/b', '100%', 'Zoë 🦊', 'system:node:n-1', '"q"', 'CN=x+O=y']) {
    const pair = issueCertificate(ca, { commonName, organizations, uid: 'uid, ä/1', usage: 'client', keyPem })
    assert.deepEqual(subjectOf(pair.certPem), {
      CN: commonName,
      O: organizations,
      '1.3.6.1.4.1.57683.2': 'uid, ä/1',
    })
  }
})

test('any name survives', () => {
  // Directory strings cannot contain NUL, and OpenSSL rejects an empty one.
  const name = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }).filter((text) => !text.includes('\0'))
  fc.assert(
    fc.property(name, fc.array(name, { minLength: 2, maxLength: 4 }), (commonName, organizations) => {
      const pair = issueCertificate(ca, { commonName, organizations, usage: 'client', keyPem })
      assert.deepEqual(subjectOf(pair.certPem), { CN: commonName, O: organizations })
    }),
    { numRuns: 20 },
  )
})

test('extended key usage', () => {
  const oids = { clientAuth: '1.3.6.1.5.5.7.3.2', serverAuth: '1.3.6.1.5.5.7.3.1' }
  const usageOf = (usage: 'client' | 'server' | 'both' | 'none'): readonly string[] =>
    new X509Certificate(issueCertificate(ca, { commonName: 'x', usage, keyPem }).certPem).keyUsage ?? []
  assert.deepEqual(usageOf('client'), [oids.clientAuth])
  assert.deepEqual(usageOf('server'), [oids.serverAuth])
  assert.deepEqual([...usageOf('both')].sort(), [oids.serverAuth, oids.clientAuth])
  assert.deepEqual(usageOf('none'), [])
})

test('host names and addresses', () => {
  const dnsNames = ['gateway.example.com', '*.example.org']
  const pair = issueCertificate(ca, {
    commonName: 'x',
    usage: 'server',
    dnsNames,
    ipAddresses: ['10.0.0.1', 'fd00::1'],
  })
  const certificate = new X509Certificate(pair.certPem)
  assert.equal(certificate.checkHost('gateway.example.com'), 'gateway.example.com')
  assert.equal(certificate.checkHost('a.example.org'), '*.example.org')
  assert.equal(certificate.checkHost('other.example.com'), undefined)
  assert.equal(certificate.checkIP('10.0.0.1'), '10.0.0.1')
  assert.equal(certificate.checkIP('fd00::1'), 'fd00::1')
  assert.equal(certificate.checkIP('10.0.0.2'), undefined)
  assert.throws(() => issueCertificate(ca, { commonName: 'x', usage: 'server', ipAddresses: ['10.0.0.256'], keyPem }))
})

test('validity is as requested, on both sides of 2050', () => {
  const notBefore = new Date('2020-02-03T04:05:06Z')
  for (const end of ['2021-02-03T04:05:06Z', '2060-02-03T04:05:06Z']) {
    const notAfter = new Date(end)
    const { certPem } = issueCertificate(ca, { commonName: 'x', usage: 'client', notBefore, notAfter, keyPem })
    const certificate = new X509Certificate(certPem)
    assert.equal(certificate.validFromDate.getTime(), notBefore.getTime())
    assert.equal(certificate.validToDate.getTime(), notAfter.getTime())
  }
  const { certPem } = issueCertificate(ca, { commonName: 'x', usage: 'client', notBefore, days: 2, keyPem })
  assert.equal(new X509Certificate(certPem).validToDate.toISOString(), '2020-02-05T04:05:06.000Z')
})

test('an intermediate CA issues in its own name', () => {
  const intermediate = issueCertificate(ca, { commonName: 'Zwischen-CÄ', usage: 'none', isCA: true })
  const issuer = new X509Certificate(intermediate.certPem)
  assert.equal(issuer.ca, true)
  assert.ok(issuer.checkIssued(caCertificate))
  const leaf = new X509Certificate(issueCertificate(intermediate, { commonName: 'x', usage: 'client', keyPem }).certPem)
  assert.ok(leaf.checkIssued(issuer))
  assert.ok(leaf.verify(issuer.publicKey))
  assert.equal(leaf.checkIssued(caCertificate), false)
})
