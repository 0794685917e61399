// A CA stored as PEM text: the first certificate signs, the others are trusted, too. In such a bundle the old and new CA overlap during a rotation.

import { X509Certificate } from 'node:crypto'
import { CERTIFICATE, nodePemChecks } from './pem-checks.ts'
import { isIssuedBy, type KeyPair } from './pki.ts'

/** All certificates of a PEM text, in order. */
export function certificatesOf(pem: string): readonly string[] {
  return pem.match(CERTIFICATE) ?? []
}

/** Why clients cannot be verified with a bundle; '' = they can. An expired certificate verifies nothing, and does no harm. */
export function caBundleError(pem: string): string {
  const problem = nodePemChecks.certificatesError(pem)
  if (problem !== '') return problem
  const others = certificatesOf(pem).map((one) => new X509Certificate(one).ca)
  const at = others.indexOf(false)
  if (at === -1) return ''
  return others.length === 1
    ? 'is not a CA certificate'
    : `certificate ${at + 1} of ${others.length} is not a CA certificate`
}

/** Whether one of these CAs signed it. */
export function isIssuedByOneOf(leaf: Pick<KeyPair, 'certPem'>, cas: readonly string[]): boolean {
  return cas.some((certPem) => isIssuedBy(leaf, { certPem }))
}
