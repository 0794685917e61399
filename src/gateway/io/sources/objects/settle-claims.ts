// The rule for what only one cluster can have, whatever the source: the current holder keeps it, else the first in order gets it; a loser falls back
// to its last good version, or is not loaded.

import type { ResolvedCluster } from '../../../api/resource-source.ts'
import {
  type ClusterConflict,
  claimsOf,
  findConflicts,
  heldClaims,
} from '../../../api/upstream-cluster/cluster-conflicts.ts'
import { NamesByKey } from '../../../core/cluster/names-by-key.ts'

/**
 * Removes from `wanted` what must not be in force. Falling back may revive an old claim, hence the loop; it ends, because versions in force have no
 * conflicts among each other and never lose. After the first round only fallbacks can cause conflicts, so a chain of clusters that each make the next
 * fall back costs time linear in its length.
 *
 * @param wanted new versions if good, else the last good ones; in the order in which claims are granted
 * @param inForce every cluster that shares a claim with one of `wanted` must be among these, if it is in force at all
 * @param onLoss called for each lost claim, with the version of its holder
 */
export function settleClaims<Version extends ResolvedCluster>(
  wanted: Map<string, Version>,
  inForce: ReadonlyMap<string, Version>,
  onLoss: (conflict: ClusterConflict, holder: Version | undefined, fallsBack: boolean) => void,
): void {
  const holds = heldClaims([...inForce.values()].map((cluster) => cluster.object))
  const places = new Map([...wanted.keys()].map((name, place) => [name, place]))
  const claimants = new NamesByKey()
  for (const [name, version] of wanted) for (const key of keysOf(version)) claimants.add(key, name)
  let names: readonly string[] = [...wanted.keys()]
  while (names.length > 0) {
    const members = names.flatMap((name) => wanted.get(name)?.object ?? [])
    const conflicts = findConflicts(members, holds)
    const involved = new Set(conflicts.flatMap(({ loser, holder }) => [loser, holder]))
    const before = new Map([...involved].map((name) => [name, wanted.get(name)]))
    for (const conflict of conflicts) {
      const { loser, holder } = conflict
      const last = inForce.get(loser)
      const fallsBack = last !== undefined && before.get(loser) !== last
      if (fallsBack) wanted.set(loser, last)
      else wanted.delete(loser)
      onLoss(conflict, before.get(holder), fallsBack)
    }
    const next = new Set<string>()
    const losers = new Set(conflicts.map(({ loser }) => loser))
    for (const loser of losers) for (const key of keysOf(before.get(loser))) claimants.remove(key, loser)
    for (const loser of losers) for (const key of keysOf(wanted.get(loser))) claimants.add(key, loser)
    for (const loser of losers) {
      for (const key of keysOf(wanted.get(loser))) for (const name of claimants.get(key)) next.add(name)
    }
    names = [...next].sort((a, b) => (places.get(a) ?? 0) - (places.get(b) ?? 0))
  }
}

function keysOf(version: ResolvedCluster | undefined): readonly string[] {
  return version === undefined ? [] : claimsOf(version.object).map(({ key }) => key)
}

/** Which claim what, so that only clusters that a change can affect are settled again. */
export class ClusterClaims {
  /** The claims of each cluster that makes any. */
  readonly #claims = new Map<string, readonly string[]>()
  readonly #claimants = new NamesByKey()
  /** Clusters changed since the last settlement, with their previous claims. */
  readonly #touched = new Map<string, readonly string[]>()

  get isTouched(): boolean {
    return this.#touched.size > 0
  }

  /** Replaces the claims of a cluster. */
  set(name: string, claims: readonly string[]): void {
    for (const claim of this.#of(name)) this.#claimants.remove(claim, name)
    for (const claim of claims) this.#claimants.add(claim, name)
    if (claims.length === 0) this.#claims.delete(name)
    else this.#claims.set(name, claims)
  }

  /** Includes a cluster in the next settlement; call it before its claims change. */
  touch(name: string): void {
    this.#touched.set(name, [...(this.#touched.get(name) ?? []), ...this.#of(name)])
  }

  /** The touched clusters, and all that claim what one of these claims, claimed or holds: no others can be affected. */
  affected(): ReadonlySet<string> {
    const names = new Set(this.#touched.keys())
    // Iterating a set includes members added along the way.
    for (const name of names) {
      const claims = [...(this.#touched.get(name) ?? []), ...this.#of(name)]
      for (const claim of claims) for (const other of this.#claimants.get(claim)) names.add(other)
    }
    return names
  }

  settled(): void {
    this.#touched.clear()
  }

  #of(name: string): readonly string[] {
    return this.#claims.get(name) ?? []
  }
}
