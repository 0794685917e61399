// The gateway's own serving certificate when none is given: created once, kept in the data directory, used again after a
// restart, so that clients that trust its CA go on trusting it.

import { X509Certificate } from 'node:crypto'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { UserError } from '../../api/validation/field-errors.ts'
import { caBundleError } from '../pki/ca-bundle.ts'
import { createCA, isIssuedBy, issueCertificate, type KeyPair } from '../pki/pki.ts'
import { readKeyPair, writeKeyPair } from '../pki/pki-files.ts'

export interface ServingCertificate extends KeyPair {
  /** Whether this call created it. */
  readonly generated: boolean
}

/** A certificate that expires within this time is replaced. */
const RENEW_BEFORE_MS = 30 * 24 * 60 * 60 * 1000

/** Where they are kept. */
export function servingPkiDir(dataDir: string): string {
  return join(dataDir, 'pki')
}

export const SERVING_CA_NAME = 'portcullis'

/**
 * DATA-DIR/pki/tls.crt and tls.key, signed by ca.crt and ca.key next to them, for localhost, the loopback addresses and
 * this machine's name. Only what is missing or about to expire is created.
 * @param sharedCA the CA there is that of all replicas: it is never replaced by one of this replica's own
 * @throws {UserError} when a file cannot be read or written, or is not a certificate or key
 */
export function ensureServingCertificate(dataDir: string, sharedCA = false): ServingCertificate {
  const dir = servingPkiDir(dataDir)
  const ownCA = readKeyPair(dir, 'ca')
  const problem = ownCA === undefined ? '' : caBundleError(ownCA.certPem)
  if (problem !== '') throw new UserError(`${join(dir, 'ca.crt')} ${problem}`, 'put the right file there')
  const knownCA = sharedCA ? ownCA : usable(ownCA)
  const known = knownCA === undefined ? undefined : usable(readKeyPair(dir, 'tls'))
  if (known !== undefined && knownCA !== undefined && isIssuedBy(known, knownCA)) return { ...known, generated: false }
  const ca = knownCA ?? createCA({ commonName: SERVING_CA_NAME })
  if (knownCA === undefined) writeKeyPair(dir, 'ca', ca)
  const pair = issueCertificate(ca, {
    commonName: 'portcullis',
    usage: 'server',
    dnsNames: ['localhost', ...ownName()],
    ipAddresses: ['127.0.0.1', '::1'],
  })
  writeKeyPair(dir, 'tls', pair)
  return { ...pair, generated: true }
}

function usable(pair: KeyPair | undefined): KeyPair | undefined {
  return pair === undefined || expiresSoon(pair.certPem) ? undefined : pair
}

/** Whether it is time to replace it. */
export function expiresSoon(certPem: string): boolean {
  return new X509Certificate(certPem).validToDate.getTime() - Date.now() <= RENEW_BEFORE_MS
}

/** A machine's name need not be a valid host name; then it would make the certificate invalid. */
function ownName(): string[] {
  const name = hostname().toLowerCase()
  return name !== 'localhost' && /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/.test(name) ? [name] : []
}
