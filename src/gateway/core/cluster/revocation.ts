// Revoked users and credentials: spec.authentication.revoked, compiled to look-ups. The original user of a request counts, not the
// impersonated one. The hashes of a credential come from src/gateway/io/reviews/credential-hashes.ts.

import type { Revocation } from '../../api/upstream-cluster/upstream-cluster.ts'
import type { CompiledRevocation } from './compiled-cluster.ts'

/** The original user of a request, and its credential. */
export interface Revocable {
  readonly user: { readonly name: string }
  readonly kind: 'x509' | 'token' | 'anonymous'
  /** SHA-256, lower-case hex, of every form in which the certificate or token can be revoked. */
  readonly hashes: readonly string[]
}

/** undefined = nobody is revoked, which costs a request nothing. */
export function compileRevocation(entries: readonly Revocation[]): CompiledRevocation | undefined {
  if (entries.length === 0) return undefined
  const users = new Set<string>()
  const certificates = new Set<string>()
  const tokens = new Set<string>()
  for (const { user, certificateFingerprint, tokenHash } of entries) {
    if (user !== undefined) users.add(user)
    // Validation demands lower-case hex. A fingerprint as OpenSSL prints it must not be a revocation without effect.
    if (certificateFingerprint !== undefined) certificates.add(plainHex(certificateFingerprint))
    if (tokenHash !== undefined) tokens.add(plainHex(tokenHash))
  }
  if (tokens.size > 0) tokens.add(UNRECOGNISABLE)
  return { users, certificates, tokens }
}

/**
 * One of the hashes of a token that could be another encoding of a different token: if any token is revoked, these are rejected.
 */
export const UNRECOGNISABLE = 'unrecognisable'

function plainHex(text: string): string {
  return text.replaceAll(':', '').toLowerCase()
}

/** What is revoked, in words; '' = nothing. */
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
