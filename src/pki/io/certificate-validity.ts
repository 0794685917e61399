// Validity periods of certificates.

import { X509Certificate } from 'node:crypto'
import { CERTIFICATE } from './pem-checks.ts'

export interface CertificateTimes {
  /** notBefore and notAfter, milliseconds since the epoch. */
  readonly beginsMs: number
  readonly endsMs: number
}

/** Validity of each certificate in a PEM text, in order; unparseable ones are omitted. */
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
