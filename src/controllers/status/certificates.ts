// Certificates of a cluster that have expired, are not valid yet, or expire soon.

import type { CompiledCluster } from '../../core/cluster/compiled-cluster.ts'
import type { CredentialFault } from '../../core/status/status-facts.ts'
import { metaTime } from '../../core/text/meta-time.ts'
import { type CertificateTimes, certificateTimes } from '../../io/pki/certificate-validity.ts'

/** How long before expiry a certificate is reported; short-lived ones in the last fifth of their validity. */
const SOON_MS = 14 * 24 * 60 * 60 * 1000
const SOON_PART = 5
const CLIENT_CERT = 'spec.clientConfig.certData'
const SERVING_CERT = 'spec.secureServing.certData'
const CLIENT_CA = 'spec.secureServing.clientCAData'

/** @param nowMs milliseconds since the epoch */
export function certificateFaults(compiled: CompiledCluster, nowMs: number): readonly CredentialFault[] {
  const faults: CredentialFault[] = []
  for (const [path, [times]] of leavesOf(compiled)) {
    if (times === undefined) continue
    if (times.endsMs <= nowMs) {
      faults.push({ path, reason: 'Expired', message: `the certificate expired at ${metaTime(times.endsMs)}` })
    } else if (times.beginsMs > nowMs) {
      faults.push({
        path,
        reason: 'NotYetValid',
        message: `the certificate is not valid before ${metaTime(times.beginsMs)}`,
      })
    }
  }
  // A bundle may hold old CAs beside those in use. Tokens still work.
  const roots = timesOf(compiled).get(CLIENT_CA) ?? []
  const lastMs = Math.max(...roots.map(({ endsMs }) => endsMs))
  if (roots.length > 0 && lastMs <= nowMs) {
    const message = `all client CAs have expired, the last one at ${metaTime(lastMs)}`
    faults.push({ path: CLIENT_CA, reason: 'Expired', message, partial: true })
  }
  return faults
}

/** Sentences about certificates that are valid but expire soon. */
export function certificatesEndingSoon(compiled: CompiledCluster, nowMs: number): readonly string[] {
  return leavesOf(compiled).flatMap(([path, [times]]) => {
    if (times === undefined || times.endsMs <= nowMs) return []
    const soonMs = Math.min(SOON_MS, (times.endsMs - times.beginsMs) / SOON_PART)
    return times.endsMs - nowMs > soonMs ? [] : [`${path}: the certificate expires at ${metaTime(times.endsMs)}`]
  })
}

/** The leaf is the first certificate of a chain. */
function leavesOf(compiled: CompiledCluster): readonly [string, readonly CertificateTimes[]][] {
  return [...timesOf(compiled)].filter(([path]) => path !== CLIENT_CA)
}

/** Parsed once for each version of a cluster. */
const known = new WeakMap<CompiledCluster, ReadonlyMap<string, readonly CertificateTimes[]>>()

function timesOf(compiled: CompiledCluster): ReadonlyMap<string, readonly CertificateTimes[]> {
  const before = known.get(compiled)
  if (before !== undefined) return before
  const { client, serving } = compiled
  const times = new Map([
    [CLIENT_CERT, certificateTimes(client.cert)],
    [SERVING_CERT, certificateTimes(serving.cert)],
    [CLIENT_CA, certificateTimes(serving.clientCA)],
  ])
  known.set(compiled, times)
  return times
}
