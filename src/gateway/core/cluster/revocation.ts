// Revoked users and credentials: spec.authentication.revoked, compiled to lookups. Checks the original user of a request, not the
// impersonated one. Credential hashes come from src/gateway/io/reviews/credential-hashes.ts.

import type { Revocation } from '../../api/upstream-cluster/upstream-cluster.ts'
import type { CompiledRevocation } from './compiled-cluster.ts'

/** The original user of a request, and its credential. */
export interface Revocable {
  readonly user: { readonly name: string }
  readonly kind: 'x509' | 'token' | 'anonymous'
  /** SHA-256, lower-case hex, of every form in which the certificate or token can be revoked. */
  readonly hashes: readonly string[]
}

/** undefined = no revocations: requests skip the check. */
export function compileRevocation(entries: readonly Revocation[]): CompiledRevocation | undefined {
  if (entries.length === 0) return undefined
  const users = new Set<string>()
  const certificates = new Set<string>()
  const tokens = new Set<string>()
  for (const { user, certificateFingerprint, tokenHash } of entries) {
    if (user !== undefined) users.add(user)
    // Validation demands lower-case hex. A fingerprint in OpenSSL's format must still take effect.
    if (certificateFingerprint !== undefined) certificates.add(plainHex(certificateFingerprint))
    if (tokenHash !== undefined) tokens.add(plainHex(tokenHash))
  }
  if (tokens.size > 0) tokens.add(UNRECOGNISABLE)
  return { users, certificates, tokens }
}

/**
 * Hash for a token that could be another encoding of a different token: rejected as soon as any token is revoked.
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
