// Recognises revoked credentials by hash, so that the object listing them grants no access. A hash of the text alone is not enough: a holder can
// rewrite a credential into another valid form. An ECDSA signature (r, s) is as valid as (r, n-s), the last character of base64url has insignificant
// bits, and kube-apiserver's JWT library skips white space. So the signed part is hashed, too: it cannot be changed without the issuer's key.

import { hash, X509Certificate } from 'node:crypto'
import { CERTIFICATE } from '../../../pki/io/pem-checks.ts'
import { UNRECOGNISABLE } from '../../core/cluster/revocation.ts'

/** What go-jose removes from a token before parsing (`\s` in Go's regexp). */
const WHITE_SPACE = /[\t\n\f\r ]/g
const DER_SEQUENCE = 0x30
const LONG_FORM = 0x80

/** Hash of the token as it is, and for a JWT of its header and claims in canonical form. */
export function tokenHashes(token: string): readonly string[] {
  const whole = sha256(token)
  const read = asParsed(token)
  if (isObject(read)) return [whole, UNRECOGNISABLE]
  const claims = signedPartOfJwt(read)
  return claims === undefined ? [whole] : [whole, sha256(claims)]
}

/**
 * The one hash that no rewriting of the token evades: recorded when a token is revoked.
 * @param token without surrounding white space
 */
export function revocableTokenHash(token: string): string {
  return tokenHashes(token).at(-1) ?? ''
}

/** A JWT as a JSON object (RFC 7515 section 7.2) has endless spellings; no real client sends one. */
export function isUnrecognisable(token: string): boolean {
  return isObject(asParsed(token))
}

function asParsed(token: string): string {
  return token.replace(WHITE_SPACE, '')
}

function isObject(parsed: string): boolean {
  return parsed.startsWith('{')
}

/** Hash of the certificate as sent, and of its signed part. @param der the leaf */
export function certificateHashes(der: Buffer): readonly string[] {
  const signed = signedPartOfCertificate(der)
  return signed === undefined ? [sha256(der)] : [sha256(der), sha256(signed)]
}

/** Lower-case hexadecimal. */
export function sha256(data: string | Buffer): string {
  return hash('sha256', data, 'hex')
}

/** `header.payload` (RFC 7515 section 5.1), decoded and re-encoded; undefined if the token is not a JWT. @param parsed without white space */
function signedPartOfJwt(parsed: string): string | undefined {
  const [header, payload, signature, more] = parsed.split('.', 4)
  if (header === undefined || payload === undefined || signature === undefined || more !== undefined) return undefined
  return `${canonical(header)}.${canonical(payload)}`
}

function canonical(part: string): string {
  return Buffer.from(part, 'base64url').toString('base64url')
}

/** tbsCertificate (RFC 5280 section 4.1): the first element of the outer sequence, with its header. */
function signedPartOfCertificate(der: Buffer): Buffer | undefined {
  const outer = readHeader(der, 0)
  if (outer === undefined) return undefined
  const inner = readHeader(der, outer.contentAt)
  if (inner === undefined || inner.endAt > der.length) return undefined
  return der.subarray(outer.contentAt, inner.endAt)
}

/** The header of a DER sequence (ITU-T X.690 section 8.1). */
function readHeader(der: Buffer, at: number): { contentAt: number; endAt: number } | undefined {
  const length = der[at + 1]
  if (der[at] !== DER_SEQUENCE || length === undefined) return undefined
  if (length < LONG_FORM) return { contentAt: at + 2, endAt: at + 2 + length }
  const bytes = length - LONG_FORM
  if (bytes === 0 || bytes > 4 || at + 2 + bytes > der.length) return undefined
  const contentAt = at + 2 + bytes
  return { contentAt, endAt: contentAt + der.readUIntBE(at + 2, bytes) }
}

/** The first certificate of a PEM text; undefined if there is no readable one. */
export function readCertificate(
  pem: string,
): { readonly subject: string; readonly hashes: readonly string[] } | undefined {
  const block = pem.match(CERTIFICATE)?.[0]
  if (block === undefined) return undefined
  try {
    const certificate = new X509Certificate(block)
    return { subject: certificate.subject.replaceAll('\n', ', '), hashes: certificateHashes(certificate.raw) }
  } catch {
    return undefined
  }
}
