// Client certificates: does a chain that OpenSSL verified in the handshake lead to the CAs of the selected cluster, and is it still valid? Checked
// once per connection, cluster and CA bundle; the result includes how long it holds.

import { X509Certificate } from 'node:crypto'
import type { PeerCertificate } from '../../kit/api/stream.ts'
import type { CertificateSubject } from '../core/user-from-cert.ts'
import { CERTIFICATE } from './pem-checks.ts'

/**
 * A printed subject with only one reading: each attribute on its own line, of a type with one name, and with a value in which nothing is escaped,
 * quoted or joined.
 */
const PLAIN_SUBJECT = /^(?:CN|O|OU)=[\w:.@-]+(?:\n(?:CN|O|OU)=[\w:.@-]+)*$/

interface VerifiedCertificate {
  readonly subject: CertificateSubject
  /** SHA-256 of the leaf's DER, lower-case hex. */
  readonly sha256: string
  /** When the first certificate of the chain expires; milliseconds since the epoch. */
  readonly notAfterMs: number
}

/** PEM bundles, each text parsed once. */
const bundles = new Map<string, readonly X509Certificate[]>()
const MAX_BUNDLES = 1024
/** Presented certificates, including the leaf; a real chain has two or three. */
const MAX_CHAIN = 8

/** Parsed in the handshake and kept until verified: parsing again costs as much as checking the signature. */
const parsed = new WeakMap<Buffer, X509Certificate>()

/** The DER of a certificate that is about to be verified. */
export function derOf(certificate: X509Certificate): Buffer {
  const der = certificate.raw
  parsed.set(der, certificate)
  return der
}

/** Can be taken once; for the connection's life only the DER is kept. */
function takeParsed(der: Buffer): X509Certificate {
  const certificate = parsed.get(der)
  if (certificate === undefined) return new X509Certificate(der)
  parsed.delete(der)
  return certificate
}

/** A presented chain that OpenSSL has verified, parsed: the leaf first, never empty. */
export type ParsedChain = readonly [X509Certificate, ...X509Certificate[]]

/** For a certificate that is compared with the CAs of many clusters. */
export function parseChain({ verified, verifyError, chain }: PeerCertificate): ParsedChain | { error: string } {
  if (!verified) return { error: verifyError || 'not verified' }
  const [leaf, ...rest] = chain.slice(0, MAX_CHAIN).map(takeParsed)
  return leaf === undefined ? { error: 'no certificate' } : [leaf, ...rest]
}

/**
 * The walk checks what selects the root: signatures, issuer flags and validity. OpenSSL checked purpose, path length and name constraints in the
 * handshake, and rejected what it could not verify.
 */
export function verifyClientCertificate(
  certificate: PeerCertificate,
  caBundlePem: string,
  nowMs: number,
): VerifiedCertificate | { error: string } {
  if (certificate.verified && caBundlePem === '') return { error: 'the cluster has no client CA' }
  const chain = parseChain(certificate)
  if ('error' in chain) return chain
  const [leaf] = chain
  const notAfterMs = chainEndsMs(chain, caBundlePem, nowMs)
  if (notAfterMs === 0) return { error: 'certificate signed by unknown authority, or expired' }
  return { ...identityIn(leaf), notAfterMs }
}

/** What names the user. */
export function identityIn(leaf: X509Certificate): Pick<VerifiedCertificate, 'subject' | 'sha256'> {
  return { subject: subjectOf(leaf), sha256: leaf.fingerprint256.replaceAll(':', '').toLowerCase() }
}

/** Until when the chain leads to a CA of the bundle, milliseconds since the epoch; 0 = it does not. */
export function chainEndsMs([leaf, ...intermediates]: ParsedChain, caBundlePem: string, nowMs: number): number {
  return new Walk(intermediates, parseBundle(caBundlePem), nowMs).from(leaf)
}

/** Searches a path from a certificate to a root. */
class Walk {
  readonly #roots: readonly X509Certificate[]
  readonly #nowMs: number
  /**
   * Intermediate certificates not visited yet. Whether a path leads on from one does not depend on how it was reached, so each is visited once: a
   * client that presents certificates which all issued each other, which costs it nothing, must not make us try every order.
   */
  readonly #left: Set<X509Certificate>

  constructor(intermediates: readonly X509Certificate[], roots: readonly X509Certificate[], nowMs: number) {
    this.#left = new Set(intermediates)
    this.#roots = roots
    this.#nowMs = nowMs
  }

  /** How long a path from `certificate` to one of the roots holds; 0 if there is none. */
  from(certificate: X509Certificate): number {
    const nowMs = this.#nowMs
    const notAfterMs = certificate.validToDate.getTime()
    if (certificate.validFromDate.getTime() > nowMs || notAfterMs <= nowMs) return 0
    for (const root of this.#roots) {
      if (root.fingerprint256 === certificate.fingerprint256) return notAfterMs
      if (!issued(root, certificate)) continue
      const rootEnds = root.validToDate.getTime()
      if (root.validFromDate.getTime() <= nowMs && rootEnds > nowMs) return Math.min(notAfterMs, rootEnds)
    }
    for (const next of this.#left) {
      if (!next.ca || !issued(next, certificate)) continue
      this.#left.delete(next)
      const ends = this.from(next)
      if (ends > 0) return Math.min(notAfterMs, ends)
    }
    return 0
  }
}

function issued(issuer: X509Certificate, certificate: X509Certificate): boolean {
  return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey)
}

function parseBundle(pem: string): readonly X509Certificate[] {
  const known = bundles.get(pem)
  if (known !== undefined) return known
  const blocks = pem.match(CERTIFICATE) ?? []
  const parsed: X509Certificate[] = []
  for (const block of blocks) {
    try {
      parsed.push(new X509Certificate(block))
    } catch {
      // A damaged CA verifies nothing; the others in the bundle still count.
    }
  }
  if (bundles.size >= MAX_BUNDLES) bundles.clear()
  bundles.set(pem, parsed)
  return parsed
}

/** Parses a certificate's subject, attribute by attribute, in their order. */
export function subjectOf(certificate: X509Certificate): CertificateSubject {
  const printed = certificate.subject
  return { attributes: PLAIN_SUBJECT.test(printed) ? plainAttributes(printed) : parsedAttributes(certificate) }
}

type SubjectAttributes = CertificateSubject['attributes']

function plainAttributes(printed: string): SubjectAttributes {
  return printed.split('\n').map((line) => {
    const equals = line.indexOf('=')
    return { type: line.slice(0, equals), value: line.slice(equals + 1) }
  })
}

/** Read from the DER, because the printed form is ambiguous; takes 0.15 ms, because keys and fingerprints are parsed, too. */
function parsedAttributes(certificate: X509Certificate): SubjectAttributes {
  const subject = certificate.toLegacyObject().subject as unknown as Record<string, string | string[]>
  const attributes: { type: string; value: string }[] = []
  for (const [type, values] of Object.entries(subject)) {
    for (const value of Array.isArray(values) ? values : [values]) attributes.push({ type, value })
  }
  return attributes
}
