// Turns a DNS lookup of a server into addresses in force: which to use, when to look up again, and when to drop addresses that are gone.

/** Result of a lookup. Each family stands alone: a resolver without an answer for one says nothing about the other. */
export interface LookedUp {
  /** undefined = the lookup failed; empty = the name has none. */
  readonly v4: readonly string[] | undefined
  readonly v6: readonly string[] | undefined
  /** The shortest of all records; 0 = none given. */
  readonly ttlSeconds: number
  /** Why one or both families could not be resolved; '' = both were. */
  readonly message: string
}

export interface Resolution {
  readonly v4: readonly string[]
  readonly v6: readonly string[]
}

/** Maximum per name; the rest is ignored. */
export const MAX_ADDRESSES = 64
/** Bounds of a TTL. FIXED applies if there is none, and to names that are not in DNS. */
export const MIN_TTL_MS = 5_000
export const MAX_TTL_MS = 300_000
export const FIXED_TTL_MS = 30_000
/** Maximum delay after a failed lookup; it doubles with each further failure. */
const MAX_RETRY_MS = 60_000

/** @returns the resolution now in force; `before` if nothing was learned */
export function resolution(before: Resolution | undefined, { v4, v6 }: LookedUp): Resolution | undefined {
  const after = { v4: sorted(v4 ?? before?.v4 ?? []), v6: sorted(v6 ?? before?.v6 ?? []) }
  // An empty answer is a DNS error far more often than a cluster without API servers.
  return after.v4.length + after.v6.length === 0 ? before : after
}

/** Sorted: resolvers rotate them. */
export function addressesIn({ v4, v6 }: Resolution): readonly string[] {
  return [...v4, ...v6].slice(0, MAX_ADDRESSES)
}

/** Milliseconds until the next lookup. @param failures in a row, including this one; 0 = it succeeded */
export function nextLookUpMs({ ttlSeconds }: Pick<LookedUp, 'ttlSeconds'>, failures: number): number {
  if (failures > 0) return Math.min(MAX_RETRY_MS, MIN_TTL_MS * 2 ** (failures - 1))
  if (ttlSeconds === 0) return FIXED_TTL_MS
  return Math.min(MAX_TTL_MS, Math.max(MIN_TTL_MS, ttlSeconds * 1000))
}

/**
 * The addresses in force after a name changed. Removed addresses keep serving while no other can: new ones are checked first.
 * @param healthy addresses that take requests
 */
export function addressesInForce(
  before: readonly string[],
  after: readonly string[],
  healthy: (address: string) => boolean,
): readonly string[] {
  const gone = before.filter((address) => !after.includes(address))
  return gone.length === 0 || after.some(healthy) ? after : [...after, ...gone]
}

function sorted(addresses: readonly string[]): readonly string[] {
  return [...new Set(addresses)].sort()
}
