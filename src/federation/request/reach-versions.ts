// How new what is kept of a member has to be, and the wait for that. One that cannot be proved to be current in time does not hold up the others: a Warning
// names it.

import type { FreshnessQuestion } from '../../cache/core/changes/collection.ts'
import type { CachedCollections } from '../../cache/state/cached-collections.ts'
import type { CompiledFederation } from '../../gateway/core/cluster/compiled-cluster.ts'
import type { ContinuePlace } from '../core/continue.ts'
import type { FederatedRead } from '../core/federated-read.ts'
import { versionsOf } from '../core/federation-epoch.ts'
import { compareSlots } from '../core/vectors.ts'
import type { Versions } from '../state/federated-collection.ts'
import type { AskedMember, ReachedMember } from './asked-members.ts'

/** What is awaited before an answer. */
export type Awaited =
  | { readonly kind: 'nothing' }
  /** What is kept has to be as new as the read. */
  | { readonly kind: 'proof' }
  /** Exact: the answer has to be the state of these. */
  | { readonly kind: 'versions'; readonly versions: Versions; readonly isExact: boolean }
  /** For a watch that goes on: what is not known here yet comes later, unless the member never had it. */
  | { readonly kind: 'resume'; readonly versions: Versions }
  /** The members are others. */
  | { readonly kind: 'expired' }

/** @param after where a list goes on */
export function awaitedBy(
  read: FederatedRead,
  after: ContinuePlace | undefined,
  { members }: CompiledFederation,
): Awaited {
  if (read.kind === 'watch' && read.initial === undefined) {
    const versions = read.after && versionsOf(read.after, members)
    return versions === undefined ? { kind: 'expired' } : { kind: 'resume', versions }
  }
  const ofRead = read.kind === 'watch' ? (read.initial ?? 'any') : read.freshness
  const freshness = after === undefined ? ofRead : { exactly: after.vector }
  if (freshness === 'any') return { kind: 'nothing' }
  if (freshness === 'consistent') return { kind: 'proof' }
  const isExact = 'exactly' in freshness
  const versions = versionsOf(isExact ? freshness.exactly : freshness.notOlderThan, members)
  return versions === undefined ? { kind: 'expired' } : { kind: 'versions', versions, isExact }
}

/** However long it takes. */
export const AT_ANY_RATE: Pick<FreshnessQuestion, 'atOnce' | 'whole'> = { atOnce: false, whole: false }

/**
 * @param ms how long it is waited at most
 * @param nowMs when the read began: monotonic
 */
export async function reachInMember(
  kept: Pick<CachedCollections, 'currentVersion'>,
  { slot, kept: collection }: Pick<AskedMember, 'slot' | 'kept'>,
  awaited: Awaited,
  ms: number,
  nowMs: number,
): Promise<ReachedMember> {
  const current = async (): Promise<string | undefined> =>
    ms > 0 ? await kept.currentVersion(collection, ms, AT_ANY_RATE) : undefined
  if (awaited.kind === 'proof') {
    // That it is away is said.
    if (collection.awayFor(nowMs) > 0) return 'reached'
    return (await current()) === undefined ? 'unproved' : 'reached'
  }
  if (awaited.kind !== 'versions' && awaited.kind !== 'resume') return 'reached'
  const version = awaited.versions[slot] ?? ''
  if (version === '') return 'reached'
  if (awaited.kind === 'versions') return (await collection.reaches(version, ms)) ? 'reached' : 'ahead'
  if (collection.isAtLeast(version) && !collection.isGone) return 'reached'
  // Both at the same time: neither has to wait for the time of the other to be over. A quiet collection that is proved by its objects hears of no version.
  const reaches = collection.reaches(version, ms)
  const proof = current()
  const isThere = (proved: string | undefined): boolean => proved !== undefined && compareSlots(proved, version) >= 0
  if (await Promise.race([reaches, proof.then((proved) => isThere(proved) || reaches)])) return 'reached'
  const proved = await proof
  return proved === undefined || isThere(proved) ? 'reached' : 'expired'
}
