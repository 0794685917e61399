// Metrics of certificates, and of files that are read again when they change. Only the main thread knows them.

import { CERTIFICATE_EXPIRATION, FILE_RELOADED } from './descriptors.ts'
import { Exposition } from './exposition.ts'

export interface CertificateEnd {
  /** '' = it is the gateway's own. */
  readonly cluster: string
  readonly certificate: string
  /** Milliseconds since the epoch. */
  readonly endsMs: number
}

/** @param reloads by file: whether its content is in force. In the Prometheus text format */
export function certificateSeriesText(ends: readonly CertificateEnd[], reloads: ReadonlyMap<string, boolean>): string {
  const exposition = new Exposition()
  for (const { cluster, certificate, endsMs } of ends) {
    exposition.addMetric(CERTIFICATE_EXPIRATION, endsMs / 1000, cluster, certificate)
  }
  for (const [file, inForce] of reloads) exposition.addMetric(FILE_RELOADED, inForce ? 1 : 0, file)
  return exposition.text()
}
