// Who is cut off: spec.authentication.revoked, compiled to look-ups. The one who sends a request counts, not whom an
// administrator acts as. What there is of a credential to recognise it by is made in src/io/pki/credential-hashes.ts.

import type { Revocation } from '../../api/upstream-cluster/upstream-cluster.ts'
import type { CompiledRevocation } from './compiled-cluster.ts'

/** What is known of somebody who sends requests. */
export interface Revocable {
  readonly user: { readonly name: string }
  readonly kind: 'x509' | 'token' | 'anonymous'
  /** SHA-256, lower-case hex, of all that the certificate or token can be recognised by. */
  readonly hashes: readonly string[]
}

/** undefined = nobody is revoked, and a request pays nothing for it. */
export function compileRevocation(entries: readonly Revocation[]): CompiledRevocation | undefined {
  if (entries.length === 0) return undefined
  const users = new Set<string>()
  const certificates = new Set<string>()
  const tokens = new Set<string>()
  for (const { user, certificateFingerprint, tokenHash } of entries) {
    if (user !== undefined) users.add(user)
    // Validation wants lower-case hex. Fingerprints as OpenSSL prints them must not be a revocation that does nothing.
    if (certificateFingerprint !== undefined) certificates.add(plainHex(certificateFingerprint))
    if (tokenHash !== undefined) tokens.add(plainHex(tokenHash))
  }
  if (tokens.size > 0) tokens.add(UNRECOGNISABLE)
  return { users, certificates, tokens }
}

/**
 * Stands among the hashes of a token that could be any other one, written another way: where a token is revoked, none of these is
 * let in.
 */
export const UNRECOGNISABLE = 'unrecognisable'

function plainHex(text: string): string {
  return text.replaceAll(':', '').toLowerCase()
}

/** What of it is revoked, in words; '' = nothing. */
export function revokedPart(revoked: CompiledRevocation, { user, kind, hashes }: Revocable): string {
  if (kind === 'x509' && hasAny(revoked.certificates, hashes)) return CERTIFICATE_REVOKED
  if (kind === 'token' && hasAny(revoked.tokens, hashes)) return TOKEN_REVOKED
  return revoked.users.has(user.name) ? revokedUserMessage(user.name) : ''
}

function revokedUserMessage(user: string): string {
  return `user "${user}" is revoked`
}

export const CERTIFICATE_REVOKED = 'the client certificate is revoked'
export const TOKEN_REVOKED = 'the token is revoked'

export function hasAny(known: ReadonlySet<string>, hashes: readonly string[]): boolean {
  for (let i = 0; i < hashes.length; i++) if (known.has(hashes[i] ?? '')) return true
  return false
}
