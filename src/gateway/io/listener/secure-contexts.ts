// Shares one TLS context between equal credentials: thousands of clusters often have the same CA and client certificate, and each context would take
// a millisecond to create and 100 KB of memory.

import { createHash } from 'node:crypto'
import { createSecureContext, type SecureContext, type SecureContextOptions } from 'node:tls'

/** Options that determine a context; calls with equal ones get the same context. */
export type SharedContextOptions = Pick<
  SecureContextOptions,
  'minVersion' | 'ciphers' | 'secureOptions' | 'sessionTimeout' | 'allowPartialTrustChain'
> & {
  /** PEM. */
  readonly ca?: string | string[] | undefined
  readonly cert?: string | undefined
  readonly key?: string | undefined
}

/** Keyed by a hash of the options (so that cluster keys are not kept elsewhere), for as long as the context is in use. */
const known = new Map<string, WeakRef<SecureContext>>()
const forgotten = new FinalizationRegistry<string>((name) => {
  // A new one may have been created since.
  if (known.get(name)?.deref() === undefined) known.delete(name)
})

/**
 * A context shared with others of equal options; it must not be modified.
 * @throws OpenSSL's error about the credentials
 */
export function sharedSecureContext(options: SharedContextOptions): SecureContext {
  const { ca, cert, key, minVersion, ciphers, secureOptions, sessionTimeout, allowPartialTrustChain } = options
  const all = JSON.stringify([
    ca,
    cert,
    key,
    minVersion,
    ciphers,
    secureOptions,
    sessionTimeout,
    allowPartialTrustChain,
  ])
  const name = createHash('sha256').update(all).digest('base64')
  const shared = known.get(name)?.deref()
  if (shared !== undefined) return shared
  const context = createSecureContext(options)
  known.set(name, new WeakRef(context))
  forgotten.register(context, name)
  return context
}
