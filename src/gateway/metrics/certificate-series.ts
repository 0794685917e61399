// Metrics of certificates, and of files that are reread when they change. Known only to the main thread.

import { CERTIFICATE_EXPIRATION, FILE_RELOADED } from './descriptors.ts'
import type { Exposition } from './exposition.ts'

export interface CertificateEnd {
  /** '' = the gateway's own. */
  readonly cluster: string
  readonly certificate: string
  /** Milliseconds since the epoch. */
  readonly endsMs: number
}

/** @param reloads by file: whether its content is in force */
export function exposeCertificates(
  into: Exposition,
  ends: readonly CertificateEnd[],
  reloads: ReadonlyMap<string, boolean>,
): void {
  for (const { cluster, certificate, endsMs } of ends) {
    into.addMetric(CERTIFICATE_EXPIRATION, endsMs / 1000, cluster, certificate)
  }
  for (const [file, inForce] of reloads) into.addMetric(FILE_RELOADED, inForce ? 1 : 0, file)
}
