// TLS versions and cipher suites that clients may use: kube-apiserver's names mapped to OpenSSL's.

import type { SecureContextOptions } from 'node:tls'

/** Values of `--tls-min-version`; kube-apiserver's VersionTLS10 and VersionTLS11 are no longer offered (RFC 8996). */
export const TLS_VERSIONS = ['VersionTLS12', 'VersionTLS13'] as const
type TlsVersion = (typeof TLS_VERSIONS)[number]

/** kube-apiserver's preferred TLS 1.2 values of `--tls-cipher-suites` (Go, crypto/tls), mapped to OpenSSL's names. */
const SUITES: ReadonlyMap<string, string> = new Map([
  ['TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256', 'ECDHE-ECDSA-AES128-GCM-SHA256'],
  ['TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384', 'ECDHE-ECDSA-AES256-GCM-SHA384'],
  ['TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256', 'ECDHE-ECDSA-CHACHA20-POLY1305'],
  ['TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305', 'ECDHE-ECDSA-CHACHA20-POLY1305'],
  ['TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA', 'ECDHE-ECDSA-AES128-SHA'],
  ['TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA', 'ECDHE-ECDSA-AES256-SHA'],
  ['TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256', 'ECDHE-RSA-AES128-GCM-SHA256'],
  ['TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384', 'ECDHE-RSA-AES256-GCM-SHA384'],
  ['TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256', 'ECDHE-RSA-CHACHA20-POLY1305'],
  ['TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305', 'ECDHE-RSA-CHACHA20-POLY1305'],
  ['TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA', 'ECDHE-RSA-AES128-SHA'],
  ['TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA', 'ECDHE-RSA-AES256-SHA'],
])
/** As in Go, TLS 1.3 suites are not configurable: they are accepted here, and always all offered. */
const SUITES_13: readonly string[] = [
  'TLS_AES_128_GCM_SHA256',
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
]

/** All valid names in `--tls-cipher-suites`. */
export const CIPHER_SUITES: readonly string[] = [...SUITES_13, ...SUITES.keys()]

/** Options for a TLS context. */
export type TlsPolicy = Pick<SecureContextOptions, 'minVersion' | 'ciphers'>

export const DEFAULT_TLS_POLICY: TlsPolicy = { minVersion: 'TLSv1.2' }

/** @param suites from CIPHER_SUITES, most preferred first; empty = Node's */
export function tlsPolicy(version: TlsVersion, suites: readonly string[]): TlsPolicy {
  const minVersion = version === 'VersionTLS13' ? 'TLSv1.3' : 'TLSv1.2'
  if (suites.length === 0) return { minVersion }
  const chosen = suites.flatMap((suite) => SUITES.get(suite) ?? [])
  // Without a TLS 1.2 suite, only TLS 1.3 is offered, as in Go.
  return { minVersion, ciphers: [...SUITES_13, ...new Set(chosen)].join(':') }
}
