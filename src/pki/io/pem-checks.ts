// PEM checks with OpenSSL, through node:crypto: what it accepts here, the TLS stack accepts later.

import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { PemChecks } from '../../kit/api/validation/pem-checks.ts'

/** A certificate in a PEM text. */
export const CERTIFICATE: RegExp = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g
const BEGIN_CERTIFICATE = /-----BEGIN CERTIFICATE-----/g
/** OpenSSL's security level 2, Node's default, rejects shorter keys in a handshake. */
const MIN_RSA_BITS = 2048

/** Thousands of clusters share CAs, and a cluster is checked on each write and read. */
const REMEMBERED = 10_000
const certificates = new LRUCache<string, X509Certificate>({ max: REMEMBERED })
const keys = new LRUCache<string, KeyObject>({ max: REMEMBERED })

export const nodePemChecks: PemChecks = { certificatesError, privateKeyError, keyMatches }

function certificatesError(pem: string): string {
  const blocks = pem.match(CERTIFICATE) ?? []
  const begun = pem.match(BEGIN_CERTIFICATE)?.length ?? 0
  if (begun === 0) return 'holds no PEM certificate'
  for (const [index, block] of blocks.entries()) {
    if (parseCertificate(block) === undefined) return `certificate ${index + 1} of ${begun} is damaged`
  }
  return blocks.length < begun ? 'holds a certificate that is cut off or damaged' : ''
}

function privateKeyError(pem: string): string {
  if (!pem.includes('-----BEGIN ')) return 'holds no PEM private key'
  if (/BEGIN ENCRYPTED PRIVATE KEY|Proc-Type: 4,ENCRYPTED/.test(pem)) return 'holds an encrypted private key'
  const key = parseKey(pem)
  if (key === undefined) return 'holds no PEM private key that can be read'
  const bits = key.asymmetricKeyType === 'rsa' ? (key.asymmetricKeyDetails?.modulusLength ?? 0) : MIN_RSA_BITS
  return bits < MIN_RSA_BITS ? `holds an RSA key of ${bits} bits; TLS needs ${MIN_RSA_BITS}` : ''
}

function keyMatches(certificatePem: string, keyPem: string): boolean {
  const certificate = parseCertificate(certificatePem.match(CERTIFICATE)?.[0] ?? '')
  const key = parseKey(keyPem)
  return certificate !== undefined && key !== undefined && certificate.checkPrivateKey(key)
}

function parseCertificate(pem: string): X509Certificate | undefined {
  return remembered(certificates, pem, (text) => new X509Certificate(text))
}

function parseKey(pem: string): KeyObject | undefined {
  return remembered(keys, pem, createPrivateKey)
}

/** Parse failures are not cached. */
function remembered<T extends object>(
  known: LRUCache<string, T>,
  pem: string,
  parse: (pem: string) => T,
): T | undefined {
  // Keyed by the whole text, so that one key's result is never used for another.
  const before = known.get(pem)
  if (before !== undefined) return before
  try {
    const parsed = parse(pem)
    known.set(pem, parsed)
    return parsed
  } catch {
    return undefined
  }
}
