// The gateway's own serving certificate when none is given: made once, kept in the data directory, used again after a
// restart, so that clients that trust its CA go on trusting it.

import { X509Certificate } from 'node:crypto'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { createCA, issueCertificate, type KeyPair } from './pki.ts'
import { readKeyPair, writeKeyPair } from './pki-files.ts'

export interface ServingCertificate extends KeyPair {
  /** Whether this call made it. */
  readonly generated: boolean
}

/** A certificate that ends within this time is replaced. */
const RENEW_BEFORE_MS = 30 * 24 * 60 * 60 * 1000

/**
 * DATA-DIR/pki/tls.crt and tls.key, signed by ca.crt and ca.key beside them, for localhost, the loopback addresses and
 * this machine's name. Only what is missing or about to end is made.
 * @throws {UserError} when a file cannot be read or written, or is no certificate or key
 */
export function ensureServingCertificate(dataDir: string): ServingCertificate {
  const dir = join(dataDir, 'pki')
  const knownCA = usable(readKeyPair(dir, 'ca'))
  const known = knownCA === undefined ? undefined : usable(readKeyPair(dir, 'tls'))
  if (known !== undefined) return { ...known, generated: false }
  const ca = knownCA ?? createCA({ commonName: 'portcullis' })
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
  if (pair === undefined) return undefined
  const endsMs = new X509Certificate(pair.certPem).validToDate.getTime()
  return endsMs - Date.now() > RENEW_BEFORE_MS ? pair : undefined
}

/** A machine's name need not be a host name; one that is none would make an invalid certificate. */
function ownName(): string[] {
  const name = hostname().toLowerCase()
  return name !== 'localhost' && /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/.test(name) ? [name] : []
}
