// The read cache of a cluster in this replica, as statuses, `portcullis top` and the dashboard show it.

export interface ReadCacheInForce {
  /** In the order of spec.cache; empty if the cluster has no cache, or its cache has not started yet. */
  resourcesOf(cluster: string): readonly CachedResourceInForce[]
}

/** Worst first: if namespaces or replicas differ, the worst state is that of the resource. */
export const CACHE_STATES = [
  /** The cluster has no such resource. */
  'UnknownResource',
  /** The cluster does not let it be listed and watched. */
  'Refused',
  /** It takes more than maxBytes. */
  'TooLarge',
  /** The cluster sent an answer that cannot be cached. */
  'Unreadable',
  /** The cluster was restored, and no longer has versions that it had reported. */
  'WentBack',
  /** It cannot be followed: the cached objects are getting old. */
  'Stale',
  /** Not read yet. */
  'Loading',
  'Serving',
] as const

export type CacheState = (typeof CACHE_STATES)[number]

export interface CachedResourceInForce {
  /** `pods`, `deployments.apps`. */
  readonly resource: string
  readonly version: string
  readonly state: CacheState
  /** When the state began, milliseconds since the epoch. */
  readonly sinceMs: number
  /** The fault, its place and the fix; '' = none. */
  readonly message: string
  readonly objects: number
  /** Memory of these objects, which all threads share. */
  readonly bytes: number
  /** Since the cluster last reported a change, or that there was none; undefined = nothing is cached. */
  readonly ageMs: number | undefined
  /** Reads answered since this replica began to cache the resource. */
  readonly hits: number
  /** Reads forwarded, by reason. */
  readonly passes: Readonly<Record<string, number>>
}

/** 0 is the worst. */
export function cacheStateRank(state: CacheState): number {
  return CACHE_STATES.indexOf(state)
}

export function passesOf({ passes }: Pick<CachedResourceInForce, 'passes'>): number {
  return Object.values(passes).reduce((sum, count) => sum + count, 0)
}
