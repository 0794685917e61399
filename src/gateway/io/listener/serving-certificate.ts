// The gateway's own serving certificate if none is configured: created once, stored in the data directory and reused after restarts, so that clients
// continue to trust its CA.

import { X509Certificate } from 'node:crypto'
import { join } from 'node:path'
import { UserError } from '../../../kit/api/validation/field-errors.ts'
import { caBundleError } from '../../../pki/io/ca-bundle.ts'
import {
  coversHost,
  createCA,
  hostsOf,
  isIssuedBy,
  issueCertificate,
  type KeyPair,
  MOST_HOSTS,
  splitHosts,
} from '../../../pki/io/pki.ts'
import { readKeyPair, writeKeyPair } from '../../../pki/io/pki-files.ts'

interface ServingCertificate extends KeyPair {
  /** Whether this call created it. */
  readonly generated: boolean
}

/** A certificate that expires within this time is replaced. */
const RENEW_BEFORE_MS = 30 * 24 * 60 * 60 * 1000

/** The directory that holds them. */
export function servingPkiDir(dataDir: string): string {
  return join(dataDir, 'pki')
}

export const SERVING_CA_NAME = 'portcullis'

/**
 * DATA-DIR/pki/tls.crt and tls.key, signed by ca.crt and ca.key next to them, for localhost, the loopback addresses and `hosts`. Only created if
 * missing, about to expire, or lacking one of `hosts`; names of the previous certificate are kept, because clients may use them.
 * @param sharedCA the CA is shared by all replicas: it is never replaced by this replica's own
 * @throws {UserError} if a file cannot be read or written, or is not a certificate or key
 */
export function ensureServingCertificate(
  dataDir: string,
  sharedCA = false,
  hosts: readonly string[] = [],
): ServingCertificate {
  const dir = servingPkiDir(dataDir)
  const ownCA = readKeyPair(dir, 'ca')
  const problem = ownCA === undefined ? '' : caBundleError(ownCA.certPem)
  if (problem !== '') throw new UserError(`${join(dir, 'ca.crt')} ${problem}`, 'put the right file there')
  const knownCA = sharedCA ? ownCA : usable(ownCA)
  const before = readKeyPair(dir, 'tls')
  const known = before !== undefined && knownCA !== undefined && isIssuedBy(before, knownCA) ? before : undefined
  if (known !== undefined && !isServingOutdated(known.certPem, hosts)) return { ...known, generated: false }
  const ca = knownCA ?? createCA({ commonName: SERVING_CA_NAME })
  if (knownCA === undefined) writeKeyPair(dir, 'ca', ca)
  const kept = known === undefined ? [] : hostsOf(known.certPem)
  const all = [...new Set(['localhost', '127.0.0.1', '::1', ...hosts, ...kept])].slice(0, MOST_HOSTS)
  try {
    const pair = issueCertificate(ca, { commonName: 'portcullis', usage: 'server', ...splitHosts(all) })
    writeKeyPair(dir, 'tls', pair)
    return { ...pair, generated: true }
  } catch (error) {
    // Disk full, or a CA whose key cannot sign: the gateway starts anyway, without that name.
    if (known === undefined || expiresSoon(known.certPem)) throw error
    return { ...known, generated: false }
  }
}

/** Whether it must be recreated: it expires soon, or lacks a required name. */
export function isServingOutdated(certPem: string, hosts: readonly string[]): boolean {
  const certificate = new X509Certificate(certPem)
  return expiresSoon(certPem) || !hosts.slice(0, MOST_HOSTS - 3).every((host) => coversHost(certificate, host))
}

function usable(pair: KeyPair | undefined): KeyPair | undefined {
  return pair === undefined || expiresSoon(pair.certPem) ? undefined : pair
}

function expiresSoon(certPem: string): boolean {
  return new X509Certificate(certPem).validToDate.getTime() - Date.now() <= RENEW_BEFORE_MS
}
