// Certificates as OpenSSL reads them: names round-trip, and chains verify.

import assert from 'node:assert/strict'
import { generateKeyPairSync, X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import forge from 'node-forge'
import { createCA, generateKey, issueCertificate } from './pki.ts'

const ca = createCA({ commonName: 'Prüf-CA, a/b' })
const caCertificate = new X509Certificate(ca.certPem)
/** Key generation takes longer than everything else. */
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

test('signatures are those that forge makes itself', () => {
  const signedByForge = (certPem: string, signer: string): string => {
    const certificate = forge.pki.certificateFromPem(certPem)
    const signed = Buffer.from(forge.asn1.toDer(certificate.tbsCertificate).getBytes(), 'latin1')
    const digest = forge.md.sha256.create().update(signed.toString('latin1'))
    return forge.pki.privateKeyFromPem(signer).sign(digest)
  }
  const signatureOf = (certPem: string): string => forge.pki.certificateFromPem(certPem).signature
  assert.equal(signatureOf(ca.certPem), signedByForge(ca.certPem, ca.keyPem))
  fc.assert(
    fc.property(fc.string({ minLength: 1 }), fc.constantFrom('client', 'server', 'both', 'none'), (name, usage) => {
      const { certPem } = issueCertificate(ca, { commonName: name, usage, keyPem })
      assert.equal(signatureOf(certPem), signedByForge(certPem, ca.keyPem))
    }),
    { numRuns: 10 },
  )
})

test('a CA with a key of another kind than RSA is refused', () => {
  const { privateKey } = generateKeyPairSync('ec', {
    namedCurve: 'P-256',
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  })
  assert.throws(() => createCA({ commonName: 'x', keyPem: privateKey }), /RSA/)
  assert.throws(() => issueCertificate({ ...ca, keyPem: privateKey }, { commonName: 'x', usage: 'client' }), /RSA/)
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
