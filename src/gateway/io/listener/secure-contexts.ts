// One TLS context for equal credentials: thousands of clusters often share a CA and a client certificate, and a context
// each would cost a millisecond to create and 100 KB to keep.

import { createHash } from 'node:crypto'
import { createSecureContext, type SecureContext, type SecureContextOptions } from 'node:tls'

/** Options that decide what a context is; two calls with equal ones get the same context. */
export type SharedContextOptions = Pick<
  SecureContextOptions,
  'minVersion' | 'ciphers' | 'secureOptions' | 'sessionTimeout' | 'allowPartialTrustChain'
> & {
  /** PEM. */
  readonly ca?: string | string[] | undefined
  readonly cert?: string | undefined
  readonly key?: string | undefined
}

/** By a hash of the options (keys of clusters are kept nowhere else), for as long as somebody holds the context. */
const known = new Map<string, WeakRef<SecureContext>>()
const forgotten = new FinalizationRegistry<string>((name) => {
  // Another one may have been created since.
  if (known.get(name)?.deref() === undefined) known.delete(name)
})

/**
 * A context that is shared with others of equal options, so it must not be changed.
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
