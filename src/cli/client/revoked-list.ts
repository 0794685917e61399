// spec.authentication.revoked of an UpstreamCluster, as commands change it.

import type { Revocation } from '../../gateway/api/upstream-cluster/upstream-cluster.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { printable } from '../../kit/core/text/printable.ts'
import type { RevokedSubject } from './revoked-subject.ts'

/** What a command is about. */
export interface NamedSubjects {
  /** More than one for a certificate. */
  readonly subjects: readonly RevokedSubject[]
  /** Kept with what is revoked; of what is taken back, only entries with this reason. */
  readonly reason?: string
}

export function hasRevoked(object: JsonObject, { subjects }: NamedSubjects): boolean {
  const keys = new Set(revokedOf(object).map(keyOf))
  return subjects.every((subject) => keys.has(keyOf(subject)))
}

/** The list with what is missing of them; undefined = nothing is. */
export function withRevoked(
  object: JsonObject,
  { subjects, reason = '' }: NamedSubjects,
  revokedAt: string,
): readonly Revocation[] | undefined {
  const known = revokedOf(object)
  const keys = new Set(known.map(keyOf))
  const missing = subjects.filter((subject) => !keys.has(keyOf(subject)))
  if (missing.length === 0) return undefined
  return [...known, ...missing.map((subject) => ({ ...subject, ...(reason !== '' && { reason }), revokedAt }))]
}

/** The entries that taking it back removes. */
export function takenBackFrom(object: JsonObject, { subjects, reason = '' }: NamedSubjects): readonly Revocation[] {
  const keys = new Set(subjects.map(keyOf))
  return revokedOf(object).filter((one) => keys.has(keyOf(one)) && (reason === '' || one.reason === reason))
}

/** The list without them, null = it is empty; undefined = there are none. For a merge patch. */
export function withoutRevoked(object: JsonObject, named: NamedSubjects): readonly Revocation[] | null | undefined {
  const taken = new Set(takenBackFrom(object, named))
  if (taken.size === 0) return undefined
  const left = revokedOf(object).filter((one) => !taken.has(one))
  return left.length === 0 ? null : left
}

/** `revoked (INC-1)`. Operators write reasons: it goes to a terminal. */
export function revokedText(entries: readonly Revocation[]): string {
  const reasons = [...new Set(entries.map(({ reason = '' }) => reason))].filter((reason) => reason !== '').sort()
  return reasons.length === 0 ? 'revoked' : `revoked (${printable(reasons.join('; '))})`
}

function revokedOf(object: JsonObject): readonly Revocation[] {
  const spec = object['spec'] as { authentication?: { revoked?: readonly Revocation[] } } | undefined
  return spec?.authentication?.revoked ?? []
}

function keyOf({ user, certificateFingerprint, tokenHash }: RevokedSubject): string {
  return JSON.stringify([user, certificateFingerprint, tokenHash])
}
