// Certificates of a cluster that have expired, are not valid yet, or expire soon.

import { metaTime } from '../../../kit/core/text/meta-time.ts'
import { type CertificateTimes, certificateTimes } from '../../../pki/io/certificate-validity.ts'
import type { CompiledCluster } from '../../core/cluster/compiled-cluster.ts'
import type { CredentialFault } from '../../core/status/status-facts.ts'

/** How long before expiry a certificate is reported; short-lived ones in the last fifth of their validity. */
const SOON_MS = 30 * 24 * 60 * 60 * 1000
const SOON_PART = 5
const CLIENT_CERT = 'spec.clientConfig.certData'
const SERVING_CERT = 'spec.secureServing.certData'
const CLIENT_CA = 'spec.secureServing.clientCAData'
const UPSTREAM_CA = 'spec.clientConfig.caData'
/** Their names in metrics. */
const NAMES: ReadonlyMap<string, string> = new Map([
  [CLIENT_CERT, 'client'],
  [SERVING_CERT, 'serving'],
  [CLIENT_CA, 'client-ca'],
  [UPSTREAM_CA, 'upstream-ca'],
])
/** Bundles may contain old CAs next to those in use, so only the last expiry counts. */
const BUNDLES: ReadonlySet<string> = new Set([CLIENT_CA, UPSTREAM_CA])

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
  // A bundle may contain old CAs next to those in use. Tokens still work.
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
    return !endsSoon(times, nowMs) ? [] : [`${path}: the certificate expires at ${metaTime(times.endsMs)}`]
  })
}

/** Whether it expires soon, or has expired. */
export function endsSoon({ beginsMs, endsMs }: CertificateTimes, nowMs: number): boolean {
  return endsMs - nowMs <= Math.min(SOON_MS, (endsMs - beginsMs) / SOON_PART)
}

/** Expiry of each certificate of a cluster, milliseconds since the epoch, by its name in metrics; for a bundle the last one. */
export function certificateEnds(compiled: CompiledCluster): readonly [string, number][] {
  return [...timesOf(compiled)].flatMap(([path, times]): [string, number][] => {
    const ends = times.map(({ endsMs }) => endsMs)
    const end = BUNDLES.has(path) ? Math.max(...ends) : ends[0]
    return times.length === 0 || end === undefined ? [] : [[NAMES.get(path) ?? path, end]]
  })
}

/** The leaf is the first certificate of a chain. */
function leavesOf(compiled: CompiledCluster): readonly [string, readonly CertificateTimes[]][] {
  return [...timesOf(compiled)].filter(([path]) => !BUNDLES.has(path))
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
    [UPSTREAM_CA, certificateTimes(client.ca)],
  ])
  known.set(compiled, times)
  return times
}
