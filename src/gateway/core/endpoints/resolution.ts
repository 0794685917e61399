// What follows from a look-up of a server's name: its addresses, when it is looked up again, and when addresses that have gone are left.

/** What a look-up found. Each family by itself: a resolver that has no answer for one of them says nothing about it. */
export interface LookedUp {
  /** undefined = it could not be found out; empty = the name has none. */
  readonly v4: readonly string[] | undefined
  readonly v6: readonly string[] | undefined
  /** The shortest of all records; 0 = none was told. */
  readonly ttlSeconds: number
  /** Why a family, or all, could not be found out; '' = both could. */
  readonly message: string
}

export interface Resolution {
  readonly v4: readonly string[]
  readonly v6: readonly string[]
}

/** Of one name; more are left out. */
export const MAX_ADDRESSES = 64
/** Bounds of a TTL. Without one, and of names that are not in DNS: FIXED. */
export const MIN_TTL_MS = 5_000
export const MAX_TTL_MS = 300_000
export const FIXED_TTL_MS = 30_000
/** After a look-up that has failed, doubled by each further one. */
const MAX_RETRY_MS = 60_000

/** @returns what is in force now; `before` where nothing was learnt */
export function resolution(before: Resolution | undefined, { v4, v6 }: LookedUp): Resolution | undefined {
  const after = { v4: sorted(v4 ?? before?.v4 ?? []), v6: sorted(v6 ?? before?.v6 ?? []) }
  // An empty answer is an error of DNS far more often than a cluster without API servers.
  return after.v4.length + after.v6.length === 0 ? before : after
}

/** In an order of their own: resolvers rotate them. */
export function addressesIn({ v4, v6 }: Resolution): readonly string[] {
  return [...v4, ...v6].slice(0, MAX_ADDRESSES)
}

/** Until the next look-up, milliseconds. @param failures in a row, this one included; 0 = it has succeeded */
export function nextLookUpMs({ ttlSeconds }: Pick<LookedUp, 'ttlSeconds'>, failures: number): number {
  if (failures > 0) return Math.min(MAX_RETRY_MS, MIN_TTL_MS * 2 ** (failures - 1))
  if (ttlSeconds === 0) return FIXED_TTL_MS
  return Math.min(MAX_TTL_MS, Math.max(MIN_TTL_MS, ttlSeconds * 1000))
}

/**
 * What serves when a name gets other addresses. Those that have gone serve on as long as nobody else can: new ones are checked first.
 * @param healthy those that take requests
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
