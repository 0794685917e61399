// Certificates that a client presents beside its own may be of its own making: a thousand ways from one to the next are not walked.

import assert from 'node:assert/strict'
import { generateKeyPairSync, X509Certificate } from 'node:crypto'
import { mock, test } from 'node:test'
import forge from 'node-forge'
import { createCA, issueCertificate } from '../../src/pki/io/pki.ts'
import { verifyClientCertificate } from '../../src/pki/io/x509-chain.ts'

/** As many as fit into a handshake, nearly. */
const PRESENTED = 60
const der = (pem: string): Buffer => new X509Certificate(pem).raw

function generateRsaKey(): string {
  return generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  }).privateKey
}

/** `subject`, with the key of `publicPem`, signed by a key whose owner is called `issuer`. */
function forged(subject: string, publicPem: string, issuer: string, keyPem: string, serial: number): string {
  const certificate = forge.pki.createCertificate()
  const { n, e } = forge.pki.certificateFromPem(publicPem).publicKey as forge.pki.rsa.PublicKey
  certificate.publicKey = forge.pki.setRsaPublicKey(n, e)
  certificate.serialNumber = (0x1000 + serial).toString(16)
  certificate.validity.notBefore = new Date(Date.now() - 60_000)
  certificate.validity.notAfter = new Date(Date.now() + 600_000)
  certificate.setSubject([
    { name: 'commonName', value: subject, valueTagClass: forge.asn1.Type.UTF8 as unknown as forge.asn1.Class },
  ])
  certificate.setIssuer([
    { name: 'commonName', value: issuer, valueTagClass: forge.asn1.Type.UTF8 as unknown as forge.asn1.Class },
  ])
  certificate.setExtensions([{ name: 'basicConstraints', cA: true, critical: true }])
  certificate.sign(forge.pki.privateKeyFromPem(keyPem), forge.md.sha256.create())
  return forge.pki.certificateToPem(certificate)
}

test('each of many certificates that have all issued each other is looked at once', () => {
  // forge only makes certificates of RSA keys.
  const known = createCA({ commonName: 'known', keyPem: generateRsaKey() })
  const other = createCA({ commonName: 'other' })
  const keyPem = generateRsaKey()
  const mallory = createCA({ commonName: 'mallory', keyPem })
  const leaf = issueCertificate(known, { commonName: 'mallory', usage: 'client' })
  const bridge = forged('known', known.certPem, 'mallory', keyPem, 0)
  const own = Array.from({ length: PRESENTED }, (_, n) => forged('mallory', mallory.certPem, 'mallory', keyPem, n + 1))
  const chain = [leaf.certPem, bridge, ...own].map(der)
  const verify = mock.method(X509Certificate.prototype, 'verify')
  try {
    const result = verifyClientCertificate({ chain, verified: true, verifyError: '' }, other.certPem, Date.now())
    assert.ok('error' in result)
    assert.ok(verify.mock.callCount() < 100, `${verify.mock.callCount()} signatures were verified`)
    verify.mock.resetCalls()
    const good = verifyClientCertificate({ chain, verified: true, verifyError: '' }, known.certPem, Date.now())
    assert.ok(!('error' in good))
    assert.equal(verify.mock.callCount(), 1)
  } finally {
    verify.mock.restore()
  }
})
