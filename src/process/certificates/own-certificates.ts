// Certificate expiry: the gateway's own and its clusters' as metrics, its own also as warnings in the log. controllers/status/certificates.ts reports
// a cluster's in its status.

import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { certificateEnds, endsSoon } from '../../gateway/controllers/status/certificates.ts'
import type { Exposition } from '../../gateway/metrics/exposition.ts'
import { type CertificateEnd, exposeCertificates } from '../../gateway/metrics/main-thread-series.ts'
import type { ClusterTable } from '../../gateway/state/clusters.ts'
import type { Clock, Logger } from '../../kit/api/ports.ts'
import { metaTime } from '../../kit/core/text/meta-time.ts'
import { certificateTimes } from '../../pki/io/certificate-validity.ts'

/** A certificate of the gateway, as opposed to a cluster's. */
export interface OwnCertificate {
  readonly name:
    | 'serving'
    | 'control-serving'
    | 'control-ca'
    | 'protection-serving'
    | 'protection-ca'
    | 'admin-serving'
    | 'health-serving'
    | 'redis-client'
    | 'redis-ca'
    | 'kubeconfig-client'
    | 'protection-kubeconfig-client'
    | 'protection-workloads-kubeconfig-client'
  /** PEM; only the first one matters. */
  readonly pem: string
}

/** Clusters processed per turn of the event loop: the first pass parses their certificates. */
const CLUSTERS_AT_ONCE = 100
const WARN_EVERY_MS = 12 * 60 * 60 * 1000

/** The metrics. */
export async function exposeCertificateEnds(
  into: Exposition,
  own: readonly OwnCertificate[],
  clusters: ClusterTable,
  reloads: ReadonlyMap<string, boolean>,
): Promise<void> {
  const ends: CertificateEnd[] = own.flatMap(({ name, pem }) => {
    const [times] = certificateTimes(pem)
    return times === undefined ? [] : [{ cluster: '', certificate: name, endsMs: times.endsMs }]
  })
  let seen = 0
  for (const { compiled } of clusters.values()) {
    for (const [certificate, endsMs] of certificateEnds(compiled)) {
      ends.push({ cluster: compiled.name, certificate, endsMs })
    }
    if (++seen % CLUSTERS_AT_ONCE === 0) await yieldToEventLoop()
  }
  exposeCertificates(into, ends, reloads)
}

/** Warns now and twice a day about certificates of the gateway that expire soon. @returns stops it */
export function warnOfExpiry(own: () => readonly OwnCertificate[], clock: Clock, log: Logger): () => void {
  const look = (): void => {
    for (const { name, pem } of own()) {
      const [times] = certificateTimes(pem)
      if (times === undefined || !endsSoon(times, clock.now())) continue
      const fields = { certificate: name, at: metaTime(times.endsMs) }
      // Clients reject it.
      if (times.endsMs <= clock.now()) log.error('a certificate of the gateway has expired', fields)
      else log.warn('a certificate of the gateway expires soon', fields)
    }
  }
  look()
  const timer = setInterval(look, WARN_EVERY_MS).unref()
  return () => clearInterval(timer)
}
