// Validity periods of certificates.

import { X509Certificate } from 'node:crypto'
import { CERTIFICATE } from './pem-checks.ts'

export interface CertificateTimes {
  /** notBefore and notAfter, milliseconds since the epoch. */
  readonly beginsMs: number
  readonly endsMs: number
}

/** The times of each certificate in a PEM text, in order; what cannot be parsed is left out. */
export function certificateTimes(pem: string): readonly CertificateTimes[] {
  return [...pem.matchAll(CERTIFICATE)].flatMap(([block]) => {
    try {
      const { validFromDate, validToDate } = new X509Certificate(block)
      return [{ beginsMs: validFromDate.getTime(), endsMs: validToDate.getTime() }]
    } catch {
      return []
    }
  })
}
