// Revocations (spec.authentication.revoked): an entry that matches no credential would look like a revocation without being one.

import type { Loose } from '../../../kit/api/json/object-shape.ts'
import { type FieldErrors, shown } from '../../../kit/api/validation/field-errors.ts'
import { isTimestamp } from '../../../kit/api/validation/name-syntax.ts'
import type { Revocation } from './upstream-cluster.ts'

const WAYS = ['user', 'certificateFingerprint', 'tokenHash'] as const
const HASHES = { certificateFingerprint: 'the client certificate (DER)', tokenHash: 'the bearer token' } as const
const SHA256 = /^[0-9a-f]{64}$/

export function checkRevocations(
  revoked: readonly (Loose<Revocation> | undefined)[],
  path: string,
  out: FieldErrors,
): void {
  for (const [index, revocation] of revoked.entries()) {
    if (revocation !== undefined) checkRevocation(revocation, `${path}[${index}]`, out)
  }
}

/** Checks one entry, which may have other fields as well. */
export function checkRevocation(revocation: Loose<Revocation>, path: string, out: FieldErrors): void {
  const given = WAYS.filter((way) => revocation[way] !== undefined)
  if (given.length === 0) out.invalid(path, 'names no user and no credential', `give one of ${WAYS.join(', ')}`)
  for (const extra of given.slice(1)) {
    out.forbidden(`${path}.${extra}`, `may not be specified when ${given[0]} is set`, 'give each its own entry')
  }
  for (const [field, what] of Object.entries(HASHES)) {
    const hash = revocation[field as keyof typeof HASHES]
    if (hash === undefined || SHA256.test(hash)) continue
    // The token itself may have been put here in error.
    const message = field === 'tokenHash' ? 'is not a valid SHA-256' : `${shown(hash)} is not a valid SHA-256`
    out.invalid(`${path}.${field}`, message, `write the SHA-256 of ${what}: 64 lower-case hex digits, no colons`)
  }
  const { revokedAt } = revocation
  if (revokedAt !== undefined && !isTimestamp(revokedAt)) {
    out.invalid(
      `${path}.revokedAt`,
      `${shown(revokedAt)} is not a valid time`,
      'write RFC 3339, such as 2030-01-31T18:00:00Z',
    )
  }
}
